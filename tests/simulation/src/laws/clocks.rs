//! The store's own clock jumps, at any moment and among crashes: no live lease is granted to
//! another, and what ran out is not held back for long.

use std::time::Duration;

use soloist::scheduler::lease::Outcome;

use crate::checks::{check, check_ledger};
use crate::jobs::job;
use crate::seeds::for_each_seed;
use crate::world::World;

const MINUTE_MS: i64 = 60_000;

/// Forward by two minutes or a day, back by two and a half minutes or less than is waited out.
const JUMPS: [i64; 4] = [2 * MINUTE_MS, 24 * 60 * MINUTE_MS, -150_000, -20_000];

/// The longest that a lease here lasts: the default.
const TTL: Duration = Duration::from_secs(15);

#[test]
fn jumps_of_the_stores_clock_among_crashes_leave_one_copy() {
    for_each_seed(|seed| {
        let jobs = vec![job("a", "*/10 * * * * *"), job("b", "*/3 * * * * *")];
        let mut world = World::new(seed, jobs, |chance| {
            Duration::from_millis(1 + chance.below(20_000))
        });
        (0..3).for_each(|_| {
            world.start();
        });
        for _ in 0..20 {
            world.run_for_about(0, 20_000);
            match world.chance.below(4) {
                0 | 1 => {
                    let by = JUMPS[world.chance.below(4) as usize];
                    world.step_store_clock(by);
                }
                2 => {
                    let number = world.chance.below(3) as usize;
                    match world.is_alive(number) {
                        true => world.crash(number),
                        false => world.revive(number),
                    }
                }
                _ => {}
            }
            check(&world);
        }
        world.run_for(Duration::from_secs(120));
        check(&world);
    });
}

/// A holder runs for longer than all of this takes, and its clock jumps again and again.
#[test]
fn a_live_lease_outlasts_jumps_of_the_stores_clock() {
    for_each_seed(|seed| {
        let jobs = vec![job("long", "0 0 12 * * *"), job("tick", "*/5 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(1));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(20, 10_000);
        for _ in 0..6 {
            let by = JUMPS[world.chance.below(4) as usize];
            world.step_store_clock(by);
            world.run_for_about(5, 40_000);
            check(&world);
        }
        check_ledger(&world);
        let lines = world.history();
        let lost = lines.iter().filter(|line| line.outcome == Outcome::Lost);
        assert_eq!(lost.count(), 0, "a live lease was taken over\n{world:?}");
    });
}

/// The holder dies, and the clock jumps at any moment until its lease is over: somebody runs the
/// occurrence within a lease and a grace window of that, whichever way it jumped.
#[test]
fn a_lease_that_ran_out_is_not_frozen_by_a_jump_of_the_stores_clock() {
    for_each_seed(|seed| {
        let jobs = vec![job("long", "0 * * * * *")];
        let mut world = World::new(seed, jobs, |_| Duration::from_secs(50));
        (0..3).for_each(|_| {
            world.start();
        });
        world.run_for_about(63, 10_000);
        let holder = world.holder().expect("one runs");
        world.crash(holder);
        world.run_for_about(0, 14_000);
        let by = [2 * MINUTE_MS, 24 * 60 * MINUTE_MS, -150_000][world.chance.below(3) as usize];
        world.step_store_clock(by);
        // The next look notices it; then a grace window, of a lease and a time-out, and as long a
        // watch beside it.
        world.run_for(TTL / 6 + TTL + TTL / 10 + Duration::from_secs(3));
        check(&world);
        assert!(
            world.holder().is_some(),
            "{by} ms: nobody took over\n{world:?}"
        );
    });
}
