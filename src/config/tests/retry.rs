//! How often a failed occurrence is tried again.

use super::policies::{Case, assert_refused, problem, table_of};
use super::{job, read};
use crate::config::{Severity, Strictness};
use crate::scheduler::policy::Retry;
use std::time::Duration;

#[test]
fn a_retry_of_some_keys_has_the_defaults_for_the_others() {
    let max_3 = Retry {
        max: 3,
        ..Retry::default()
    };
    assert_eq!(job("retry = { max = 3 }").retry, max_3);
    let all = job("retry = { max = 4, backoff = \"250ms\", factor = 1.5, max_backoff = \"7d\" }");
    let expected = Retry {
        max: 4,
        backoff: Duration::from_millis(250),
        factor: 1.5,
        max_backoff: Duration::from_secs(7 * 86_400),
    };
    assert_eq!(all.retry, expected);
    let table = job("[jobs.x.retry]\nmax = 3\nfactor = 100\n").retry;
    assert_eq!(
        table,
        Retry {
            factor: 100.0,
            ..max_3
        }
    );
}

#[test]
fn the_retry_of_a_job_takes_the_place_of_the_whole_default() {
    let source = "[defaults]\nretry = { max = 5, backoff = \"9s\" }\n#retry = { max = 2 }\n[jobs.y]\nshell = \"x\"\nschedule = \"@daily\"\n";
    let config = read(&table_of(source)).unwrap_or_else(|error| panic!("{error}"));
    let retries: Vec<_> = config.jobs.iter().map(|job| job.retry).collect();
    assert_eq!((retries[0].max, retries[0].backoff.as_secs()), (2, 1));
    assert_eq!((retries[1].max, retries[1].backoff.as_secs()), (5, 9));
}

const WITHOUT_SENSE: &[Case] = &[
    (
        "#retry = 3",
        "3",
        "`retry` takes a table, not an integer",
        "say what the number is: `retry = { max = 3 }`",
    ),
    (
        "#retry = true",
        "true",
        "`retry` takes a table",
        "`retry = { max = 3 }`",
    ),
    (
        "#retry = { max = 1001 }",
        "1001",
        "a whole number from 0 to 1000",
        "{ max = 3 }",
    ),
    (
        "#retry = { max = -1 }",
        "-1",
        "a whole number from 0 to 1000",
        "{ max = 3 }",
    ),
    (
        "#retry = { max = 1.5 }",
        "1.5",
        "a whole number from 0 to 1000",
        "{ max = 3 }",
    ),
    (
        "#retry = { mx = 1 }",
        "mx",
        "unknown key `mx`",
        "did you mean `max`?",
    ),
    (
        "#retry = { jitter = 1 }",
        "jitter",
        "unknown key `jitter`",
        "the keys of `retry` are max, backoff, factor, max_backoff",
    ),
    (
        "#retry = { max = 1, factor = 0.5 }",
        "0.5",
        "a number from 1 to 100",
        "factor = 2",
    ),
    (
        "#retry = { max = 1, factor = 101 }",
        "101",
        "a number from 1 to 100",
        "factor = 2",
    ),
    (
        "#retry = { max = 1, factor = nan }",
        "nan",
        "a number from 1 to 100",
        "factor = 2",
    ),
    (
        "#retry = { max = 1, factor = \"2\" }",
        "\"2\"",
        "a number from 1 to 100",
        "factor = 2",
    ),
    (
        "#retry = { max = 1, backoff = 5 }",
        "5",
        "takes a duration",
        "`backoff = \"5s\"`",
    ),
    (
        "#retry = { max = 1, backoff = \"5\" }",
        "\"5\"",
        "has no unit",
        "`5s`",
    ),
    (
        "#retry = { max = 1, backoff = \"0s\" }",
        "\"0s\"",
        "from 1ms to 7d",
        "\"10s\"",
    ),
    (
        "#retry = { max = 1, max_backoff = \"8d\" }",
        "\"8d\"",
        "from 1ms to 7d",
        "\"10s\"",
    ),
    (
        "#retry = { max = 1, backoff = \"10m\" }",
        "\"10m\"",
        "`backoff` is 10m, longer than the `max_backoff` of 5m that holds by default",
        "write `max_backoff = \"10m\"` or more",
    ),
    (
        "#retry = { max = 1, backoff = \"10s\", max_backoff = \"5s\" }",
        "\"5s\"",
        "`max_backoff` is 5s, shorter than the `backoff` of 10s",
        "write `max_backoff = \"10s\"` or more",
    ),
    (
        "#retry = { max = 1, max_backoff = \"500ms\" }",
        "\"500ms\"",
        "`max_backoff` is 500ms, shorter than the `backoff` of 1s",
        "write `max_backoff = \"1s\"` or more",
    ),
];

#[test]
fn a_retry_that_makes_no_sense_is_refused() {
    assert_refused(WITHOUT_SENSE);
}

#[test]
fn retries_that_max_attempts_ends_earlier_are_told() {
    let told = |keys: &str| {
        let (severity, message, hint, at) =
            problem(&table_of(&format!("#{keys}")), Strictness::Edit);
        assert_eq!(severity, Severity::Warning, "{keys}");
        (message, hint, at)
    };
    let (message, hint, at) = told("retry = { max = 10 }");
    let expected = "10 retries never happen: `max_attempts` is 10, the first attempt included";
    assert_eq!(message, expected);
    assert!(hint.contains("`max_attempts = 11`"), "{hint}");
    assert_eq!(at, "10");
    let (_, hint, _) = told("retry = { max = 1000 }\nmax_attempts = 1000");
    assert!(hint.contains("at most 1000 attempts"), "{hint}");
    let (message, hint, at) = told("retry = { backoff = \"5s\" }");
    assert_eq!(message, "`retry` without `max` never tries again");
    assert!(hint.contains("retry = { max = 3"), "{hint}");
    assert_eq!(at, "{ backoff = \"5s\" }");
}

#[test]
fn retries_within_max_attempts_are_taken_without_a_word() {
    for keys in [
        "retry = { max = 9 }",
        "retry = { max = 0, backoff = \"5s\" }",
        "retry = { max = 10 }\nmax_attempts = 11",
        "retry = { max = 3 }\non_crash = \"skip\"",
    ] {
        let config = read(&table_of(&format!("#{keys}"))).unwrap_or_else(|error| panic!("{error}"));
        assert!(config.warnings.is_empty(), "{}", config.warnings);
    }
}
