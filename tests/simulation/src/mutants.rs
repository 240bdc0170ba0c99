//! Hunts the deliberate faults of the protocol: how many storms it takes to find each.
//!
//! Must never: let one pass that no storm has found.

use std::process::ExitCode;

use soloist::mutants::{Mutant, turn_on};
use soloist_simulation::storm::pass_through;

/// Storms within which each has to be found.
const FOUND_WITHIN: u64 = 1_000;

/// Tells of each fault by which seed it was found, and which law it broke there.
pub(crate) fn hunt() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    println!("| fault | found by storm | the law that it broke |\n|---|---|---|");
    let found = Mutant::ALL.map(|mutant| {
        let found = find(mutant);
        match &found {
            Some((seed, law)) => println!("| {mutant:?} | {seed} | {law} |"),
            None => println!("| {mutant:?} | none of {FOUND_WITHIN} | |"),
        }
        found.is_some()
    });
    match found.iter().all(|found| *found) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The first storm that doesn't pass, and why.
fn find(mutant: Mutant) -> Option<(u64, String)> {
    turn_on(Some(mutant));
    let found = (1..=FOUND_WITHIN).find_map(|seed| {
        let broken = pass_through(seed, false).err()?;
        let law = broken.law.lines().next().unwrap_or_default();
        Some((seed, law.chars().take(100).collect()))
    });
    turn_on(None);
    found
}
