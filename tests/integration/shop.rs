//! The job that all this is for: orders are closed by replicas that keep dying.
//!
//! Three replicas on one Redis; every few seconds one of them is killed by SIGKILL and started
//! again. The processes of its jobs live on, in a process group of their own where nothing
//! reaches them, with a fencing token that may be stale by the time they write. Whatever they do,
//! no order may be closed twice, and no stock be lost or given back twice.
//!
//! Variables: `SHOP_SECONDS` (300), and `SEED`, to make the same choices once more. When things
//! happen is up to the machine, so a seed repeats choices, not runs.

mod attempts;
mod premises;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use test_support::redis::RedisServer;

use self::attempts::{Attempt, STALE, ended_with, taken_over, tokens_are_unique};
use self::premises::{CLOSER, Shop};
use crate::fleet::Replica;
use crate::together;

/// How long the shop is open.
const OPEN: Duration = Duration::from_secs(300);

/// A shop open for so long has seen everything; else the test is at fault.
const LONG_ENOUGH: Duration = Duration::from_secs(120);

/// The shortest time from one kill to the next, and the longest.
const KILL_EVERY_MS: (u64, u64) = (2_000, 5_000);

#[test]
fn no_order_is_closed_twice_and_no_stock_is_lost_while_replicas_die() {
    let _machine = together();
    let open = variable("SHOP_SECONDS").map_or(OPEN, Duration::from_secs);
    let seed = variable("SEED").unwrap_or_else(any_seed);
    eprintln!("the shop is open for {open:?}, SEED={seed}");
    let mut dice = Dice(seed);
    let redis = RedisServer::start();
    let shop = Shop::open(&redis.url(), &mut dice);

    let mut replicas = shop.fleet.start_ready(["a", "b", "c"]);
    let kills = kill_again_and_again(&shop, &mut replicas, &mut dice, open);
    replicas.iter_mut().for_each(Replica::drain);
    shop.wait_until_all_have_ended();

    // The customers are gone. What they left unpaid expires, and is closed.
    shop.fleet.set_table(&shop.table(&[CLOSER]));
    let mut replicas = shop.fleet.start_ready(["a", "b", "c"]);
    shop.wait_until_nothing_is_unpaid();
    replicas.iter_mut().for_each(Replica::drain);
    let attempts = shop.wait_until_all_have_ended();

    tell(&shop, &attempts, kills);
    tokens_are_unique(&attempts);
    shop.is_sound_by_its_own_audit();
    shop.is_sound_by_other_queries();
    shop.is_as_its_programs_told(&attempts);
    if open >= LONG_ENOUGH {
        assert!(kills > 20, "hardly anybody died");
        assert!(taken_over(&attempts) > 0, "nobody took over");
        assert!(ended_with(&attempts, STALE) > 0, "no token was stale");
    }
}

/// Kills one replica after another and starts it again at once; gives how many. Three in four
/// times it is the one that closes orders, if any does: the death of others is in nobody's way.
fn kill_again_and_again(
    shop: &Shop,
    replicas: &mut [Replica],
    dice: &mut Dice,
    open: Duration,
) -> usize {
    let end = Instant::now() + open;
    let mut kills = 0;
    loop {
        let (shortest, longest) = KILL_EVERY_MS;
        let wait = Duration::from_millis(shortest + dice.below(longest - shortest));
        if Instant::now() + wait > end {
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
            return kills;
        }
        std::thread::sleep(wait);
        let (anybody, aimed) = (dice.index(replicas.len()), dice.below(4) > 0);
        let closer = shop.closer().filter(|_| aimed);
        let victim = closer
            .and_then(|name| replicas.iter().position(|replica| replica.name == name))
            .unwrap_or(anybody);
        replicas[victim].kill9();
        replicas[victim] = shop.fleet.start(&replicas[victim].name.clone());
        kills += 1;
    }
}

fn tell(shop: &Shop, attempts: &[Attempt], kills: usize) {
    let orders = |state: &str| {
        shop.number(&format!(
            "SELECT count(*) FROM orders WHERE state = '{state}'"
        ))
    };
    let closers = attempts.iter().filter(|attempt| attempt.closes).count();
    eprintln!(
        "{kills} kills; {closers} attempts to close, {} of them attempts 2 and later, {} with a \
         stale token refused; {} orders made, {} closed, {} paid; stock {} of {}",
        taken_over(attempts),
        ended_with(attempts, STALE),
        shop.number("SELECT count(*) FROM orders"),
        orders("closed"),
        orders("paid"),
        shop.number("SELECT sum(stock) FROM products"),
        shop.number("SELECT sum(initial_stock) FROM products"),
    );
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a whole number"))
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::from(now.expect("a time after 1970").subsec_nanos())
}

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }
}
