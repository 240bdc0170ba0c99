//! `retry`, `max_attempts`, `on_crash`: what follows a failure.

use std::collections::BTreeSet;

use soloist::scheduler::job::OnCrash;
use soloist::scheduler::policy::Retry;
use soloist::scheduler::{Attempt, EndedHow};

use super::*;

fn quick(_: &mut Chance) -> Duration {
    seconds(1)
}

fn always_fails(_: &mut Chance, _: &Attempt) -> EndedHow {
    EndedHow::Failed
}

fn patient(max: u32) -> Job {
    Job {
        retry: Retry {
            max,
            ..Retry::default()
        },
        ..job("flaky", "0 * * * * *")
    }
}

#[test]
fn a_failed_occurrence_is_tried_again_after_growing_waits_and_then_has_failed() {
    for_each_seed(|seed| {
        let mut world = three(seed, vec![patient(3)], quick);
        world.fate = always_fails;
        world.run_for(seconds(85));
        let runs = runs(&world, "flaky");
        let attempts: Vec<_> = runs.iter().map(|run| run.attempt).collect();
        assert_eq!(attempts, [1, 2, 3, 4], "{world:?}");
        let waits: Vec<_> = runs
            .windows(2)
            .map(|pair| pair[1].started - pair[0].ended.expect("it has ended"))
            .collect();
        for (wait, full) in waits.iter().zip([1, 2, 4]) {
            let full = seconds(full);
            let slack = Duration::from_millis(400);
            assert!(*wait >= full * 3 / 4 && *wait <= full + slack, "{waits:?}");
        }
        assert_eq!(ends(&world, "flaky"), [(60, Outcome::Failed, None)]);
        let lines = lines(&world, "flaky");
        let planned: Vec<_> = lines
            .iter()
            .map(|line| line.detail.next_attempt_at.is_some())
            .collect();
        assert_eq!(planned, [true, true, true, false]);
    });
}

#[test]
fn a_failing_host_does_not_keep_a_job_to_itself() {
    let mut elsewhere = 0;
    let mut all = 0;
    for seed in 1..=100 {
        let mut world = three(seed, vec![patient(1)], quick);
        world.fate = always_fails;
        world.run_for(seconds(80));
        let runs = runs(&world, "flaky");
        all += 1;
        elsewhere += u32::from(runs[0].replica != runs[1].replica);
    }
    assert_eq!(elsewhere, all, "second attempts on another replica");
}

#[test]
fn an_attempt_in_back_off_survives_the_crash_of_whoever_counted() {
    for_each_seed(|seed| {
        let one = Job {
            retry: Retry {
                max: 1,
                backoff: seconds(20),
                ..Retry::default()
            },
            ..job("flaky", "0 * * * * *")
        };
        let mut world = three(seed, vec![one], quick);
        world.fate = |_, attempt| match attempt.number {
            1 => EndedHow::Failed,
            _ => EndedHow::Succeeded,
        };
        world.run_for(seconds(55));
        let first = runs(&world, "flaky")[0].replica;
        world.crash(first);
        world.run_for(seconds(30));
        let runs = runs(&world, "flaky");
        assert_eq!(runs.len(), 2, "{world:?}");
        let wait = runs[1].started - runs[0].ended.expect("it has ended");
        assert!(
            wait >= seconds(15) && wait < Duration::from_millis(20_500),
            "{wait:?}"
        );
        assert_eq!(ends(&world, "flaky"), [(60, Outcome::Succeeded, None)]);
    });
}

#[test]
fn a_job_that_kills_its_replicas_stops_at_max_attempts() {
    for_each_seed(|seed| {
        let poison = Job {
            max_attempts: 2,
            ..job("poison", "0 0 * * * *")
        };
        let mut world = three(seed, vec![poison], |_| seconds(3000));
        world.run_for(seconds(3595));
        let mut killed = BTreeSet::new();
        for _ in 0..4 {
            if let Some(holder) = world.holder() {
                killed.insert(holder);
                world.crash(holder);
            }
            world.run_for(seconds(20));
        }
        assert_eq!(killed.len(), 2, "{world:?}");
        let last = ends(&world, "poison");
        assert_eq!(last, [(3600, Outcome::Lost, Some(Cause::MaxAttempts))]);
    });
}

#[test]
fn failures_and_crashes_together_are_held_by_max_attempts() {
    for_each_seed(|seed| {
        let one = Job {
            max_attempts: 3,
            ..patient(100)
        };
        let mut world = three(seed, vec![one], quick);
        world.fate = always_fails;
        world.run_for(seconds(100));
        assert_eq!(runs(&world, "flaky").len(), 3, "{world:?}");
        assert_eq!(ends(&world, "flaky")[0].1, Outcome::Failed);
    });
}

#[test]
fn on_crash_decides_between_at_least_once_and_at_most_once() {
    for_each_seed(|seed| {
        for on_crash in [OnCrash::Rerun, OnCrash::Skip] {
            let one = Job {
                on_crash,
                ..job("one", "0 0 * * * *")
            };
            let mut world = three(seed, vec![one], |_| seconds(30));
            world.run_for(seconds(3600));
            world.crash(world.holder().expect("it runs"));
            world.run_for(seconds(60));
            let attempts = runs(&world, "one").len();
            let outcome = ends(&world, "one")[0].1;
            match on_crash {
                OnCrash::Rerun => assert_eq!((attempts, outcome), (2, Outcome::Succeeded)),
                OnCrash::Skip => assert_eq!((attempts, outcome), (1, Outcome::Lost)),
            }
        }
    });
}
