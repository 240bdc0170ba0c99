//! Two tables at one ledger: who runs what, who says so, and how soon.

use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::machine::while_it_runs;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON, now_ns};
use crate::together;

/// A sign of life of a table whose leases last for two seconds is this far from the next.
const HEARTBEAT: Duration = Duration::from_millis(334);

fn table(revision: Option<u64>, jobs: &str) -> String {
    let revision = revision.map_or(String::new(), |number| format!("revision = {number}\n"));
    format!(
        "[scheduler]\nlease_ttl = \"2s\"\n{revision}\n[jobs.same]\nschedule = \"* * * * * *\"\n\
         command = [PROBE, \"1\"]\n\n{jobs}"
    )
}

fn old(revision: Option<u64>) -> String {
    let jobs = "[jobs.edited]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"1\"]\n\n\
                [jobs.gone]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"1\"]\n";
    table(revision, jobs)
}

fn new(revision: Option<u64>) -> String {
    let jobs = "[jobs.edited]\nschedule = \"* * * * * *\"\ncommand = [PROBE, \"2\"]\n";
    table(revision, jobs)
}

/// Waits until `status` shows what is wanted, and gives how long that took.
fn wait_for_status(fleet: &Fleet, wanted: impl Fn(&Value) -> bool) -> Duration {
    let began = Instant::now();
    loop {
        let status = fleet.json(&["status", "--json"]);
        if wanted(&status) {
            return began.elapsed();
        }
        assert!(began.elapsed() < SOON, "{status:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn drifting(status: &Value) -> Vec<&str> {
    let drift = status["drift"].as_array();
    let jobs = drift.into_iter().flatten();
    jobs.filter_map(|one| one["job"].as_str()).collect()
}

fn outdated<'s>(status: &'s Value, name: &str) -> Vec<&'s str> {
    let replicas = status["replicas"].as_array().expect("a list");
    let one = replicas.iter().find(|one| one["name"] == name);
    let jobs = one.and_then(|one| one["table"]["outdated_jobs"].as_array());
    jobs.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Who ran a job since then, and after how long the first time.
fn ran_since(fleet: &Fleet, job: &str, since_ns: i128) -> Vec<String> {
    let runs = fleet.runs();
    let of_job = runs
        .iter()
        .filter(|run| run.job == job && run.started_ns > since_ns);
    of_job.map(|run| run.replica.clone()).collect()
}

fn wait_for_run(fleet: &Fleet, job: &str, replica: &str, since_ns: i128) {
    fleet.wait_for_runs(SOON, |runs| {
        let found = runs
            .iter()
            .any(|run| run.job == job && run.replica == replica && run.started_ns > since_ns);
        found.then_some(())
    });
}

/// What is told of both replicas: one of them may be taken for gone.
fn told(is_so: bool, what: &str) -> Result<(), String> {
    is_so.then_some(()).ok_or_else(|| what.to_owned())
}

/// `status` while `a` has the older table and `b` the newer one.
fn is_shown(fleet: &Fleet) -> Result<(), String> {
    let status = fleet.json(&["status", "--json"]);
    let both = outdated(&status, "a") == ["edited", "gone"] && outdated(&status, "b").is_empty();
    told(both, &format!("{status:#}"))?;
    let (_, text, _) = fleet.output(&["status"]);
    let newest = "rolling out: 1 of 2 replicas has the newest table (";
    told(text.contains(newest), &text)?;
    let differ = "); the tables differ in edited, gone\n";
    told(text.contains(differ), &text)?;
    let row = |name: &str| text.lines().find(|line| line.starts_with(name));
    let marked = ["a ", "b "].map(|name| row(name).is_some_and(|row| row.contains(" ! ")));
    told(marked == [true, false], &text)?;
    let leaves = "! a leaves to others, which have newer definitions: edited\n";
    told(text.contains(leaves), &text)
}

/// `gone` is in the table of `a` alone, which is the older one.
fn what_is_withdrawn_is_told(fleet: &Fleet) -> Result<(), String> {
    let status = fleet.json(&["status", "--json"]);
    let jobs = status["jobs"].as_array().expect("a list");
    let gone = jobs.iter().find(|job| job["name"] == "gone");
    let gone = gone.expect("it is known");
    let note = gone["note"] == "a newer table lacks it";
    told(note, &format!("{status:#}"))?;
    let line = "! a starts nothing of what a newer table lacks: gone\n";
    let (_, text, _) = fleet.output(&["status"]);
    told(text.contains(line), &text)?;
    let note = "waits for a replica: the newer table of b lacks `gone`, and none with an older one \
                starts anything of it";
    let answer = fleet.json(&["trigger", "gone", "--json"]);
    told(answer["note"] == note, &format!("{answer:#}"))?;
    let (_, text, _) = fleet.output(&["trigger", "gone", "--wait", "--timeout", "1s"]);
    told(text.contains(note), &text)
}

/// A replica that is not heard of for some seconds, as the machine stands still, is taken for gone.
fn rolls_out(first: Option<u64>, second: Option<u64>) -> Result<(), String> {
    let server = RedisServer::start();
    let fleet = Fleet::new(server.url(), &old(first));
    let mut a = fleet.start("a");
    a.wait_until_ready();
    wait_for_run(&fleet, "gone", "a", 0);

    fleet.set_table(&new(second));
    let mut b = fleet.start("b");
    b.wait_until_ready();
    let seen = wait_for_status(&fleet, |status| drifting(status) == ["edited", "gone"]);
    a.wait_for_line(&[
        "tables differ",
        "b has a newer one",
        "changed: edited; only here: gone",
    ]);
    a.wait_for_line(&["this replica leaves edited to b"]);
    a.wait_for_line(&["runs gone no more"]);
    // What was granted before that has started by now.
    let noted_ns = now_ns() + 200_000_000;
    is_shown(&fleet)?;
    what_is_withdrawn_is_told(&fleet)?;
    fleet.wait_for_runs(SOON, |runs| {
        let later = runs
            .iter()
            .filter(|run| run.job == "same" && run.started_ns > noted_ns);
        (later.count() >= 3).then_some(())
    });
    let edited = ran_since(&fleet, "edited", noted_ns);
    let gone = ran_since(&fleet, "gone", noted_ns);
    if !gone.is_empty() || edited.len() < 2 || edited.iter().any(|name| name != "b") {
        return Err(format!("edited ran on {edited:?}, gone on {gone:?}"));
    }

    // A politely stopped one is replaced at once.
    let stopped = Instant::now();
    let stopped_ns = now_ns();
    b.drain();
    wait_for_run(&fleet, "edited", "a", stopped_ns);
    wait_for_run(&fleet, "gone", "a", stopped_ns);
    a.wait_for_line(&["this replica runs", "edited", "again: no newer definition"]);
    eprintln!(
        "drift was seen {seen:?} after the new replica was ready; the old one went on {:?} after \
         that was asked to leave",
        stopped.elapsed()
    );
    a.drain();
    match seen <= HEARTBEAT + Duration::from_millis(700) {
        true => Ok(()),
        false => Err(format!("drift was seen after {seen:?}")),
    }
}

#[test]
fn an_old_replica_runs_nothing_of_what_a_newer_revision_changed() {
    let _machine = together();
    while_it_runs(|| rolls_out(Some(1), Some(2)));
}

#[test]
fn without_a_revision_the_table_that_was_seen_first_later_decides() {
    let _machine = together();
    while_it_runs(|| rolls_out(None, None));
}
