//! What came of all seeds, as the manual has it.
//!
//! Must never: leave a round out because something in it did not hold.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::plan::Store;
use crate::round::Round;

/// Sums over rounds.
pub(crate) fn print(rounds: &[Round]) {
    let faults: usize = rounds.iter().map(|round| round.happened.len()).sum();
    let sum = |count: fn(&Round) -> usize| rounds.iter().map(count).sum::<usize>();
    let seeds: Vec<String> = rounds.iter().map(|round| round.seed.to_string()).collect();
    println!("\nseeds: {}", seeds.join(" "));
    let forgot = rounds.iter().filter(|round| round.store == Store::Forgets);
    println!(
        "{} rounds, {} of them on a server without persistence that lost all its data {} times",
        rounds.len(),
        forgot.count(),
        sum(|round| round.losses)
    );
    println!("\n| fault | drawn | happened |\n|---|---|---|");
    for (kind, (drawn, happened)) in by_kind(rounds) {
        println!("| {kind} | {drawn} | {happened} |");
    }
    println!("\n| figure | |\n|---|---|");
    let row = |what: &str, figure: String| println!("| {what} | {figure} |");
    row("faults that happened", faults.to_string());
    row(
        "attempts started",
        sum(|one| one.figures.started).to_string(),
    );
    row(
        "occurrences started again as the next attempt",
        sum(|one| one.figures.again).to_string(),
    );
    row(
        "overlaps",
        sum(|one| one.figures.overlaps.len()).to_string(),
    );
    row(
        "`skip` started twice",
        sum(|one| one.figures.skip_twice.len()).to_string(),
    );
    row(
        "one attempt started twice",
        sum(|one| one.figures.twins.len()).to_string(),
    );
    row("lost", sum(|one| one.figures.lost.len()).to_string());
    row(
        "the same, as they waited in a ledger that was lost",
        sum(|one| one.figures.waited.len()).to_string(),
    );
    let tokens = sum(|one| one.figures.tokens_out_of_order.len());
    row("tokens out of order", tokens.to_string());
    row(
        "started before their instant",
        sum(|one| one.figures.early.len()).to_string(),
    );
    row(
        "beyond `max_attempts`",
        sum(|one| one.figures.too_many.len()).to_string(),
    );
    row(
        "attempts without a line",
        sum(|one| one.figures.untold.len()).to_string(),
    );
    let took = |bound: bool| {
        let all = rounds.iter().flat_map(|one| &one.takeovers);
        all.filter(move |one| one.bound || !bound)
            .map(|one| one.took)
            .collect()
    };
    row(
        "taken over from killed replicas, somebody and the server well",
        spread(took(true)),
    );
    row(
        "taken over from killed replicas, whatever else was broken",
        spread(took(false)),
    );
    let deaths = rounds.iter().flat_map(|one| one.deaths.clone());
    row(
        "a killed daemon's processes were dead after",
        spread(deaths.collect()),
    );
    let well = rounds.iter().filter_map(|one| one.well_after);
    row(
        "every job on time again after the last fault",
        spread(well.collect()),
    );
    let broken = sum(|one| one.broken.len());
    row("what did not hold, all in all", broken.to_string());
    println!();
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
