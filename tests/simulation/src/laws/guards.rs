//! What holds of guards: by which instants an attempt ends although its replica stands still.

use std::time::Duration;

use soloist::scheduler::job::{Job, OnCrash};
use soloist::scheduler::lease::{Outcome, Release, Renewal, RenewalAnswer, RunId};
use soloist::scheduler::margins::Margins;
use soloist::scheduler::time::BootTime;
use soloist::scheduler::{Effect, EndedHow, Event, Guard, Notice, Purpose, StopReason};

use crate::checks::{check, check_ledger};
use crate::hand::{GENESIS, Hand, TTL, renewal};
use crate::jobs::job;
use crate::seeds::for_each_seed;
use crate::world::{Network, World};

/// Longer than a lease and its takeover take.
const TOO_LONG_MS: u64 = 17_000;

fn once(name: &str, schedule: &str) -> Job {
    Job {
        on_crash: OnCrash::Skip,
        ..job(name, schedule)
    }
}

/// A world of some replicas in which a job has 30 s to go, and the number of its holder.
fn with_a_long_attempt(seed: u64, replicas: usize, job: Job) -> (World, usize) {
    let mut world = World::new(seed, vec![job], |_| Duration::from_secs(40));
    (0..replicas).for_each(|_| {
        world.start();
    });
    world.run_for_about(61, 9_000);
    let holder = world.holder().expect("one runs");
    (world, holder)
}

#[test]
fn a_frozen_daemons_job_is_dead_before_another_may_start_it() {
    for_each_seed(|seed| {
        let (mut world, holder) = with_a_long_attempt(seed, 3, job("long", "0 * * * * *"));
        let frozen_at = world.now;
        let frozen = Duration::from_millis(TOO_LONG_MS + world.chance.below(30_000));
        world.freeze(holder, frozen);
        world.run_for(frozen);
        let attempt = |number| world.runs.values().find(|run| run.attempt == number);
        let first = attempt(1).expect("the one that was frozen");
        let ended = first.ended.expect("by its guard");
        assert!(!first.completed && ended < frozen_at + TTL, "{world:?}");
        let second = attempt(2).expect("taken over");
        assert!(second.started < frozen_at + frozen, "before the thaw");
        assert!(ended <= second.started, "{world:?}");
        world.run_for(Duration::from_secs(60));
        check(&world);
        check_ledger(&world);
    });
}

#[test]
fn an_at_most_once_job_that_its_guard_ended_is_lost_and_says_why() {
    for_each_seed(|seed| {
        let (mut world, holder) = with_a_long_attempt(seed, 1, once("once", "0 * * * * *"));
        let frozen = Duration::from_millis(TOO_LONG_MS + world.chance.below(30_000));
        world.freeze(holder, frozen);
        world.run_for(frozen + Duration::from_secs(1));
        let lines = world.history();
        let line = lines.last().expect("the first that was written");
        assert_eq!((line.outcome, line.attempt), (Outcome::Lost, 1), "{line:?}");
        let reason = line.detail.reason.as_deref();
        assert_eq!(reason, Some(StopReason::LeaseExpiring.as_str()));
        world.run_for(Duration::from_secs(60));
        check(&world);
        check_ledger(&world);
    });
}

#[test]
fn freezes_and_losses_at_random_leave_one_copy() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/10 * * * * *"), once("b", "*/3 * * * * *")];
        let mut world = World::new(seed, jobs, |chance| {
            Duration::from_millis(1 + chance.below(25_000))
        });
        world.network = Network {
            lose_request: 5,
            lose_reply: 5,
            slowest_ms: 100,
            ..Network::default()
        };
        (0..3).for_each(|_| {
            world.start();
        });
        for _ in 0..30 {
            world.run_for_about(0, 10_000);
            let number = world.chance.below(3) as usize;
            let length = Duration::from_millis(world.chance.below(40_000));
            match world.chance.below(4) {
                0 | 1 => world.freeze(number, length),
                2 => world.cut_off(number, true),
                _ => world.cut_off(number, false),
            }
        }
        (0..3).for_each(|number| world.cut_off(number, false));
        world.run_for(Duration::from_secs(90));
        check(&world);
        check_ledger(&world);
        let completed = world.runs.values().filter(|run| run.completed).count();
        assert!(completed > 5, "the fleet works\n{world:?}");
    });
}

fn guard(effect: Effect) -> Option<(RunId, Guard)> {
    match effect {
        Effect::Guard { run_id, guard } => Some((run_id, guard)),
        _ => None,
    }
}

fn stop(effect: Effect) -> Option<StopReason> {
    match effect {
        Effect::Stop { reason, .. } => Some(reason),
        _ => None,
    }
}

fn release(effect: Effect) -> Option<Release> {
    match effect {
        Effect::Release(releases) => releases.into_iter().next(),
        _ => None,
    }
}

/// What follows from a lease that was asked for at an instant.
fn guard_of_a_lease(sent: BootTime) -> Guard {
    let margins = Margins::of(TTL);
    let kill_at = margins.trust_until(sent, TTL);
    let stop_at = kill_at - margins.stop_grace(job("a", "@manual").kill_grace);
    Guard { stop_at, kill_at }
}

/// The store answers to a renewal that was sent at an instant.
fn answer(hand: &mut Hand, renewal: Renewal, sent: BootTime) {
    let answer = RenewalAnswer::Renewed {
        deadline: GENESIS + hand.now + TTL,
        remaining: TTL,
        stop: None,
    };
    hand.tell(Event::Renewed {
        renewals: vec![renewal],
        sent,
        result: hand.answered(answer),
    });
}

/// The next renewal is answered `after` it was sent; gives the instant at which it was.
fn renew(hand: &mut Hand, after: Duration) -> BootTime {
    let renewal = hand.until(renewal);
    let sent = hand.boot();
    hand.now += after;
    answer(hand, renewal, sent);
    sent
}

/// Goes on without any answer until the attempt is told to stop, and says why.
fn lose_the_store(hand: &mut Hand) -> StopReason {
    for _ in 0..100 {
        for effect in hand.turn() {
            if let Effect::Stop { reason, .. } = effect {
                return reason;
            }
            hand.fail(effect);
        }
        let next = hand.scheduler.next_wakeup().expect("something is to come");
        hand.now = hand.now.max(next.as_duration());
    }
    panic!("it never stopped");
}

/// A replica that runs an attempt, granted at the present instant.
fn running(job: Job) -> (Hand, RunId) {
    let mut hand = Hand::new(job, Purpose::Table);
    let run_id = hand.run().run_id;
    (hand, run_id)
}

#[test]
fn an_attempt_starts_under_the_guard_of_its_lease() {
    let mut hand = Hand::new(job("a", "* * * * * *"), Purpose::Table);
    let (_, attempt) = hand.start();
    assert_eq!(attempt.guard, guard_of_a_lease(hand.boot()));
    assert!(hand.boot() < attempt.guard.stop_at);
    assert!(attempt.guard.stop_at < attempt.guard.kill_at);
}

#[test]
fn each_renewal_moves_the_guard_to_what_it_was_sent_for() {
    let (mut hand, run_id) = running(job("a", "* * * * * *"));
    for _ in 0..5 {
        let sent = renew(&mut hand, Duration::from_millis(400));
        let told: Vec<_> = hand.turn().into_iter().filter_map(guard).collect();
        assert_eq!(told, [(run_id, guard_of_a_lease(sent))]);
    }
}

#[test]
fn a_renewal_that_failed_or_lost_the_lease_moves_no_guard() {
    let (mut hand, _) = running(job("a", "* * * * * *"));
    let renewal = hand.until(renewal);
    let again = renewal.clone();
    hand.fail(Effect::Renew(vec![renewal]));
    assert_eq!(hand.turn().into_iter().find_map(guard), None);
    hand.tell(Event::Renewed {
        renewals: vec![again],
        sent: hand.boot(),
        result: hand.answered(RenewalAnswer::Lost),
    });
    let effects = hand.turn();
    assert!(effects.iter().any(|effect| matches!(
        effect,
        Effect::Stop {
            reason: StopReason::LeaseLost,
            ..
        }
    )));
    assert_eq!(effects.into_iter().find_map(guard), None);
}

#[test]
fn an_attempt_that_is_stopped_for_its_lease_stays_stopped_although_it_is_renewed() {
    let (mut hand, _) = running(job("a", "* * * * * *"));
    assert_eq!(lose_the_store(&mut hand), StopReason::LeaseExpiring);
    for _ in 0..3 {
        renew(&mut hand, Duration::ZERO);
        assert_eq!(hand.turn().into_iter().find_map(guard), None);
    }
}

#[test]
fn an_attempt_that_a_drain_stops_has_its_grace_under_renewed_guards() {
    let patient = Job {
        kill_grace: Duration::from_secs(60),
        ..job("a", "* * * * * *")
    };
    let (mut hand, run_id) = running(patient);
    hand.tell(Event::DrainRequested);
    let (mut stops, mut guards) = (Vec::new(), Vec::new());
    while hand.now < Duration::from_secs(60) {
        for effect in hand.turn() {
            match effect {
                Effect::Stop { reason, .. } => stops.push(reason),
                Effect::Guard { run_id, guard } => guards.push((run_id, guard.kill_at)),
                Effect::Renew(renewals) => {
                    let sent = hand.boot();
                    renewals
                        .into_iter()
                        .for_each(|one| answer(&mut hand, one, sent));
                }
                _ => {}
            }
        }
        let next = hand.scheduler.next_wakeup().expect("it is renewed again");
        hand.now = hand.now.max(next.as_duration());
    }
    assert_eq!(stops, [StopReason::Draining]);
    let (last, kill_at) = guards.pop().expect("guards");
    assert!(last == run_id && kill_at > hand.boot(), "{guards:?}");
}

#[test]
fn an_attempt_that_has_ended_is_guarded_no_more() {
    let (mut hand, run_id) = running(job("a", "* * * * * *"));
    hand.end(run_id, EndedHow::Succeeded);
    renew(&mut hand, Duration::ZERO);
    assert_eq!(hand.turn().into_iter().find_map(guard), None);
}

/// How the release of a stopped attempt reads.
fn told_of(hand: &mut Hand, run_id: RunId) -> (Outcome, Option<String>) {
    hand.end(run_id, EndedHow::Stopped);
    let release = hand.turn().into_iter().find_map(release);
    let release = release.expect("it is given back");
    (release.outcome, release.detail.reason)
}

#[test]
fn what_its_guard_ended_while_the_daemon_stood_still_is_lost_or_run_by_another() {
    let reason = Some(StopReason::LeaseExpiring.as_str().to_owned());
    for (job, outcome) in [
        (once("a", "* * * * * *"), Outcome::Lost),
        (job("a", "* * * * * *"), Outcome::HandedOver),
    ] {
        let (mut hand, run_id) = running(job);
        hand.now = guard_of_a_lease(hand.boot()).stop_at.as_duration();
        assert_eq!(told_of(&mut hand, run_id), (outcome, reason.clone()));
    }
}

#[test]
fn what_was_stopped_before_its_guards_end_was_not_stopped_by_it() {
    let (mut hand, run_id) = running(once("a", "* * * * * *"));
    let stop_at = guard_of_a_lease(hand.boot()).stop_at.as_duration();
    hand.now = stop_at - Duration::from_nanos(1);
    assert_eq!(told_of(&mut hand, run_id), (Outcome::Cancelled, None));
}

#[test]
fn a_renewal_that_comes_too_late_for_the_guardian_does_not_hide_what_it_did() {
    let (mut hand, run_id) = running(once("a", "* * * * * *"));
    let stop_at = guard_of_a_lease(hand.boot()).stop_at;
    // It was sent in time; the daemon stood still when the answer came, and for long.
    let renewal = hand.until(renewal);
    let sent = hand.boot();
    hand.now = stop_at.as_duration();
    answer(&mut hand, renewal, sent);
    let (outcome, reason) = told_of(&mut hand, run_id);
    assert_eq!(outcome, Outcome::Lost);
    assert_eq!(reason.as_deref(), Some(StopReason::LeaseExpiring.as_str()));
}

#[test]
fn a_drain_that_stopped_it_is_still_the_reason_after_its_guards_end() {
    let patient = Job {
        kill_grace: Duration::from_secs(60),
        ..once("a", "* * * * * *")
    };
    let (mut hand, run_id) = running(patient);
    hand.tell(Event::DrainRequested);
    hand.until(stop);
    hand.now += Duration::from_secs(60);
    let reason = Some(StopReason::Draining.as_str().to_owned());
    assert_eq!(told_of(&mut hand, run_id), (Outcome::Cancelled, reason));
}

/// Daemon and keeper end it at one instant. Who is faster is chance; what people read is not.
#[test]
fn what_its_guard_ended_is_told_as_stopped_for_its_lease() {
    let (mut hand, run_id) = running(job("a", "* * * * * *"));
    hand.now = guard_of_a_lease(hand.boot()).stop_at.as_duration();
    hand.end(run_id, EndedHow::Stopped);
    let told = |effect: &Effect| {
        let Effect::Report(Notice::Stopping { reason, .. }) = effect else {
            return false;
        };
        *reason == StopReason::LeaseExpiring
    };
    assert_eq!(hand.turn().iter().filter(|effect| told(effect)).count(), 1);
}
