//! The store's clock steps once, by a little or by a day, and the world is held against the same
//! one without the step: what is later by that, and by how much at most.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use soloist::scheduler::EndedHow;
use soloist::scheduler::job::Job;
use soloist::scheduler::lease::Outcome;
use soloist::scheduler::policy::Retry;

use crate::checks::{check, check_ledger};
use crate::jobs::job;
use crate::seeds::for_seeds;
use crate::world::{GENESIS_MS, World};

/// Six of each step; `SEEDS` asks for more.
const SEEDS: u64 = 72;

/// How far a server's clock is set: what NTP steps, what a host that slept finds, what a person
/// mistypes. The longest of those that are waited out is among them.
const STEPS: [i64; 12] = [
    500, -500, 5_000, -5_000, 30_000, -30_000, -59_000, 61_000, 150_000, -150_000, DAY_MS, -DAY_MS,
];

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// The longest that a lease here lasts: the default.
const TTL: Duration = Duration::from_secs(15);

/// How long nothing is granted after a step back that is not waited out: a lease, and the
/// time-out of the call that may still renew it.
const GRACE: Duration = Duration::from_secs(16);

/// What the same world does without the step, and with it. Until the step both are one.
fn with_and_without<T>(seed: u64, by: i64, world: impl Fn(u64, i64) -> T) -> [T; 2] {
    [world(seed, 0), world(seed, by)]
}

/// The worst of each step, for people.
#[derive(Default)]
struct Worst(BTreeMap<i64, Duration>);

impl Worst {
    fn note(&mut self, by: i64, later: Duration) {
        let worst = self.0.entry(by).or_default();
        *worst = later.max(*worst);
    }

    fn print(&self, what: &str) {
        println!("{what}, later than without the step by at most:");
        for (by, later) in &self.0 {
            println!("  {by:>10} ms  {later:>10.3?}");
        }
    }
}

fn step_of(seed: u64) -> i64 {
    STEPS[(seed % STEPS.len() as u64) as usize]
}

/// When the attempt of a dead holder was followed by another, by the world's time.
fn taken_over_at(seed: u64, by: i64) -> Duration {
    // A grant a second, so that the ledger knows what time it was.
    let jobs = vec![job("long", "0 * * * * *"), job("tick", "* * * * * *")];
    let mut world = World::new(seed, jobs, |_| Duration::from_millis(50));
    world.plot = Some(Box::new(|attempt| {
        let length = match attempt.job.name.as_str() {
            "long" => Duration::from_secs(600),
            _ => Duration::from_millis(50),
        };
        (length, EndedHow::Succeeded)
    }));
    (0..3).for_each(|_| {
        world.start();
    });
    world.run_for_about(63, 10_000);
    let run = |world: &World, attempt| {
        let mut runs = world.runs.values();
        let found = runs.find(|run| run.job == "long" && run.attempt == attempt);
        found.map(|run| (run.replica, run.started))
    };
    let (holder, _) = run(&world, 1).expect("it was started");
    // The one or the other is first.
    let (mut step, mut crash) = (Duration::ZERO, Duration::ZERO);
    let apart = Duration::from_millis(world.chance.below(15_000));
    *if world.chance.percent(60) {
        &mut step
    } else {
        &mut crash
    } = apart;
    world.run_for(step.min(crash));
    if step < crash {
        world.step_store_clock(by);
        world.run_for(crash);
        world.crash(holder);
    } else {
        world.crash(holder);
        world.run_for(step);
        world.step_store_clock(by);
    }
    happens(&mut world, by, |world| {
        run(world, 2).map(|(_, started)| started)
    })
}

/// Goes on until it happens; answers when that was.
fn happens(world: &mut World, by: i64, it: impl Fn(&World) -> Option<Duration>) -> Duration {
    let end = world.now + Duration::from_secs(200);
    while world.now < end {
        world.run_for(Duration::from_millis(500));
        if let Some(started) = it(world) {
            check(world);
            return started;
        }
    }
    panic!("{by} ms: it never happened\n{world:?}")
}

/// Without a word of the server's clock: what stood unchanged for its length is over.
#[test]
fn no_step_of_the_stores_clock_freezes_a_dead_holders_lease_for_longer_than_it_lasts() {
    let worst = RefCell::new(Worst::default());
    for_seeds(SEEDS, |seed| {
        let by = step_of(seed);
        let [without, with] = with_and_without(seed, by, taken_over_at);
        let later = with.saturating_sub(without);
        worst.borrow_mut().note(by, later);
    });
    worst.borrow().print("takeovers");
    for (by, later) in &worst.borrow().0 {
        let most = if *by <= -MINUTE_MS { GRACE } else { TTL };
        assert!(*later <= most + TTL / 60, "{by} ms: later by {later:?}");
    }
}

/// When an attempt that failed was followed by another, five seconds later but for the step.
fn tried_again_at(seed: u64, by: i64) -> Duration {
    let flaky = Job {
        retry: Retry {
            max: 1,
            backoff: Duration::from_secs(5),
            ..Retry::default()
        },
        ..job("flaky", "0 * * * * *")
    };
    let jobs = vec![flaky, job("tick", "* * * * * *")];
    let mut world = World::new(seed, jobs, |_| Duration::from_millis(50));
    world.plot = Some(Box::new(|attempt| {
        let how = match (attempt.job.name.as_str(), attempt.number) {
            ("flaky", 1) => EndedHow::Failed,
            _ => EndedHow::Succeeded,
        };
        (Duration::from_millis(50), how)
    }));
    (0..3).for_each(|_| {
        world.start();
    });
    world.run_for(Duration::from_millis(60_100));
    world.run_for_about(0, 3_500);
    world.step_store_clock(by);
    happens(&mut world, by, |world| {
        let mut runs = world.runs.values();
        let again = runs.find(|run| run.job == "flaky" && run.attempt == 2);
        again.map(|run| run.started)
    })
}

#[test]
fn a_delayed_retry_is_held_up_for_no_longer_than_a_step_back_is_waited_out() {
    let worst = RefCell::new(Worst::default());
    for_seeds(SEEDS, |seed| {
        let by = step_of(seed);
        let [without, with] = with_and_without(seed, by, tried_again_at);
        worst.borrow_mut().note(by, with.saturating_sub(without));
    });
    worst.borrow().print("retries");
    for (by, later) in &worst.borrow().0 {
        let most = match by {
            0.. => Duration::ZERO,
            _ if *by <= -MINUTE_MS => GRACE,
            _ => Duration::from_millis(by.unsigned_abs()),
        };
        assert!(*later <= most + TTL / 60, "{by} ms: later by {later:?}");
    }
}

/// Each TTL/6 a replica hears what time it is at the store, if not before.
const NOTICED_WITHIN: Duration = Duration::from_millis(2_500);

/// By the clock that judges: after a step back what ran is not run again, and what comes next is
/// neither early nor late by it.
#[test]
fn what_falls_due_after_a_step_starts_on_time_by_the_stores_clock() {
    let worst = RefCell::new(Worst::default());
    for_seeds(SEEDS, |seed| {
        let by = step_of(seed);
        let jobs = vec![job("a", "*/10 * * * * *"), job("b", "*/7 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_millis(50));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(25, 20_000);
        world.step_store_clock(by);
        let stepped = world.now;
        world.run_for(Duration::from_secs(200));
        check(&world);
        check_ledger(&world);
        for run in world.runs.values().filter(|run| run.started > stepped) {
            let reads = |at: Duration| GENESIS_MS + by + at.as_millis() as i64;
            let late = reads(run.started) - run.scheduled_at.as_millis();
            assert!(late >= 0, "{by} ms: early by {late} ms\n{world:?}");
            if run.scheduled_at.as_millis() > reads(stepped) {
                let late = Duration::from_millis(late.unsigned_abs());
                worst.borrow_mut().note(by, late);
                let unnoticed = run.started < stepped + NOTICED_WITHIN * 2;
                let most = if unnoticed {
                    NOTICED_WITHIN
                } else {
                    Duration::ZERO
                };
                let slack = Duration::from_millis(200);
                assert!(late <= most + slack, "{by} ms: late by {late:?}\n{world:?}");
            }
        }
    });
    worst.borrow().print("starts");
}

/// The holder lives through the step, and through the way back.
#[test]
fn a_live_lease_outlasts_every_step_and_the_way_back() {
    for_seeds(SEEDS, |seed| {
        let by = step_of(seed);
        let jobs = vec![job("long", "0 * * * * *"), job("tick", "* * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_millis(50));
        world.plot = Some(Box::new(|attempt| {
            let length = match attempt.job.name.as_str() {
                "long" => Duration::from_secs(600),
                _ => Duration::from_millis(50),
            };
            (length, EndedHow::Succeeded)
        }));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(63, 10_000);
        let before = world.notices_with("ClockJumped");
        world.step_store_clock(by);
        world.run_for_about(0, 40_000);
        world.step_store_clock(-by);
        world.run_for(Duration::from_secs(40));
        check(&world);
        let lines = world.history();
        let lost = lines.iter().filter(|line| line.outcome == Outcome::Lost);
        assert_eq!(
            lost.count(),
            0,
            "{by} ms: a live lease was taken over\n{world:?}"
        );
        let told = world.notices_with("ClockJumped") - before;
        // Each replica tells of the step and of the way back, and not of each answer meanwhile.
        assert!(told <= 3 * 2, "{by} ms: {told} times\n{world:?}");
    });
}

/// A grant whose answer was lost is told again after a step back, when its deadline seems to be as far
/// away as ever. Another replica has seen it since it was made.
#[test]
fn a_grant_that_is_told_again_after_a_step_back_is_not_trusted_for_longer_than_it_lasts() {
    let (told_again, taken_over) = (Cell::new(0), Cell::new(0));
    for_seeds(SEEDS, |seed| {
        let jobs = vec![job("long", "0 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(600));
        let (holder, other) = (world.start(), world.start());
        world.run_for(Duration::from_secs(5));
        let to_the_minute = MINUTE_MS - world.store_now().as_millis() % MINUTE_MS;
        world.run_for(Duration::from_millis(to_the_minute as u64 - 100));
        world.deafen(holder, true);
        world.freeze(other, Duration::from_millis(400));
        let deaf_for = 1_000 + world.chance.below(12_000);
        world.run_for(Duration::from_millis(deaf_for));
        let back = world.chance.below(59_000) as i64;
        world.step_store_clock(-back);
        world.deafen(holder, false);
        world.run_for(Duration::from_secs(2));
        told_again.set(told_again.get() + world.runs_alive().count());
        world.cut_off(holder, true);
        world.run_for(Duration::from_secs(80));
        check(&world);
        let lines = world.history();
        let lost = lines.iter().filter(|line| line.outcome == Outcome::Lost);
        taken_over.set(taken_over.get() + lost.count());
    });
    println!(
        "{} grants told again, {} taken over",
        told_again.get(),
        taken_over.get()
    );
    assert!(told_again.get() > 0 && taken_over.get() > 0);
}

/// A server that comes up without its data, and with a clock that is set right a moment later: the
/// window in which holders come back is as long as it was.
#[test]
fn a_step_forward_ends_no_grace_window() {
    for_seeds(SEEDS * 3, |seed| {
        let jobs = vec![job("a", "*/2 * * * * *"), job("b", "*/3 * * * * *")];
        let mut world = World::new(seed, jobs, |chance| {
            Duration::from_millis(1 + chance.below(20_000))
        });
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(20, 20_000);
        world.lose_data(None);
        world.run_for_about(0, 3_000);
        world.step_store_clock(30_000);
        world.run_for(Duration::from_secs(60));
        check(&world);
    });
}
