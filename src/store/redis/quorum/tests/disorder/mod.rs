//! Whatever order messages come in, and whichever of them are lost or come much later, while a
//! minority of the servers is frozen or started again: the ledger stays one line of steps.
//!
//! All of it is in one thread and in the runtime's own time, over servers in memory that run the
//! real scripts: a run takes milliseconds, and its seed has it happen again. `SEEDS` asks for more
//! runs, `SEED` for one.
//!
//! ```text
//!  replicas ─▶ QuorumStore ─▶ links ─▶ wire: lost, late, cut ─▶ servers, in memory
//!      └───────── answers ───▶ law                                  ▲
//!                                          faults: frozen, restarted┘
//! ```

mod faults;
mod forgotten;
mod law;
mod replicas;
mod servers;
mod wire;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::law::Law;
use self::replicas::Replica;
use self::servers::Servers;
use crate::store::redis::chance::seeded;

/// Seeds of an ordinary run.
const SEEDS: u64 = 60;

/// How many run at once.
const THREADS: usize = 2;

/// How many replicas there are, each with a store of its own.
const REPLICAS: usize = 3;

/// How long they claim while messages go astray.
const TROUBLE: Duration = Duration::from_secs(8);

/// A number below `sides`, by the seed.
fn throw(sides: u64) -> u64 {
    seeded::next().expect("a seed was set") % sides
}

/// Happens so many times in a hundred.
fn happens(percent: u64) -> bool {
    throw(100) < percent
}

fn millis_below(most: u64) -> Duration {
    Duration::from_micros(throw(most * 1000 + 1))
}

/// What came of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outcome {
    granted: usize,
    answered: usize,
    restarts: usize,
    /// Of all that came about, in order.
    digest: u64,
}

/// Runs in a time that passes when nobody has anything to do.
fn in_its_own_time<T>(seed: u64, work: impl Future<Output = T>) -> T {
    seeded::begin(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, work)
}

/// One ledger through troubled times.
fn run(seed: u64) -> Result<Outcome, String> {
    in_its_own_time(seed, async {
        let servers = Servers::start(if happens(70) { 3 } else { 5 });
        let law = Rc::new(Law::default());
        let replicas: Vec<Rc<Replica>> = (0..REPLICAS)
            .map(|number| Rc::new(Replica::new(number, &servers, &law)))
            .collect();
        replicas[0].open_the_ledger().await?;
        let working = replicas.iter().map(|replica| {
            let replica = Rc::clone(replica);
            tokio::task::spawn_local(async move { replica.work(TROUBLE).await })
        });
        let working: Vec<_> = working.collect();
        let restarts = faults::happen(Arc::clone(&servers), TROUBLE).await;
        for one in working {
            one.await.map_err(|error| error.to_string())?;
        }
        servers.calm_down();
        let last = Replica::new(REPLICAS, &servers, &law);
        last.look_at_all_jobs().await?;
        servers.check()?;
        law.check()?;
        Ok(Outcome {
            granted: law.granted(),
            answered: law.answered(),
            restarts,
            digest: servers.digest(),
        })
    })
}

fn read(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn in_whatever_order_messages_come_the_ledger_is_one_line_of_steps() {
    if let Some(seed) = read("SEED") {
        println!(
            "{:?}",
            run(seed).unwrap_or_else(|broken| panic!("{broken}"))
        );
        return;
    }
    let seeds = read("SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(1);
    let work = || {
        let mut all = Outcome::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > seeds {
                return Ok(all);
            }
            match run(seed) {
                Ok(one) => {
                    all.granted += one.granted;
                    all.answered += one.answered;
                    all.restarts += one.restarts;
                }
                Err(broken) => {
                    next.store(seeds + 1, Ordering::Relaxed);
                    return Err(format!("SEED={seed}: {broken}"));
                }
            }
        }
    };
    let came: Vec<Result<Outcome, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let threads = threads.into_iter();
        threads
            .map(|thread| thread.join().expect("it does not panic"))
            .collect()
    });
    let mut all = Outcome::default();
    for one in came {
        let one = one.unwrap_or_else(|broken| panic!("{broken}"));
        all.granted += one.granted;
        all.answered += one.answered;
        all.restarts += one.restarts;
    }
    let Outcome {
        granted, restarts, ..
    } = all;
    println!("{seeds} seeds: {granted} jobs granted, {restarts} servers started again");
    assert!(
        all.granted as u64 > seeds * 5,
        "{all:?}: too little came about"
    );
    assert!(
        all.restarts as u64 > seeds,
        "{all:?}: too little went wrong"
    );
}

#[test]
fn a_seed_has_the_same_happen_again() {
    let seed = 7;
    let once = run(seed);
    assert!(once.is_ok(), "{once:?}");
    assert_eq!(once, run(seed));
}
