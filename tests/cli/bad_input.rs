//! Whatever is wrong with a table: exit code 2, the file and line, the text at fault
//! underlined, and a hint.

use std::fs;

use crate::calendar_faults;
use crate::faults::FAULTS;
use crate::soloist::Place;
use crate::{http_faults, policy_faults};

/// The text that the first caret line of a report underlines.
fn underlined(stderr: &str) -> Option<String> {
    let lines: Vec<&str> = stderr.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains('^') && line.trim_start().starts_with('|'))?;
    let skip = lines[at].chars().position(|c| c == '^')?;
    let length = lines[at].chars().filter(|c| *c == '^').count();
    Some(lines[at - 1].chars().skip(skip).take(length).collect())
}

#[test]
fn every_fault_is_told_with_its_line_its_text_and_a_hint() {
    let job = "[jobs.x]\nschedule = \"@daily\"\ncommand = [\"x\"]\n";
    for fault in FAULTS
        .iter()
        .chain(http_faults::FAULTS)
        .chain(policy_faults::FAULTS)
        .chain(calendar_faults::FAULTS)
    {
        let table = fault.table.replace('%', job);
        let ended = Place::with_table(&table).run(&["check"]);
        let stderr = &ended.stderr;
        assert_eq!(ended.code, Some(2), "{table}\n{stderr}");
        assert_eq!(ended.stdout, "", "{table}");
        assert_eq!(stderr.matches("error: ").count(), 1, "{table}\n{stderr}");
        let place = format!("jobs.toml:{}:", fault.line);
        assert!(stderr.contains(&place), "{table}\n{stderr}");
        assert!(stderr.contains(fault.message), "{table}\n{stderr}");
        assert!(stderr.contains(fault.hint), "{table}\n{stderr}");
        assert!(stderr.contains("= help: "), "{table}\n{stderr}");
        assert_eq!(
            underlined(stderr).as_deref(),
            Some(fault.at),
            "{table}\n{stderr}"
        );
    }
}

#[test]
fn all_faults_of_a_table_are_told_in_one_go() {
    let table = "[scheduler]\nnamspace = \"x\"\n[jobs.a]\nschedule = \"99 * * * *\"\nshell = \"x\"\n[jobs.b]\nschedule = \"@daily\"\n";
    let ended = Place::with_table(table).run(&["check"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.stderr.matches("error: ").count(), 3);
    for place in ["jobs.toml:2:1", "jobs.toml:4:13", "jobs.toml:6:7"] {
        assert!(ended.stderr.contains(place), "{}", ended.stderr);
    }
}

#[test]
fn a_duplicate_job_is_told_with_both_places() {
    let table = "[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n\n\n\n\n\n[jobs.x]\n";
    let ended = Place::with_table(table).run(&["check"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("jobs.toml:9:7"), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("1 | [jobs.x]") && ended.stderr.contains("the first is here"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_file_that_is_no_table_is_told_with_a_cure() {
    let place = Place::empty();
    fs::write(place.path("empty.toml"), "").expect("written");
    fs::write(place.path("comment.toml"), "# nothing yet\n").expect("written");
    fs::write(place.path("bare.toml"), "[jobs]\n").expect("written");
    fs::write(place.path("latin1.toml"), b"# ok\n# caf\xe9\n").expect("written");
    for (file, message, hint) in [
        (
            "none.toml",
            "failed to read `none.toml`: there is no such file",
            "check the path",
        ),
        (
            ".",
            "failed to read `.`: it is a directory",
            "`--config ./jobs.toml`",
        ),
        ("empty.toml", "`empty.toml` has no jobs", "`[jobs.hello]`"),
        (
            "comment.toml",
            "`comment.toml` has no jobs",
            "`[jobs.hello]`",
        ),
        ("bare.toml", "`bare.toml` has no jobs", "`[jobs.hello]`"),
        (
            "latin1.toml",
            "line 2 is not UTF-8",
            "save the file as such",
        ),
    ] {
        let ended = place.run(&["--config", file, "check"]);
        assert_eq!(ended.code, Some(2), "{file}: {}", ended.stderr);
        assert!(ended.stderr.contains(message), "{file}: {}", ended.stderr);
        assert!(ended.stderr.contains(hint), "{file}: {}", ended.stderr);
    }
    let ended = place.run(&["check"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .stderr
            .contains("`--config FILE`, or SOLOIST_CONFIG=FILE")
    );
}

/// Arguments, variables, and what is said of them.
type UsageError = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static str,
);

fn refuses(place: &Place, cases: &[UsageError]) {
    for (args, env, expected) in cases {
        let ended = place.run_with(args, env);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{args:?}: {}",
            ended.stderr
        );
        assert!(
            !ended.stderr.contains("s3cr3t"),
            "{args:?}: {}",
            ended.stderr
        );
        assert_eq!(ended.stdout, "", "{args:?}");
    }
}

#[test]
fn what_can_not_be_read_is_a_usage_error() {
    let place = Place::with_table("[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n");
    let cases: &[UsageError] = &[
        (&["next", "x", "--from", "soon"], &[], "`--from`: `soon`"),
        (&["logs", "x", "--at", "soon"], &[], "`--at`: `soon`"),
        (
            &["lock", "-x", "--", "true"],
            &[],
            "unexpected argument '-x' found",
        ),
        (
            &["lock", "a b", "--", "true"],
            &[],
            "` ` can't stand here: the name of a lease",
        ),
        (
            &["lock", "x", "--ttl", "10ms", "--", "true"],
            &[],
            "it takes from 1s to 1h",
        ),
        (
            &["run"],
            &[("SOLOIST_LISTEN", ":7373")],
            "SOLOIST_LISTEN: `:7373` is no address to listen on",
        ),
    ];
    refuses(&place, cases);
}

#[test]
fn a_flag_or_variable_that_makes_no_sense_is_a_usage_error() {
    let place = Place::with_table("[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n");
    let cases: &[UsageError] = &[
        (&["check", "--nonsense"], &[], "--nonsense"),
        (&["frobnicate"], &[], "frobnicate"),
        (&["next"], &[], "JOB_OR_SCHEDULE"),
        (&["next", "@daily", "-n", "0"], &[], "-n"),
        (&["logs", "x", "--attempt", "0"], &[], "--attempt"),
        (
            &["check", "--log-level", "inof"],
            &[],
            "did you mean `info`?",
        ),
        (
            &["check", "--log-format", "xml"],
            &[],
            "the formats are text and json",
        ),
        (&["check", "--namespace", "a b"], &[], "`--namespace`"),
        (
            &["check", "--store", "rdis://u:s3cr3t@h"],
            &[],
            "did you mean `redis`?",
        ),
        (
            &["check"],
            &[("SOLOIST_STORE", "etcd://u:s3cr3t@h")],
            "not supported yet",
        ),
        (
            &["check"],
            &[("SOLOIST_NAMESPACE", "/")],
            "SOLOIST_NAMESPACE",
        ),
        (
            &["check"],
            &[("SOLOIST_LOG_LEVEL", "warning")],
            "did you mean `warn`?",
        ),
    ];
    refuses(&place, cases);
}

#[test]
fn a_tag_that_is_none_is_a_usage_error() {
    let place = Place::with_table("[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n");
    let cases: &[UsageError] = &[
        (
            &["run", "--tag", "gpu"],
            &[],
            "`--tag`: `gpu` is no tag: it has no `=`",
        ),
        (
            &["run", "--tag", "gpu"],
            &[],
            "a tag has a value: `gpu=yes`",
        ),
        (
            &["run", "--tag", "a=1", "--tag", "a=2"],
            &[],
            "`--tag`: `a=2` names a tag that is there already",
        ),
        (
            &["run"],
            &[("SOLOIST_TAGS", "zone=eu;gpu=yes")],
            "`SOLOIST_TAGS`: `zone=eu;gpu=yes` is no tag: its value has `;` in it",
        ),
    ];
    refuses(&place, cases);
}

#[test]
fn what_stands_under_a_key_that_nobody_knows_is_not_shown() {
    let job = "[jobs.a]\nschedule = \"@manual\"\ncommand = [\"true\"]\n";
    for table in [
        format!("{job}evn = {{ PW = \"hunter2\" }}\n"),
        format!("{job}password = \"hunter2\"\n"),
        format!("{job}[notify.o]\nwebook = \"http://h/hunter2\"\n"),
        format!("{job}[notify.o]\nwebook = {{ url = \"http://h/\", secret = \"hunter2\" }}\n"),
        format!("[scheduler]\nredis_password = \"hunter2\"\n{job}"),
    ] {
        let ended = Place::with_table(&table).run(&["check"]);
        assert_eq!(ended.code, Some(2), "{table}");
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
        assert!(ended.stderr.contains("unknown key"), "{}", ended.stderr);
    }
    // A slip in a key that holds no secret is shown with what it sets.
    let table = format!("{job}timout = \"50s\"\n");
    let ended = Place::with_table(&table).run(&["check"]);
    assert!(
        ended.stderr.contains("timout = \"50s\""),
        "{}",
        ended.stderr
    );
}
