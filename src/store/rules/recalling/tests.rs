//! What a ledger that has lost data makes of what it is told, and of what it still has.

use std::time::Duration;

use uuid::Uuid;

use super::super::Call;
use super::super::record::{Decision, Entry, Group, Life, Record};
use super::*;
use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{
    Caller, Claim, ClaimAnswer, FencingToken, Grant, Occurrence, Order, OrderAnswer, OrderKind,
    Origin, Pause, Release, Renewal, RenewalAnswer, Replica, Retention, RunId, Seen, Sighting,
};

const SCHEDULE: &str = "*/10 * * * * * zone=UTC gap=run_after fold=first days=all";
const GRACE: Duration = Duration::from_secs(16);
const RETENTION: Retention = Retention {
    limit: 10,
    age: Duration::from_secs(3600),
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second)
}

fn name() -> JobName {
    JobName::new("job").unwrap()
}

/// A ledger of one job.
struct Ledger {
    group: Group,
    record: Option<Record>,
    lines: Vec<Entry>,
    drawn: u128,
    on_crash: OnCrash,
    /// By when callers wanted to be heard, and for how long they are held back.
    terms: (Option<Timestamp>, Duration),
}

impl Ledger {
    /// One that knows the job since `second`.
    fn begun(second: i64, on_crash: OnCrash) -> Self {
        let mut ledger = Self {
            group: Group::default(),
            record: None,
            lines: Vec::new(),
            drawn: 0,
            on_crash,
            terms: (None, Duration::ZERO),
        };
        ledger.enrol(second, Seen::default());
        ledger
    }

    /// Takes its data away, all or what was written since `kept`; that is noticed at `second`.
    fn lose(&mut self, kept: Option<Record>, second: i64) {
        self.record = kept;
        self.lines.clear();
        self.ask(second, &Life::AfterLoss, |call, _| Decision {
            answer: call.grace(),
            record: None,
            lines: Vec::new(),
            closed: Vec::new(),
            news: Vec::new(),
            closings: Vec::new(),
        });
    }

    fn ask<A>(
        &mut self,
        second: i64,
        life: &Life,
        request: impl FnOnce(&mut Call<'_>, Option<&Record>) -> Decision<A>,
    ) -> A {
        let caller = Caller {
            replica: Replica {
                id: Uuid::from_u128(1),
                name: "a".to_owned(),
            },
            quarantine: GRACE,
            held_back: self.terms.1,
            token_floor: FencingToken::default(),
            send_by: self.terms.0,
        };
        let clock_us = at(second).as_millis() * 1000;
        let mut call = Call::begin(&mut self.group, &caller, clock_us, life);
        let decision = request(&mut call, self.record.as_ref());
        self.lines.extend(decision.lines);
        self.record = decision.record.or(self.record.take());
        decision.answer
    }

    fn enrol(&mut self, second: i64, seen: Seen) {
        let enrolment = Enrolment {
            job: name(),
            schedule: SCHEDULE.to_owned(),
            enabled: true,
            definition: Default::default(),
            over: None,
            change: None,
            retention: RETENTION,
            again: true,
            seen,
        };
        self.ask(second, &Life::Steady, |call, record| {
            call.register(record, &enrolment)
        });
    }

    /// A replica has seen what was due up to an instant settled.
    fn told(&mut self, second: i64, settled: i64) {
        let settled_until = Some(at(settled));
        self.enrol(
            second,
            Seen {
                settled_until,
                ..Seen::default()
            },
        );
    }

    fn claim(&mut self, due: Timestamp, origin: Origin) -> Claim {
        self.drawn += 1;
        let occurrence = Occurrence {
            job: name(),
            scheduled_at: due,
        };
        Claim {
            origin,
            on_crash: self.on_crash,
            retention: RETENTION,
            ..Claim::new(occurrence, RunId::new(Uuid::from_u128(self.drawn)))
        }
    }

    fn claimed(&mut self, second: i64, claim: &Claim) -> ClaimAnswer {
        self.ask(second, &Life::Steady, |call, record| {
            call.claim(record, claim)
        })
    }

    fn claims(&mut self, second: i64, due: i64) -> ClaimAnswer {
        let claim = self.claim(at(due), Origin::Schedule);
        self.claimed(second, &claim)
    }

    fn wins(&mut self, second: i64, due: i64) -> (Claim, Grant) {
        let claim = self.claim(at(due), Origin::Schedule);
        let grant = granted(&self.claimed(second, &claim));
        (claim, grant)
    }

    fn releases(&mut self, second: i64, release: &Release) {
        self.ask(second, &Life::Steady, |call, record| {
            call.release(record, release)
        });
    }

    fn succeeds(&mut self, second: i64, due: i64) {
        let (claim, grant) = self.wins(second, due);
        self.releases(second, &Release::of(&claim, &grant, Outcome::Succeeded));
    }

    fn order(&mut self, second: i64, what: OrderKind) -> OrderAnswer {
        self.drawn += 1;
        let order = Order {
            job: name(),
            what,
            by: "alice".to_owned(),
            id: RunId::new(Uuid::from_u128(self.drawn)),
            retention: RETENTION,
            dependents: [].into(),
        };
        self.ask(second, &Life::Steady, |call, record| {
            call.order(record, &order)
        })
    }

    fn pause(&self) -> Option<Pause> {
        let record = self.record.as_ref()?;
        record.paused.as_ref().map(Paused::shown)
    }

    /// The stretches of time that are written off.
    fn lost(&self) -> Vec<(Timestamp, Timestamp)> {
        let unknown = |line: &&Entry| line.detail.cause == Some(Cause::Unknown);
        let lines = self.lines.iter().filter(unknown);
        lines
            .map(|line| (line.detail.since.unwrap_or_default(), line.scheduled_at))
            .collect()
    }
}

fn granted(answer: &ClaimAnswer) -> Grant {
    match answer {
        ClaimAnswer::Granted(grant) => *grant,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_may_have_run_before_all_was_lost_does_not_start_and_what_follows_does() {
    let mut ledger = Ledger::begun(0, OnCrash::Rerun);
    ledger.succeeds(10, 10);
    ledger.lose(None, 35);
    ledger.told(36, 10);
    let early = ledger.claims(40, 30);
    assert!(matches!(early, ClaimAnswer::Grace { .. }), "{early:?}");
    assert_eq!(ledger.claims(52, 30), ClaimAnswer::TooLate);
    assert_eq!(ledger.lost(), [(at(10), at(35))]);
    ledger.succeeds(53, 40);
    ledger.succeeds(53, 50);
    assert_eq!(ledger.lost().len(), 1);
}

#[test]
fn what_replicas_saw_settled_does_not_start_in_a_ledger_that_was_set_back() {
    let mut ledger = Ledger::begun(0, OnCrash::Rerun);
    ledger.succeeds(10, 10);
    let image = ledger.record.clone();
    ledger.succeeds(20, 20);
    ledger.succeeds(30, 30);
    ledger.lose(image, 45);
    ledger.told(46, 20);
    ledger.told(46, 30);
    ledger.told(62, 30);
    assert_eq!(ledger.lost(), [(at(10), at(30))]);
    assert_eq!(ledger.claims(63, 30), ClaimAnswer::Finished);
    // Nobody has claimed it, as far as anybody knows.
    granted(&ledger.claims(63, 40));
}

#[test]
fn a_lease_that_comes_back_is_no_part_of_what_is_lost() {
    let mut ledger = Ledger::begun(0, OnCrash::Rerun);
    ledger.succeeds(10, 10);
    let (claim, grant) = ledger.wins(20, 20);
    ledger.lose(None, 45);
    ledger.told(46, 10);
    let renewal = Renewal::of(&claim, &grant);
    let renewed = ledger.ask(47, &Life::Steady, |call, record| {
        call.renew(record, &renewal)
    });
    assert!(
        matches!(renewed, RenewalAnswer::Renewed { .. }),
        "{renewed:?}"
    );
    ledger.told(62, 10);
    assert_eq!(ledger.lost(), [(at(20), at(45))]);
}

#[test]
fn a_release_that_was_heard_before_the_loss_too_starts_nothing_that_may_run_once_only() {
    for (on_crash, again) in [(OnCrash::Skip, false), (OnCrash::Rerun, true)] {
        let mut ledger = Ledger::begun(0, on_crash);
        let (claim, grant) = ledger.wins(20, 20);
        let failed = Release {
            retry_after: Some(Duration::from_secs(1)),
            ..Release::of(&claim, &grant, Outcome::Failed)
        };
        // Its answer is lost, the next attempt runs, and the ledger knows nothing of either.
        ledger.releases(21, &failed);
        ledger.succeeds(23, 20);
        ledger.lose(None, 25);
        ledger.releases(26, &failed);
        assert_eq!(
            ledger.lines.last().map(|line| line.outcome),
            Some(Outcome::Failed)
        );
        let answer = ledger.claims(45, 20);
        assert_eq!(
            matches!(answer, ClaimAnswer::Granted(_)),
            again,
            "{on_crash:?}: {answer:?}"
        );
    }
}

#[test]
fn what_a_former_holder_told_as_ended_is_not_opened_again_by_who_took_it_over() {
    let mut ledger = Ledger::begun(0, OnCrash::Rerun);
    let (first, grant) = ledger.wins(20, 20);
    let late = Release::of(&first, &grant, Outcome::Succeeded);
    let takeover = Claim {
        watched: Some(Sighting {
            token: grant.token,
            deadline: grant.deadline,
        }),
        ..ledger.claim(at(20), Origin::Schedule)
    };
    let second = granted(&ledger.claimed(36, &takeover));
    assert_eq!(second.attempt, 2);
    ledger.lose(None, 37);
    ledger.releases(38, &late);
    let renewal = Renewal::of(&takeover, &second);
    let renewed = ledger.ask(39, &Life::Steady, |call, record| {
        call.renew(record, &renewal)
    });
    assert_eq!(renewed, RenewalAnswer::Lost);
    ledger.releases(40, &Release::of(&takeover, &second, Outcome::HandedOver));
    assert_eq!(ledger.claims(60, 20), ClaimAnswer::Finished);
    let ends = ledger.lines.iter().map(|line| line.outcome);
    assert_eq!(ends.collect::<Vec<_>>(), [Outcome::Succeeded]);
}

#[test]
fn what_a_replica_has_seen_counts_for_nothing_where_nothing_was_lost() {
    let mut ledger = Ledger::begun(0, OnCrash::Rerun);
    ledger.order(5, OrderKind::Pause);
    let pause = ledger.pause().expect("it is paused");
    ledger.order(6, OrderKind::Resume);
    let before = ledger.record.clone();
    ledger.enrol(
        30,
        Seen {
            settled_until: Some(at(20)),
            pause: Some(SeenPause { pause, over: false }),
            force: None,
        },
    );
    assert_eq!(ledger.record, before);
}

#[test]
fn a_pause_does_not_come_back_by_a_call_that_is_heard_when_the_window_is_over() {
    for (heard_by, comes_back) in [(62, false), (64, true)] {
        let mut ledger = Ledger::begun(0, OnCrash::Rerun);
        ledger.order(5, OrderKind::Pause);
        let pause = ledger.pause().expect("it is paused");
        ledger.lose(None, 30);
        ledger.enrol(31, Seen::default());
        // Its sender was held back when it sent it: by 62 it has given up, by 64 the store's clock has
        // jumped over the window.
        ledger.terms = (Some(at(heard_by)), GRACE);
        ledger.enrol(
            63,
            Seen {
                settled_until: None,
                pause: Some(SeenPause { pause, over: false }),
                force: None,
            },
        );
        assert_eq!(ledger.pause().is_some(), comes_back, "{heard_by}");
    }
}

#[test]
fn a_pause_comes_back_in_the_grace_window_alone() {
    for (second, paused) in [(46, true), (62, false)] {
        let mut ledger = Ledger::begun(0, OnCrash::Rerun);
        let image = ledger.record.clone();
        ledger.order(5, OrderKind::Pause);
        let pause = ledger.pause().expect("it is paused");
        let seen = Seen {
            settled_until: None,
            pause: Some(SeenPause {
                pause: pause.clone(),
                over: false,
            }),
            force: None,
        };
        ledger.lose(image, 45);
        ledger.enrol(second, seen);
        assert_eq!(ledger.pause(), paused.then_some(pause));
    }
}

#[test]
fn a_trigger_of_before_a_loss_starts_only_where_it_may_run_again() {
    for on_crash in [OnCrash::Rerun, OnCrash::Skip] {
        let mut ledger = Ledger::begun(0, on_crash);
        let OrderAnswer::Triggered { scheduled_at } = ledger.order(5, OrderKind::Trigger) else {
            panic!("it is known");
        };
        let image = ledger.record.clone();
        let claim = ledger.claim(scheduled_at, Origin::Trigger);
        granted(&ledger.claimed(6, &claim));
        ledger.lose(image, 45);
        let claim = ledger.claim(scheduled_at, Origin::Trigger);
        let answer = ledger.claimed(62, &claim);
        match on_crash {
            OnCrash::Rerun => drop(granted(&answer)),
            OnCrash::Skip => assert_eq!(answer, ClaimAnswer::TooLate),
        }
        // One that is given since then is another matter.
        let mut later = Ledger::begun(0, on_crash);
        later.lose(later.record.clone(), 45);
        let OrderAnswer::Triggered { scheduled_at } = later.order(50, OrderKind::Trigger) else {
            panic!("it is known");
        };
        let claim = later.claim(scheduled_at, Origin::Trigger);
        granted(&later.claimed(62, &claim));
    }
}

#[test]
fn a_retry_of_before_a_loss_starts_only_where_it_may_run_again() {
    for on_crash in [OnCrash::Rerun, OnCrash::Skip] {
        let mut ledger = Ledger::begun(0, on_crash);
        let (claim, grant) = ledger.wins(10, 10);
        let failed = Release {
            retry_after: Some(Duration::from_secs(5)),
            ..Release::of(&claim, &grant, Outcome::Failed)
        };
        ledger.releases(11, &failed);
        let image = ledger.record.clone();
        assert_eq!(granted(&ledger.claims(16, 10)).attempt, 2);
        ledger.lose(image, 45);
        let answer = ledger.claims(62, 10);
        match on_crash {
            OnCrash::Rerun => assert_eq!(granted(&answer).attempt, 2),
            OnCrash::Skip => {
                assert_eq!(answer, ClaimAnswer::Closed);
                let line = ledger.lines.last().expect("it is closed");
                assert_eq!(
                    (line.outcome, line.detail.cause),
                    (Outcome::Lost, Some(Cause::Unknown))
                );
            }
        }
    }
}

#[test]
fn what_falls_due_in_a_failover_starts_only_where_it_may_run_again() {
    let elected = Life::Elected("the new one".to_owned());
    let restarted = Life::Process("the new one".to_owned());
    for (on_crash, life, starts) in [
        (OnCrash::Rerun, &elected, true),
        (OnCrash::Skip, &elected, false),
        (OnCrash::Skip, &restarted, true),
    ] {
        let mut ledger = Ledger::begun(0, on_crash);
        ledger.group.process = "the former one".to_owned();
        let claim = ledger.claim(at(30), Origin::Schedule);
        let mut ask = |second| ledger.ask(second, life, |call, record| call.claim(record, &claim));
        // The window that the new process begins with lasts until 38.
        let early = ask(22);
        assert!(matches!(early, ClaimAnswer::Early { .. }), "{early:?}");
        let grace = ask(30);
        assert!(matches!(grace, ClaimAnswer::Grace { .. }), "{grace:?}");
        match starts {
            true => drop(granted(&ask(39))),
            false => assert_eq!(ask(39), ClaimAnswer::TooLate),
        }
    }
}

#[test]
fn a_trigger_that_is_given_in_a_failover_starts_and_what_falls_due_after_it_does() {
    let elected = Life::Elected("the new one".to_owned());
    let mut ledger = Ledger::begun(0, OnCrash::Skip);
    ledger.group.process = "the former one".to_owned();
    let early = ledger.claim(at(20), Origin::Schedule);
    ledger.ask(12, &elected, |call, record| call.claim(record, &early));
    let OrderAnswer::Triggered { scheduled_at } = ledger.order(14, OrderKind::Trigger) else {
        panic!("it is known");
    };
    let claim = ledger.claim(scheduled_at, Origin::Trigger);
    let ask = |call: &mut Call<'_>, record: Option<&Record>| call.claim(record, &claim);
    let grant = granted(&ledger.ask(29, &elected, ask));
    ledger.releases(29, &Release::of(&claim, &grant, Outcome::Succeeded));
    let claim = ledger.claim(at(30), Origin::Schedule);
    granted(&ledger.ask(30, &elected, |call, record| call.claim(record, &claim)));
}
