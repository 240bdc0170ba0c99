//! What is said of a job, whatever it is at, and of replicas that differ.

use std::time::Duration;

use uuid::Uuid;

use super::*;
use crate::scheduler::lease::{Definition, FencingToken, Replica, RunId};
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::store::{NeverStarted, Pause, ReplicaInfo, ReplicaState};

const NOW: Timestamp = Timestamp::from_second(1_795_250_760);
const MINUTE: Duration = Duration::from_secs(60);

fn attempt(token: u64, replica: &str, standing: Standing) -> LastAttempt {
    LastAttempt {
        scheduled_at: NOW - MINUTE,
        origin: Origin::Schedule,
        by: None,
        attempt: u32::from(token > 0),
        run_id: RunId::new(Uuid::nil()),
        token: FencingToken::new(token),
        replica: replica.to_owned(),
        since: NOW - MINUTE,
        late: None,
        standing,
    }
}

fn state(attempts: Vec<LastAttempt>) -> JobState {
    JobState {
        force: None,
        job: JobName::new("report").unwrap(),
        settled_until: NOW,
        schedule: String::new(),
        paused: None,
        disabled: None,
        suspensions: Vec::new(),
        attempts,
        waiting: Vec::new(),
        joins: Vec::new(),
        never_started: Vec::new(),
        triggers: Vec::new(),
    }
}

fn shown(state: &JobState) -> JobStatus {
    JobStatus::of(&state.job, None, Some(state), NOW, false)
}

const RUNNING: Standing = Standing::Running {
    deadline: Timestamp::from_second(1_795_250_770),
};

#[test]
fn what_is_unfinished_is_told_before_what_keeps_more_from_coming() {
    let again = Standing::Again {
        outcome: Outcome::Failed,
        at: NOW + MINUTE,
    };
    let gone = Standing::Running {
        deadline: NOW - MINUTE,
    };
    let failed = Standing::Ended(Outcome::Failed);
    for (standing, idle, suspended) in [
        (RUNNING, "running", "running"),
        (gone, "abandoned", "abandoned"),
        (again, "waiting_to_retry", "waiting_to_retry"),
        (Standing::Idle, "waiting", "waiting"),
        (failed, "failed", "paused"),
    ] {
        let mut state = state(vec![attempt(7, "r1", standing)]);
        assert_eq!(shown(&state).state, idle);
        state.paused = Some(Pause {
            since: NOW,
            by: "alice@db1".to_owned(),
        });
        assert_eq!(shown(&state).state, suspended);
    }
    let mut state = state(Vec::new());
    assert_eq!(shown(&state).state, "never_ran");
    state.disabled = Some(NOW);
    assert_eq!(shown(&state).state, "disabled");
    state.waiting = vec![WaitingOccurrence {
        scheduled_at: NOW,
        origin: Origin::Trigger,
        by: Some("alice@db1".to_owned()),
        since: NOW,
        start_by: None,
    }];
    assert_eq!(shown(&state).state, "waiting");
}

#[test]
fn the_last_attempt_of_shards_is_one_that_runs_and_each_holder_is_named_once() {
    let ended = Standing::Ended(Outcome::Failed);
    let shards = vec![
        attempt(7, "r3", ended),
        attempt(5, "r2", RUNNING),
        attempt(9, "r1", RUNNING),
        attempt(8, "r2", RUNNING),
        attempt(0, "", Standing::Idle),
    ];
    let shown = shown(&state(shards));
    assert_eq!(shown.last.map(|last| last.token), Some(5));
    let shards = shown.shards.unwrap();
    assert_eq!((shards.running, shards.over, shards.total), (3, 1, 5));
    assert_eq!(shards.holders, ["r1", "r2"]);
    assert_eq!(shown.state, "running");
}

#[test]
fn shards_that_ended_differently_have_not_succeeded() {
    let ends = [Outcome::Succeeded, Outcome::TimedOut, Outcome::Succeeded];
    let attempts = ends.map(|outcome| attempt(1, "r1", Standing::Ended(outcome)));
    assert_eq!(shown(&state(attempts.to_vec())).state, "timed_out");
}

#[test]
fn replicas_with_an_older_table_are_marked_and_the_dead_are_not_counted() {
    let replica = |name: &str, digest: &str, seen_at| ReplicaState {
        replica: Replica {
            id: Uuid::nil(),
            name: name.to_owned(),
        },
        info: ReplicaInfo {
            digest: digest.to_owned(),
            alive_ms: 10_000,
            ..ReplicaInfo::default()
        },
        seen_at,
    };
    let mut snapshot = Snapshot {
        replicas: vec![
            replica("a", "newest", NOW - MINUTE),
            replica("b", "old", NOW - MINUTE),
            replica("c", "old", NOW),
            replica("d", "new", NOW),
            replica("e", "old", NOW),
            replica("f", "", NOW),
        ],
        ..Snapshot::default()
    };
    for digest in ["old", "new", "newest"] {
        let digest = digest.to_owned();
        let revision = None;
        let table = Definition { digest, revision };
        snapshot.lineage.note(&table, "");
    }
    let marked = replicas(&snapshot, NOW).into_iter();
    let marked = marked.filter(|one| one.config_differs);
    let marked: Vec<String> = marked.map(|one| one.name).collect();
    assert_eq!(marked, ["c", "e"]);
}

const SKIPPED: NeverStarted = NeverStarted {
    scheduled_at: NOW,
    outcome: Outcome::Skipped,
    cause: Cause::Placement,
    within: None,
};

#[test]
fn what_never_started_is_how_it_went_last_unless_what_ran_went_badly() {
    for (ran, standing, expected) in [
        (false, Standing::Idle, "skipped"),
        (true, Standing::Ended(Outcome::Succeeded), "skipped"),
        (true, Standing::Ended(Outcome::Failed), "failed"),
        (true, RUNNING, "running"),
    ] {
        let attempts = ran.then(|| attempt(7, "r1", standing));
        let mut state = state(attempts.into_iter().collect());
        state.never_started = vec![SKIPPED];
        let shown = shown(&state);
        assert_eq!(shown.state, expected);
        let one = shown.never_started.unwrap();
        assert_eq!(one.scheduled_at, NOW.to_string());
        assert_eq!(
            (one.outcome, one.cause),
            (Outcome::Skipped, Cause::Placement)
        );
    }
}

#[test]
fn what_never_started_before_the_newest_run_is_not_shown() {
    let succeeded = Standing::Ended(Outcome::Succeeded);
    let mut state = state(vec![attempt(7, "r1", succeeded)]);
    state.never_started = vec![NeverStarted {
        scheduled_at: NOW - MINUTE * 2,
        ..SKIPPED
    }];
    let shown = shown(&state);
    assert!(shown.never_started.is_none());
    assert_eq!(shown.state, "succeeded");
}

#[test]
fn a_stretch_of_time_counts_as_the_newest_instant_in_it_and_an_empty_one_does_not_count() {
    let within = |length: Duration, schedule: &str| NeverStarted {
        within: Some((NOW - length, schedule.to_owned())),
        cause: Cause::CatchUp,
        outcome: Outcome::Missed,
        ..SKIPPED
    };
    let newest = |kept: &[NeverStarted]| {
        let mut state = state(Vec::new());
        state.never_started = kept.to_vec();
        let shown = shown(&state);
        (shown.state, shown.never_started.map(|one| one.scheduled_at))
    };
    let hourly = Schedule::parse(
        "0 * * * *",
        "report",
        jiff::tz::TimeZone::UTC,
        DstGap::default(),
        DstFold::default(),
    );
    let hourly = hourly.unwrap().identity();
    let full = within(MINUTE * 60, &hourly);
    let empty = within(MINUTE, &hourly);
    let at = full_hour().to_string();
    assert_eq!(
        newest(std::slice::from_ref(&full)),
        ("missed".to_owned(), Some(at))
    );
    assert_eq!(
        newest(std::slice::from_ref(&empty)),
        ("never_ran".to_owned(), None)
    );
    let older = NeverStarted {
        scheduled_at: NOW - MINUTE * 90,
        ..SKIPPED
    };
    let at = older.scheduled_at.to_string();
    let unreadable = within(MINUTE * 60, "whenever it is nice");
    let kept = [empty, unreadable, older];
    assert_eq!(newest(&kept), ("skipped".to_owned(), Some(at)));
}

/// The last full hour before NOW.
fn full_hour() -> Timestamp {
    Timestamp::from_second(NOW.as_millis() / 1000 / 3600 * 3600)
}
