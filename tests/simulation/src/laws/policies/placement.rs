//! `shards`, `run_on`, `max_running`: which replica runs what.

use std::collections::BTreeMap;

use super::*;

fn quick(chance: &mut Chance) -> Duration {
    Duration::from_millis(5 + chance.below(300))
}

fn shares(world: &World, name: &str) -> Vec<usize> {
    let mut shares: BTreeMap<usize, usize> = BTreeMap::new();
    for run in runs(world, name) {
        *shares.entry(run.replica).or_default() += 1;
    }
    shares.into_values().collect()
}

#[test]
fn the_work_spreads_over_the_replicas_and_costs_no_time() {
    for seed in 1..=5 {
        let mut world = three(seed, vec![job("often", "* * * * * *")], quick);
        world.run_for(seconds(1000));
        let shares = shares(&world, "often");
        let all: usize = shares.iter().sum();
        assert!(all >= 1000, "{all}");
        let most = shares.iter().max().copied().unwrap_or(0);
        assert!(
            shares.len() == 3 && most * 2 <= all,
            "1.5 times a third at most: {shares:?}"
        );
        let mut late: Vec<_> = runs(&world, "often")
            .iter()
            .map(|run| run.started - run.scheduled_at.saturating_since(at(0)))
            .collect();
        late.sort();
        let median = late[late.len() / 2];
        assert!(
            median < Duration::from_millis(15),
            "half of all start within {median:?}"
        );
    }
}

#[test]
fn each_shard_runs_once_and_they_are_spread_evenly() {
    for_each_seed(|seed| {
        let one = Job {
            shards: 6,
            ..job("sharded", "0 * * * * *")
        };
        let mut world = three(seed, vec![one], quick);
        world.run_for(seconds(300));
        check_shards(&world);
        let mut instants: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for run in runs(&world, "sharded") {
            instants.entry(run.scheduled_at).or_default().push(run);
        }
        assert_eq!(instants.len(), 5, "{world:?}");
        let mut even = 0;
        for runs in instants.values() {
            let mut shards: Vec<_> = runs.iter().map(|run| run.shard).collect();
            shards.sort();
            assert_eq!(shards, [0, 1, 2, 3, 4, 5]);
            let mut on = [0; 3];
            runs.iter().for_each(|run| on[run.replica] += 1);
            even += u32::from(on == [2, 2, 2]);
        }
        assert!(
            even >= 4,
            "{even} of 5 occurrences had two shards on each replica\n{world:?}"
        );
        let last = lines(&world, "sharded");
        assert!(
            last.iter()
                .all(|line| line.detail.shard.is_some_and(|(_, total)| total == 6))
        );
    });
}

#[test]
fn a_crash_costs_its_own_shards_alone() {
    for_each_seed(|seed| {
        let one = Job {
            shards: 3,
            ..job("sharded", "0 0 * * * *")
        };
        let mut world = three(seed, vec![one], |_| seconds(40));
        world.run_for(seconds(3600));
        let holder = world.holder().expect("it runs");
        world.crash(holder);
        world.run_for(seconds(90));
        check_shards(&world);
        for run in runs(&world, "sharded") {
            let expected = if run.replica == holder {
                1
            } else {
                run.attempt
            };
            assert_eq!(run.attempt, expected);
        }
        let completed = runs(&world, "sharded")
            .iter()
            .filter(|run| run.completed)
            .count();
        assert_eq!(completed, 3, "{world:?}");
        let ends = ends(&world, "sharded");
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert!(
            ends.iter()
                .all(|(_, outcome, _)| *outcome == Outcome::Succeeded)
        );
    });
}

#[test]
fn the_next_occurrence_starts_when_all_shards_are_done() {
    for_each_seed(|seed| {
        let one = Job {
            shards: 3,
            ..job("sharded", "0 * * * * *")
        };
        let mut world = three(seed, vec![one], |chance| {
            Duration::from_millis(1000 + chance.below(90_000))
        });
        world.run_for(seconds(600));
        check_shards(&world);
        for run in runs(&world, "sharded") {
            for other in runs(&world, "sharded") {
                let apart = run.scheduled_at == other.scheduled_at
                    || run.ended.unwrap_or(world.now) <= other.started
                    || other.ended.unwrap_or(world.now) <= run.started;
                assert!(apart, "{run:?}\n{other:?}");
            }
        }
    });
}

#[test]
fn a_job_runs_only_on_replicas_that_have_its_tags() {
    for_each_seed(|seed| {
        let one = Job {
            run_on: zone("b"),
            ..job("placed", "*/10 * * * * *")
        };
        let mut world = World::new(seed, vec![one], quick);
        for name in ["a", "b", "c"] {
            world.start_with(zone(name), None);
        }
        world.run_for(seconds(60));
        let runs = runs(&world, "placed");
        assert!(runs.len() >= 5, "{world:?}");
        assert!(runs.iter().all(|run| run.replica == 1), "{world:?}");
    });
}

#[test]
fn what_no_replica_could_run_is_recorded_as_skipped_for_want_of_a_place() {
    for_each_seed(|seed| {
        let one = Job {
            run_on: zone("nowhere"),
            starting_deadline: seconds(20),
            ..job("placed", "*/10 * * * * *")
        };
        let mut world = three(seed, vec![one], quick);
        world.run_for(seconds(100));
        let ends = ends(&world, "placed");
        let placement = (Outcome::Skipped, Some(Cause::Placement));
        assert!(ends.len() >= 6, "{ends:?}");
        for (second, outcome, cause) in ends {
            assert_eq!((outcome, cause), placement, "of second {second}");
        }
        assert!(runs(&world, "placed").is_empty());
    });
}

#[test]
fn a_full_replica_leaves_work_to_others_and_takes_no_more_than_it_may() {
    for_each_seed(|seed| {
        let jobs = (0..6).map(|number| job(&format!("job{number}"), "0 * * * * *"));
        let mut world = World::new(seed, jobs.collect(), |_| seconds(20));
        for most in [1, 2, 3] {
            world.start_with(Tags::new(), Some(most));
        }
        world.run_for(seconds(70));
        let mut on = [0; 3];
        for run in world.runs.values() {
            on[run.replica] += 1;
        }
        assert_eq!(on, [1, 2, 3], "{world:?}");
    });
}

#[test]
fn what_finds_no_room_in_time_is_missed_and_what_finds_some_later_runs() {
    for_each_seed(|seed| {
        let jobs = (0..3).map(|number| job(&format!("job{number}"), "0 * * * * *"));
        let mut world = World::new(seed, jobs.collect(), |_| seconds(25));
        world.start_with(Tags::new(), Some(1));
        world.run_for(seconds(175));
        check_shards(&world);
        // Of three that take 25 s each, two or three start within the minute that they have.
        let first: Vec<_> = world
            .runs
            .values()
            .filter(|run| run.scheduled_at == at(60))
            .collect();
        assert_eq!(first.len(), 3, "{world:?}");
        let mut started: Vec<_> = first.iter().map(|run| run.started).collect();
        started.sort();
        assert!(started[2] - started[0] >= seconds(50), "{started:?}");
        // The one that began at once ended first, and the others waited for its room.
        let late = (0..3).flat_map(|number| late(&world, &format!("job{number}")));
        let of_first: Vec<_> = late.filter(|(due, _)| *due == at(60)).collect();
        assert_eq!(of_first.len(), 2, "{world:?}");
        for (_, late) in of_first {
            assert_eq!(late, Some(Late::Room), "{world:?}");
        }
    });
}

#[test]
fn a_trigger_that_waited_for_room_has_that_written_down() {
    for_each_seed(|seed| {
        let jobs = (0..2).map(|number| job(&format!("job{number}"), "@manual"));
        let mut world = World::new(seed, jobs.collect(), |_| seconds(20));
        world.start_with(Tags::new(), Some(1));
        world.run_for(seconds(10));
        order(&mut world, "job0", OrderKind::Trigger);
        world.run_for(seconds(5));
        order(&mut world, "job1", OrderKind::Trigger);
        world.run_for(seconds(60));
        assert_eq!(late(&world, "job0"), []);
        let reasons: Vec<_> = late(&world, "job1").iter().map(|(_, late)| *late).collect();
        assert_eq!(reasons, [Some(Late::Room)], "{world:?}");
    });
}

#[test]
fn work_that_comes_all_at_once_finds_what_room_there_is_at_once() {
    for_each_seed(|seed| {
        let jobs = (0..6).map(|number| job(&format!("job{number}"), "@manual"));
        let mut world = World::new(seed, jobs.collect(), |_| seconds(60));
        for _ in 0..3 {
            world.start_with(Tags::new(), Some(2));
        }
        world.run_for(seconds(10));
        for number in 0..6 {
            order(&mut world, &format!("job{number}"), OrderKind::Trigger);
        }
        let asked = world.now;
        world.run_for(seconds(5));
        let mut on = [0; 3];
        for run in world.runs.values() {
            on[run.replica] += 1;
            let waited = run.started - asked;
            assert!(waited < Duration::from_millis(500), "{waited:?} {world:?}");
        }
        assert_eq!(on, [2, 2, 2], "{world:?}");
    });
}

#[test]
fn shards_that_were_held_back_together_are_spread_all_the_same() {
    for_each_seed(|seed| {
        let one = Job {
            shards: 6,
            ..job("sharded", "@manual")
        };
        // Nothing is granted for a while after a step back, where something was granted before.
        let before = job("before", "*/5 * * * * *");
        let mut world = three(seed, vec![one, before], |_| seconds(90));
        world.step_store_clock(-100_000);
        world.run_for(seconds(5));
        order(&mut world, "sharded", OrderKind::Trigger);
        world.run_for(seconds(5));
        assert!(runs(&world, "sharded").is_empty(), "{world:?}");
        world.run_for(seconds(30));
        let mut shares = shares(&world, "sharded");
        shares.sort_unstable();
        assert_eq!(shares, [2, 2, 2], "{world:?}");
    });
}
