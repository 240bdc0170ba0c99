//! Named leases in virtual time: nobody has what another has, whatever breaks, and everybody has
//! its turn.
//!
//! Must never: accept a run in which nothing was held, lost or broken.

mod world;

use soloist::scheduler::lease::Mode;

use self::world::{Faults, Seen, World};

/// How many seeds each law is held to.
const SEEDS: u64 = 60;

/// How long somebody has something at most: for longer than a lease lasts.
const LONGEST_USE_MS: u64 = 9000;

const HOUR_MS: u64 = 3_600_000;

fn storm(seed: u64, faults: Faults) -> Seen {
    let mut world = World::new(seed, 4);
    world.faults = faults;
    for _ in 0..60 {
        world.wants_anything();
        let pause = world.chance.below(2000);
        world.run(pause);
    }
    world.run(30_000);
    world.calm();
    // All have their turn within what all of them use, and a lease that somebody left behind.
    world.run(60 * LONGEST_USE_MS + 60_000);
    assert_eq!(world.waiting(), [], "seed {seed}, at {}", world.now_ms);
    // What a crash has left behind, or a request that came twice, stands in nobody's way for long.
    world.wants(0, &["a", "b", "c"], Mode::Exclusive, 0);
    world.run(15_000);
    assert_eq!(
        world.waiting(),
        [],
        "seed {seed}: something was left behind"
    );
    assert_eq!(world.names(), 0, "seed {seed}: something was left behind");
    world.seen
}

fn storms(faults: Faults) -> Seen {
    let mut all = Seen::default();
    for seed in 1..=SEEDS {
        let seen = storm(seed, faults);
        all.granted += seen.granted;
        all.lost += seen.lost;
        all.late += seen.late;
        all.crashes += seen.crashes;
        all.wipes += seen.wipes;
    }
    println!(
        "{SEEDS} seeds: {} granted, {} too late, {} lost, {} crashes, {} losses of data",
        all.granted, all.late, all.lost, all.crashes, all.wipes
    );
    all
}

#[test]
fn who_comes_first_goes_first_and_tokens_rise_where_nothing_breaks() {
    let mut world = World::new(1, 3);
    let holder = world.wants(0, &["a"], Mode::Exclusive, 5000);
    let mut wanted = vec![holder];
    for number in 0..100 {
        world.run(20);
        wanted.push(world.wants(number % 3, &["a"], Mode::Exclusive, 10));
    }
    world.run(60_000);
    assert_eq!(world.seen.order, wanted);
    assert!(world.seen.tokens.is_sorted_by(|a, b| a < b));
    assert_eq!(world.names(), 0);
}

#[test]
fn what_the_dead_left_behind_is_gone_after_some_hours_and_what_the_living_have_stays() {
    let mut world = World::new(1, 2);
    let kept = world.wants(0, &["kept"], Mode::Exclusive, 24 * HOUR_MS);
    world.wants(1, &["left", "behind"], Mode::Exclusive, HOUR_MS);
    world.run(10_000);
    assert_eq!(world.names(), 3);
    world.crash(1);
    world.run(2 * HOUR_MS);
    assert_eq!(world.names(), 1, "nobody asked for them");
    assert_eq!(world.seen.order[0], kept);
    assert_eq!(world.seen.lost, 0);
}

#[test]
fn a_network_that_loses_delays_and_doubles_lets_nobody_in_twice() {
    let seen = storms(Faults {
        lost: 10,
        late: 10,
        doubled: 10,
        ..Faults::default()
    });
    assert_eq!(seen.granted + seen.late, SEEDS * 61);
}

#[test]
fn crashes_and_hosts_that_stand_still_let_nobody_in_twice() {
    let seen = storms(Faults {
        lost: 3,
        late: 3,
        doubled: 3,
        frozen: 4,
        crashed: 4,
        ..Faults::default()
    });
    assert!(seen.crashes > SEEDS && seen.lost > SEEDS, "{seen:?}");
}

#[test]
fn a_store_that_loses_its_data_lets_nobody_in_twice() {
    let seen = storms(Faults {
        lost: 3,
        frozen: 3,
        crashed: 2,
        wiped: 2,
        ..Faults::default()
    });
    assert!(seen.wipes > SEEDS && seen.lost > SEEDS / 2, "{seen:?}");
}

#[test]
fn a_clock_of_the_store_that_is_set_lets_nobody_in_twice() {
    let seen = storms(Faults {
        lost: 3,
        frozen: 3,
        crashed: 3,
        stepped: 10,
        ..Faults::default()
    });
    assert!(seen.lost > SEEDS / 2, "{seen:?}");
}
