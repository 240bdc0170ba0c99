//! What is told of an occurrence, and when it is taken for over.

use std::time::Duration;

use super::*;
use crate::orders::fixtures::{World, job};
use crate::scheduler::lease::ClaimAnswer;
use crate::store::{ReplicaInfo, Store as _};

const SECOND: Duration = Duration::from_secs(1);

async fn look(world: &World, progress: &mut Progress) -> (Vec<String>, Fate) {
    let snapshot = world.snapshot().await.unwrap();
    let lines = world.history(Some(&progress.job), progress.lines_wanted());
    progress.look(snapshot.now, &snapshot.answer, &lines.await.unwrap())
}

async fn alive(world: &World) {
    world.live("r1", ReplicaInfo::default()).await;
}

fn said(lines: &[&str], fate: Fate) -> (Vec<String>, Fate) {
    let lines = lines.iter().map(|line| (*line).to_owned());
    (lines.collect(), fate)
}

#[tokio::test]
async fn an_occurrence_is_told_from_its_wait_to_its_success_and_nothing_twice() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let none = "waits for a replica: none is alive";
    assert_eq!(look(&world, &mut progress).await, said(&[none], Fate::Open));
    assert_eq!(look(&world, &mut progress).await, said(&[], Fate::Open));
    alive(&world).await;
    assert_eq!(look(&world, &mut progress).await, said(&[], Fate::Open));
    let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    let claimed = "claimed by r1 as attempt 1";
    assert_eq!(
        look(&world, &mut progress).await,
        said(&[claimed], Fate::Open)
    );
    world.pass(2 * SECOND);
    assert_eq!(look(&world, &mut progress).await, said(&[], Fate::Open));
    world.release(lease, Outcome::Succeeded, None).await;
    let over = Fate::Over(Outcome::Succeeded);
    let line = "attempt 1 on r1: succeeded after 2.0s";
    assert_eq!(look(&world, &mut progress).await, said(&[line], over));
}

#[tokio::test]
async fn a_claim_is_told_before_its_end_where_both_are_seen_at_once() {
    let (world, job) = (World::new(), job("report"));
    alive(&world).await;
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    world.release(lease, Outcome::Failed, Some(SECOND)).await;
    world.pass(SECOND);
    let lease = world.claim("r2", &job, at, |_| {}).await.ok().unwrap();
    let running = world.snapshot().await.unwrap();
    // It ends between the two looks.
    world.release(lease, Outcome::Failed, None).await;
    let lines = world.history(Some(&job.name), progress.lines_wanted());
    let lines = lines.await.unwrap();
    let (told, _) = progress.look(running.now, &running.answer, &lines);
    let again = world.now();
    let first = format!("attempt 1 on r1: failed after 0ms, exit code 3; retried at {again}");
    let rest = [
        "claimed by r2 as attempt 2",
        "attempt 2 on r2: failed after 0ms, exit code 3",
    ];
    assert_eq!(told, [first.as_str(), rest[0], rest[1]]);
}

#[tokio::test]
async fn a_failure_that_is_followed_by_another_attempt_is_not_the_end() {
    let (world, job) = (World::new(), job("report"));
    alive(&world).await;
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    world.pass(SECOND);
    world
        .release(lease, Outcome::Failed, Some(10 * SECOND))
        .await;
    let again = world.now() + 10 * SECOND;
    let line = format!("attempt 1 on r1: failed after 1.0s, exit code 3; retried at {again}");
    assert_eq!(
        look(&world, &mut progress).await,
        said(&[&line], Fate::Open)
    );
    world.pass(10 * SECOND);
    let lease = world.claim("r2", &job, at, |_| {}).await.ok().unwrap();
    world.release(lease, Outcome::Failed, None).await;
    let line = "attempt 2 on r2: failed after 0ms, exit code 3";
    let over = Fate::Over(Outcome::Failed);
    assert_eq!(look(&world, &mut progress).await, said(&[line], over));
}

#[tokio::test]
async fn a_skipped_occurrence_is_over_and_its_cause_is_told() {
    let (world, job) = (World::new(), job("report"));
    alive(&world).await;
    let first = world.trigger(&job).await;
    let _busy = world.claim("r1", &job, first, |_| {}).await.ok().unwrap();
    world.pass(SECOND);
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let turn = format!("its turn comes after the occurrence of {first}, which is unfinished");
    assert_eq!(
        look(&world, &mut progress).await,
        said(&[&turn], Fate::Open)
    );
    let refused = world.claim("r2", &job, at, |_| {}).await.err();
    assert!(matches!(refused, Some(ClaimAnswer::Overlap(_))));
    let line = format!("skipped (overlap): the occurrence of {first} is unfinished");
    let over = Fate::Over(Outcome::Skipped);
    assert_eq!(look(&world, &mut progress).await, said(&[&line], over));
}

#[tokio::test]
async fn a_sharded_occurrence_is_over_when_all_shards_are() {
    let (world, job) = (World::new(), job("report"));
    alive(&world).await;
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let shard = async |index| {
        let claim = world.claim("r1", &job, at, |claim| {
            claim.shards = 2;
            claim.shard = index;
        });
        claim.await.ok().unwrap()
    };
    let first = shard(0).await;
    world.release(first, Outcome::Failed, None).await;
    let line = "shard 0 of 2: attempt 1 on r1: failed after 0ms, exit code 3";
    assert_eq!(look(&world, &mut progress).await, said(&[line], Fate::Open));
    let second = shard(1).await;
    let line = "shard 1 of 2: claimed by r1 as attempt 1";
    assert_eq!(look(&world, &mut progress).await, said(&[line], Fate::Open));
    world.release(second, Outcome::Succeeded, None).await;
    let lines = [
        "shard 1 of 2: attempt 1 on r1: succeeded after 0ms",
        "all 2 shards are over: failed",
    ];
    let over = Fate::Over(Outcome::Failed);
    assert_eq!(look(&world, &mut progress).await, said(&lines, over));
}

#[tokio::test]
async fn an_occurrence_that_newer_ones_followed_is_judged_by_its_lines() {
    let (world, mut job) = (World::new(), job("report"));
    job.retention.limit = 2;
    let run = async |outcome| {
        world.pass(SECOND);
        let at = world.trigger(&job).await;
        let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
        world.release(lease, outcome, None).await;
        at
    };
    let at = run(Outcome::Failed).await;
    run(Outcome::Succeeded).await;
    let fate = async || {
        let mut fresh = Progress::new(job.name.clone(), at, job.run_on.clone());
        look(&world, &mut fresh).await.1
    };
    assert_eq!(fate().await, Fate::Over(Outcome::Failed));
    run(Outcome::Succeeded).await;
    // The line is cut off by now, and that is no success.
    assert_eq!(fate().await, Fate::Forgotten);
}

#[tokio::test]
async fn a_holder_that_is_gone_and_replicas_that_decline_are_told() {
    let (world, job) = (World::new(), job("report"));
    let full = ReplicaInfo {
        declines: true,
        ..ReplicaInfo::default()
    };
    world.live("r1", full).await;
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let line = "waits for a replica: all are full or draining";
    assert_eq!(look(&world, &mut progress).await, said(&[line], Fate::Open));
    let _lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    world.pass(16 * SECOND);
    let lines = [
        "claimed by r1 as attempt 1",
        "r1 was not heard of until its lease ran out: another replica sees to it",
    ];
    assert_eq!(look(&world, &mut progress).await, said(&lines, Fate::Open));
}

#[tokio::test]
async fn a_replica_without_the_tags_of_run_on_is_no_replica_to_wait_for() {
    let (world, mut job) = (World::new(), job("report"));
    let tag = |value: &str| Tags::from([("zone".to_owned(), value.to_owned())]);
    job.run_on = tag("a");
    let elsewhere = ReplicaInfo {
        tags: tag("b"),
        ..ReplicaInfo::default()
    };
    world.live("r1", elsewhere).await;
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let line = "waits for a replica: none that is alive has zone=a";
    assert_eq!(look(&world, &mut progress).await, said(&[line], Fate::Open));
    let here = ReplicaInfo {
        tags: tag("a"),
        ..ReplicaInfo::default()
    };
    world.live("r2", here).await;
    assert_eq!(look(&world, &mut progress).await, said(&[], Fate::Open));
}

/// What a newer occurrence leaves to go by: the lines alone.
async fn fate_by_lines(world: &World, progress: &mut Progress) -> Fate {
    let lines = world.history(Some(&progress.job), progress.lines_wanted());
    let lines = lines.await.unwrap();
    assert!(!lines.is_empty());
    let mut snapshot = world.snapshot().await.unwrap().answer;
    for state in &mut snapshot.jobs {
        state.attempts.clear();
    }
    progress.look(world.now(), &snapshot, &lines).1
}

#[tokio::test]
async fn a_line_that_another_attempt_follows_is_no_end() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, Tags::new());
    let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    world.release(lease, Outcome::Failed, Some(SECOND)).await;
    assert_eq!(fate_by_lines(&world, &mut progress).await, Fate::Forgotten);
    world.pass(SECOND);
    let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    world.release(lease, Outcome::Succeeded, None).await;
    let over = Fate::Over(Outcome::Succeeded);
    assert_eq!(fate_by_lines(&world, &mut progress).await, over);
}

#[tokio::test]
async fn the_line_of_one_shard_is_not_the_end_of_all() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, Tags::new());
    for (shard, fate) in [(0, Fate::Forgotten), (1, Fate::Over(Outcome::Succeeded))] {
        let claim = world.claim("r1", &job, at, |claim| {
            claim.shards = 2;
            claim.shard = shard;
        });
        let lease = claim.await.ok().unwrap();
        world.release(lease, Outcome::Succeeded, None).await;
        assert_eq!(fate_by_lines(&world, &mut progress).await, fate);
    }
}

const LOST: &str = "the store lost its data: waits whether a replica that has it comes back";

/// A store with nothing in it, which began at an instant and waits for holders for so long.
fn emptied(born: Option<Timestamp>, grace: Duration) -> Snapshot {
    Snapshot {
        born,
        grace,
        ..Snapshot::default()
    }
}

#[tokio::test]
async fn what_the_store_lost_is_waited_for_until_its_grace_window_is_over() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let now = at + SECOND;
    for (snapshot, expected) in [
        (emptied(None, Duration::ZERO), said(&[LOST], Fate::Open)),
        (emptied(Some(now), SECOND), said(&[], Fate::Open)),
        (emptied(Some(now), Duration::ZERO), said(&[], Fate::Lost)),
    ] {
        assert_eq!(progress.look(now, &snapshot, &[]), expected, "{snapshot:?}");
        assert!(progress.is_missing());
    }
}

#[tokio::test]
async fn where_no_grace_window_begins_a_minute_is_waited() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    // The ledger is older than the order.
    let snapshot = emptied(Some(at - SECOND), Duration::ZERO);
    for (late, fate) in [(0, Fate::Open), (59, Fate::Open), (60, Fate::Lost)] {
        let now = at + SECOND * late;
        assert_eq!(progress.look(now, &snapshot, &[]).1, fate, "{late} s later");
    }
}

#[tokio::test]
async fn what_its_holder_brings_back_is_not_lost() {
    let (world, job) = (World::new(), job("report"));
    alive(&world).await;
    let at = world.trigger(&job).await;
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
    look(&world, &mut progress).await;
    let lost = progress.look(at + SECOND, &emptied(None, Duration::ZERO), &[]);
    assert_eq!(lost, said(&[LOST], Fate::Open));
    let mut back = world.snapshot().await.unwrap().answer;
    (back.born, back.grace) = (Some(at + SECOND), SECOND);
    back.jobs[0].triggers.clear();
    assert_eq!(progress.look(at + SECOND, &back, &[]).1, Fate::Open);
    assert!(!progress.is_missing());
    world.release(lease, Outcome::Succeeded, None).await;
    let over = Fate::Over(Outcome::Succeeded);
    assert_eq!(look(&world, &mut progress).await.1, over);
}

#[tokio::test]
async fn a_record_that_remembers_the_trigger_has_only_cut_it_off_and_one_that_does_not_lost_it() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut snapshot = world.snapshot().await.unwrap().answer;
    // The server was started anew since, and its window is over.
    snapshot.born = Some(at + SECOND);
    let tick = Duration::from_millis(1);
    for (triggers, fate) in [
        (vec![at], Fate::Forgotten),
        (vec![at - tick, at, at + tick], Fate::Forgotten),
        (vec![], Fate::Lost),
        (vec![at - tick, at + tick], Fate::Lost),
        // So many came since that the oldest are not remembered.
        (vec![at + tick], Fate::Lost),
    ] {
        snapshot.jobs[0].waiting.clear();
        snapshot.jobs[0].triggers = triggers;
        let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
        let looked = progress.look(at + SECOND * 2, &snapshot, &[]).1;
        assert_eq!(looked, fate, "{:?}", snapshot.jobs[0].triggers);
    }
    snapshot.born = Some(at - SECOND);
    let mut progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    let looked = progress.look(at + SECOND * 2, &snapshot, &[]).1;
    assert_eq!(
        looked,
        Fate::Forgotten,
        "nothing happened since it was given"
    );
}

#[tokio::test]
async fn an_occurrence_that_was_killed_is_lost_with_a_loss_after_the_order_alone() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let mut snapshot = world.snapshot().await.unwrap().answer;
    snapshot.jobs[0].waiting.clear();
    snapshot.jobs[0].triggers.clear();
    let killed_at = at + SECOND * 5;
    for (born, fate) in [
        (None, Fate::Forgotten),
        (Some(killed_at), Fate::Forgotten),
        (Some(killed_at + SECOND), Fate::Lost),
    ] {
        snapshot.born = born;
        let progress = Progress::new(job.name.clone(), at, job.run_on.clone());
        let mut progress = progress.ordered(OrderKind::Kill, killed_at);
        let looked = progress.look(killed_at + SECOND * 9, &snapshot, &[]).1;
        assert_eq!(looked, fate, "{born:?}");
    }
}
