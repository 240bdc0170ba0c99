//! What is found new, gone, renamed, changed and suspended.

use jiff::tz::TimeZone;

use super::*;
use crate::scheduler::job::Program;
use crate::scheduler::lease::JobDigests;
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

fn definition(digest: &str, revision: Option<u64>) -> Definition {
    let digest = digest.to_owned();
    Definition { digest, revision }
}

fn defined(digest: &str, revision: Option<u64>) -> Job {
    let mut job = job("a", "@daily");
    job.definition = definition(digest, revision);
    job
}

/// As the ledger has a job whose definitions it saw in this order: the last is in force.
fn in_force(seen: &[Definition]) -> JobState {
    let mut force = Force::default();
    seen.iter().for_each(|one| force.put(one));
    JobState {
        force: Some(force),
        ..known(&job("a", "@daily"))
    }
}

/// A replica with a table that has jobs of these digests.
fn with_replica(states: Vec<JobState>, table: &Definition, jobs: &[(&str, &str)]) -> Snapshot {
    let digests: JobDigests = jobs
        .iter()
        .map(|(job, digest)| (name(job), (*digest).to_owned()))
        .collect();
    let mut snapshot = Snapshot {
        jobs: states,
        tables: [(table.digest.clone(), digests)].into(),
        ..Snapshot::default()
    };
    snapshot.lineage.note(table, "");
    let replica = ReplicaState::with_table("web-1", table, SINCE);
    snapshot.replicas.push(replica);
    snapshot
}

fn whats(comparison: Comparison) -> Vec<What> {
    comparison
        .findings
        .into_iter()
        .map(|one| one.what)
        .collect()
}

/// As the ledger has a job once it is enrolled.
fn known(job: &Job) -> JobState {
    JobState {
        force: None,
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

/// Beside a ledger, of a table of that revision.
fn beside(jobs: &[Job], revision: Option<u64>, snapshot: &Snapshot) -> Comparison {
    let table = definition("own", revision);
    let now = SINCE;
    Comparison::of(&Offered { jobs, table }, Shown { snapshot, now })
}

fn compared(jobs: &[Job], states: Vec<JobState>) -> Vec<(String, What)> {
    let snapshot = Snapshot {
        jobs: states,
        ..Snapshot::default()
    };
    let findings = beside(jobs, None, &snapshot).findings;
    let named = findings.into_iter();
    named.map(|one| (one.job.to_string(), one.what)).collect()
}

fn gone(renamed_to: Option<&str>) -> What {
    What::Gone {
        last_ran: None,
        waiting: 0,
        renamed_to: renamed_to.map(name),
        held_by: Vec::new(),
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
    assert!(
        beside(&jobs, None, &Snapshot::default())
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

#[test]
fn a_job_that_runs_otherwise_than_what_is_in_force_is_told_though_its_schedule_is_the_same() {
    let state = in_force(&[definition("before", None)]);
    let found = compared(&[defined("after", None)], vec![state.clone()]);
    let in_force = definition("before", None);
    assert_eq!(found, [("a".to_owned(), What::Redefined { in_force })]);
    assert_eq!(compared(&[defined("before", None)], vec![state]), []);
}

#[test]
fn a_table_is_outdated_where_live_replicas_have_what_is_newer() {
    let newer = definition("new", Some(5));
    for (job, seen, why) in [
        (
            defined("old", Some(4)),
            vec![newer.clone()],
            Why::Revision(4),
        ),
        (
            defined("old", None),
            vec![definition("old", None), newer.clone()],
            Why::Superseded,
        ),
    ] {
        let revision = job.definition.revision;
        let states = vec![in_force(&seen)];
        let table = definition("table", Some(5));
        let mut snapshot = with_replica(states, &table, &[("a", "new")]);
        let jobs = [job];
        let outdated = |why, held_by: &[&str]| What::Outdated {
            in_force: newer.clone(),
            why,
            held_by: held_by.iter().map(|one| (*one).to_owned()).collect(),
        };
        let comparison = beside(&jobs, revision, &snapshot);
        assert!(comparison.is_outdated());
        assert!(comparison.render("x").contains("! this table is outdated"));
        assert_eq!(whats(comparison), [outdated(why, &["web-1"])]);
        // One that has gone, or goes, leaves it to this table.
        snapshot.replicas[0].info.draining = true;
        let comparison = beside(&jobs, revision, &snapshot);
        assert!(!comparison.is_outdated());
        assert!(comparison.render("x").contains("takes its place"));
        snapshot.replicas[0].info.draining = false;
        snapshot.replicas[0].info.alive_ms = 0;
        snapshot.replicas[0].seen_at = Timestamp::from_second(0);
        assert!(!beside(&jobs, revision, &snapshot).is_outdated());
    }
}

#[test]
fn a_greater_revision_is_never_outdated() {
    let table = definition("table", Some(5));
    let states = vec![in_force(&[definition("new", Some(5))])];
    let snapshot = with_replica(states, &table, &[("a", "new")]);
    let comparison = beside(&[defined("old", Some(6))], Some(6), &snapshot);
    assert!(!comparison.is_outdated());
    let in_force = definition("new", Some(5));
    assert_eq!(whats(comparison), [What::Redefined { in_force }]);
}

#[test]
fn a_job_that_a_newer_table_lacks_is_outdated_and_one_that_an_older_table_lacks_is_new() {
    let table = definition("table", Some(5));
    let snapshot = with_replica(Vec::new(), &table, &[("b", "x")]);
    let jobs = [defined("d", Some(4))];
    let comparison = beside(&jobs, Some(4), &snapshot);
    assert!(comparison.is_outdated());
    let by = vec!["web-1".to_owned()];
    assert_eq!(whats(comparison), [What::Withdrawn { by }]);
    let comparison = beside(&jobs, Some(6), &snapshot);
    assert!(!comparison.is_outdated());
    assert_eq!(whats(comparison), [new(None)]);
}

#[test]
fn a_job_that_live_replicas_have_and_a_newer_table_lacks_is_said_to_run_no_more() {
    let table = definition("table", Some(5));
    let mut snapshot = with_replica(vec![known(&job("a", "@daily"))], &table, &[("a", "x")]);
    let text = |revision, snapshot: &Snapshot| beside(&[], revision, snapshot).render("x");
    let no_more = "live replicas have it (web-1), and would run it no more";
    assert!(text(Some(6), &snapshot).contains(no_more));
    // Replicas with an older table that lacks it have no say.
    assert!(!text(Some(4), &snapshot).contains("no more"));
    snapshot.replicas[0].info.draining = true;
    assert!(!text(Some(6), &snapshot).contains("no more"));
}
