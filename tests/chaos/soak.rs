//! A fleet at its daily work for a long time, with a replica killed now and then and a table that changes:
//! does it stay as small as it began?
//!
//! Must never: call a fleet flat that did nothing: what was due has run.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use test_support::account::{SECOND, instant_s};
use test_support::dice::variable;
use test_support::fleet::{Fleet, Replica, SOON, now_ns};
use test_support::machine::alone;
use test_support::process::{Process, Signal};
use test_support::redis::RedisServer;

use crate::flat::{HEAD, Series};

const JOBS: usize = 200;

/// Each job is due each so many seconds; as many are due in each of them.
const PERIOD_S: usize = 20;

/// How many lines the ledger keeps of each job: it is full before the warm-up is over.
const LINES_KEPT: usize = 3;

const SAMPLE_EVERY: Duration = Duration::from_secs(10);

/// Every so many samples the table is another one, and the last replica is killed.
const CHANGE_EVERY: usize = 6;
const KILL_EVERY: usize = 9;

/// Of what was due, so much has run: what a killed replica had is late, and may be skipped.
const RAN_PERCENT: usize = 98;

fn table(changes: usize) -> String {
    let start = format!(
        "[scheduler]\nlease_ttl = \"3s\"\n\n[defaults]\nhistory_limit = {LINES_KEPT}\n\
         env = {{ CHANGES = \"{changes}\" }}\n"
    );
    (0..JOBS).fold(start, |mut text, number| {
        let _ = writeln!(
            text,
            "[jobs.job-{number}]\nschedule = \"{}/{PERIOD_S} * * * * *\"\n\
             command = [PROBE, \"20\", \"alone\"]\n",
            number % PERIOD_S
        );
        text
    })
}

#[test]
#[ignore = "takes MINUTES (30); `make soak` runs it"]
fn a_fleet_stays_as_small_as_it_began() {
    let _machine = alone();
    let minutes = variable("MINUTES").unwrap_or(30);
    println!(
        "{JOBS} jobs on three replicas, {} starts a second, for {minutes} minutes",
        JOBS / PERIOD_S
    );
    let server = RedisServer::start();
    let fleet = Fleet::new(server.url(), &table(0));
    let names = ["a", "b", "c"].map(|name| format!("{name}-of-{}", std::process::id()));
    let mut replicas = Vec::from(fleet.start_ready(names.each_ref().map(String::as_str)));
    let mut all = series();
    let began = Instant::now();
    let end = began + Duration::from_secs(60 * minutes);
    let (mut changes, mut kills, mut count) = (0, 0, 0);
    let from_ns = now_ns();
    while Instant::now() < end {
        let due = began + SAMPLE_EVERY * count;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let values = sample(&fleet, &server, &replicas);
        for (series, value) in all.iter_mut().zip(values) {
            series.samples.push((began.elapsed().as_secs_f64(), value));
        }
        count += 1;
        if (count as usize).is_multiple_of(CHANGE_EVERY) {
            changes += 1;
            fleet.replace_table(&table(changes));
            replicas.iter().for_each(|one| one.signal(Signal::HUP));
        }
        if (count as usize).is_multiple_of(KILL_EVERY) {
            kills += 1;
            kill_the_last(&fleet, &mut replicas);
        }
    }
    replicas.iter_mut().for_each(Replica::drain);
    tell(&all, changes, kills);
    has_run(&fleet, from_ns);
    let rising: Vec<&Series> = all.iter().filter(|one| !one.is_flat()).collect();
    let rows: Vec<String> = rising.iter().map(|one| one.row()).collect();
    assert!(rows.is_empty(), "these rise:\n{}", rows.join("\n"));
    let kept = all
        .iter()
        .find(|one| one.name == LEDGER)
        .expect("its series");
    let most = kept.samples.iter().map(|one| one.1 as usize).max();
    assert!(most <= Some(JOBS * LINES_KEPT), "{most:?} lines are kept");
}

fn kill_the_last(fleet: &Fleet, replicas: &mut Vec<Replica>) {
    let mut last = replicas.pop().expect("three replicas");
    last.kill9();
    let again = fleet.start(&last.name);
    again.wait_until_ready();
    replicas.push(again);
}

const LEDGER: &str = "ledger";

/// What is measured, in the order in which it is.
fn series() -> Vec<Series> {
    let mut all = Vec::new();
    for replica in ["a", "b", "c (killed now and then)"] {
        for process in ["daemon", "guardian"] {
            let name = format!("{process} of {replica}");
            all.push(Series::new(&name, "KiB resident", 512.0));
            // A connection or a job that is under way in the moment of the look.
            all.push(Series::new(&name, "descriptors", 4.0));
            all.push(Series::new(&name, "threads", 2.0));
        }
    }
    all.push(Series::new("Redis", "keys", 2.0));
    all.push(Series::new("Redis", "bytes used", 262_144.0));
    all.push(Series::new(LEDGER, "lines", 0.0));
    all
}

fn sample(fleet: &Fleet, server: &RedisServer, replicas: &[Replica]) -> Vec<f64> {
    let mut values = Vec::new();
    for replica in replicas {
        let daemon = replica.process();
        let guardian = daemon.children_named("job-guardian").into_iter().next();
        for process in [daemon, guardian.expect("a guardian")] {
            values.extend(of_process(process));
        }
    }
    let number = |text: &str| text.trim().parse::<f64>().expect("a number");
    values.push(number(&server.command(&["DBSIZE"])));
    let memory = server.command(&["INFO", "memory"]);
    let used = memory
        .lines()
        .find_map(|line| line.strip_prefix("used_memory:"));
    values.push(number(used.expect("what is used")));
    values.push(lines(fleet) as f64);
    values
}

/// How many lines the ledger has. A machine that is busy with something else may take its time.
fn lines(fleet: &Fleet) -> usize {
    let end = Instant::now() + SOON * 6;
    loop {
        let (code, lines, complaint) = fleet.output(&["history", "-n", "100000", "--json"]);
        if code == Some(0) {
            let lines: Vec<serde_json::Value> = serde_json::from_str(&lines).expect("lines");
            return lines.len();
        }
        assert!(Instant::now() < end, "{complaint}");
    }
}

fn of_process(process: Process) -> [f64; 3] {
    let threads = process.status("Threads").parse().expect("a number");
    [
        process.resident_kib() as f64,
        process.descriptors() as f64,
        threads,
    ]
}

fn tell(all: &[Series], changes: usize, kills: usize) {
    println!("\n{HEAD}");
    for series in all {
        println!("{}", series.row());
    }
    let samples = all[0].samples.len();
    let flat = all.iter().all(Series::is_flat);
    println!(
        "\n{samples} samples, {changes} tables, {kills} kills: {}",
        if flat { "flat" } else { "NOT flat" }
    );
}

/// The load was there: what was due, as good as all of it, has run; and nothing beside another one.
fn has_run(fleet: &Fleet, from_ns: i128) {
    let until_ns = now_ns();
    let mut runs = fleet.runs();
    assert!(runs.iter().all(|run| !run.beside), "beside another one");
    runs.retain(|run| {
        let due = i128::from(instant_s(&run.scheduled_at)) * SECOND;
        (from_ns..until_ns).contains(&due) && run.attempt == 1
    });
    let seconds = usize::try_from((until_ns - from_ns) / SECOND).expect("seconds");
    let due = seconds * JOBS / PERIOD_S;
    println!("{} of {due} occurrences have run", runs.len());
    assert!(runs.len() * 100 >= due * RAN_PERCENT);
}
