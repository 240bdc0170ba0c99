//! When a mark is renewed, and which jobs are forgotten.

use uuid::Uuid;

use super::super::record::{Current, Group, Life, Paused, State, Waiting};
use super::super::somebody;
use super::*;
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::lease::{Enrolment, FencingToken, Origin, Outcome, Retention, RunId};

const DAY: Duration = Duration::from_secs(24 * 3600);
const TODAY: Timestamp = Timestamp::from_second(20_000 * 24 * 3600 + 3600);

fn with_call<T>(now: Timestamp, grace: Duration, ask: impl FnOnce(&mut Call<'_>) -> T) -> T {
    let mut group = Group {
        grace_until: now + grace,
        ..Group::default()
    };
    let caller = somebody();
    let clock_us = now.as_millis() * 1000;
    let mut call = Call::begin(&mut group, &caller, clock_us, &Life::Steady);
    ask(&mut call)
}

fn judged(record: &Record) -> Verdict {
    with_call(TODAY, Duration::ZERO, |call| call.judge(record))
}

fn marked(days_ago: u32) -> Record {
    Record {
        settled_until: TODAY,
        enrolled_on: Day(20_000 - days_ago),
        ..Record::default()
    }
}

fn enrolment(again: bool) -> Enrolment {
    Enrolment {
        job: JobName::new("a").unwrap(),
        schedule: "* * * * * UTC".to_owned(),
        enabled: true,
        definition: Default::default(),
        over: None,
        change: None,
        retention: Retention {
            limit: 10,
            age: DAY,
        },
        again,
        seen: Default::default(),
    }
}

/// The mark after an enrolment; none where nothing is written.
fn mark_after(record: Option<Record>, again: bool) -> Option<Day> {
    let record = record.map(|record| Record {
        schedule: enrolment(again).schedule,
        ..record
    });
    with_call(TODAY, Duration::ZERO, |call| {
        let decision = call.register(record.as_ref(), &enrolment(again));
        decision.record.map(|record| record.enrolled_on)
    })
}

#[test]
fn a_mark_is_renewed_seldom_so_that_enrolling_mostly_writes_nothing() {
    let today = Some(Day(20_000));
    assert_eq!(mark_after(None, false), today, "a new job");
    for (days_ago, in_a_round, at_a_start) in [
        (0, None, None),
        (6, None, None),
        (7, today, None),
        (13, today, None),
        (14, today, today),
        (29, today, today),
    ] {
        let record = || Some(marked(days_ago));
        assert_eq!(mark_after(record(), true), in_a_round, "{days_ago} days");
        assert_eq!(mark_after(record(), false), at_a_start, "{days_ago} days");
    }
    let ahead = Record {
        enrolled_on: Day(30_000),
        ..marked(0)
    };
    assert_eq!(mark_after(Some(ahead), true), today, "a clock was wrong");
}

#[test]
fn a_job_is_forgotten_when_no_table_has_had_it_for_long() {
    assert_eq!(judged(&marked(0)), Verdict::Kept);
    assert_eq!(judged(&marked(29)), Verdict::Kept);
    assert_eq!(judged(&marked(30)), Verdict::Forgotten);
}

#[test]
fn a_job_without_a_mark_or_with_one_of_days_to_come_gets_one_first() {
    for mark in [Day(0), Day(20_001)] {
        let record = Record {
            enrolled_on: mark,
            ..marked(0)
        };
        let Verdict::Marked(after) = judged(&record) else {
            panic!("{mark:?}");
        };
        assert_eq!(*after, marked(0));
    }
}

#[test]
fn nothing_is_forgotten_in_a_grace_window() {
    let verdict = with_call(TODAY, Duration::from_secs(1), |call| {
        call.judge(&marked(99))
    });
    assert_eq!(verdict, Verdict::Kept);
}

fn with_slot(state: State, days_ago: u32) -> Record {
    let at = TODAY - DAY * days_ago;
    let slot = Slot {
        state,
        attempt: 1,
        failures: 0,
        run_id: RunId::new(Uuid::nil()),
        token: FencingToken::new(1),
        holder: somebody().replica,
        deadline: at,
        ttl: Duration::from_secs(15),
        on_crash: OnCrash::Rerun,
        since: at - DAY * 60,
        late: None,
    };
    Record {
        current: Some(Current {
            scheduled_at: at,
            origin: Origin::Schedule,
            by: None,
            stop: None,
            slots: vec![slot],
        }),
        ..marked(99)
    }
}

#[test]
fn a_job_that_runs_waits_or_is_paused_is_kept() {
    let paused = Record {
        paused: Some(Paused {
            since: TODAY - DAY * 98,
            by: "alice@desk".to_owned(),
        }),
        ..marked(99)
    };
    assert_eq!(judged(&paused), Verdict::Kept);
    for state in [State::Running, State::Again(Outcome::HandedOver)] {
        assert_eq!(judged(&with_slot(state, 0)), Verdict::Kept);
        let nobody_came = with_slot(state, 31);
        assert_eq!(judged(&nobody_came), Verdict::Forgotten, "{state:?}");
    }
    let ended = State::Ended(Outcome::Succeeded);
    assert_eq!(judged(&with_slot(ended, 0)), Verdict::Forgotten);
    for (start_by, verdict) in [
        (None, Verdict::Kept),
        (Some(TODAY), Verdict::Kept),
        (Some(TODAY - DAY), Verdict::Forgotten),
    ] {
        let waits = Record {
            waiting: vec![Waiting {
                scheduled_at: TODAY - DAY * 90,
                origin: Origin::Trigger,
                by: None,
                since: TODAY - DAY * 90,
                start_by,
                queued: true,
                late: None,
            }],
            ..marked(99)
        };
        assert_eq!(judged(&waits), verdict, "{start_by:?}");
    }
}
