//! A table that is replaced while everything goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::Outcome;
use soloist::scheduler::time::Timestamp;
use soloist::store::Standing;

use crate::checks::{check, check_ledger};
use crate::jobs::job;
use crate::seeds::for_seeds;
use crate::world::{Chance, GENESIS_MS, Network, World};

const SEEDS: u64 = 60;

fn short(chance: &mut Chance) -> Duration {
    Duration::from_millis(1 + chance.below(900))
}

fn table(jobs: &[(&str, &str)]) -> Vec<Arc<Job>> {
    let job = |(name, schedule): &(&str, &str)| Arc::new(job(name, schedule));
    jobs.iter().map(job).collect()
}

fn owned(jobs: &[Arc<Job>]) -> Vec<Job> {
    jobs.iter().map(|job| (**job).clone()).collect()
}

/// All replicas go on with a table, each somewhat later than the one before.
fn roll_out(world: &mut World, jobs: &[Arc<Job>]) {
    for number in 0..world.replicas.len() {
        world.reload(number, jobs);
        world.run_for_about(0, 400);
    }
}

/// The seconds since the beginning of which a job has runs.
fn seconds_of(world: &World, name: &str) -> BTreeSet<i64> {
    let runs = world.runs.values().filter(|run| run.job == name);
    runs.map(|run| (run.scheduled_at.as_millis() - GENESIS_MS) / 1000)
        .collect()
}

#[test]
fn a_job_that_stays_loses_and_doubles_nothing_while_others_come_and_go() {
    for_seeds(SEEDS, |seed| {
        let tables = [
            table(&[("stays", "* * * * * *"), ("one", "* * * * * *")]),
            table(&[("stays", "* * * * * *"), ("two", "*/2 * * * * *")]),
            table(&[("two", "*/3 * * * * *"), ("stays", "* * * * * *")]),
        ];
        let mut world = World::new(seed, owned(&tables[0]), short);
        (0..3).for_each(|_| _ = world.start());
        world.run_for(Duration::from_secs(3));
        for round in 1..20 {
            roll_out(&mut world, &tables[round % 3]);
            world.run_for_about(0, 1500);
        }
        world.run_for(Duration::from_secs(3));
        check(&world);
        check_ledger(&world);
        let seconds = seconds_of(&world, "stays");
        let last = i64::try_from(world.now.as_secs()).expect("a while") - 1;
        let all: BTreeSet<i64> = (1..=last).collect();
        assert!(seconds.is_superset(&all), "{seconds:?}\n{world:?}");
        assert!(world.runs.values().all(|run| run.attempt == 1), "{world:?}");
        assert!(
            world
                .history()
                .iter()
                .all(|line| line.outcome != Outcome::Lost),
            "{world:?}"
        );
    });
}

#[test]
fn a_reload_on_a_network_that_loses_doubles_nothing_and_forgets_nothing() {
    for_seeds(SEEDS, |seed| {
        let tables = [
            table(&[("a", "*/2 * * * * *"), ("b", "*/5 * * * * *")]),
            table(&[("a", "*/3 * * * * *"), ("b", "*/5 * * * * *")]),
            table(&[("b", "*/5 * * * * *")]),
        ];
        let mut world = World::new(seed, owned(&tables[0]), short);
        world.network = Network {
            lose_request: 10,
            lose_reply: 10,
            slowest_ms: 300,
            ..Network::default()
        };
        (0..3).for_each(|_| _ = world.start());
        for round in 1..12 {
            roll_out(&mut world, &tables[round % 3]);
            world.run_for_about(2, 3000);
        }
        world.network = Network {
            slowest_ms: 5,
            ..Network::default()
        };
        roll_out(&mut world, &tables[0]);
        world.run_for(Duration::from_secs(60));
        check(&world);
        check_ledger(&world);
        // Whatever became of each instant of the job that all tables have, it is written down.
        let mut told: BTreeSet<Timestamp> = BTreeSet::new();
        let mut ranges = Vec::new();
        for line in world.history() {
            if line.job.as_str() == "b" {
                told.insert(line.scheduled_at);
                let since = line.detail.since;
                ranges.extend(since.map(|since| (since, line.scheduled_at)));
            }
        }
        let from = *told.first().expect("it has lines");
        let to = Timestamp::from_millis(GENESIS_MS) + (world.now - Duration::from_secs(6));
        let mut at = from;
        while at <= to {
            let in_range = ranges
                .iter()
                .any(|(since, until)| *since <= at && at <= *until);
            assert!(
                told.contains(&at) || in_range,
                "nothing about {at}\n{world:?}"
            );
            at = at + Duration::from_secs(5);
        }
    });
}

#[test]
fn what_runs_when_its_job_is_removed_runs_to_its_end() {
    for_seeds(SEEDS, |seed| {
        let before = table(&[("goes", "*/5 * * * * *"), ("stays", "*/5 * * * * *")]);
        let after = table(&[("stays", "*/5 * * * * *")]);
        let mut world = World::new(seed, owned(&before), |_| Duration::from_secs(8));
        (0..3).for_each(|_| _ = world.start());
        // Just when claims are on their way, or just before or after.
        world.run_for_about(9, 1100);
        (0..3).for_each(|number| world.reload(number, &after));
        world.run_for(Duration::from_secs(40));
        check(&world);
        let mut by_job: BTreeMap<&str, usize> = BTreeMap::new();
        for run in world.runs.values() {
            *by_job.entry(&run.job).or_default() += 1;
            let is_over = run.ended.is_some();
            assert!(!is_over || run.completed, "cut short\n{world:?}");
        }
        assert!(by_job["goes"] <= 2, "it is started no more\n{world:?}");
        let lines = world.history();
        assert!(
            lines.iter().all(|line| line.outcome != Outcome::Lost),
            "{lines:#?}\n{world:?}"
        );
        let left = world.snapshot().jobs.into_iter();
        let left: Vec<_> = left
            .filter(|state| state.job.as_str() == "goes")
            .flat_map(|state| state.attempts)
            .filter(|attempt| matches!(attempt.standing, Standing::Running { .. }))
            .collect();
        assert!(left.is_empty(), "its lease was left behind: {left:?}");
    });
}

#[test]
fn a_new_job_runs_from_its_first_instant_after_the_reload_and_never_its_past() {
    for_seeds(SEEDS, |seed| {
        let before = table(&[("old", "*/5 * * * * *")]);
        let after = table(&[("old", "*/5 * * * * *"), ("new", "* * * * * *")]);
        let mut world = World::new(seed, owned(&before), short);
        (0..3).for_each(|_| _ = world.start());
        world.run_for_about(20, 1000);
        let reloaded = world.now;
        (0..3).for_each(|number| world.reload(number, &after));
        world.run_for(Duration::from_secs(10));
        let first = *seconds_of(&world, "new").first().expect("it ran");
        let reloaded = i64::try_from(reloaded.as_secs()).expect("a while");
        assert!(first > reloaded, "{first} {reloaded}");
        assert!(first <= reloaded + 2, "{first} {reloaded}\n{world:?}");
    });
}
