//! What came of all seeds, as the manual has it.
//!
//! Must never: leave a round out because something in it did not hold.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::Store;
use crate::round::Round;

/// Sums over rounds.
pub(crate) fn print(rounds: &[Round]) {
    let seeds: Vec<String> = rounds.iter().map(|round| round.seed.to_string()).collect();
    println!("\nseeds: {}", seeds.join(" "));
    let forgot = rounds.iter().filter(|round| round.store == Store::Forgets);
    let losses: usize = rounds.iter().map(|round| round.losses).sum();
    println!(
        "{} rounds, {} of them on a server without persistence that lost all its data {losses} times",
        rounds.len(),
        forgot.count(),
    );
    println!("\n| fault | drawn | happened |\n|---|---|---|");
    for (kind, (drawn, happened)) in by_kind(rounds) {
        println!("| {kind} | {drawn} | {happened} |");
    }
    println!("\n| figure | |\n|---|---|");
    for (what, count) in counts() {
        let sum: usize = rounds.iter().map(count).sum();
        println!("| {what} | {sum} |");
    }
    for (what, times) in times(rounds) {
        println!("| {what} | {} |", spread(times));
    }
    println!();
}

type Count = fn(&Round) -> usize;

fn counts() -> [(&'static str, Count); 13] {
    [
        ("faults that happened", |one| one.happened.len()),
        ("attempts started", |one| one.figures.started),
        ("occurrences started again as the next attempt", |one| {
            one.figures.again
        }),
        ("overlaps", |one| one.figures.overlaps.len()),
        ("`skip` started twice", |one| one.figures.skip_twice.len()),
        ("one attempt started twice", |one| one.figures.twins.len()),
        ("lost", |one| one.figures.lost.len()),
        (
            "waited in a ledger that was lost, and went with it",
            |one| one.figures.waited.len(),
        ),
        ("tokens out of order", |one| {
            one.figures.tokens_out_of_order.len()
        }),
        ("started before their instant", |one| {
            one.figures.early.len()
        }),
        ("beyond `max_attempts`", |one| one.figures.too_many.len()),
        ("attempts without a line", |one| one.figures.untold.len()),
        ("what did not hold, all in all", |one| one.broken.len()),
    ]
}

fn times(rounds: &[Round]) -> [(&'static str, Vec<Duration>); 4] {
    let took = |bound: bool| {
        let all = rounds.iter().flat_map(|one| &one.takeovers);
        let counted = all.filter(|one| one.bound || !bound);
        counted.map(|one| one.took).collect()
    };
    let deaths = rounds.iter().flat_map(|one| one.deaths.clone());
    let well = rounds.iter().filter_map(|one| one.well_after);
    [
        (
            "taken over from killed replicas, somebody and the server well",
            took(true),
        ),
        (
            "taken over from killed replicas, whatever else was broken",
            took(false),
        ),
        (
            "a killed daemon's processes were dead after",
            deaths.collect(),
        ),
        (
            "every job on time again after the last fault",
            well.collect(),
        ),
    ]
}

fn by_kind(rounds: &[Round]) -> BTreeMap<&'static str, (usize, usize)> {
    let mut kinds: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    for round in rounds {
        for strike in &round.drawn {
            kinds.entry(strike.fault.kind()).or_default().0 += 1;
        }
        for one in &round.happened {
            kinds.entry(one.fault.kind()).or_default().1 += 1;
        }
    }
    kinds
}

/// How many there are, and p50, p99 (by the nearest rank) and the longest.
fn spread(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let Some(longest) = times.last() else {
        return "none".to_owned();
    };
    let at = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    format!(
        "{}: p50 {:.2?}, p99 {:.2?}, at most {longest:.2?}",
        times.len(),
        at(50),
        at(99)
    )
}

#[test]
fn a_spread_is_of_the_nearest_rank() {
    let times = (1..=100).rev().map(Duration::from_millis).collect();
    assert_eq!(
        spread(times),
        "100: p50 50.00ms, p99 99.00ms, at most 100.00ms"
    );
    assert_eq!(
        spread(vec![Duration::from_secs(1)]),
        "1: p50 1.00s, p99 1.00s, at most 1.00s"
    );
    assert_eq!(spread(Vec::new()), "none");
}
