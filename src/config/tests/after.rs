//! Jobs that come after others.

use super::policies::{assert_refused, problem};
use super::{messages, read};
use crate::config::{Severity, Strictness};

/// A job for each name, with the rest of its keys.
fn jobs(jobs: &[(&str, &str)]) -> String {
    let texts = jobs
        .iter()
        .map(|(name, keys)| format!("[jobs.{name}]\nshell = \"x\"\n{keys}\n"));
    texts.collect()
}

#[test]
fn after_takes_the_place_of_a_schedule() {
    let source = jobs(&[
        ("a", "schedule = \"@daily\""),
        ("b", "after = \"a\"\ntimezone = \"Asia/Shanghai\""),
        ("c", "after = [\"b\", \"a\"]"),
        ("d", "after = [\"by-hand\"]"),
        ("by-hand", "schedule = \"@manual\""),
    ]);
    let config = read(&source).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.warnings.is_empty(), "{}", config.warnings);
    let after: Vec<Vec<&str>> = config
        .jobs
        .iter()
        .map(|job| job.after.iter().map(|name| name.as_str()).collect())
        .collect();
    assert_eq!(
        after,
        [vec![], vec!["a"], vec!["b", "a"], vec!["by-hand"], vec![]]
    );
    assert!(!config.jobs[0].schedule.is_manual());
    assert!(config.jobs[1].schedule.is_manual());
    assert_eq!(config.jobs[1].schedule.text(), "@manual");
    let zone = config.jobs[1].schedule.zone();
    assert_eq!(zone.iana_name(), Some("Asia/Shanghai"));
}

#[test]
fn a_jobs_own_after_or_schedule_takes_the_place_of_either_default() {
    let scheduled = "[defaults]\nschedule = \"@daily\"\n".to_owned();
    let config = read(&(scheduled + &jobs(&[("a", ""), ("b", "after = \"a\"")])));
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert!(config.jobs[1].schedule.is_manual());

    let following = "[defaults]\nafter = \"a\"\n".to_owned();
    let config = read(&(following + &jobs(&[("a", "schedule = \"@daily\""), ("b", "")])));
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    assert!(config.jobs[0].after.is_empty());
    assert_eq!(config.jobs[1].after.len(), 1);
}

#[test]
fn an_after_that_makes_no_sense_is_refused() {
    assert_refused(&[
        (
            "#after = \"y\"\n[jobs.y]\nschedule = \"@daily\"\nshell = \"x\"",
            "after",
            "`after` contradicts `schedule`",
            "keep one of them",
        ),
        ("%", "x", "the job `x` has no schedule", "`after = \"JOB\"`"),
        ("%after = []", "[]", "`after` names no job", "`after = ["),
        ("%after = \" \"", "\" \"", "`after` is empty", "`after = ["),
        (
            "%after = 5",
            "5",
            "the name of a job, or a list of names",
            "`after = [",
        ),
        ("%after = [5]", "5", "here is an integer", "quotes"),
        (
            "%after = \"x\"",
            "\"x\"",
            "the job `x` waits for itself",
            "come before it",
        ),
        (
            "[defaults]\nafter = \"x\"\n%",
            "\"x\"",
            "the job `x` waits for itself",
            "give it a `schedule` of its own",
        ),
        (
            "%after = \"reprot\"\n[jobs.report]\nschedule = \"@daily\"\nshell = \"x\"",
            "\"reprot\"",
            "no job is called `reprot`",
            "did you mean `report`?",
        ),
        (
            "%after = [\"a b\"]",
            "\"a b\"",
            "no job is called `a b`",
            "`after` names jobs of this table",
        ),
        (
            "%after = [\"y\", \"y\"]\n[jobs.y]\nschedule = \"@daily\"\nshell = \"x\"",
            "\"y\"",
            "the job `y` is there twice",
            "keep one of them",
        ),
    ]);
}

#[test]
fn a_job_with_errors_of_its_own_can_be_come_after() {
    let source = jobs(&[("a", "schedule = \"61 * * * *\""), ("b", "after = \"a\"")]);
    let told = messages(&source);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("`61` is not a minute"), "{told:?}");
}

#[test]
fn jobs_that_wait_for_each_other_are_shown_once_with_the_way_round() {
    let circle = [("a", "after = \"b\""), ("b", "after = \"a\"")];
    let (severity, message, hint, at) = problem(&jobs(&circle), Strictness::Start);
    assert_eq!(severity, Severity::Error);
    assert_eq!(message, "jobs wait for each other: a → b → a");
    assert!(hint.contains("take one of the names out"), "{hint}");
    assert_eq!(at, "\"a\"");

    let two = jobs(&[
        ("leads-in", "after = [\"x\", \"c\"]"),
        ("a", "after = [\"s\", \"b\"]"),
        ("b", "after = [\"c\"]"),
        ("c", "after = [\"s\", \"a\"]"),
        ("x", "after = \"y\""),
        ("y", "after = [\"x\", \"a\"]"),
        ("s", "schedule = \"@daily\""),
    ]);
    let expected = [
        "jobs wait for each other: a → b → c → a",
        "jobs wait for each other: x → y → x",
    ];
    assert_eq!(messages(&two), expected);
}

#[test]
fn ways_that_part_and_meet_again_are_no_circle() {
    let source = jobs(&[
        ("a", "schedule = \"@daily\""),
        ("b", "after = \"a\""),
        ("c", "after = \"a\""),
        ("d", "after = [\"b\", \"c\", \"a\"]"),
    ]);
    assert!(read(&source).is_ok());
}

#[test]
fn a_chain_of_thousands_is_followed_to_its_end() {
    let chain = |first: &str| {
        let links =
            (1..3000).map(|n| format!("[jobs.j{n}]\nshell = \"x\"\nafter = \"j{}\"\n", n - 1));
        format!("[jobs.j0]\nshell = \"x\"\n{first}\n") + &links.collect::<String>()
    };
    assert!(read(&chain("schedule = \"@daily\"")).is_ok());
    let told = messages(&chain("after = \"j2999\""));
    assert_eq!(told.len(), 1);
    assert!(told[0].ends_with(" → j2 → j1 → j0"), "{}", told[0]);
}

#[test]
fn a_disabled_job_that_another_comes_after_is_told() {
    let off = ("a", "schedule = \"@daily\"\nenabled = false");
    let source = jobs(&[off, ("b", "after = \"a\"")]);
    let (severity, message, hint, at) = problem(&source, Strictness::Edit);
    assert_eq!(severity, Severity::Warning);
    assert_eq!(
        message,
        "`a` is disabled, so that `b` never comes about by itself"
    );
    assert!(hint.contains("take it out of `after`"), "{hint}");
    assert_eq!(at, "\"a\"");
    let both = jobs(&[off, ("b", "after = \"a\"\nenabled = false")]);
    assert!(read(&both).expect("a table").warnings.is_empty());
}
