//! What is found new, gone, renamed, changed and suspended.

use jiff::tz::TimeZone;

use super::*;
use crate::scheduler::job::Program;
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::store::Pause;

const SINCE: Timestamp = Timestamp::from_second(1_795_250_760);

fn name(text: &str) -> JobName {
    JobName::new(text).unwrap()
}

fn job(text: &str, schedule: &str) -> Job {
    let (gap, fold) = (DstGap::default(), DstFold::default());
    let schedule = Schedule::parse(schedule, text, TimeZone::UTC, gap, fold);
    Job::new(name(text), schedule.unwrap(), Program::Shell("x".into()))
}

/// As the ledger has a job once it is enrolled.
fn known(job: &Job) -> JobState {
    JobState {
        job: job.name.clone(),
        settled_until: SINCE,
        schedule: job.schedule.identity(),
        paused: None,
        disabled: None,
        suspensions: Vec::new(),
        attempts: Vec::new(),
        waiting: Vec::new(),
        joins: Vec::new(),
        never_started: Vec::new(),
        triggers: Vec::new(),
    }
}

fn compared(jobs: &[Job], states: Vec<JobState>) -> Vec<(String, What)> {
    let snapshot = Snapshot {
        jobs: states,
        ..Snapshot::default()
    };
    let findings = Comparison::of(jobs, &snapshot).findings;
    let named = findings.into_iter();
    named.map(|one| (one.job.to_string(), one.what)).collect()
}

fn gone(renamed_to: Option<&str>) -> What {
    What::Gone {
        last_ran: None,
        waiting: 0,
        renamed_to: renamed_to.map(name),
    }
}

fn new(renamed_from: Option<&str>) -> What {
    What::New {
        renamed_from: renamed_from.map(name),
    }
}

#[test]
fn a_table_that_the_ledger_knows_as_it_is_has_no_findings() {
    let jobs = [job("a", "@daily"), job("b", "@manual")];
    let states = jobs.iter().map(known).collect();
    assert_eq!(compared(&jobs, states), []);
    let comparison = Comparison::of(&jobs, &Snapshot::default());
    assert!(
        comparison
            .render("sqlite:x")
            .contains("never runs its past")
    );
}

#[test]
fn a_job_that_is_gone_and_one_that_is_new_with_its_schedule_are_perhaps_renamed() {
    let before = [
        job("close-orders", "0 22 * * *"),
        job("old", "@manual"),
        job("sweep", "@hourly"),
    ];
    let after = [
        job("backup", "0 22 * * *"),
        job("close-order", "0 22 * * *"),
        job("other", "@manual"),
    ];
    let found = compared(&after, before.iter().map(known).collect());
    let expected = [
        ("backup", new(None)),
        ("close-order", new(Some("close-orders"))),
        ("close-orders", gone(Some("close-order"))),
        ("old", gone(None)),
        ("other", new(None)),
        ("sweep", gone(None)),
    ];
    let expected = expected.map(|(name, what)| (name.to_owned(), what));
    assert_eq!(found, expected);
}

#[test]
fn one_new_job_is_not_two_renamed_ones() {
    let before = [job("a", "@hourly"), job("b", "@hourly")];
    let found = compared(&[job("c", "@hourly")], before.iter().map(known).collect());
    let expected = [
        ("a", gone(Some("c"))),
        ("b", gone(None)),
        ("c", new(Some("a"))),
    ];
    assert_eq!(found, expected.map(|(name, what)| (name.to_owned(), what)));
}

#[test]
fn another_schedule_a_switch_and_a_pause_are_told_of_the_same_job() {
    let (before, after) = (job("a", "@hourly"), job("a", "@daily"));
    let mut state = known(&before);
    state.disabled = Some(SINCE);
    state.paused = Some(Pause {
        since: SINCE,
        by: "alice@db1".to_owned(),
    });
    let found = compared(std::slice::from_ref(&after), vec![state]);
    let whats: Vec<What> = found.into_iter().map(|(_, what)| what).collect();
    let rescheduled = What::Rescheduled {
        from: before.schedule.identity(),
        to: after.schedule.identity(),
    };
    let paused = What::Paused {
        since: SINCE,
        by: "alice@db1".to_owned(),
    };
    let switched = What::Switched { enabled: true };
    assert_eq!(whats, [rescheduled, switched, paused]);
    assert!(whats_text(&whats).contains("paused since 2026-11-21T"));
}

fn whats_text(whats: &[What]) -> String {
    whats.iter().map(What::in_words).collect()
}
