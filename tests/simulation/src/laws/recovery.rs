//! How replicas come back, or end, when they or their store were away for long.

use std::time::Duration;

use soloist::scheduler::job::{Job, OnCrash};
use soloist::scheduler::lease::Outcome;
use soloist::scheduler::policy::Concurrency;

use crate::checks::check;
use crate::jobs::job;
use crate::seeds::for_each_seed;
use crate::world::World;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// A world of some replicas in which a job of 40 s runs, and the number of its holder.
fn with_a_running_attempt(seed: u64, replicas: usize, job: Job) -> (World, usize) {
    let mut world = World::new(seed, vec![job], |_| Duration::from_secs(40));
    (0..replicas).for_each(|_| {
        world.start();
    });
    world.run_for_about(61, 30_000);
    let running = world.runs.values().find(|run| run.ended.is_none());
    let holder = running.expect("one runs").replica;
    (world, holder)
}

#[test]
fn a_daemon_that_was_frozen_for_longer_than_its_lease_stops_its_job_and_works_on() {
    for_each_seed(|seed| {
        // Alone, so that nobody else goes on with its work.
        let (mut world, holder) = with_a_running_attempt(seed, 1, job("long", "0 * * * * *"));
        // Its job may end meanwhile.
        let frozen = Duration::from_millis(18_000 + world.chance.below(30_000));
        world.freeze(holder, frozen);
        world.run_for(frozen + Duration::from_secs(2));
        let first = world.runs.values().min_by_key(|run| run.token);
        let first = first.expect("one ran");
        assert!(first.ended.is_some(), "{world:?}");
        world.run_for(Duration::from_secs(120));
        check(&world);
        assert!(world.runs.len() >= 3, "{world:?}");
        world.drain(holder);
        world.run_for(Duration::from_secs(10));
        assert!(world.replicas[holder].finished);
    });
}

#[test]
fn a_drain_ends_although_the_store_stays_away() {
    for_each_seed(|seed| {
        let (mut world, holder) = with_a_running_attempt(seed, 1, job("long", "0 * * * * *"));
        world.partition(true);
        world.run_for_about(0, 20_000);
        world.drain(holder);
        world.run_for(Duration::from_secs(20));
        check(&world);
        assert!(world.replicas[holder].finished, "{world:?}");
    });
}

/// All replicas are away for longer than leases are shown to those who look for them.
fn after_two_days_without_replicas(job: Job, leave: impl Fn(&mut World, usize)) {
    for_each_seed(|seed| {
        let (mut world, holder) = with_a_running_attempt(seed, 1, job.clone());
        leave(&mut world, holder);
        world.run_for(Duration::from_secs(10));
        let before = world.runs.len();
        world.run_for(2 * DAY);
        assert_eq!(world.runs.len(), before, "nobody was there");
        world.revive(holder);
        world.run_for(Duration::from_secs(300));
        check(&world);
        let runs = world.runs.values();
        let completed = runs.filter(|run| run.completed).count();
        assert!(completed >= 3, "it runs again\n{world:?}");
    });
}

#[test]
fn a_job_whose_holder_crashed_days_ago_runs_again() {
    let rerun = job("long", "0 * * * * *");
    after_two_days_without_replicas(rerun, World::crash);
}

/// The answer to a claim that has to wait does not say whose lease it waits for.
#[test]
fn a_queue_whose_holder_crashed_days_ago_goes_on() {
    let queue = Job {
        concurrency: Concurrency::Queue { limit: 3 },
        ..job("long", "0 * * * * *")
    };
    after_two_days_without_replicas(queue, World::crash);
}

#[test]
fn a_job_that_was_handed_over_to_nobody_for_days_runs_again() {
    let rerun = job("long", "0 * * * * *");
    after_two_days_without_replicas(rerun, World::drain);
}

#[test]
fn an_at_most_once_job_whose_holder_crashed_days_ago_is_closed_and_goes_on() {
    let once = Job {
        on_crash: OnCrash::Skip,
        ..job("once", "0 * * * * *")
    };
    after_two_days_without_replicas(once.clone(), World::crash);
    let (mut world, holder) = with_a_running_attempt(1, 1, once);
    let first = world.runs.values().next_back().expect("one").scheduled_at;
    world.crash(holder);
    world.run_for(2 * DAY);
    world.revive(holder);
    world.run_for(Duration::from_secs(300));
    let lines = world.history();
    let fate = lines.iter().find(|line| line.scheduled_at == first);
    assert_eq!(fate.expect("a line").outcome, Outcome::Lost);
}

#[test]
fn a_drain_gives_back_what_was_granted_without_an_answer() {
    for_each_seed(|seed| {
        let once = Job {
            on_crash: OnCrash::Skip,
            ..job("once", "0 * * * * *")
        };
        let mut world = World::new(seed, vec![once], |_| Duration::from_secs(1));
        world.start();
        world.run_for(Duration::from_secs(59));
        world.mute_store(true);
        world.run_for_about(1, 3_000);
        world.drain(0);
        world.run_for_about(0, 3_000);
        world.mute_store(false);
        world.run_for(Duration::from_secs(3));
        assert!(world.replicas[0].finished, "{world:?}");
        assert!(world.runs.is_empty(), "{world:?}");
        world.start();
        world.run_for(Duration::from_secs(25));
        check(&world);
        let completed = world.runs.values().filter(|run| run.completed);
        assert_eq!(completed.count(), 1, "{world:?}");
    });
}
