//! The job that all this is for: orders are closed by replicas that keep dying.
//!
//! Three replicas on one Redis. Every few seconds the daemon of one of them is killed by SIGKILL,
//! which nothing of its jobs may survive, and started again. Every third time, its whole host is
//! paused instead, for longer than a lease: when it is resumed, the job's write is in flight, with
//! a fencing token that is stale. Whatever comes of it, no order may be closed twice, and no stock
//! be lost or given back twice.
//!
//! Variables: `SHOP_SECONDS` (300), and `SEED`, to make the same choices once more. When things
//! happen is up to the machine, so a seed repeats choices, not runs.

mod attempts;
mod premises;
mod strikes;

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use test_support::dice::{Dice, any_seed, variable};
use test_support::redis::RedisServer;

use self::attempts::{Attempt, STALE, cut_short, ended_with, taken_over, tokens_are_unique};
use self::premises::{CLOSER, Shop};
use self::strikes::{LONGEST_PAUSE, kill, pause};
use crate::fleet::Replica;

/// How long the shop is open.
const OPEN: Duration = Duration::from_secs(300);

/// A shop open for so long has seen everything; else the test is at fault.
const LONG_ENOUGH: Duration = Duration::from_secs(120);

/// The shortest time from one strike to the next, and the longest.
const STRIKE_EVERY_MS: (u64, u64) = (1_500, 4_000);

/// How long to look for an attempt to be struck in its middle.
const AIM_LIMIT: Duration = Duration::from_secs(1);

/// Every so many strikes it is a pause.
const PAUSE_EVERY: usize = 3;

#[test]
fn no_order_is_closed_twice_and_no_stock_is_lost_while_replicas_die() {
    // It takes no part in sharing the machine: whoever waited for it would do so for minutes.
    let _open = SHOP.lock().unwrap_or_else(PoisonError::into_inner);
    let open = variable("SHOP_SECONDS").map_or(OPEN, Duration::from_secs);
    let seed = variable("SEED").unwrap_or_else(any_seed);
    eprintln!("the shop is open for {open:?}, SEED={seed}");
    let mut dice = Dice::new(seed);
    let redis = RedisServer::start();
    let shop = Shop::open(&redis.url(), &mut dice);

    // Theirs alone on this host: a replica that starts continues stopped guardians of its name.
    let names = ["a", "b", "c"].map(|name| format!("{name}-of-{}", std::process::id()));
    let names = names.each_ref().map(String::as_str);
    let mut replicas = shop.fleet.start_ready(names);
    let strikes = strike_again_and_again(&shop, &mut replicas, &mut dice, open);
    replicas.iter_mut().for_each(Replica::drain);
    shop.is_left_by_all();

    // The customers are gone. What they left unpaid expires, and is closed.
    shop.fleet.set_table(&shop.table(&[CLOSER]));
    let mut replicas = shop.fleet.start_ready(names);
    shop.wait_until_nothing_is_unpaid();
    replicas.iter_mut().for_each(Replica::drain);
    let attempts = shop.is_left_by_all();

    tell(&shop, &attempts, &strikes);
    tokens_are_unique(&attempts);
    shop.is_sound_by_its_own_audit();
    shop.is_sound_by_other_queries();
    shop.is_as_its_programs_told(&attempts);
    shop.is_as_the_ledger_has_it(&attempts);
    if open >= LONG_ENOUGH {
        assert!(strikes.kills > 10, "hardly anybody died");
        assert!(strikes.pauses > 5, "hardly any host was paused");
        assert!(
            !cut_short(&attempts, true).is_empty(),
            "nobody died at work"
        );
        assert!(taken_over(&attempts) > 0, "nobody took over");
        assert!(ended_with(&attempts, STALE) > 0, "no token was stale");
    }
}

/// Held while the shop is open.
static SHOP: Mutex<()> = Mutex::new(());

/// Waits until the shop is closed, where it is open: for what can't bear anybody beside it.
pub(crate) fn when_closed() {
    drop(SHOP.lock().unwrap_or_else(PoisonError::into_inner));
}

/// What befell the replicas.
#[derive(Default)]
struct Strikes {
    kills: usize,
    pauses: usize,
    /// From a kill to the death of the last process of its jobs, at most.
    slowest_death: Duration,
}

/// Strikes one replica after another. Three in four kills, and each pause, are of the one that is
/// in the middle of closing orders, if any is: the death of others is in nobody's way.
fn strike_again_and_again(
    shop: &Shop,
    replicas: &mut [Replica],
    dice: &mut Dice,
    open: Duration,
) -> Strikes {
    let end = Instant::now() + open;
    let mut strikes = Strikes::default();
    loop {
        let (shortest, longest) = STRIKE_EVERY_MS;
        let wait = Duration::from_millis(shortest + dice.below(longest - shortest));
        let is_pause = (strikes.kills + strikes.pauses + 1).is_multiple_of(PAUSE_EVERY);
        let takes = if is_pause {
            LONGEST_PAUSE
        } else {
            Duration::ZERO
        };
        if Instant::now() + wait + takes > end {
            std::thread::sleep(end.saturating_duration_since(Instant::now()));
            return strikes;
        }
        std::thread::sleep(wait);
        let (anybody, aimed) = (dice.index(replicas.len()), dice.below(4) > 0);
        if is_pause {
            pause(shop, replicas, anybody);
            strikes.pauses += 1;
            continue;
        }
        let closer = if aimed {
            shop.wait_for_closer_at_work(AIM_LIMIT)
        } else {
            None
        };
        let victim = closer
            .and_then(|closer| {
                replicas
                    .iter()
                    .position(|replica| replica.name == closer.replica)
            })
            .unwrap_or(anybody);
        strikes.slowest_death = strikes.slowest_death.max(kill(&mut replicas[victim]));
        replicas[victim] = shop.fleet.start(&replicas[victim].name.clone());
        strikes.kills += 1;
    }
}

fn tell(shop: &Shop, attempts: &[Attempt], strikes: &Strikes) {
    let orders = |state: &str| {
        shop.number(&format!(
            "SELECT count(*) FROM orders WHERE state = '{state}'"
        ))
    };
    let closers = attempts.iter().filter(|attempt| attempt.closes).count();
    let Strikes {
        kills,
        pauses,
        slowest_death,
    } = strikes;
    eprintln!(
        "{kills} kills, nothing of a job left after {slowest_death:.1?} at most; {pauses} hosts paused"
    );
    eprintln!(
        "{closers} attempts to close, {} of them attempts 2 and later, {} cut short, {} with a \
         stale token refused; {} orders made, {} closed, {} paid; stock {} of {}",
        taken_over(attempts),
        cut_short(attempts, true).len(),
        ended_with(attempts, STALE),
        shop.number("SELECT count(*) FROM orders"),
        orders("closed"),
        orders("paid"),
        shop.number("SELECT sum(stock) FROM products"),
        shop.number("SELECT sum(initial_stock) FROM products"),
    );
}
