//! Occurrences that ran and are over.

use std::time::Duration;

use soloist::scheduler::job::OnCrash;
use soloist::scheduler::lease::{
    AttemptDetail, Claim, ClaimAnswer, OrderKind, Origin, Outcome, Sighting,
};
use soloist::scheduler::policy::Concurrency;

use crate::world::{World, exit, job};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_success_says_where_and_when() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00.010");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:02.500");
    world.succeed("r1", &lease);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z succeeded.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00.01Z to 2026-11-20T22:00:02.5Z (2.5s) under token 1795212000010000, and succeeded."
        ]
    );
}

#[test]
fn a_success_after_failures_tells_each_attempt_and_wait() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00.010");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:03");
    world.end("r1", &lease, Outcome::Failed, exit(3), Some(SECOND));
    world.set("22:00:04.020");
    let lease = world.claim("r2", &daily, "22:00:00");
    world.set("22:00:05");
    let killed = AttemptDetail {
        signal: Some(9),
        ..AttemptDetail::reason("no such luck")
    };
    world.end("r2", &lease, Outcome::Failed, killed, Some(2 * SECOND));
    world.set("22:00:07");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:08");
    world.succeed("r1", &lease);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z succeeded at attempt 3.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00.01Z to 2026-11-20T22:00:03Z (3.0s) under token 1795212000010000, and failed: exit code 3. The next one could begin 1.0s later, at 2026-11-20T22:00:04Z.",
            "Attempt 2 ran on r2 from 2026-11-20T22:00:04.02Z to 2026-11-20T22:00:05Z (980ms) under token 1795212004020000, and failed: no such luck, signal 9. It began 4.0s after its instant: attempt 1 had failed, and its back-off ended at 2026-11-20T22:00:04Z. The next one could begin 2.0s later, at 2026-11-20T22:00:07Z.",
            "Attempt 3 ran on r1 from 2026-11-20T22:00:07Z to 2026-11-20T22:00:08Z (1.0s) under token 1795212007000000, and succeeded. It began 7.0s after its instant: attempt 2 had failed, and its back-off ended at 2026-11-20T22:00:07Z."
        ]
    );
}

#[test]
fn a_failure_without_attempts_left_is_the_end() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:03");
    world.end("r1", &lease, Outcome::Failed, exit(1), Some(SECOND));
    world.set("22:00:04");
    let lease = world.claim("r2", &daily, "22:00:00");
    world.set("22:00:05");
    world.end("r2", &lease, Outcome::Failed, exit(1), None);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z failed at attempt 2.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:03Z (3.0s) under token 1795212000000000, and failed: exit code 1. The next one could begin 1.0s later, at 2026-11-20T22:00:04Z.",
            "Attempt 2 ran on r2 from 2026-11-20T22:00:04Z to 2026-11-20T22:00:05Z (1.0s) under token 1795212004000000, and failed: exit code 1. It began 4.0s after its instant: attempt 1 had failed, and its back-off ended at 2026-11-20T22:00:04Z."
        ]
    );
}

#[test]
fn a_timeout_is_told_as_one() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:50");
    let detail = AttemptDetail::reason("its timeout of 50s was over");
    world.end("r1", &lease, Outcome::TimedOut, detail, None);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z timed out.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:50Z (50.0s) under token 1795212000000000, and timed out: its timeout of 50s was over."
        ]
    );
}

fn take_over(world: &mut World, replica: &str, mut claim: Claim) -> ClaimAnswer {
    let ClaimAnswer::Held(held) = world.ask(replica, &claim) else {
        panic!("it is held");
    };
    let Sighting { token, deadline } = held.sighting;
    claim.watched = Some(Sighting { token, deadline });
    world.ask(replica, &claim)
}

#[test]
fn what_may_not_run_again_after_a_crash_is_lost() {
    let mut daily = job("daily", "0 22 * * *");
    daily.on_crash = OnCrash::Skip;
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    world.claim("r1", &daily, "22:00:00");
    world.set("22:00:16");
    let claim = world.prepare(&daily, "22:00:00");
    assert_eq!(take_over(&mut world, "r2", claim), ClaimAnswer::Closed);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z was lost.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:16Z (16.0s) under token 1795212000000000, and was lost: its holder was not heard of until the lease ran out; not run again, as on_crash = \"skip\" says."
        ]
    );
}

#[test]
fn what_lost_its_holder_too_often_is_lost() {
    let mut daily = job("daily", "0 22 * * *");
    daily.max_attempts = 2;
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    world.claim("r1", &daily, "22:00:00");
    world.set("22:00:16");
    let claim = world.prepare(&daily, "22:00:00");
    let taken = take_over(&mut world, "r2", claim);
    assert!(matches!(taken, ClaimAnswer::Granted(_)), "{taken:?}");
    world.set("22:00:32");
    let claim = world.prepare(&daily, "22:00:00");
    assert_eq!(take_over(&mut world, "r3", claim), ClaimAnswer::Closed);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z was lost at attempt 2.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:16Z (16.0s) under token 1795212000000000, and was lost: its holder was not heard of until the lease ran out; run again as the next attempt. The next one could begin at once.",
            "Attempt 2 ran on r2 from 2026-11-20T22:00:16Z to 2026-11-20T22:00:32Z (16.0s) under token 1795212016000000, and was lost: its holder was not heard of until the lease ran out; not run again: max_attempts is used up. It began 16.0s after its instant: it took over when the lease of attempt 1 had run out."
        ]
    );
}

#[test]
fn a_wait_for_the_next_attempt_that_max_attempts_ends_is_closed() {
    let mut daily = job("daily", "0 22 * * *");
    daily.max_attempts = 1;
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:01");
    world.end("r1", &lease, Outcome::Failed, exit(1), Some(SECOND));
    world.set("22:00:02");
    let claim = world.prepare(&daily, "22:00:00");
    assert_eq!(world.ask("r2", &claim), ClaimAnswer::Closed);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z was lost.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:01Z (1.0s) under token 1795212000000000, and failed: exit code 1. The next one could begin 1.0s later, at 2026-11-20T22:00:02Z.",
            "It was lost at 2026-11-20T22:00:02Z: not run again: max_attempts is used up.",
        ]
    );
}

#[test]
fn what_was_killed_names_who_did_it() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:05");
    world.order(&daily, OrderKind::Kill);
    world.set("22:00:06");
    let detail = AttemptDetail {
        signal: Some(15),
        ..AttemptDetail::default()
    };
    world.end("r1", &lease, Outcome::Cancelled, detail, None);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z was cancelled.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:06Z (6.0s) under token 1795212000000000, and was cancelled: killed by ann at 2026-11-20T22:00:05Z, signal 15."
        ]
    );
}

#[test]
fn what_was_killed_between_two_attempts_is_closed() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:01");
    world.end("r1", &lease, Outcome::Failed, exit(1), Some(60 * SECOND));
    world.set("22:00:05");
    world.order(&daily, OrderKind::Kill);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z was cancelled.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:01Z (1.0s) under token 1795212000000000, and failed: exit code 1. The next one could begin 1m 0s later, at 2026-11-20T22:01:01Z.",
            "It was cancelled at 2026-11-20T22:00:05Z: killed by ann at 2026-11-20T22:00:05Z.",
        ]
    );
}

#[test]
fn what_was_replaced_names_its_successor() {
    let mut minutely = job("minutely", "* * * * *");
    minutely.concurrency = Concurrency::Replace;
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &minutely, "22:00:00");
    world.set("22:01:00");
    let claim = world.prepare(&minutely, "22:01:00");
    assert_eq!(world.ask("r2", &claim), ClaimAnswer::Waiting);
    world.set("22:01:01");
    world.end(
        "r1",
        &lease,
        Outcome::Cancelled,
        AttemptDetail::default(),
        None,
    );
    assert_eq!(
        world.why("minutely", "22:00:00"),
        [
            "minutely at 2026-11-20T22:00:00Z was cancelled.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:01:01Z (1m 1s) under token 1795212000000000, and was cancelled: the occurrence of 2026-11-20T22:01:00Z took its place."
        ]
    );
}

#[test]
fn what_a_person_triggered_names_them() {
    let manual = job("manual", "@manual");
    let mut world = World::new([manual.clone()]);
    world.set("22:00:00.250");
    world.order(&manual, OrderKind::Trigger);
    let mut claim = world.prepare(&manual, "22:00:00.250");
    claim.origin = Origin::Trigger;
    world.set("22:00:00.300");
    let lease = world.start("r1", claim);
    world.set("22:00:01");
    world.succeed("r1", &lease);
    assert_eq!(
        world.why("manual", "22:00:00.250"),
        [
            "manual at 2026-11-20T22:00:00.25Z succeeded.",
            "It was triggered by ann.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00.3Z to 2026-11-20T22:00:01Z (700ms) under token 1795212000300000, and succeeded."
        ]
    );
}

#[test]
fn what_was_run_by_hand_says_so() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("21:30:00.007");
    let mut claim = world.prepare(&daily, "21:30:00.007");
    claim.origin = Origin::RunOnce;
    let lease = world.start("laptop", claim);
    world.set("21:30:01");
    world.succeed("laptop", &lease);
    assert_eq!(
        world.why("daily", "21:30:00.007"),
        [
            "daily at 2026-11-20T21:30:00.007Z succeeded.",
            "It was run by hand, by `run-once`.",
            "Attempt 1 ran on laptop from 2026-11-20T21:30:00.007Z to 2026-11-20T21:30:01Z (993ms) under token 1795210200007000, and succeeded."
        ]
    );
}

#[test]
fn the_end_is_told_when_its_lines_are_gone() {
    let mut minutely = job("minutely", "* * * * *");
    minutely.retention.limit = 0;
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &minutely, "22:00:00");
    world.set("22:00:05");
    world.succeed("r1", &lease);
    assert_eq!(
        world.why("minutely", "22:00:00"),
        [
            "minutely at 2026-11-20T22:00:00Z succeeded.",
            "It succeeded at 2026-11-20T22:00:05Z; the lines of its attempts are no longer kept."
        ]
    );
}

#[test]
fn a_line_that_announces_another_attempt_is_not_the_last_word() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:05");
    world.end(
        "r1",
        &lease,
        Outcome::HandedOver,
        AttemptDetail::default(),
        None,
    );
    let second = world.claim("r2", &daily, "22:00:00");
    // Both ends bear the same time: only their numbers tell which came first.
    world.succeed("r2", &second);
    let told = world.why("daily", "22:00:00");
    assert_eq!(
        told[0],
        "daily at 2026-11-20T22:00:00Z succeeded at attempt 2."
    );
}
