//! What `check` and `next` print, and what every command has in common.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::soloist::Place;

const TABLE: &str = r#"
[scheduler]
namespace = "shop"
store = "redis://bob:s3cr3t@127.0.0.1:6379"

[jobs.close-expired-orders]
description = "closes orders that nobody paid"
schedule = "0 */1 * * * ?"
timezone = "Asia/Shanghai"
command = ["close-expired-orders", "--older-than", "30m"]
env = { PASSWORD = "s3cr3t" }
timeout = "50s"

[jobs.report]
schedule = "0 22 1 * 5"
shell = "curl http://u:s3cr3t@h"

[jobs.off]
schedule = "@daily"
shell = "x"
enabled = false

[jobs.by-hand]
schedule = "@manual"
shell = "x"
"#;

#[test]
fn check_prints_each_job_with_its_next_occurrences() {
    let ended = Place::with_table(TABLE).run(&["check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let stdout = &ended.stdout;
    for line in [
        "jobs.toml: 4 jobs, namespace shop, store redis://bob:***@127.0.0.1:6379",
        "close-expired-orders  `0 */1 * * * ?` in Asia/Shanghai",
        "  closes orders that nobody paid",
        "  runs [\"close-expired-orders\", \"--older-than\", \"30m\"]; timeout 50s",
        "report  `0 22 1 * 5` in UTC",
        "off  `@daily` in UTC  (disabled)",
        "  never due by itself: it runs when it is told to",
    ] {
        assert!(
            stdout.lines().any(|found| found == line),
            "{line}\n{stdout}"
        );
    }
    let in_shanghai = stdout.lines().filter(|line| line.contains(" +08:00  2"));
    assert_eq!(in_shanghai.count(), 3, "{stdout}");
    let in_utc = stdout.lines().filter(|line| line.contains(":00 +00:00  2"));
    assert_eq!(in_utc.count(), 3, "{stdout}");
}

#[test]
fn check_shows_where_a_request_leads_and_no_secret() {
    let place = Place::with_table(
        r#"
        [jobs.x]
        schedule = "@daily"
        timeout = "5s"
        [jobs.x.http]
        url = "https://u:s3cr3t@shop.example/${KEY}/${SOLOIST_JOB}?key=s3cr3t#s3cr3t"
        method = "PUT"
        body = "s3cr3t"
        headers = { Authorization = "Bearer s3cr3t", Content-Type = "text/plain" }
        "#,
    );
    let ended = place.run_with(&["check"], &[("KEY", "s3cr3t")]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let line = "  runs PUT https://***@shop.example/***/${SOLOIST_JOB}?***; timeout 5s";
    assert!(ended.stdout.contains(line), "{}", ended.stdout);
    let warning = "warning: what follows `#` in a URL is never sent";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    let shown = ended.stdout + &ended.stderr;
    assert!(!shown.contains("s3cr3t"), "{shown}");
}

#[test]
fn check_shows_warnings_and_no_secret() {
    let ended = Place::with_table(TABLE).run(&["check"]);
    assert!(
        ended
            .stderr
            .starts_with("warning: day of month `1` and day of week `5`"),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("jobs.toml:15:"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("error"), "{}", ended.stderr);
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains("s3cr3t"), "{text}");
    }
}

#[test]
fn check_warns_of_jobs_that_may_run_once_only_where_a_failover_may_forget_grants() {
    let jobs = |scheduler: &str| {
        format!(
            "[scheduler]\n{scheduler}\n[defaults]\nschedule = \"@daily\"\n\
             command = [\"true\"]\non_crash = \"skip\"\n[jobs.x]\n[jobs.y]\n"
        )
    };
    let check = |scheduler: &str, env: &[(&str, &str)]| {
        let ended = Place::with_table(jobs(scheduler)).run_with(&["check"], env);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended.stderr
    };
    let sentinel = "store = \"redis+sentinel://h1,h2,h3/shop\"";
    let warning = "warning: `x` and another job with `on_crash = \"skip\"`";
    let told = check(sentinel, &[]);
    assert!(told.starts_with(warning), "{told}");
    assert!(told.contains("min_replicas_ack = 1"), "{told}");
    let told = check("", &[("SOLOIST_STORE", "redis+cluster://h1,h2")]);
    assert!(told.starts_with(warning), "{told}");
    for store in [
        "store = \"redis://h1\"",
        "store = \"redis+quorum://h1,h2,h3\"",
        &format!("{sentinel}\nmin_replicas_ack = 1"),
    ] {
        assert_eq!(check(store, &[]), "", "{store}");
    }
}

#[test]
fn a_flag_is_over_a_variable_is_over_the_file_is_over_the_default() {
    let place = Place::with_table(TABLE);
    let namespace = |args: &[&str], env: &[(&str, &str)]| {
        let ended = place.run_with(args, env);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        let (_, rest) = ended.stdout.split_once("namespace ").expect("a namespace");
        rest.split(',').next().map(str::to_owned)
    };
    let variable = [("SOLOIST_NAMESPACE", "variable")];
    for (args, env, expected) in [
        (&["check", "--namespace", "flag"][..], &variable[..], "flag"),
        (&["--namespace", "flag", "check"], &variable, "flag"),
        (&["check"], &variable, "variable"),
        (&["check"], &[("SOLOIST_NAMESPACE", "")], "shop"),
        (&["check"], &[], "shop"),
    ] {
        assert_eq!(namespace(args, env).as_deref(), Some(expected), "{args:?}");
    }
    std::fs::write(
        place.path("other"),
        "[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n",
    )
    .expect("written");
    let variable = [("SOLOIST_CONFIG", "other")];
    assert_eq!(namespace(&["check"], &variable).as_deref(), Some("default"));
    let args = ["check", "--config", "jobs.toml"];
    assert_eq!(namespace(&args, &variable).as_deref(), Some("shop"));
    let ended = place.run_with(&["check"], &[("SOLOIST_STORE", "memory:")]);
    assert!(ended.stdout.contains("store memory:"), "{}", ended.stdout);
}

#[test]
fn next_needs_no_table_for_a_schedule() {
    let args = [
        "next",
        "0 22 * * *",
        "--timezone",
        "Asia/Shanghai",
        "--from",
        "2026-11-20",
        "-n",
        "2",
    ];
    let ended = Place::empty().run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ended.stdout);
    assert_eq!(lines[0], "`0 22 * * *` in Asia/Shanghai");
    assert!(lines[1].starts_with("Fri 2026-11-20 22:00:00 +08:00  2026-11-20T14:00:00Z"));
    assert!(lines[2].starts_with("Sat 2026-11-21 22:00:00 +08:00  2026-11-21T14:00:00Z"));
}

#[test]
fn next_begins_with_the_very_instant_it_is_given() {
    let args = [
        "next",
        "@daily",
        "--from",
        "2026-11-20T00:00:00Z",
        "-n",
        "1",
    ];
    let ended = Place::empty().run(&args);
    assert!(
        ended.stdout.contains("2026-11-20T00:00:00Z"),
        "{}",
        ended.stdout
    );
}

#[test]
fn next_flags_what_daylight_saving_does() {
    let spring = [
        "next",
        "30 2 * * *",
        "--timezone",
        "America/New_York",
        "--from",
        "2027-03-13",
        "-n",
        "3",
    ];
    let ended = Place::empty().run(&spring);
    let flagged: Vec<_> = ended
        .stdout
        .lines()
        .filter(|line| line.contains('!'))
        .collect();
    assert_eq!(flagged.len(), 1, "{}", ended.stdout);
    assert!(flagged[0].starts_with("Sun 2027-03-14 03:00:00 -04:00  2027-03-14T07:00:00Z"));
    assert!(flagged[0].ends_with("stands for 2027-03-14T02:30:00, which is skipped"));

    let table = "[jobs.x]\nschedule = \"30 2 * * *\"\ntimezone = \"America/New_York\"\ndst_gap = \"skip\"\nshell = \"x\"\n";
    let ended = Place::with_table(table).run(&["next", "x", "--from", "2027-03-13", "-n", "2"]);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", ended.stdout);
    assert!(lines[1].starts_with("Sat 2027-03-13 02:30:00 -05:00"));
    assert!(
        lines[2].contains("2027-03-14T02:30:00 does not exist"),
        "{}",
        lines[2]
    );
    assert!(lines[3].starts_with("Mon 2027-03-15 02:30:00 -04:00"));

    let autumn = [
        "next",
        "30 1 * * *",
        "--timezone",
        "America/New_York",
        "--from",
        "2027-11-07",
        "-n",
        "1",
    ];
    let ended = Place::empty().run(&autumn);
    assert!(
        ended
            .stdout
            .contains("has a local time that comes twice: the first"),
        "{}",
        ended.stdout
    );
}

#[test]
fn next_of_a_job_shows_it_in_the_zone_that_is_asked_for() {
    let place = Place::with_table(TABLE);
    let args = [
        "next",
        "close-expired-orders",
        "--from",
        "2026-11-20T22:00:00Z",
        "-n",
        "1",
    ];
    let ended = place.run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    assert!(
        ended
            .stdout
            .contains("Sat 2026-11-21 06:00:00 +08:00  2026-11-20T22:00:00Z")
    );
    let ended = place.run(&[&args[..], &["--timezone", "America/New_York"]].concat());
    assert!(
        ended
            .stdout
            .contains("in Asia/Shanghai, shown in America/New_York")
    );
    assert!(
        ended
            .stdout
            .contains("Fri 2026-11-20 17:00:00 -05:00  2026-11-20T22:00:00Z")
    );
}

#[test]
fn next_says_why_there_is_no_more() {
    let place = Place::empty();
    for (schedule, why) in [
        ("@manual", "never due by itself"),
        (
            "@at 2020-01-01T00:00:00Z",
            "never again: the last occurrence was 2020-01-01T00:00:00Z",
        ),
    ] {
        let ended = place.run(&["next", schedule]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        assert!(ended.stdout.contains(why), "{}", ended.stdout);
    }
    let args = ["next", "@at 2020-01-01T00:00:00Z", "--from", "2019-01-01"];
    let ended = place.run(&args);
    let lines: Vec<_> = ended.stdout.lines().collect();
    assert!(
        lines[1].ends_with("2020-01-01T00:00:00Z  past"),
        "{}",
        ended.stdout
    );
    assert_eq!(lines[2], "and never again");
}

#[test]
fn next_refuses_what_it_does_not_understand() {
    let place = Place::with_table(TABLE);
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["next", "reprot"],
            &["no job `reprot`", "did you mean `report`?"],
        ),
        (
            &["next", "nothing-like-it"],
            &["no job", "a schedule has 5 to 7 fields"],
        ),
        (&["next", "0 25 * * *"], &["`25` is not an hour", "^^"]),
        (
            &["next", "@dayly"],
            &["`@dayly` is not a schedule", "@daily"],
        ),
        (&["next", "0 0 30 2 *"], &["no such day exists"]),
        (
            &["next", "@daily", "--timezone", "Asia/Shangai"],
            &["did you mean `Asia/Shanghai`?"],
        ),
        (
            &["next", "@daily", "--from", "tomorrow"],
            &["`tomorrow` is no date and time"],
        ),
    ];
    for (args, expected) in cases {
        let ended = place.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
        for text in *expected {
            assert!(ended.stderr.contains(text), "{args:?}: {}", ended.stderr);
        }
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let place = Place::empty();
    let mut child = place
        .command(&["next", "* * * * * *", "-n", "10000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("a pipe");
    BufReader::with_capacity(64, stdout)
        .read_line(&mut line)
        .expect("a line");
    // The reader is gone by now; far more is written than a pipe holds.
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(line, "`* * * * * *` in UTC\n");
}

#[test]
fn a_full_disk_is_a_failure() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("Linux has it");
    let output = Place::empty()
        .command(&["next", "@daily"])
        .stdout(full)
        .output()
        .expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed to write to stdout"));
}

#[test]
fn help_teaches_every_command_and_shows_no_variable() {
    let place = Place::empty();
    let env = [("SOLOIST_STORE", "redis://u:s3cr3t@h")];
    let ended = place.run_with(&["--help"], &env);
    assert_eq!(ended.code, Some(0));
    let commands = [
        "run",
        "check",
        "next",
        "status",
        "history",
        "logs",
        "trigger",
        "pause",
        "resume",
        "kill",
        "run-once",
        "verify",
        "schema",
        "completions",
        "man",
    ];
    for command in commands {
        assert!(
            ended.stdout.contains(&format!("\n  {command} ")),
            "{command}"
        );
        let help = place.run_with(&[command, "--help"], &env);
        assert_eq!(help.code, Some(0));
        assert!(
            help.stdout.contains(&format!("soloist {command}")),
            "{command}"
        );
        assert!(!help.stdout.contains("s3cr3t"), "{}", help.stdout);
    }
    assert!(ended.stdout.contains("3 store unreachable"));
    let ended = place.run(&[]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("Usage: soloist"), "{}", ended.stderr);
}

#[test]
fn the_log_is_text_or_one_flat_object_a_line() {
    let place = Place::empty();
    let version = env!("CARGO_PKG_VERSION");
    let quiet = place.run(&["next", "@daily"]);
    assert_eq!(quiet.stderr, "");
    let ended = place.run(&["next", "@daily", "--log-level", "debug"]);
    let text = ended.stderr.trim_end();
    assert!(
        text.ends_with(&format!("DEBUG starting version=\"{version}\"")),
        "{text}"
    );
    assert!(!text.contains('\u{1b}'), "{text}");

    let env = [
        ("SOLOIST_LOG_LEVEL", "soloist=debug"),
        ("SOLOIST_LOG_FORMAT", "json"),
    ];
    let ended = place.run_with(&["next", "@daily"], &env);
    let object: serde_json::Value = serde_json::from_str(&ended.stderr).expect("one object");
    assert_eq!(object["level"], "DEBUG");
    assert_eq!(object["message"], "starting");
    assert_eq!(object["version"], version);
    assert!(object["timestamp"].is_string());
    assert_eq!(ended.stdout, quiet.stdout);
}
