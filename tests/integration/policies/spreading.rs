//! The work spreads over the replicas, and that costs no time; a random delay is everywhere the
//! same.

use std::collections::{BTreeMap, BTreeSet};

use soloist::store::AttemptRecord;
use test_support::machine::{stood_still, while_it_runs};
use test_support::probe::Run;

use super::scene::{Scene, second};
use crate::fleet::{Replica, SOON, instant_ns, now_ns, sleep_until_ns};
use crate::{alone, together};

const SECOND: i128 = 1_000_000_000;

fn due(run: &Run) -> i128 {
    instant_ns(&run.scheduled_at)
}

fn table(jobs: usize, keys: &str) -> String {
    let job = |number| format!("[jobs.job-{number}]\n{keys}\ncommand = [PROBE, \"1\"]\n");
    (0..jobs).map(job).collect()
}

#[test]
fn a_thousand_occurrences_spread_over_three_replicas_and_start_on_time() {
    let _machine = alone();
    while_it_runs(a_thousand);
}

fn a_thousand() -> Result<(), String> {
    const JOBS: usize = 50;
    const SECONDS: i128 = 20;
    let scene = Scene::on_redis(&table(JOBS, "schedule = \"* * * * * *\""));
    let mut replicas = scene.three();
    // Past what the first start made late.
    let from = (now_ns() / SECOND + 4) * SECOND;
    let until = from + SECONDS * SECOND;
    sleep_until_ns(until - SECOND / 2);
    replicas.iter_mut().for_each(Replica::drain);
    let runs = scene.fleet.runs();
    let within = |run: &&Run| (from..until).contains(&due(run));
    let runs: Vec<&Run> = runs.iter().filter(within).collect();
    let mut shares: BTreeMap<&str, usize> = BTreeMap::new();
    for run in &runs {
        *shares.entry(&run.replica).or_default() += 1;
    }
    let started = sorted(runs.iter().map(|run| run.started_ns - due(run)));
    let lines = (0..JOBS).flat_map(|number| scene.lines(&format!("job-{number}")));
    let lines: Vec<AttemptRecord> = lines.collect();
    let in_time = |line: &&AttemptRecord| {
        let at = i128::from(second(line)) * SECOND;
        line.attempt == 1 && (from..until).contains(&at)
    };
    let granted = sorted(lines.iter().filter(in_time).map(|line| {
        let waited = line.started_at.saturating_since(line.scheduled_at);
        i128::try_from(waited.as_nanos()).expect("a short time")
    }));
    eprintln!(
        "{} occurrences by replica {shares:?}; granted after p50 {:.0} p99 {:.0} ms by the store's \
         clock; started after p50 {:.2} p99 {:.2} ms",
        runs.len(),
        percentile(&granted, 50),
        percentile(&granted, 99),
        percentile(&started, 50),
        percentile(&started, 99),
    );
    let occurrences: BTreeSet<(&str, &str)> = runs
        .iter()
        .map(|run| (&*run.job, &*run.scheduled_at))
        .collect();
    assert_eq!(occurrences.len(), runs.len(), "more than once: {runs:#?}");
    let expected = JOBS * usize::try_from(SECONDS).expect("a small number");
    if runs.len() != expected {
        // What falls due while the machine stands still may find the one before it unfinished.
        return Err(format!("{} of {expected} ran", runs.len()));
    }
    let most = shares.values().max().copied().unwrap_or(0);
    assert!(
        shares.len() == 3 && most * 2 <= runs.len(),
        "1.5 times a third at most: {shares:?}"
    );
    // A replica lets one that goes before it have 25 ms: most don't wait that long for anybody.
    // What comes after the grant is the start of fifty processes, whoever does it.
    let median = percentile(&granted, 50);
    match median < 25.0 {
        true => Ok(()),
        false => Err(format!("half of all were granted after {median} ms")),
    }
}

fn sorted(times: impl Iterator<Item = i128>) -> Vec<i128> {
    let mut times: Vec<i128> = times.collect();
    times.sort_unstable();
    times
}

/// In milliseconds.
fn percentile(sorted: &[i128], percent: usize) -> f64 {
    sorted[(sorted.len() - 1) * percent / 100] as f64 / 1e6
}

#[test]
fn a_random_delay_is_the_same_in_fleets_that_know_nothing_of_each_other() {
    const JOBS: usize = 5;
    const INSTANTS: usize = 3;
    let _machine = together();
    let table = table(JOBS, "schedule = \"*/5 * * * * *\"\nrandom_delay = \"3s\"");
    // Three stores, a replica each, started one after the other.
    let scenes = [
        Scene::on_redis(&table),
        Scene::on_file(&table),
        Scene::on_redis(&table),
    ];
    let _replicas = scenes.each_ref().map(|scene| scene.start("only"));
    let from = now_ns();
    let stood_before = stood_still();
    let delays = scenes.each_ref().map(|scene| {
        scene.fleet.wait_for_runs(SOON * 2, |runs| {
            let counted = runs.iter().filter(|run| due(run) > from + SECOND);
            let mut delays: Vec<(i128, String, i128)> = counted
                .map(|run| (due(run), run.job.clone(), run.started_ns - due(run)))
                .collect();
            delays.sort();
            // One instant more than is looked at, so that those before are complete.
            let enough = delays.len() > JOBS * INSTANTS;
            let last = delays.last().map(|(due, ..)| *due).unwrap_or(0);
            delays.retain(|(due, ..)| *due < last);
            (enough && delays.len() >= JOBS * INSTANTS).then_some(delays)
        })
    });
    let count = JOBS * INSTANTS;
    let [first, others @ ..] = delays.each_ref().map(|delays| &delays[..count]);
    let mut apart = 0;
    for other in others {
        for (one, same) in first.iter().zip(other) {
            assert_eq!((one.0, &one.1), (same.0, &same.1));
            apart = apart.max((one.2 - same.2).abs());
        }
    }
    let delays: Vec<i128> = first.iter().map(|(.., delay)| delay / 1_000_000).collect();
    eprintln!(
        "delays of {count} occurrences in three fleets: {delays:?} ms, at most {:.1} ms apart",
        apart as f64 / 1e6
    );
    let still = stood_still() - stood_before;
    let still_ns = i128::try_from(still.as_nanos()).expect("a short time");
    assert!(apart < SECOND / 2 + still_ns, "{apart} ns");
    let (least, most) = (delays.iter().min(), delays.iter().max());
    let (least, most) = (*least.expect("some"), *most.expect("some"));
    let in_time = most < 3_500 + still_ns / 1_000_000;
    assert!(in_time && most - least > 1_000, "{delays:?}");
}
