//! A wait ends with its occurrence, with its time, with its store, or by its user.

use std::future::pending;
use std::sync::atomic::Ordering;

use super::*;
use crate::orders::fixtures::{World, job};
use crate::scheduler::job::Job;
use crate::scheduler::time::Timestamp;
use crate::store::ReplicaInfo;

const QUICK: Pace = Pace {
    shortest: Duration::from_millis(1),
    longest: Duration::from_millis(5),
};

fn wait<'w>(world: &'w World, job: &Job, at: Timestamp, timeout: Option<Duration>) -> Wait<'w> {
    let progress = Progress::new(job.name.clone(), at, job.run_on.clone());
    Wait::new(world, progress, timeout, QUICK)
}

#[tokio::test]
async fn a_wait_ends_with_the_occurrence_whatever_lies_between() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let (lines, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let waiting = wait(&world, &job, at, None).end(pending(), |line: &str| {
        lines.send(line.to_owned()).unwrap();
    });
    let replica = async {
        let mut next = async || heard.recv().await.unwrap();
        assert_eq!(next().await, "waits for a replica: none is alive");
        world.away.store(3, Ordering::SeqCst);
        let away = "the store at redis://shop can't be reached: refused; waiting for it";
        assert_eq!(next().await, away);
        assert_eq!(next().await, "the store is back");
        world.live("r1", ReplicaInfo::default()).await;
        let lease = world.claim("r1", &job, at, |_| {}).await.ok().unwrap();
        assert_eq!(next().await, "claimed by r1 as attempt 1");
        world.release(lease, Outcome::Succeeded, None).await;
        assert_eq!(next().await, "attempt 1 on r1: succeeded after 0ms");
    };
    let (end, ()) = tokio::join!(waiting, replica);
    assert!(matches!(end, End::Over(Outcome::Succeeded)), "{end:?}");
}

#[tokio::test]
async fn who_stops_waiting_leaves_the_occurrence_as_it_is() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let before = world.snapshot().await.unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let mut stop = Some(stop);
    let stopped = async { stopped.await.unwrap() };
    let end = wait(&world, &job, at, None).end(stopped, |_| {
        stop.take().unwrap().send(()).unwrap();
    });
    let end = end.await;
    assert!(matches!(end, End::Stopped), "{end:?}");
    assert_eq!(world.snapshot().await.unwrap(), before);
}

#[tokio::test]
async fn a_time_that_is_up_ends_the_wait_and_a_store_that_is_away_by_then_is_told_apart() {
    let (world, job) = (World::new(), job("report"));
    let at = world.trigger(&job).await;
    let time = Some(Duration::from_millis(30));
    let end = wait(&world, &job, at, time).end(pending(), |_| {}).await;
    assert!(matches!(end, End::TimedOut), "{end:?}");
    world.away.store(u32::MAX, Ordering::SeqCst);
    let end = wait(&world, &job, at, time).end(pending(), |_| {}).await;
    assert!(
        matches!(end, End::StoreLost(StoreError::Unreachable { .. })),
        "{end:?}"
    );
}
