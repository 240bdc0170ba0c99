//! Replicas that die, and replicas that are asked to leave.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use test_support::machine::{stood_still, while_it_runs};
use test_support::probe::Run;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, Replica, SOON, now_ns};
use crate::together;

const TTL: Duration = Duration::from_secs(5);
/// What the promise adds to the TTL.
const TAKEOVER_MARGIN: Duration = Duration::from_secs(1);

/// A job of two seconds, under a lease of five.
const LONG_JOB: &str = r#"
[jobs.long]
schedule = "*/15 * * * * *"
command = [PROBE, "2000"]
lease_ttl = "5s"
"#;

#[test]
fn a_killed_holders_occurrence_is_taken_over_within_ttl_and_a_second() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), LONG_JOB);
    let mut replicas = Vec::from(fleet.start_ready(["a", "b", "c"]));
    for round in 0..3 {
        let first = fleet.wait_for_runs(SOON, |runs| running(runs, round));
        let status = fleet.json(&["status", "--json"]);
        assert_eq!(
            status["jobs"][0]["holder"],
            first.replica.as_str(),
            "{status:#}"
        );
        assert_eq!(status["jobs"][0]["state"], "running");
        let holder = position(&replicas, &first.replica);
        replicas[holder].kill9();
        let (killed_ns, stood_before) = (now_ns(), stood_still());
        let second = fleet.wait_for_runs(SOON, |runs| attempt(runs, &first, 2));
        let took = Duration::from_nanos(u64::try_from(second.started_ns - killed_ns).unwrap_or(0));
        eprintln!(
            "kill -9 of {}: taken over by {} after {took:.2?} (TTL {TTL:?})",
            first.replica, second.replica
        );
        let still = stood_still() - stood_before;
        assert!(took <= TTL + TAKEOVER_MARGIN + still, "took {took:?}");
        assert!(second.token > first.token, "the token must rise");
        assert_ne!(second.replica, first.replica);
        fleet.wait_for_runs(SOON, |runs| attempt(runs, &first, 2)?.ended_ns);
        replicas[holder] = fleet.start(&first.replica);
        replicas[holder].wait_until_ready();
    }
    replicas.iter_mut().for_each(Replica::drain);
    let runs = fleet.runs();
    nothing_overlaps(&runs);
    let lost = history_outcomes(&fleet, "lost");
    assert_eq!(lost, 3, "each crash is in the ledger");
}

#[test]
fn a_replica_that_is_asked_to_leave_hands_over_at_once() {
    let _machine = together();
    let redis = RedisServer::start();
    let table = "[scheduler]\nshutdown_grace = \"0s\"\n".to_owned()
        + &LONG_JOB.replace("2000", "4000").replace("15 *", "20 *");
    let fleet = Fleet::new(redis.url(), &table);
    let mut replicas = Vec::from(fleet.start_ready(["a", "b", "c"]));
    let first = fleet.wait_for_runs(SOON * 2, |runs| running(runs, 0));
    let holder = position(&replicas, &first.replica);
    let (asked_ns, stood_before) = (now_ns(), stood_still());
    replicas[holder].drain();
    let second = fleet.wait_for_runs(SOON, |runs| attempt(runs, &first, 2));
    let still = stood_still() - stood_before;
    let took = Duration::from_nanos(u64::try_from(second.started_ns - asked_ns).unwrap_or(0));
    eprintln!(
        "SIGTERM to {}: handed over to {} after {took:.2?}",
        first.replica, second.replica
    );
    assert!(took < Duration::from_secs(1) + still, "took {took:?}");
    assert!(second.token > first.token);
    fleet.wait_for_runs(SOON, |runs| attempt(runs, &first, 2)?.ended_ns);
    assert_eq!(history_outcomes(&fleet, "handed_over"), 1);
    nothing_overlaps(&fleet.runs());
}

#[test]
fn a_second_signal_ends_at_once() {
    let _machine = together();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), &LONG_JOB.replace("2000", "60000"));
    let mut replica = fleet.start("a");
    fleet.wait_for_runs(SOON, |runs| running(runs, 0));
    replica.signal(Signal::TERM);
    replica.wait_for_line(&["draining"]);
    replica.signal(Signal::INT);
    let signalled = Instant::now();
    let stood_before = stood_still();
    let status = replica.wait(SOON);
    assert_eq!(status.code(), Some(1));
    let took = signalled
        .elapsed()
        .saturating_sub(stood_still() - stood_before);
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn a_rolling_restart_under_load_loses_nothing_and_doubles_nothing() {
    let _machine = together();
    while_it_runs(restart_all_in_turn);
}

fn restart_all_in_turn() -> Result<(), String> {
    let redis = RedisServer::start();
    let mut table = String::new();
    for number in 0..20 {
        table += &format!(
            "[jobs.job-{number}]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"300\"]\n"
        );
    }
    let fleet = Fleet::new(redis.url(), &table);
    let mut replicas = Vec::from(fleet.start_ready(["a", "b", "c"]));
    // The first ones on a new ledger start late, by up to a second, and may be in the way of the next.
    let from = fleet.wait_for_runs(SOON, |runs| {
        let at = |run: &Run| crate::fleet::instant_ns(&run.scheduled_at);
        let first = at(runs.first()?);
        let later = runs.iter().find(|run| at(run) >= first + 2_000_000_000)?;
        Some(later.scheduled_at.clone())
    });
    for _round in 0..3 {
        for replica in &mut replicas {
            replica.drain();
            let name = replica.name.clone();
            *replica = fleet.start(&name);
            replica.wait_until_ready();
            // Somewhere in the middle of the next second's runs the next one goes.
            let now = now_ns();
            fleet.wait_for_runs(SOON, |runs| (runs.last()?.started_ns > now).then_some(()));
        }
    }
    replicas.iter_mut().for_each(Replica::drain);
    let runs = fleet.runs();
    nothing_overlaps(&runs);
    let seconds = complete_seconds(&runs, &from, &skipped(&fleet))?;
    eprintln!(
        "rolling restart, 9 restarts, all exits 0: {} runs of 20 jobs over {seconds} seconds, each once",
        runs.len()
    );
    assert!(seconds >= 9, "the restarts took some seconds: {seconds}");
    Ok(())
}

/// No second has a job twice, and each between the first and the last has each job; gives how many
/// there are. What falls due while the machine stands still may find the one before it unfinished.
fn complete_seconds(
    runs: &[Run],
    from: &str,
    skipped: &HashSet<(String, i128)>,
) -> Result<usize, String> {
    let mut seconds: HashMap<&str, HashMap<&str, usize>> = HashMap::new();
    for run in runs.iter().filter(|run| *run.scheduled_at >= *from) {
        *seconds
            .entry(&run.scheduled_at)
            .or_default()
            .entry(&run.job)
            .or_default() += 1;
        assert!(run.ended_ns.is_some(), "cut short: {run:?}");
    }
    for (second, jobs) in &seconds {
        let twice: Vec<_> = jobs.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "more than once at {second}: {twice:?}");
    }
    let (first, last) = (
        seconds.keys().min().expect("a second").to_owned(),
        seconds.keys().max().expect("a second").to_owned(),
    );
    let (first_ns, last_ns) = (
        crate::fleet::instant_ns(first),
        crate::fleet::instant_ns(last),
    );
    let expected = usize::try_from((last_ns - first_ns) / 1_000_000_000).expect("a small number");
    // The last second may fall into the last replica's drain.
    for (second, jobs) in seconds.iter().filter(|(second, _)| **second != last) {
        let names = (0..20).map(|number| format!("job-{number}"));
        let mut missing = names.filter(|name| !jobs.contains_key(name.as_str()));
        let at = crate::fleet::instant_ns(second);
        if let Some(lost) = missing.find(|job| !skipped.contains(&(job.clone(), at))) {
            return Err(format!("{lost} was lost at {second}: {jobs:?}"));
        }
    }
    match seconds.len() - 1 == expected {
        true => Ok(seconds.len()),
        false => Err("whole seconds without a run".to_owned()),
    }
}

/// What the ledger has as skipped, as the one before it was unfinished: on a machine with too much to do
/// a job of 300 ms may still run when it is due again a second later.
fn skipped(fleet: &Fleet) -> HashSet<(String, i128)> {
    let history = fleet.json(&["history", "-n", "10000", "--json"]);
    let lines = history.as_array().expect("lines").iter();
    let of_overlap =
        |line: &&serde_json::Value| line["outcome"] == "skipped" && line["cause"] == "overlap";
    let text =
        |line: &serde_json::Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    lines
        .filter(of_overlap)
        .map(|line| {
            let at = crate::fleet::instant_ns(&text(line, "scheduled_at"));
            (text(line, "job"), at)
        })
        .collect()
}

/// No two attempts of one job at one time.
fn nothing_overlaps(runs: &[Run]) {
    let mut by_job: HashMap<&str, Vec<&Run>> = HashMap::new();
    for run in runs {
        by_job.entry(&run.job).or_default().push(run);
    }
    for runs in by_job.values() {
        for pair in runs.windows(2) {
            // One that was killed has no end; its successor starts after its death.
            if let Some(ended) = pair[0].ended_ns {
                assert!(ended <= pair[1].started_ns, "overlap: {pair:?}");
            }
        }
    }
}

fn running(runs: &[Run], after: usize) -> Option<Run> {
    let firsts: Vec<&Run> = runs.iter().filter(|run| run.attempt == 1).collect();
    let first = firsts.get(after..)?.last()?;
    first.ended_ns.is_none().then(|| (*first).clone())
}

fn attempt(runs: &[Run], of: &Run, number: u32) -> Option<Run> {
    let same = |run: &&Run| run.scheduled_at == of.scheduled_at && run.attempt == number;
    runs.iter().find(same).cloned()
}

fn position(replicas: &[Replica], name: &str) -> usize {
    let found = replicas.iter().position(|replica| replica.name == name);
    found.expect("a replica of that name")
}

fn history_outcomes(fleet: &Fleet, outcome: &str) -> usize {
    let history = fleet.json(&["history", "long", "--json"]);
    let attempts = history.as_array().expect("attempts");
    attempts
        .iter()
        .filter(|attempt| attempt["outcome"] == outcome)
        .count()
}
