//! Goes through storms: `SEEDS=n` of them from `FROM` on, or the one of `SEED`, told step by step.
//! `make simulate` does it with the seeds of an ordinary run, and some that nobody has tried.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use soloist_simulation::report::Report;
use soloist_simulation::storm::pass_through;

#[cfg(soloist_mutants)]
mod mutants;

/// Storms of a run that asks for no number.
const SEEDS: u64 = 2_000;

/// In so many storms all has to happen that can.
const SAYS_ALL: u64 = 2_000;

/// When so many have broken a law, the others are left alone.
const BROKEN_AT_MOST: usize = 20;

/// What the environment says. It may be empty: `make` hands it on like that.
fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is a whole number, not {text:?}")))
}

fn main() -> ExitCode {
    if let Some(seed) = number("SEED") {
        return replay(seed);
    }
    #[cfg(soloist_mutants)]
    if number("MUTANTS").is_some() {
        return mutants::hunt();
    }
    let from = number("FROM").unwrap_or(1);
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let begun = Instant::now();
    // What is broken is told once, below.
    std::panic::set_hook(Box::new(|_| {}));
    let (report, broken) = storms(from, seeds);
    println!("{seeds} seeds from {from} on, in {:.0?}:", begun.elapsed());
    println!("{report}");
    let Some((seed, _)) = broken.first_key_value() else {
        return judge(&report);
    };
    for (seed, law) in &broken {
        eprintln!(
            "SEED={seed} breaks a law: {}",
            law.lines().next().unwrap_or("")
        );
    }
    eprintln!("\nThe story of SEED={seed}:\n");
    replay(*seed);
    ExitCode::FAILURE
}

/// Storms in which something never happened say nothing of it.
fn judge(report: &Report) -> ExitCode {
    let lacks = report.lacks();
    if report.storms < SAYS_ALL || lacks.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("never seen: {}", lacks.join(", "));
    ExitCode::FAILURE
}

/// Tells the story of one storm.
fn replay(seed: u64) -> ExitCode {
    match pass_through(seed, true) {
        Ok(passed) => {
            let mut report = Report::default();
            passed
                .witness
                .story
                .iter()
                .flatten()
                .for_each(|line| println!("{line}"));
            report.add(passed);
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(broken) => {
            broken.story.iter().for_each(|line| eprintln!("{line}"));
            eprintln!("\nBROKEN: {}", broken.law);
            ExitCode::FAILURE
        }
    }
}

/// Goes through storms on all processors; with those that broke a law, and which.
fn storms(from: u64, seeds: u64) -> (Report, BTreeMap<u64, String>) {
    let next = AtomicU64::new(from);
    let failed = AtomicUsize::new(0);
    let work = || {
        let (mut report, mut broken) = (Report::default(), BTreeMap::new());
        while failed.load(Ordering::Relaxed) < BROKEN_AT_MOST {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= from + seeds {
                break;
            }
            match pass_through(seed, false) {
                Ok(passed) => report.add(passed),
                Err(told) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    broken.insert(seed, told.law);
                }
            }
        }
        (report, broken)
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let (mut all, mut broken) = (Report::default(), BTreeMap::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            let (report, laws) = worker.join().expect("it catches what is broken");
            all.merge(report);
            broken.extend(laws);
        }
    });
    (all, broken)
}
