//! Hunts the deliberate faults of the protocol: how many storms, or scenes of named leases, it takes to
//! find each.
//!
//! Must never: let one pass that nothing has found.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use soloist::mutants::{Mutant, turn_on};
use soloist_simulation::leases::SCENES;
use soloist_simulation::storm::pass_through;

/// Storms within which each has to be found.
const FOUND_WITHIN: u64 = 1000;

/// Seeds of each scene of named leases within which each of theirs has to be.
const LEASES_FOUND_WITHIN: u64 = 20;

/// How much of a broken law fits in a line.
const SHOWN: usize = 110;

/// What found a fault, and the law that was broken in it.
type Found = Option<(String, String)>;

/// Tells of each fault by which seed it was found, and which law it broke there.
pub(crate) fn hunt() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let (of_jobs, _) = found_of(&Mutant::OF_JOBS, by_storms);
    let (of_leases, took) = found_of(&Mutant::OF_LEASES, by_scenes);
    show("fault", "found by storm", &of_jobs);
    println!();
    show(
        "fault of named leases",
        "found by seed, in the scene",
        &of_leases,
    );
    println!("\nThose of named leases took {took:.1?}.");
    let mut all = of_jobs.iter().chain(&of_leases);
    match all.all(|(_, found)| found.is_some()) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn show(fault: &str, by: &str, all: &[(Mutant, Found)]) {
    println!("| {fault} | {by} | the law that it broke |\n|---|---|---|");
    for (mutant, found) in all {
        match found {
            Some((by, law)) => println!("| `{mutant:?}` | {by} | {law} |"),
            None => println!("| `{mutant:?}` | none | |"),
        }
    }
}

/// What found each, on all processors, and how long it took.
fn found_of(mutants: &[Mutant], find: fn() -> Found) -> (Vec<(Mutant, Found)>, Duration) {
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let all: Mutex<Vec<(usize, Found)>> = Mutex::default();
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(mutant) = mutants.get(number) else {
                return;
            };
            turn_on(Some(*mutant));
            let found = find();
            turn_on(None);
            all.lock()
                .expect("nobody panics with it")
                .push((number, found));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| (0..threads).for_each(|_| _ = scope.spawn(work)));
    let mut all = all.into_inner().expect("nobody panicked with it");
    all.sort_by_key(|(number, _)| *number);
    let all = all
        .into_iter()
        .map(|(number, found)| (mutants[number], found));
    (all.collect(), begun.elapsed())
}

/// The first storm that doesn't pass, and why.
fn by_storms() -> Found {
    (1..=FOUND_WITHIN).find_map(|seed| {
        let broken = pass_through(seed, false).err()?;
        Some((seed.to_string(), beginning_of(&broken.law)))
    })
}

/// The first scene that doesn't end well, and why.
fn by_scenes() -> Found {
    let seeds = 1..=LEASES_FOUND_WITHIN;
    let mut scenes = seeds.flat_map(|seed| SCENES.map(|scene| (seed, scene)));
    scenes.find_map(|(seed, scene)| {
        let law = scene.play(seed).err()?;
        Some((format!("{seed}, {}", scene.name), beginning_of(&law)))
    })
}

fn beginning_of(law: &str) -> String {
    let law = law.lines().next().unwrap_or_default();
    law.chars().take(SHOWN).collect()
}
