//! What happens, scene by scene.
//!
//! Must never: be looser than what is promised: whoever looks for faults has nothing else.

use std::time::Duration;

use soloist::leases::holds::Patience;
use soloist::scheduler::lease::Mode;

use super::world::{Faults, Seen, Want, Who, World};
use super::{HOUR_MS, LONGEST_USE_MS};

/// A network that loses, delays and doubles.
pub(super) const NETWORK: Faults = Faults {
    lost: 10,
    late: 10,
    doubled: 10,
    ..Faults::NONE
};

/// Clients that crash, and hosts that stand still.
pub(super) const CRASHES: Faults = Faults {
    lost: 3,
    late: 3,
    doubled: 3,
    frozen: 4,
    crashed: 4,
    ..Faults::NONE
};

/// A store that loses its data, or falls back to what it held before.
pub(super) const LOSSES: Faults = Faults {
    lost: 3,
    frozen: 3,
    crashed: 2,
    wiped: 2,
    ..Faults::NONE
};

/// A clock of the store that is set.
pub(super) const STEPS: Faults = Faults {
    lost: 3,
    frozen: 3,
    crashed: 3,
    stepped: 10,
    ..Faults::NONE
};

/// Sixty want something while all kinds of these faults happen. Then nothing happens any more, and all
/// have to have their turn.
pub(super) fn storm(seed: u64, faults: Faults) -> Seen {
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
    assert_eq!(world.waiting(), [], "somebody waits for ever");
    // What a crash has left behind, or a request that came twice, stands in nobody's way for long.
    world.wants(0, Want::of(&["a", "b", "c"], 0));
    world.run(20_000);
    assert_eq!(world.waiting(), [], "something was left behind");
    if faults.stepped > 0 {
        // While a step back is waited out no time passes for the store, and names that nobody has stay
        // until somebody looks at all of them.
        world.run(2 * HOUR_MS);
    }
    assert_eq!(world.names(), 0, "something was left behind");
    world.seen
}

/// Nothing breaks: who comes first goes first, and at once.
pub(super) fn one_after_the_other(seed: u64) -> Seen {
    let mut world = World::new(seed, 3);
    let holder = world.wants(0, Want::of(&["a"], 5000));
    let mut wanted = vec![holder];
    for number in 0..100 {
        world.run(20);
        wanted.push(world.wants(number % 3, Want::of(&["a"], 10)));
    }
    // Each but the first takes its ten milliseconds, and four messages of up to five.
    world.run(5000 + 100 * 35);
    assert_eq!(world.seen.order, wanted, "not in the order of their coming");
    assert!(world.seen.tokens.is_sorted_by(|a, b| a < b));
    world.run(60_000);
    assert_eq!(world.names(), 0);
    world.seen
}

/// Who has something is let in again, below itself, before all who wait, and by the token that it has.
pub(super) fn let_in_again(seed: u64) {
    let mut world = World::new(seed, 2);
    let outer = world.wants(0, Want::of(&["a", "b"], 10_000));
    world.run(1500);
    let other = world.wants(1, Want::of(&["a"], 0));
    world.run(100);
    let inner = Want {
        who: Who::TheHolderOf(outer),
        ..Want::of(&["a"], 3000)
    };
    let inner = world.wants(0, inner);
    world.run(100);
    assert_eq!(world.seen.order, [outer, inner], "not let in again");
    let tokens = &world.seen.tokens;
    assert_eq!(tokens[0], tokens[1], "let in again by another token");
    world.run(20_000);
    assert_eq!(world.seen.order, [outer, inner, other]);
}

/// Two share something, and each of them wants it alone, below itself, and keeps it until then.
pub(super) fn two_who_share_want_it_alone(seed: u64) {
    let mut world = World::new(seed, 2);
    let sharing = Want {
        mode: Mode::Shared,
        ..Want::of(&["a"], HOUR_MS)
    };
    let both = [0, 1].map(|client| world.wants(client, sharing));
    world.run(1500);
    for (client, holder) in both.into_iter().enumerate() {
        let alone = Want {
            who: Who::TheHolderOf(holder),
            ..Want::of(&["a"], 1000)
        };
        world.wants(client, alone);
    }
    world.run(60_000);
    assert_eq!(world.waiting(), [], "they wait for each other");
}

/// Nothing breaks, and all want two of three names: nobody waits for anybody in a ring, and what is free
/// is nobody's who has to wait for something else.
pub(super) fn two_of_three(seed: u64) {
    let mut world = World::new(seed, 3);
    world.wants(0, Want::of(&["a", "b", "c"], 0));
    world.run(5000);
    for _ in 0..60 {
        let client = world.chance.below(3) as usize;
        let names = [["a", "b"], ["b", "c"], ["c", "a"]][world.chance.below(3) as usize];
        world.wants(client, Want::of(&names, 10));
        let pause = world.chance.below(30);
        world.run(pause);
    }
    // Each takes its ten milliseconds, and three messages of less than five. Whoever misses its turn asks a
    // second later.
    world.run(60 * 22);
    assert_eq!(world.waiting(), [], "somebody waits for somebody who waits");
}

/// What is not promised: the store's clock is set forward twice between two renewals, and who doesn't wait
/// has what a living one has. That one hears of it when it renews, also where the name is free again, or
/// the store has lost its data meanwhile.
pub(super) fn taken_from_the_living(seed: u64) {
    let mut world = World::new(seed, 2);
    // Both have seen a grant, and the first window without grants is over.
    for client in 0..2 {
        world.wants(client, Want::of(&["b"], 0));
        world.run(3000);
    }
    let holder = world.wants(0, Want::of(&["a"], HOUR_MS));
    world.run(50);
    let tries = |uses_ms| Want {
        patience: Patience::None,
        ..Want::of(&["a"], uses_ms)
    };
    world.set_clock(10_000);
    world.wants(1, tries(0));
    world.run(50);
    assert_eq!(world.seen.order.last(), Some(&holder), "a step is enough");
    world.overlaps = true;
    world.set_clock(10_000);
    let taker = world.wants(1, tries([0, HOUR_MS][seed as usize % 2]));
    world.run(50);
    assert_eq!(world.seen.order.last(), Some(&taker), "not taken");
    if seed % 4 == 1 {
        world.lose_all();
    }
    // It is renewed each second.
    world.run(2500);
    assert!(!world.has(holder), "it was not told that it lost it");
    assert_eq!(world.has(taker), seed % 2 == 1);
}

/// The store loses its data and its clock goes back, and both who saw tokens and who didn't want something
/// then: it is above all of before.
pub(super) fn tokens_after_a_loss(seed: u64) {
    let mut world = World::new(seed, 2);
    world.wants(0, Want::of(&["a"], 100));
    world.run(5000);
    let back = 10_000 + world.chance.below(HOUR_MS) as i64;
    world.set_clock(-back);
    world.lose_all();
    let first = world.chance.below(2) as usize;
    // Whoever has seen it begins, or comes in the window without grants of who begins.
    for client in [first, 1 - first] {
        world.wants(client, Want::of(&["a"], 100));
        world.run(100);
    }
    world.run(60_000);
    assert_eq!(world.seen.granted, 3);
}

/// The store loses its data, and who notices it has a short lease in mind; or the store's clock is set
/// forward when somebody waits for the window without grants to end. A living holder that is cut off has
/// as long as ever.
pub(super) fn window_cut_short(seed: u64) {
    let mut world = World::new(seed, 2);
    world.wants(1, Want::of(&["b"], 0));
    world.run(5000);
    let want = |seconds| Want {
        ttl: Duration::from_secs(seconds),
        ..Want::of(&["a"], HOUR_MS)
    };
    let holder = world.wants(0, want(15));
    let aside = world.chance.below(900);
    world.run(1000 + aside);
    world.cut_off(0);
    world.lose_all();
    let other = world.wants(1, want(2));
    world.run(100);
    if seed.is_multiple_of(2) {
        world.set_clock(100_000);
    }
    world.run(5000);
    assert!(world.has(holder) && !world.has(other));
    world.run(30_000);
    assert!(world.has(other), "it waits for ever");
}

/// What is sent is late, often later than anybody waits for, but nothing is lost, or comes twice: of what
/// was given back nothing is left.
pub(super) fn late(seed: u64) {
    let mut world = World::new(seed, 3);
    for client in 0..3 {
        world.wants(client, Want::of(&["a"], 0));
        world.run(3000);
    }
    world.faults = Faults {
        late: 60,
        ..Faults::NONE
    };
    for _ in 0..40 {
        let client = world.chance.below(3) as usize;
        let id = world.wants(client, Want::of(&["c"], 0));
        while !world.is_done(id) {
            world.run(100);
        }
        // What it gives back may be late as well.
        world.run(5000);
        assert_eq!(world.taken(), [], "what was given back is taken again");
    }
}

/// Nothing breaks but patience, mostly while something is on its way: of those who gave up nothing is
/// left, and nobody has to watch it die.
pub(super) fn many_give_up(seed: u64) -> Seen {
    let mut world = World::new(seed, 4);
    world.wants(0, Want::of(&["a", "b", "c"], 0));
    world.run(5000);
    for _ in 0..100 {
        let client = world.chance.below(4) as usize;
        let names = [&["a"][..], &["b"], &["a", "b"]][world.chance.below(3) as usize];
        let want = Want {
            gives_up_after: Some(world.chance.below(15)),
            ..Want::of(names, 5)
        };
        world.wants(client, want);
        let pause = world.chance.below(20);
        world.run(pause);
    }
    world.run(1000);
    assert_eq!(world.waiting(), []);
    assert_eq!(world.taken(), [], "nobody wants it any more");
    world.seen
}

/// A grant whose answer was lost is told again after the store's clock was set back, when its end seems
/// to be as far away as ever. Another client has seen it since it was made. Answers whether it was told
/// again, and whether the other had it then.
pub(super) fn told_again(seed: u64) -> (bool, bool) {
    let mut world = World::new(seed, 2);
    // The first grant of a ledger waits for a while.
    world.wants(0, Want::of(&["a"], 0));
    world.run(5000);
    world.deafen(0, true);
    let holder = world.wants(0, Want::of(&["a"], HOUR_MS));
    world.run(100);
    let other = world.wants(1, Want::of(&["a"], HOUR_MS));
    let deaf_for = 500 + world.chance.below(4500);
    world.run(deaf_for);
    let back = world.chance.below(59_000) as i64;
    world.set_clock(-back);
    world.deafen(0, false);
    // It is not renewed any more.
    world.cut_off_once_granted(0);
    world.run(1500);
    let told_again = world.has(holder);
    world.run(30_000);
    (told_again, world.has(other))
}

/// What the dead had is gone after some hours, though nobody asks for it; what the living have stays.
pub(super) fn left_behind(seed: u64) {
    let mut world = World::new(seed, 2);
    let kept = world.wants(0, Want::of(&["kept"], 24 * HOUR_MS));
    world.wants(1, Want::of(&["left", "behind"], HOUR_MS));
    world.run(10_000);
    assert_eq!(world.names(), 3);
    world.crash(1);
    world.run(2 * HOUR_MS);
    assert_eq!(world.names(), 1, "something was left behind");
    assert!(world.has(kept));
    assert_eq!(world.seen.lost, 0);
}

/// The store is away for longer than places are kept. Whoever asks first when it is back may have what
/// is free then, but nobody else is passed.
pub(super) fn places_lost(seed: u64) {
    let mut world = World::new(seed, 3);
    world.wants(0, Want::of(&["a"], 5000));
    world.run(100);
    let mut wanted = Vec::new();
    for number in 0..12 {
        let names: &[&str] = if number % 3 == 0 { &["b", "a"] } else { &["a"] };
        let client = world.chance.below(3) as usize;
        // For longer than it takes all clients to come back.
        wanted.push(world.wants(client, Want::of(names, 3000)));
        world.run(100);
    }
    world.cut_all_off(true);
    world.run(20_000);
    world.cut_all_off(false);
    world.run(60_000);
    assert_eq!(world.seen.granted, 13);
    let order = &world.seen.order[2..];
    wanted.retain(|id| order.contains(id));
    assert_eq!(order, wanted, "somebody was passed");
}
