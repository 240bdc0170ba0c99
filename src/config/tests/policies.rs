//! What a job says about occurrences that are late or find it busy, and what contradicts that.

use super::{job, read, read_as};
use crate::config::{Severity, Strictness};
use crate::scheduler::job::Job;
use crate::scheduler::policy::{CatchUp, Concurrency};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// The only problem of a table: severity, message and hint, and the text that it is about.
pub(super) fn problem(source: &str, strictness: Strictness) -> (Severity, String, String, String) {
    let report = match read_as(source, strictness) {
        Ok(config) => config.warnings,
        Err(error) => error.0,
    };
    let [problem] = report.diagnostics() else {
        panic!("one problem, not {report}\n{source}");
    };
    let span = problem.span.clone().expect("a place");
    (
        problem.severity,
        problem.message.clone(),
        problem.hint.clone().expect("a hint"),
        source[span].to_owned(),
    )
}

/// Tables with one error each: the table, the text at fault, and parts of message and hint.
pub(super) type Case = (&'static str, &'static str, &'static str, &'static str);

/// `%` stands for a job's head and its command, `#` for a daily schedule too.
pub(super) fn assert_refused(cases: &[Case]) {
    for (table, at, message, hint) in cases {
        let (severity, told, help, text) = problem(&table_of(table), Strictness::Start);
        assert_eq!(severity, Severity::Error, "{table}");
        assert_eq!(text, *at, "{table}");
        assert!(told.contains(message), "{table}: {told}");
        assert!(help.contains(hint), "{table}: {help}");
    }
}

pub(super) fn table_of(table: &str) -> String {
    table
        .replace('#', "%schedule = \"@daily\"\n")
        .replace('%', "[jobs.x]\nshell = \"x\"\n")
}

fn job_of(table: &str) -> Job {
    let mut config = read(&table_of(table)).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.warnings.is_empty(), "{}", config.warnings);
    config.jobs.remove(0)
}

#[test]
fn a_job_says_how_late_it_may_be() {
    let all = job("catch_up = \"all\"");
    assert_eq!(all.catch_up, CatchUp::All { limit: 100 });
    assert_eq!(all.starting_deadline, MINUTE * 60 * 24);
    let few = job("catch_up = \"all\"\ncatch_up_limit = 7\nstarting_deadline = \"2m\"");
    assert_eq!(few.catch_up, CatchUp::All { limit: 7 });
    assert_eq!(few.starting_deadline, MINUTE * 2);
    let none = job("catch_up = \"none\"");
    assert_eq!(none.catch_up, CatchUp::None);
    assert_eq!(none.starting_deadline, MINUTE);
}

#[test]
fn a_job_says_what_becomes_of_what_finds_it_busy() {
    let of = |keys| job(keys).concurrency;
    assert_eq!(of("concurrency_policy = \"forbid\""), Concurrency::Forbid);
    assert_eq!(of("concurrency_policy = \"replace\""), Concurrency::Replace);
    let queue = "concurrency_policy = \"queue\"\n";
    assert_eq!(of(queue), Concurrency::Queue { limit: 10 });
    let few = format!("{queue}queue_limit = 3");
    assert_eq!(of(&few), Concurrency::Queue { limit: 3 });
}

#[test]
fn a_job_says_where_and_in_how_many_parts_it_runs() {
    let job = job("shards = 128\nrun_on = { zone = \"eu\" }\nrandom_delay = \"1h\"");
    assert_eq!(job.shards, 128);
    assert_eq!(job.run_on["zone"], "eu");
    assert_eq!(job.random_delay, MINUTE * 60);
}

#[test]
fn limits_of_the_defaults_hold_for_the_jobs_that_they_fit() {
    let defaults = "[defaults]\nqueue_limit = 3\ncatch_up_limit = 7\nrandom_delay = \"5s\"\n";
    let plain = job_of(&format!("{defaults}#"));
    assert_eq!(plain.catch_up, CatchUp::Latest);
    assert_eq!(plain.concurrency, Concurrency::Forbid);
    let fitting = "catch_up = \"all\"\nconcurrency_policy = \"queue\"\n";
    let fitting = job_of(&format!("{defaults}#{fitting}"));
    assert_eq!(fitting.catch_up, CatchUp::All { limit: 7 });
    assert_eq!(fitting.concurrency, Concurrency::Queue { limit: 3 });
    let own = job_of("[defaults]\nconcurrency_policy = \"queue\"\n#queue_limit = 4\n");
    assert_eq!(own.concurrency, Concurrency::Queue { limit: 4 });
}

#[test]
fn defaults_about_schedules_are_nothing_to_a_job_that_is_triggered() {
    let defaults = "[defaults]\nrandom_delay = \"5s\"\ncatch_up = \"all\"\ncatch_up_limit = 7\n";
    for replaced in ["", "concurrency_policy = \"replace\"\n"] {
        let job = job_of(&format!("{defaults}%schedule = \"@manual\"\n{replaced}"));
        assert_eq!(job.random_delay, Duration::ZERO);
        assert_eq!(job.catch_up, CatchUp::Latest);
        assert_eq!(job.starting_deadline, MINUTE);
    }
}

#[test]
fn a_value_out_of_its_bounds_is_refused() {
    assert_refused(&[
        (
            "#catch_up = \"last\"",
            "\"last\"",
            "`catch_up` is `latest` or `all` or `none`",
            "",
        ),
        (
            "#catch_up = \"all\"\ncatch_up_limit = 0",
            "0",
            "a number from 1 to 1000",
            "",
        ),
        (
            "#catch_up = \"all\"\ncatch_up_limit = 1001",
            "1001",
            "a number from 1 to 1000",
            "",
        ),
        (
            "#concurrency_policy = \"Forbid\"",
            "\"Forbid\"",
            "`concurrency_policy` is",
            "`forbid`",
        ),
        (
            "#concurrency_policy = \"queue\"\nqueue_limit = 1001",
            "1001",
            "from 1 to 1000",
            "",
        ),
        (
            "#concurrency_policy = \"queue\"\nqueue_limit = \"9\"",
            "\"9\"",
            "",
            "quotes",
        ),
        ("#shards = 0", "0", "a number from 1 to 128", "`shards = 4`"),
        (
            "#shards = 129",
            "129",
            "a number from 1 to 128",
            "`shards = 4`",
        ),
        (
            "#random_delay = \"24h\"",
            "\"24h\"",
            "at most 23h59m59s",
            "",
        ),
        (
            "#random_delay = 5",
            "5",
            "takes a duration",
            "`random_delay = \"5s\"`",
        ),
    ]);
}

#[test]
fn a_limit_without_its_policy_is_a_contradiction() {
    assert_refused(&[
        (
            "#queue_limit = 5",
            "queue_limit",
            "`queue_limit` has no effect without `concurrency_policy = \"queue\"`",
            "or leave `queue_limit` out",
        ),
        (
            "#queue_limit = 5\nconcurrency_policy = \"replace\"",
            "queue_limit",
            "`queue_limit` has no effect",
            "write `concurrency_policy = \"queue\"`",
        ),
        (
            "[defaults]\nqueue_limit = 5\n#queue_limit = 5",
            "queue_limit",
            "`queue_limit` has no effect",
            "",
        ),
        (
            "#catch_up_limit = 5\ncatch_up = \"none\"",
            "catch_up_limit",
            "`catch_up_limit` has no effect without `catch_up = \"all\"`",
            "write `catch_up = \"all\"`, or leave `catch_up_limit` out",
        ),
        // One error, for the word alone.
        (
            "#catch_up_limit = 5\ncatch_up = \"every\"",
            "\"every\"",
            "`catch_up` is",
            "",
        ),
    ]);
}

#[test]
fn running_all_and_replacing_what_runs_is_a_contradiction() {
    let message = "`catch_up = \"all\"` contradicts `concurrency_policy = \"replace\"`";
    assert_refused(&[
        (
            "#catch_up = \"all\"\nconcurrency_policy = \"replace\"",
            "\"replace\"",
            message,
            "`concurrency_policy = \"queue\"`",
        ),
        (
            "[defaults]\nconcurrency_policy = \"replace\"\n#catch_up = \"all\"",
            "\"all\"",
            message,
            "`catch_up = \"latest\"`",
        ),
    ]);
}

#[test]
fn what_is_about_schedules_is_refused_in_a_job_that_is_triggered() {
    assert_refused(&[
        (
            "%schedule = \"@manual\"\nrandom_delay = \"5s\"",
            "random_delay",
            "`random_delay` has no effect without a schedule",
            "leave it out",
        ),
        (
            "%schedule = \"@manual\"\ncatch_up = \"latest\"",
            "catch_up",
            "`catch_up` has no effect without a schedule",
            "leave it out",
        ),
        (
            "%after = \"y\"\ncatch_up = \"latest\"\n[jobs.y]\nschedule = \"@daily\"\nshell = \"y\"",
            "catch_up",
            "`catch_up` has no effect without a schedule",
            "leave it out",
        ),
        (
            "%after = \"y\"\nrandom_delay = \"5s\"\n[jobs.y]\nschedule = \"@daily\"\nshell = \"y\"",
            "random_delay",
            "`random_delay` has no effect without a schedule",
            "leave it out",
        ),
    ]);
}

#[test]
fn a_delay_is_shorter_than_every_gap_between_occurrences() {
    assert_refused(&[
        (
            "%schedule = \"* * * * *\"\nrandom_delay = \"1m\"",
            "\"1m\"",
            "`random_delay` is 1m, and occurrences come as close as 1m",
            "write a delay below 1m",
        ),
        (
            "%schedule = \"0,50 9-17 * * *\"\nrandom_delay = \"30m\"",
            "\"30m\"",
            "come as close as 10m",
            "`H` in the schedule",
        ),
        (
            "[defaults]\nrandom_delay = \"30s\"\n%schedule = \"@every 10s\"",
            "\"30s\"",
            "`random_delay` is 30s, and occurrences come as close as 10s",
            "write a delay below 10s",
        ),
    ]);
    for (schedule, delay) in [
        ("* * * * *", "59s999ms"),
        ("0,50 9-17 * * *", "9m59s"),
        ("@every 10s", "9s"),
        ("@at 2027-01-01T00:00:00Z", "23h"),
    ] {
        let table = format!("%schedule = \"{schedule}\"\nrandom_delay = \"{delay}\"\n");
        job_of(&table);
    }
}

#[test]
fn a_gap_that_a_clock_change_shortens_stops_an_edit_but_not_a_start() {
    // From 22:00 to 03:00 are 5 hours, and on the night to 14 March 2027 they are 4.
    let table = "[jobs.x]\nshell = \"x\"\nschedule = \"0 22,3 * * *\"\ntimezone = \"America/New_York\"\nrandom_delay = \"4h\"\n";
    // That day is 113 days ahead and the 100 occurrences to come are in the next 50.
    assert!(read(table).expect("a table").warnings.is_empty());
    let weekly = table.replace("* * *", "* * SAT,SUN");
    let (severity, message, ..) = problem(&weekly, Strictness::Start);
    assert_eq!(severity, Severity::Warning);
    assert!(
        message.ends_with("occurrences come as close as 4h"),
        "{message}"
    );
    let (severity, ..) = problem(&weekly, Strictness::Edit);
    assert_eq!(severity, Severity::Error);
}
