//! What must hold in every world.

use std::collections::BTreeSet;
use std::time::Duration;

use soloist::scheduler::job::{Job, OnCrash};
use soloist::scheduler::lease::Outcome;

use crate::checks::{check, check_ledger};
use crate::jobs::job;
use crate::seeds::for_each_seed;
use crate::world::{Chance, Network, World};

fn short(chance: &mut Chance) -> Duration {
    Duration::from_millis(1 + chance.below(900))
}

#[test]
fn every_occurrence_runs_once_on_three_replicas() {
    for_each_seed(|seed| {
        let jobs = (0..5)
            .map(|n| job(&format!("job{n}"), "* * * * * *"))
            .collect();
        let mut world = World::new(seed, jobs, short);
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for(Duration::from_secs(30));
        check(&world);
        check_ledger(&world);
        let seconds: BTreeSet<_> = world.runs.values().map(|run| run.scheduled_at).collect();
        assert!(
            seconds.len() >= 29,
            "{} of 30 seconds ran\n{world:?}",
            seconds.len()
        );
        assert_eq!(world.runs.len(), seconds.len() * 5, "{world:?}");
        assert!(world.runs.values().all(|run| run.attempt == 1));
    });
}

#[test]
fn lost_requests_and_replies_cost_nothing_and_double_nothing() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/5 * * * * *"), job("b", "*/5 * * * * *")];
        let mut world = World::new(seed, jobs, short);
        world.network = Network {
            lose_request: 10,
            lose_reply: 10,
            slowest_ms: 300,
            ..Network::default()
        };
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for(Duration::from_secs(120));
        world.network = Network {
            slowest_ms: 5,
            ..Network::default()
        };
        world.run_for(Duration::from_secs(40));
        check(&world);
        check_ledger(&world);
        let completed: BTreeSet<_> = world
            .runs
            .values()
            .filter(|run| run.completed)
            .map(|run| (run.job.clone(), run.scheduled_at))
            .collect();
        let settled: BTreeSet<_> = world
            .history()
            .iter()
            .map(|line| (line.job.to_string(), line.scheduled_at))
            .collect();
        assert!(
            settled.is_superset(&completed),
            "a run without a line\n{world:?}"
        );
        assert!(
            settled.len() >= 2 * 30,
            "{} settled\n{world:?}",
            settled.len()
        );
    });
}

#[test]
fn a_lost_reply_costs_no_attempt() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/5 * * * * *"), job("b", "* * * * * *")];
        let mut world = World::new(seed, jobs, short);
        world.network = Network {
            lose_reply: 20,
            ..world.network
        };
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for(Duration::from_secs(60));
        check(&world);
        let lost = world.runs.values().find(|run| run.attempt > 1);
        assert!(lost.is_none(), "{lost:?}\n{world:?}");
    });
}

#[test]
fn a_crashed_holders_occurrence_is_taken_over_within_ttl_and_a_second() {
    for_each_seed(|seed| {
        let jobs = vec![job("long", "0 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(40));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(61, 38_000);
        let run = world
            .runs
            .values()
            .find(|run| run.ended.is_none())
            .expect("one runs")
            .clone();
        let crashed_at = world.now;
        world.crash(run.replica);
        world.run_for(Duration::from_secs(17));
        check(&world);
        let second = world
            .runs
            .values()
            .find(|run| run.attempt == 2)
            .expect("taken over");
        assert_eq!(second.scheduled_at, run.scheduled_at);
        assert!(second.token > run.token);
        let after = second.started - crashed_at;
        assert!(
            after <= Duration::from_secs(16),
            "taken over after {after:?}"
        );
    });
}

#[test]
fn an_at_most_once_job_is_closed_as_lost_when_its_holder_crashes() {
    for_each_seed(|seed| {
        let once = Job {
            on_crash: OnCrash::Skip,
            ..job("once", "0 * * * * *")
        };
        let mut world = World::new(seed, vec![once], |_| Duration::from_secs(30));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for(Duration::from_secs(65));
        let holder = world.runs.values().next().expect("one ran").replica;
        world.crash(holder);
        world.run_for(Duration::from_secs(20));
        assert_eq!(world.runs.len(), 1, "{world:?}");
        let history = world.history();
        assert_eq!(history[0].outcome, Outcome::Lost, "{history:?}");
    });
}

#[test]
fn a_drain_hands_over_at_once_and_ends() {
    for_each_seed(|seed| {
        let jobs = vec![job("long", "0 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(40));
        (0..2).for_each(|_| {
            world.start();
        });
        world.run_for(Duration::from_secs(65));
        let first = world.runs.values().next().expect("one runs").clone();
        world.drain(first.replica);
        // shutdown_grace 5 s, kill_grace 1 s, and the others' next look.
        world.run_for(Duration::from_secs(9));
        assert!(world.replicas[first.replica].finished);
        check(&world);
        let second = world
            .runs
            .values()
            .find(|run| run.attempt == 2)
            .expect("handed over");
        assert_eq!(second.scheduled_at, first.scheduled_at);
        assert_eq!(
            world.history().last().expect("a line").outcome,
            Outcome::HandedOver
        );
    });
}

#[test]
fn replicas_that_lose_the_store_stop_their_jobs_before_others_may_start_them() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/20 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(19));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(21, 18_000);
        world.partition(true);
        world.run_for_about(10, 20_000);
        world.partition(false);
        world.run_for(Duration::from_secs(60));
        check(&world);
        check_ledger(&world);
    });
}

#[test]
fn a_holder_that_is_cut_off_has_stopped_when_another_takes_over() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/30 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(50));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(31, 12_000);
        let holder = world.holder().expect("one of them runs it");
        world.cut_off(holder, true);
        world.run_for_about(40, 10_000);
        world.cut_off(holder, false);
        world.run_for(Duration::from_secs(60));
        check(&world);
        check_ledger(&world);
    });
}

#[test]
fn a_jump_of_the_stores_clock_grants_no_live_lease() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/20 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(15));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(22, 10_000);
        let by = [120_000, -150_000, 30_000, -20_000][world.chance.below(4) as usize];
        world.step_store_clock(by);
        world.run_for(Duration::from_secs(90));
        check(&world);
        check_ledger(&world);
        let lost = world
            .history()
            .iter()
            .filter(|line| line.outcome == Outcome::Lost)
            .count();
        assert_eq!(lost, 0, "a live lease was taken over\n{world:?}");
    });
}

#[test]
fn crashes_and_losses_at_random_leave_one_copy_and_one_outcome() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/10 * * * * *"), job("b", "*/3 * * * * *")];
        let mut world = World::new(seed, jobs, |chance| {
            Duration::from_millis(1 + chance.below(12_000))
        });
        world.network = Network {
            lose_request: 5,
            lose_reply: 5,
            slowest_ms: 100,
            ..Network::default()
        };
        (0..4).for_each(|_| {
            world.start();
        });
        for _ in 0..40 {
            world.run_for_about(0, 8_000);
            let number = world.chance.below(4) as usize;
            match (world.is_alive(number), world.chance.below(5)) {
                (true, 0 | 1) => world.crash(number),
                (true, 2) => world.drain(number),
                (true, _) => {}
                (false, _) => world.revive(number),
            }
        }
        world.network = Network {
            slowest_ms: 5,
            ..Network::default()
        };
        for number in 0..4 {
            if !world.is_alive(number) {
                world.revive(number);
            }
        }
        world.run_for(Duration::from_secs(60));
        check(&world);
        check_ledger(&world);
        let completed = world.runs.values().filter(|run| run.completed).count();
        assert!(completed > 5, "the fleet works\n{world:?}");
    });
}
