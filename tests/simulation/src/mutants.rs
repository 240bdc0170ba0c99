//! Hunts the deliberate faults of the protocol: how many storms it takes to find each.
//!
//! Must never: let one pass that no storm has found.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use soloist::mutants::{Mutant, turn_on};
use soloist_simulation::storm::pass_through;

/// Storms within which each has to be found.
const FOUND_WITHIN: u64 = 500;

/// How much of a broken law fits in a line.
const SHOWN: usize = 110;

/// The storm that found a fault, and the law that was broken in it.
type Found = Option<(u64, String)>;

/// Tells of each fault by which seed it was found, and which law it broke there.
pub(crate) fn hunt() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, Found)>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutant) = Mutant::ALL.get(number) else {
                return;
            };
            let found = find(*mutant);
            all.lock()
                .expect("nobody panics with it")
                .push((number, found));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let mut all = all.into_inner().expect("nobody panicked with it");
    all.sort_by_key(|(number, _)| *number);
    println!("| fault | found by storm | the law that it broke |\n|---|---|---|");
    for (number, found) in &all {
        let mutant = Mutant::ALL[*number];
        match found {
            Some((seed, law)) => println!("| `{mutant:?}` | {seed} | {law} |"),
            None => println!("| `{mutant:?}` | none of {FOUND_WITHIN} | |"),
        }
    }
    match all.iter().all(|(_, found)| found.is_some()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The first storm that doesn't pass, and why.
fn find(mutant: Mutant) -> Found {
    turn_on(Some(mutant));
    let found = (1..=FOUND_WITHIN).find_map(|seed| {
        let broken = pass_through(seed, false).err()?;
        let law = broken.law.lines().next().unwrap_or_default();
        Some((seed, law.chars().take(SHOWN).collect()))
    });
    turn_on(None);
    found
}
