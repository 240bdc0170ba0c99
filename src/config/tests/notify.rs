//! Who is told how jobs go: what a table may say of it, and that none of it is shown.

use super::policies::{Case, assert_refused};
use super::{PASSWORD, job, read, read_as};
use crate::config::{Config, Security, Strictness, Target};
use crate::scheduler::lease::{Topic, Topics};
use crate::scheduler::notify::Notify;
use std::time::Duration;

const TARGETS: &str = r#"
[notify.ops]
webhook = { url = "https://chat.example/hunter2", secret = "whsec_aHVudGVyMmh1bnRlcjJodW50ZXIy", headers = { X-Key = "${PASSWORD}" } }
[notify.chat]
webhook = "https://chat.example/hunter2/${SOLOIST_JOB}"
[notify.oncall]
email = { to = ["Ops <ops@shop.example>", "b@shop.example"], from = "soloist@shop.example", smtp = "smtps://me:${PASSWORD}@mail.example" }
"#;

fn with(notify: &str) -> Config {
    let source = format!("{TARGETS}[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n{notify}\n");
    read(&source).unwrap_or_else(|error| panic!("{error}"))
}

fn notify_of(line: &str) -> Notify {
    with(line).jobs.remove(0).notify
}

#[test]
fn a_target_is_a_webhook_or_a_mail() {
    let config = with("");
    let Some(Target::Webhook(ops)) = config.targets.get("ops") else {
        panic!("a webhook")
    };
    assert_eq!(ops.secret.as_deref(), Some(&b"hunter2hunter2hunter2"[..]));
    assert_eq!(ops.headers[0].0, "X-Key");
    let Some(Target::Email(oncall)) = config.targets.get("oncall") else {
        panic!("a mail")
    };
    assert_eq!(oncall.to.len(), 2);
    assert_eq!(oncall.server.security, Security::Tls);
    assert_eq!(
        oncall.server.user,
        Some(("me".to_owned(), PASSWORD.to_owned()))
    );
    assert!(!format!("{config:?}").contains(PASSWORD));
}

#[test]
fn a_job_says_who_is_told_of_what() {
    assert!(notify_of("").is_nobody());
    assert!(notify_of("notify = []").is_nobody());
    assert_eq!(notify_of("notify = \"ops\"").telling.to[..], ["ops"]);
    let all = notify_of("notify = [\"ops\", \"oncall\"]");
    assert_eq!(all.telling.to[..], ["ops", "oncall"]);
    assert_eq!(all.telling.topics, Topic::ALL.into_iter().collect());
    assert_eq!(all.telling.repeat, Duration::from_secs(3600));
    let some = notify_of(
        "notify = { to = \"ops\", on = [\"failure\", \"recovery\"], repeat = \"5m\", ping = \"https://hc.example/hunter2\", ping_output = true }",
    );
    let topics: Topics = [Topic::Failure, Topic::Recovery].into_iter().collect();
    assert_eq!(some.telling.topics, topics);
    assert_eq!(some.telling.repeat, Duration::from_secs(300));
    assert!(some.ping.as_ref().is_some_and(|ping| ping.output));
    assert!(!format!("{some:?}").contains(PASSWORD));
}

#[test]
fn a_list_takes_the_place_of_all_that_defaults_say_and_a_table_of_what_it_names() {
    let ping = "ping = \"https://hc.example/k/${SOLOIST_JOB}\"";
    let read = |defaults: &str, job: &str| {
        let source = format!(
            "{TARGETS}[defaults]\nnotify = {defaults}\nschedule = \"@daily\"\nshell = \"x\"\n[jobs.x]\n{job}\n"
        );
        let mut config = read(&source).unwrap_or_else(|error| panic!("{error}"));
        let Notify { telling, ping } = config.jobs.remove(0).notify;
        (telling.to.join(" "), telling.topics, ping.is_some())
    };
    let all: Topics = Topic::ALL.into_iter().collect();
    let missed: Topics = [Topic::Missed].into_iter().collect();
    let whole = format!("{{ to = [\"ops\"], on = [\"missed\"], {ping} }}");
    let pings = format!("notify = {{ {ping} }}");
    for (defaults, job, expected) in [
        ("\"ops\"", "", ("ops", all, false)),
        ("[\"ops\", \"chat\"]", "notify = []", ("", all, false)),
        (&whole, "notify = \"chat\"", ("chat", all, false)),
        ("[\"ops\"]", &pings, ("ops", all, true)),
        (&whole, "notify = { to = \"chat\" }", ("chat", missed, true)),
        (&whole, "notify = { to = [] }", ("", missed, true)),
        (
            "{ on = [\"missed\"], to = [] }",
            "notify = { to = \"chat\" }",
            ("chat", missed, false),
        ),
        (
            "[\"ops\"]",
            "notify = { on = \"missed\" }",
            ("ops", missed, false),
        ),
    ] {
        let (to, topics, pinged) = read(defaults, job);
        assert_eq!((&*to, topics, pinged), expected, "{defaults} and {job}");
    }
}

#[test]
fn an_attempt_is_slow_before_it_times_out() {
    let minute = Duration::from_secs(60);
    assert_eq!(job("warn_after = \"1m\"").warn_after, Some(minute));
    let source = "[defaults]\nwarn_after = \"1m\"\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\ntimeout = \"1m\"\n";
    assert!(read(source).is_ok(), "it is for the jobs that it fits");
}

const REFUSED: &[Case] = &[
    (
        "#notify = [\"opps\"]\n[notify.ops]\nwebhook = \"http://h\"",
        "\"opps\"",
        "there is no target `opps`",
        "did you mean `ops`?",
    ),
    (
        "#notify = \"ops\"",
        "\"ops\"",
        "there is no target `ops`",
        "[notify.ops]",
    ),
    (
        "#notify = 5",
        "5",
        "a string or a list",
        "notify = [\"ops\"]",
    ),
    (
        "#notify = { on = [\"failure\"] }",
        "[\"failure\"]",
        "no effect without `to`",
        "to = [\"ops\"]",
    ),
    (
        "#notify = { to = [], on = [\"failures\"] }",
        "\"failures\"",
        "nothing that people are told of",
        "did you mean `failure`?",
    ),
    (
        "#notify = { to = [], on = [\"recovery\"] }",
        "[\"recovery\"]",
        "a recovery is told after a failure",
        "on = [\"failure\", \"recovery\"]",
    ),
    (
        "#notify = { to = [], on = [] }",
        "[]",
        "told of nothing",
        "on = [\"failure\"]",
    ),
    (
        "#notify = { tos = \"x\" }",
        "tos",
        "unknown key `tos`",
        "did you mean `to`?",
    ),
    (
        "#notify = { to = [], repeat = \"0s\" }",
        "\"0s\"",
        "at least 1s",
        "1h",
    ),
    (
        "#notify = { ping = \"hunter2\" }",
        "\"hunter2\"",
        "`ping` does not begin with",
        "for example `ping",
    ),
    (
        "#notify = { ping = \"http://h/${SOLOIST_RUN_ID}\" }",
        "\"http://h/${SOLOIST_RUN_ID}\"",
        "`${SOLOIST_RUN_ID}` is not known to notifications",
        "`${SOLOIST_JOB}` is",
    ),
    (
        "#warn_after = \"5m\"\ntimeout = \"5m\"",
        "\"5m\"",
        "not below `timeout`",
        "make it shorter",
    ),
    ("#[notify.ops]", "ops", "`ops` says nobody", "webhook = "),
    (
        "#[notify.ops]\nwebhook = { url = \"http://h\", secret = \"hunter2\" }",
        "\"hunter2\"",
        "shorter than 16 bytes",
        "openssl rand",
    ),
    (
        "#[notify.ops]\nwebhook = { secret = \"hunter2hunter2hunter2\" }",
        "webhook",
        "`webhook` has no `url`",
        "url = ",
    ),
    (
        "#[notify.ops]\nwebhook = { url = \"http://h\", headers = { Webhook-Id = \"hunter2\" } }",
        "Webhook-Id",
        "is reserved",
        "sets it itself",
    ),
    (
        "#[notify.ops]\nemail = { to = \"ops\", from = \"a@b.example\", smtp = \"smtps://h\" }",
        "\"ops\"",
        "`ops` is no mail address",
        "ops@shop.example",
    ),
    (
        "#[notify.ops]\nemail = { to = \"a@b.example\", from = \"a@b.example\", smtp = \"smtp://u:hunter2@h?tls=none\" }",
        "\"smtp://u:hunter2@h?tls=none\"",
        "would send a password that anybody can read",
        "STARTTLS",
    ),
    (
        "#[notify.ops]\nemial = {}",
        "emial",
        "unknown key `emial`",
        "did you mean `email`?",
    ),
];

#[test]
fn what_makes_no_sense_is_told_with_its_place_and_a_hint() {
    assert_refused(REFUSED);
}

#[test]
fn no_report_shows_a_secret_of_a_target() {
    let source = format!("{TARGETS}[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n");
    for (right, wrong) in [
        ("chat.example/hunter2/", "chat example/hunter2/"),
        (
            "https://chat.example/hunter2\"",
            "ftp://chat.example/hunter2\"",
        ),
        ("whsec_aHVudGVyMm", "whsec_!aHVudGVyMm"),
        ("smtps://", "smtpx://"),
        ("headers = ", "haeders = "),
    ] {
        let wrong = source.replace(right, wrong);
        let report = read(&wrong).expect_err("wrong").to_string();
        assert!(!report.contains("hunter2"), "{report}");
        assert!(!report.contains("aHVudGVyMm"), "{report}");
    }
}

#[test]
fn who_only_looks_at_jobs_needs_no_secret_of_a_target() {
    let source = "[notify.ops]\nwebhook = \"${file:/no/such/secret}\"\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\nnotify = { to = [\"ops\"], ping = \"${file:/no/such/secret}\" }\n";
    assert!(read_as(source, Strictness::Look).is_ok());
    assert!(read_as(source, Strictness::Start).is_err());
}
