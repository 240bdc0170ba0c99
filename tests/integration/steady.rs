//! A fleet at its daily work: every occurrence once, whatever the replicas' clocks say.

use std::collections::HashMap;
use std::fmt::Write as _;

use rustix::process::Signal;
use test_support::clock_shim::clock_shim;
use test_support::machine::while_it_runs;
use test_support::probe::Run;
use test_support::redis::RedisServer;

use crate::alone;
use crate::fleet::{Fleet, Replica, instant_ns, now_ns, sleep_until_ns};

const JOBS: usize = 50;
const SECONDS: i128 = 20;
const SECOND: i128 = 1_000_000_000;

/// How early a job may start by true time where replicas' clocks are wrong.
const EARLY_TOLERATED: i128 = 50_000_000;

fn table(jobs: usize, schedule: &str, millis: u32) -> String {
    (0..jobs).fold(String::new(), |mut text, number| {
        let _ = writeln!(
            text,
            "[jobs.job-{number}]\nschedule = \"{schedule}\"\ncommand = [PROBE, \"{millis}\"]\n"
        );
        text
    })
}

#[test]
fn fifty_jobs_a_second_run_once_each_on_three_replicas() {
    steady("equal clocks", [0, 0, 0], 0);
}

#[test]
fn fifty_jobs_a_second_run_once_each_with_clocks_seven_tenths_of_a_second_off() {
    steady("clocks +0.7 s, 0, -0.7 s", [700, 0, -700], EARLY_TOLERATED);
}

#[test]
fn fifty_jobs_a_second_run_once_each_with_clocks_a_minute_and_a_half_off() {
    steady(
        "clocks +90 s, 0, -90 s",
        [90_000, 0, -90_000],
        EARLY_TOLERATED,
    );
}

fn steady(label: &str, shifts_ms: [i64; 3], early_tolerated: i128) {
    let _machine = alone();
    while_it_runs(|| play(label, shifts_ms, early_tolerated));
}

fn play(label: &str, shifts_ms: [i64; 3], early_tolerated: i128) -> Result<(), String> {
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), &table(JOBS, "* * * * * *", 1));
    let mut replicas = start_shifted(&fleet, shifts_ms);
    // Past the first start's second without grants, and past what that second made late: an
    // occurrence that starts late may still run when the next one is due, which is then skipped.
    let from = (now_ns() / SECOND + 4) * SECOND;
    let until = from + SECONDS * SECOND;
    sleep_until_ns(from - SECOND / 2);
    redis.command(&["CONFIG", "RESETSTAT"]);
    sleep_until_ns(until - SECOND / 2);
    let commands = calls(&redis);
    replicas.iter_mut().for_each(Replica::drain);
    let all = fleet.runs();
    let within: Vec<&Run> = all
        .iter()
        .filter(|run| (from..until).contains(&instant_ns(&run.scheduled_at)))
        .collect();
    once_each(&all);
    let early = within.iter().map(|run| latency(run)).min().unwrap_or(0);
    assert!(early >= -early_tolerated, "{early} ns early");
    each_ran(&fleet, &within)?;
    print_figures(label, &within, commands);
    Ok(())
}

fn start_shifted(fleet: &Fleet, shifts_ms: [i64; 3]) -> Vec<Replica> {
    let names = ["a", "b", "c"];
    let replicas: Vec<Replica> = names
        .into_iter()
        .zip(shifts_ms)
        .map(|(name, shift)| {
            fleet.start_with(name, |command| {
                if shift != 0 {
                    command
                        .env("LD_PRELOAD", clock_shim())
                        .env("SOLOIST_TEST_WALL_SHIFT_MS", shift.to_string());
                }
            })
        })
        .collect();
    replicas.iter().for_each(Replica::wait_until_ready);
    skews_are_seen(fleet, shifts_ms);
    replicas
}

/// The clocks are really off: `status` shows by how much.
fn skews_are_seen(fleet: &Fleet, shifts_ms: [i64; 3]) {
    let end = std::time::Instant::now() + crate::fleet::SOON;
    loop {
        let status = fleet.json(&["status", "--json"]);
        let seen = |name: &str| {
            let replicas = status["replicas"].as_array().expect("replicas");
            let replica = replicas.iter().find(|replica| replica["name"] == name)?;
            replica["clock_skew_seconds"].as_f64()
        };
        let near = |name: &str, shift: i64| {
            seen(name).is_some_and(|skew| (skew - shift as f64 / 1e3).abs() < 0.2)
        };
        let [a, b, c] = shifts_ms;
        if near("a", a) && near("b", b) && near("c", c) {
            return;
        }
        assert!(
            std::time::Instant::now() < end,
            "skews unlike {shifts_ms:?}: {status:#}"
        );
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

fn once_each(all: &[Run]) {
    let mut starts: HashMap<(&str, &str), usize> = HashMap::new();
    for run in all {
        *starts.entry((&run.job, &run.scheduled_at)).or_default() += 1;
    }
    let twice: Vec<_> = starts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
}

/// What falls due while the machine stands still may find the one before it unfinished.
fn each_ran(fleet: &Fleet, within: &[&Run]) -> Result<(), String> {
    let expected = JOBS * usize::try_from(SECONDS).expect("a small number");
    if within.len() == expected {
        return Ok(());
    }
    let (_, history, _) = fleet.output(&["history", "-n", "10000"]);
    let else_than_success = history.lines().filter(|line| !line.contains("succeeded"));
    let lines: Vec<&str> = else_than_success.take(200).collect();
    let ran = within.len();
    Err(format!("{ran} of {expected} ran:\n{}", lines.join("\n")))
}

fn latency(run: &Run) -> i128 {
    run.started_ns - instant_ns(&run.scheduled_at)
}

fn print_figures(label: &str, within: &[&Run], commands: u64) {
    let mut latencies: Vec<i128> = within.iter().map(|run| latency(run)).collect();
    latencies.sort_unstable();
    let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100] as f64 / 1e6;
    let mut shares: HashMap<&str, usize> = HashMap::new();
    for run in within {
        *shares.entry(&run.replica).or_default() += 1;
    }
    eprintln!(
        "{label}: {} occurrences, each once; start latency min {:.2} p50 {:.2} p99 {:.2} max {:.2} ms; \
         {:.2} Redis commands per occurrence and replica; by replica {shares:?}",
        within.len(),
        at(0),
        at(50),
        at(99),
        at(100),
        commands as f64 / within.len() as f64 / 3.0
    );
}

/// Commands that clients sent since the last reset; what scripts do inside is not counted.
fn calls(redis: &RedisServer) -> u64 {
    let stats = redis.command(&["INFO", "commandstats"]);
    let sent = [
        "evalsha",
        "eval",
        "hgetall",
        "publish",
        "subscribe",
        "zrange",
        "ping",
        "get",
    ];
    stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        .filter(|(name, _)| sent.contains(name))
        .filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok())
        .sum()
}

/// The store has one time for all replicas, so that claims come together whatever the wall clocks
/// say, and a lease alone would keep them apart. One that comes when the others are done finds out
/// whether an occurrence is remembered.
#[test]
fn a_replica_that_comes_late_to_each_second_runs_nothing_again() {
    let _machine = alone();
    while_it_runs(one_comes_late);
}

fn one_comes_late() -> Result<(), String> {
    const LATE_SECONDS: i128 = 6;
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), &table(10, "* * * * * *", 1));
    let mut replicas = fleet.start_ready(["a", "b", "late"]);
    let from = (now_ns() / SECOND + 4) * SECOND;
    for second in 0..LATE_SECONDS {
        let due = from + second * SECOND;
        sleep_until_ns(due - SECOND / 5);
        replicas[2].signal(Signal::STOP);
        sleep_until_ns(due + SECOND / 2);
        replicas[2].signal(Signal::CONT);
    }
    sleep_until_ns(from + (LATE_SECONDS - 1) * SECOND + SECOND * 9 / 10);
    replicas.iter_mut().for_each(Replica::drain);
    let until = from + LATE_SECONDS * SECOND;
    let mut starts: HashMap<(String, String), usize> = HashMap::new();
    let mut out_of_turn = Vec::new();
    for run in fleet.runs() {
        if (from..until).contains(&instant_ns(&run.scheduled_at)) {
            if run.replica == "late" {
                out_of_turn.push(run.clone());
            }
            *starts.entry((run.job, run.scheduled_at)).or_default() += 1;
        }
    }
    let twice: Vec<_> = starts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
    match out_of_turn.is_empty() && starts.len() == 60 {
        true => Ok(()),
        false => Err(format!(
            "{} of 60 occurrences ran; while it was frozen: {out_of_turn:#?}",
            starts.len()
        )),
    }
}

#[test]
fn a_thousand_jobs_due_in_one_second_take_a_few_round_trips() {
    const HERD: usize = 1_000;
    crate::closing::when_closed();
    let _machine = alone();
    let redis = RedisServer::start();
    let fleet = Fleet::new(redis.url(), &table(HERD, "*/30 * * * * *", 0));
    let mut replicas = fleet.start_ready(["a", "b", "c"]);
    // None of them is due again before all have run.
    let period = 30 * SECOND;
    let due = (now_ns() / period + 1) * period;
    let due = if due - now_ns() < 2 * SECOND {
        due + period
    } else {
        due
    };
    sleep_until_ns(due - SECOND);
    redis.command(&["CONFIG", "RESETSTAT"]);
    // Each look reads all that was written: one a second leaves the machine to the herd.
    let end = due + period;
    while ended_at(&fleet.runs(), due).count() < HERD {
        assert!(now_ns() < end, "not all have run: {}", replicas[0].tail());
        sleep_until_ns(now_ns() + SECOND);
    }
    sleep_until_ns(now_ns() + SECOND);
    let trips = calls(&redis);
    let runs = fleet.runs();
    let mut late: Vec<i128> = ended_at(&runs, due).map(latency).collect();
    late.sort_unstable();
    let ends = ended_at(&runs, due).filter_map(|run| run.ended_ns);
    let busy = ends.max().unwrap_or(due) - due;
    replicas.iter_mut().for_each(Replica::drain);
    eprintln!(
        "{HERD} jobs due in one second, 3 replicas: {trips} round trips in all, {:.3} per occurrence \
         and replica; start latency p50 {:.0} p99 {:.0} ms",
        trips as f64 / HERD as f64 / 3.0,
        late[HERD / 2] as f64 / 1e6,
        late[HERD * 99 / 100] as f64 / 1e6
    );
    // What ends within 50 ms is released together, in two trips of each replica: a slow machine
    // starts the herd over a longer time. One by one they would be thousands.
    let windows =
        3 * u64::try_from(busy / (SECOND / 20)).expect("the herd started when it was due");
    let bound = 60 + 2 * windows;
    assert!(
        trips <= bound,
        "{trips} round trips in {busy} ns, more than {bound}"
    );
}

fn ended_at(runs: &[Run], due: i128) -> impl Iterator<Item = &Run> {
    runs.iter()
        .filter(move |run| run.ended_ns.is_some() && instant_ns(&run.scheduled_at) == due)
}
