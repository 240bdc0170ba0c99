//! What a table means, and that none of the format's keys is ever ignored.

use super::*;
use crate::scheduler::job::{OnCrash, Program};
use crate::scheduler::policy::{CatchUp, Concurrency, Retry};
use std::time::Duration;

mod after;
mod any_value;
mod diff;
mod digest;
mod identity;
mod include;
mod notify;
mod policies;
mod retry;
mod secrets;
mod shells;
mod tags;
mod tls;

const PASSWORD: &str = "hunter2";

fn env(name: &str) -> Option<String> {
    match name {
        "PASSWORD" => Some(PASSWORD.into()),
        "NAMESPACE" => Some("shop".into()),
        "BUILD" => Some("1234".into()),
        _ => None,
    }
}

fn read_as(source: &str, strictness: Strictness) -> Result<Config, Error> {
    read_beside(source, strictness, &|_, _| Ok(()))
}

fn read_beside(
    source: &str,
    strictness: Strictness,
    accounts: Accounts<'_>,
) -> Result<Config, Error> {
    read_with(source, "jobs.toml", strictness, accounts)
}

/// Reads a table as if it stood in a file.
pub(super) fn read_at(source: &str, path: &Path) -> Result<Config, Error> {
    let path = path.display().to_string();
    read_with(source, &path, Strictness::Start, &|_, _| Ok(()))
}

fn read_with(
    source: &str,
    path: &str,
    strictness: Strictness,
    accounts: Accounts<'_>,
) -> Result<Config, Error> {
    let read = with_host(|host| {
        let host = Host { accounts, ..*host };
        parse(source, path, &host, strictness)
    });
    if read.is_ok() {
        assert_eq!(super::schema::tests::faults(source), [""; 0], "{source}");
    }
    read
}

/// With what tables are read against here.
pub(super) fn with_host<T>(read: impl FnOnce(&Host<'_>) -> T) -> T {
    let now: jiff::Timestamp = "2026-11-21T08:00:00Z".parse().expect("an instant");
    read(&Host {
        env: &env,
        accounts: &|_, _| Ok(()),
        now: now.into(),
    })
}

pub(super) fn read(source: &str) -> Result<Config, Error> {
    read_as(source, Strictness::Start)
}

fn job(keys: &str) -> Job {
    let source = format!("[jobs.x]\nschedule = \"@daily\"\ncommand = [\"x\"]\n{keys}");
    let mut config = read(&source).unwrap_or_else(|error| panic!("{error}"));
    config.jobs.remove(0)
}

/// The messages of everything that is wrong.
fn messages(source: &str) -> Vec<String> {
    let error = read(source).expect_err("errors");
    let diagnostics = error.0.diagnostics().iter();
    diagnostics
        .map(|diagnostic| diagnostic.message.clone())
        .collect()
}

#[test]
fn a_job_of_three_lines_has_the_defaults_of_the_contract() {
    let job = job("");
    assert_eq!(job.name.as_str(), "x");
    assert_eq!(job.command.program, Program::Command(vec!["x".into()]));
    assert_eq!(job.schedule.zone().iana_name(), Some("UTC"));
    assert!(job.enabled);
    assert_eq!(job.timeout, None);
    assert_eq!(job.kill_grace, Duration::from_secs(5));
    assert_eq!(job.lease_ttl, Duration::from_secs(15));
    assert_eq!(job.starting_deadline, Duration::from_secs(60));
    assert_eq!(job.on_crash, OnCrash::Rerun);
    assert_eq!(job.max_attempts, 10);
    assert_eq!(job.retention.limit, 1000);
    assert_eq!(job.retention.age, Duration::from_secs(30 * 86_400));
    assert_eq!(job.command.success_codes, [0]);
    assert_eq!(job.command.output_limit, 8192);
    assert!(job.command.env.is_empty());
    assert_eq!(job.command.working_dir, None);
    assert_eq!((job.command.user, job.command.group), (None, None));
    assert_eq!(job.command.umask, None);
    assert_eq!(job.description, None);
    assert_eq!(job.random_delay, Duration::ZERO);
    assert_eq!(job.catch_up, CatchUp::Latest);
    assert_eq!(job.concurrency, Concurrency::Forbid);
    assert_eq!(job.retry, Retry::default());
    assert_eq!(job.shards, 1);
    assert!(job.run_on.is_empty());
    assert!(job.after.is_empty());
}

#[test]
fn every_key_that_is_written_takes_effect() {
    let job = job(r#"
        timezone = "Asia/Shanghai"
        enabled = false
        description = "text"
        env = { A = "${PASSWORD}", B = "$${b}" }
        working_dir = "/srv"
        user = "shop"
        group = 1000
        umask = "0027"
        success_codes = [3, 0, 3]
        output_limit = "1MiB"
        timeout = "1h30m"
        kill_grace = "0s"
        lease_ttl = "1s"
        starting_deadline = "1s"
        on_crash = "skip"
        max_attempts = 1
        history_limit = 7
        history_age = "1d"
    "#);
    assert_eq!(job.schedule.zone().iana_name(), Some("Asia/Shanghai"));
    assert!(!job.enabled);
    assert_eq!(job.description.as_deref(), Some("text"));
    assert_eq!(job.command.env["A"], PASSWORD);
    assert_eq!(job.command.env["B"], "${b}");
    assert_eq!(job.command.working_dir, Some("/srv".into()));
    assert_eq!(job.command.user.as_deref(), Some("shop"));
    assert_eq!(job.command.group.as_deref(), Some("1000"));
    assert_eq!(job.command.umask, Some(0o027));
    assert_eq!(job.command.success_codes, [0, 3]);
    assert_eq!(job.command.output_limit, 1024 * 1024);
    assert_eq!(job.timeout, Some(Duration::from_secs(5400)));
    assert_eq!(job.kill_grace, Duration::ZERO);
    assert_eq!(job.lease_ttl, Duration::from_secs(1));
    assert_eq!(job.starting_deadline, Duration::from_secs(1));
    assert_eq!(job.on_crash, OnCrash::Skip);
    assert_eq!(job.max_attempts, 1);
    assert_eq!(job.retention.limit, 7);
    assert_eq!(job.retention.age, Duration::from_secs(86_400));
}

#[test]
fn the_scheduler_table_is_read_and_is_the_default_of_its_jobs() {
    let config = read(
        r#"
        [scheduler]
        namespace = "${NAMESPACE}"
        store = "redis://:${PASSWORD}@h"
        lease_ttl = "20s"
        shutdown_grace = "1m"
        replica = "web-1"
        history_limit = 5
        listen = "off"
        [jobs.x]
        schedule = "@daily"
        shell = "x"
        "#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let scheduler = &config.scheduler;
    assert_eq!(scheduler.namespace, "shop");
    assert_eq!(scheduler.store.as_deref(), Some("redis://:hunter2@h"));
    assert_eq!(scheduler.shutdown_grace, Duration::from_secs(60));
    assert_eq!(scheduler.replica.as_deref(), Some("web-1"));
    assert_eq!(config.jobs[0].lease_ttl, Duration::from_secs(20));
    assert_eq!(config.jobs[0].retention.limit, 5);
    assert!(config.warnings.is_empty());
}

#[test]
fn a_job_overrides_the_defaults_key_by_key_and_env_variable_by_variable() {
    let config = read(
        r#"
        [defaults]
        schedule = "@hourly"
        shell = "default"
        timezone = "Asia/Shanghai"
        env = { A = "default", B = "default" }
        [jobs.z]
        [jobs.a]
        command = ["own"]
        timezone = "UTC"
        env = { B = "own" }
        "#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let [z, a] = &config.jobs[..] else {
        panic!("two jobs, in the order of the file");
    };
    assert_eq!(z.command.program, Program::Shell("default".into()));
    assert_eq!(z.schedule.zone().iana_name(), Some("Asia/Shanghai"));
    assert_eq!(a.command.program, Program::Command(vec!["own".into()]));
    assert_eq!(a.schedule.zone().iana_name(), Some("UTC"));
    assert_eq!(a.command.env["A"], "default");
    assert_eq!(a.command.env["B"], "own");
}

/// Every key of the contract with a value that asks for something.
const JOB_LINES: &[&str] = &[
    "schedule = \"@hourly\"",
    "timezone = \"UTC\"",
    "random_delay = \"5s\"",
    "dst_gap = \"skip\"",
    "dst_fold = \"both\"",
    "except = []",
    "only = []",
    "after = [\"other\"]\n[jobs.other]\nschedule = \"@daily\"\nshell = \"x\"",
    "enabled = true",
    "command = [\"x\"]",
    "shell = \"x\"",
    "http = { url = \"http://h\" }",
    "env = { A = \"1\" }",
    "working_dir = \"/\"",
    "user = \"nobody\"",
    "group = \"nobody\"",
    "umask = \"022\"",
    "success_codes = [0]",
    "output_limit = \"64KiB\"",
    "description = \"x\"",
    "timeout = \"5s\"",
    "kill_grace = \"5s\"",
    "lease_ttl = \"5s\"",
    "warn_after = \"5s\"",
    "catch_up = \"latest\"",
    "catch_up = \"all\"",
    "catch_up = \"none\"",
    "catch_up_limit = 5\ncatch_up = \"all\"",
    "starting_deadline = \"5s\"",
    "concurrency_policy = \"forbid\"",
    "concurrency_policy = \"queue\"",
    "concurrency_policy = \"replace\"",
    "queue_limit = 5\nconcurrency_policy = \"queue\"",
    "retry = { max = 0, backoff = \"1s\" }",
    "retry = { max = 3 }",
    "on_crash = \"rerun\"",
    "max_attempts = 5",
    "shards = 1",
    "shards = 2",
    "run_on = [\"gpu=yes\"]",
    "history_limit = 5",
    "history_age = \"5d\"",
    "notify = []",
];

const SCHEDULER_LINES: &[&str] = &[
    "namespace = \"x\"",
    "store = \"memory:\"",
    "store = \"sqlite:x.db\"",
    "store = \"redis://h\"",
    "store = \"rediss://h\"",
    "store = \"unix:///run/redis.sock\"",
    "store = \"redis+sentinel://h:1/m/0\"",
    "store = \"redis+cluster://h:1\"",
    "store = \"redis+quorum://h:1,i:1,j:1\"",
    "lease_ttl = \"5s\"",
    "shutdown_grace = \"5s\"",
    "listen = \"off\"",
    "listen = \"127.0.0.1:7373\"",
    "api_tokens = \"tokens\"",
    "replica = \"x\"",
    "tags = { zone = \"a\" }",
    "max_running = 5",
    "include = [\"no-such-*.toml\"]",
    "watch = true",
    "revision = 5",
    "min_replicas_ack = 1",
    "history_limit = 5",
    "tls_ca = \"/ca.pem\"",
    "tls_cert = \"/c.pem\"\ntls_key = \"/c.key\"",
    "tls_key = \"/c.key\"\ntls_cert = \"/c.pem\"",
    "tls_server_name = \"redis.example\"",
];

fn assert_taken_without_a_word(source: &str) {
    let config = read(source).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.warnings.is_empty(), "{}", config.warnings);
}

#[test]
fn every_key_of_a_job_is_taken() {
    for line in JOB_LINES {
        let schedule = if line.starts_with("schedule") || line.starts_with("after") {
            ""
        } else {
            "schedule = \"@daily\"\n"
        };
        let command = if ["command", "shell", "http"]
            .iter()
            .any(|key| line.starts_with(key))
        {
            ""
        } else {
            "command = [\"x\"]\n"
        };
        assert_taken_without_a_word(&format!("[jobs.x]\n{schedule}{command}{line}"));
    }
}

fn with_scheduler(line: &str) -> String {
    format!("[scheduler]\n{line}\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n")
}

#[test]
fn every_key_of_the_scheduler_is_taken() {
    for line in SCHEDULER_LINES {
        assert_taken_without_a_word(&with_scheduler(line));
    }
    let calendars = "[calendars.x]\ndates = []\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n";
    assert_taken_without_a_word(calendars);
}

#[test]
fn a_store_that_is_to_come_is_refused_with_what_to_do() {
    for scheme in ["postgres", "mysql", "etcd", "zookeeper"] {
        let source = with_scheduler(&format!("store = \"{scheme}://h\""));
        let error = read(&source).expect_err(&source);
        let [diagnostic] = error.0.diagnostics() else {
            panic!("one error, not {error}");
        };
        assert!(diagnostic.message.contains("not supported yet"), "{error}");
        assert!(diagnostic.hint.is_some(), "{error}");
    }
}

#[test]
fn the_lines_above_name_every_key_there_is() {
    let names = |lines: &[&'static str]| -> Vec<_> {
        let names = lines.iter().filter_map(|line| line.split_once(" = "));
        names.map(|(name, _)| name).collect()
    };
    for (lines, keys) in [
        (names(JOB_LINES), keys::JOB_KEYS),
        (names(SCHEDULER_LINES), keys::SCHEDULER_KEYS),
    ] {
        for key in keys {
            assert!(lines.contains(&key.name), "{}", key.name);
        }
        for name in &lines {
            assert!(keys::find(keys, name).is_some(), "{name}");
        }
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once_and_in_the_order_of_the_file() {
    let told = messages(
        r#"
        [scheduler]
        namespace = "a b"
        [defaults]
        timeout = "5"
        [jobs.a]
        schedule = "61 * * * *"
        [jobs.b]
        shell = "x"
        [jobs.c]
        schedule = "@daily"
        command = ["x", 5]
        "#,
    );
    let beginnings = [
        "`a b` is no namespace",
        "`5` has no unit",
        "the job `a` runs nothing",
        "`61` is not a minute",
        "the job `b` has no schedule",
        "`command` takes a list of strings; here is an integer",
    ];
    assert_eq!(told.len(), beginnings.len(), "{told:#?}");
    for (message, beginning) in told.iter().zip(beginnings) {
        assert!(message.starts_with(beginning), "{message}");
    }
}

#[test]
fn a_misspelt_key_is_not_told_as_missing_too() {
    let told = messages("[jobs.x]\nshedule = \"@daily\"\nshel = \"x\"\n");
    assert_eq!(told, ["unknown key `shedule`", "unknown key `shel`"]);
}

#[test]
fn a_schedule_that_is_over_stops_an_edit_but_not_a_start() {
    let source = "[jobs.x]\nschedule = \"@at 2026-11-21T07:59:59Z\"\nshell = \"x\"\n";
    let config = read(source).unwrap_or_else(|error| panic!("{error}"));
    let warning = "this schedule never fires again: its last occurrence was 2026-11-21T07:59:59Z";
    assert_eq!(config.warnings.diagnostics()[0].message, warning);
    assert_eq!(config.jobs.len(), 1);
    let error = read_as(source, Strictness::Edit).expect_err("it is over");
    assert_eq!(error.0.diagnostics()[0].severity, Severity::Error);

    let disabled = format!("{source}enabled = false\n");
    let config = read_as(&disabled, Strictness::Edit).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.warnings.is_empty());
    let manual = "[jobs.x]\nschedule = \"@manual\"\nshell = \"x\"\n";
    assert!(read_as(manual, Strictness::Edit).is_ok());
}

#[test]
fn what_is_filled_in_is_never_shown() {
    let source = "[scheduler]\nnamespace = \"${PASSWORD} \"\nlease_ttl = \"${PASSWORD}\"\nstore = \"${PASSWORD}\"\nreplica = \"${PASSWORD}:\"";
    let error = read(source).expect_err("none of them is right");
    assert_eq!(error.0.diagnostics().len(), 5, "{error}");
    assert!(!error.to_string().contains(PASSWORD), "{error}");

    let source = "[scheduler]\nstore = \"redis://:${PASSWORD}@h\"\n[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\nenv = { A = \"${PASSWORD}\" }\n";
    let config = read(source).unwrap_or_else(|error| panic!("{error}"));
    assert!(!format!("{config:?}").contains(PASSWORD));
}

#[test]
fn a_command_is_never_filled_in() {
    let config = read("[jobs.x]\nschedule = \"@daily\"\nshell = \"echo ${PASSWORD}\"\n")
        .unwrap_or_else(|error| panic!("{error}"));
    let script = "echo ${PASSWORD}".to_owned();
    assert_eq!(config.jobs[0].command.program, Program::Shell(script));
    assert!(config.warnings.is_empty());
}

#[test]
fn a_slip_in_thousands_of_jobs_is_shown_a_hundred_times() {
    let jobs = (0..2000).map(|n| format!("[jobs.j{n}]\nschedule = \"@daily\"\n"));
    let error = read(&jobs.collect::<String>()).expect_err("nothing to run");
    assert_eq!(error.0.diagnostics().len(), 2000);
    let shown = error.to_string();
    assert_eq!(shown.matches("runs nothing").count(), 100);
    assert!(shown.ends_with("and 1900 more\n"));
}
