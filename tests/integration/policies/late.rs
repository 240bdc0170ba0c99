//! `catch_up`: what becomes of occurrences that nobody could claim, because all replicas or the
//! store were away.

use std::time::Duration;

use soloist::scheduler::lease::{Cause, Outcome};
use soloist::store::AttemptRecord;
use test_support::machine::while_it_runs;
use test_support::probe::Run;

use super::scene::{Scene, each_is_accounted_for_once, fate, ranges, second, shown};
use crate::fleet::{Fleet, Replica, SOON, instant_ns, now_ns, sleep_until_ns};
use crate::together;

const SECOND: i128 = 1_000_000_000;
const PERIOD: i128 = 2 * SECOND;

/// How long all replicas, or the store, are away. That is what the test is about, and the one
/// thing that it sleeps for. It begins between two instants, and ends when the newest is too long
/// ago for `catch_up = "none"`, and the next is to come.
const OUTAGE: i128 = 12 * SECOND + SECOND * 4 / 10;

/// Between the grant of an attempt and the first thing that its job does, on a busy machine.
const START: i128 = SECOND;

const TABLE: &str = r#"
[defaults]
schedule = "*/2 * * * * *"
command = [PROBE, "1"]
lease_ttl = "5s"

[jobs.latest]

[jobs.all]
catch_up = "all"
catch_up_limit = 3

[jobs.none]
catch_up = "none"
"#;

const JOBS: [&str; 3] = ["latest", "all", "none"];

#[test]
fn after_an_outage_of_the_fleet_each_catch_up_runs_what_it_says() {
    let _machine = together();
    while_it_runs(fleet_away);
}

fn fleet_away() -> Result<(), String> {
    let scene = Scene::on_file(TABLE);
    let mut replicas = scene.three();
    let gone = between_two_instants(&scene.fleet);
    replicas.iter_mut().for_each(Replica::kill9);
    sleep_until_ns(gone + OUTAGE);
    let _replicas = scene.three();
    caught_up(&scene, "the fleet", gone)
}

#[test]
fn after_redis_was_killed_and_came_back_each_catch_up_runs_what_it_says() {
    let _machine = together();
    while_it_runs(redis_killed);
}

fn redis_killed() -> Result<(), String> {
    let mut scene = Scene::on_durable_redis(TABLE);
    let _replicas = scene.three();
    let gone = between_two_instants(&scene.fleet);
    scene.server().kill();
    sleep_until_ns(gone + OUTAGE);
    scene.server().restart();
    caught_up(&scene, "a killed Redis", gone)
}

#[test]
fn after_redis_was_frozen_each_catch_up_runs_what_it_says() {
    let _machine = together();
    while_it_runs(redis_frozen);
}

fn redis_frozen() -> Result<(), String> {
    let mut scene = Scene::on_redis(TABLE);
    let _replicas = scene.three();
    let gone = between_two_instants(&scene.fleet);
    scene.server().freeze();
    sleep_until_ns(gone + OUTAGE);
    scene.server().thaw();
    caught_up(&scene, "a frozen Redis", gone)
}

/// Waits until all jobs ran at some instant, and until there is no claim on its way any more.
fn between_two_instants(fleet: &Fleet) -> i128 {
    let ran = fleet.wait_for_runs(SOON, |runs| {
        let last = runs.last()?;
        let now = runs
            .iter()
            .filter(|run| run.scheduled_at == last.scheduled_at);
        let all = now.filter(|run| run.ended_ns.is_some()).count() == JOBS.len();
        all.then(|| instant_ns(&last.scheduled_at))
    });
    sleep_until_ns(ran + PERIOD / 2);
    now_ns()
}

fn of<'r>(runs: &'r [Run], job: &str) -> Vec<&'r Run> {
    runs.iter().filter(|run| run.job == job).collect()
}

fn due(run: &Run) -> i128 {
    instant_ns(&run.scheduled_at)
}

fn range_end(line: &AttemptRecord) -> i128 {
    i128::from(second(line)) * SECOND
}

/// Waits until work is as it was, and holds each job to its policy.
fn caught_up(scene: &Scene, who: &str, gone: i128) -> Result<(), String> {
    let back = now_ns();
    // Not the last one that was late, but one that fell due when all was well.
    scene.fleet.wait_for_runs(SOON * 2, |runs| {
        let usual = |job: &&&str| of(runs, job).iter().any(|run| due(run) > back + 2 * PERIOD);
        let settled = JOBS.iter().filter(usual).count() == JOBS.len();
        settled.then_some(())
    });
    let runs = scene.fleet.runs();
    for job in JOBS {
        let lines = scene.lines(job);
        let instants = each_is_accounted_for_once(&lines, 2);
        let in_order = of(&runs, job).is_sorted_by_key(|run| due(run));
        assert!(in_order, "{job}: {runs:#?}");
        let missed: Vec<_> = lines
            .iter()
            .filter(|line| line.outcome == Outcome::Missed)
            .collect();
        let range = ranges(&lines);
        if range.len() != 1 {
            return Err(format!("more was missed: {job}:\n{}", shown(&lines)));
        }
        let by_policy = (Outcome::Missed, Some(Cause::CatchUp));
        assert!(
            missed.iter().all(|line| fate(line) == by_policy),
            "{}",
            shown(&lines)
        );
        let since = range[0].detail.since.expect("a range");
        let after: Vec<_> = of(&runs, job)
            .into_iter()
            .filter(|run| due(run) > range_end(range[0]))
            .collect();
        match job {
            "latest" => runs_late(&after, 1)?,
            "all" => runs_late(&after, 3)?,
            _ => granted_promptly(&lines),
        }
        let late: Vec<String> = after
            .iter()
            .filter(|run| due(run) < back)
            .map(|run| format!("{:.1} s", (run.started_ns - due(run)) as f64 / 1e9))
            .collect();
        eprintln!(
            "{who} away for {:.1} s on {}: `{job}`, {instants} instants in all; one line for those \
             after {since} to {}, which are missed; ran late by {late:?}",
            (back - gone) as f64 / 1e9,
            scene.store_name(),
            range[0].scheduled_at,
        );
    }
    Ok(())
}

/// What was not granted within a second of its instant never was.
fn granted_promptly(lines: &[AttemptRecord]) {
    for line in lines.iter().filter(|line| line.attempt > 0) {
        let waited = line.started_at.saturating_since(line.scheduled_at);
        assert!(waited <= Duration::from_secs(1), "{}", shown(lines));
    }
}

/// The first so many of these ran when the last of them was due already, and the next was not;
/// what follows ran on time.
fn runs_late(after: &[&Run], count: usize) -> Result<(), String> {
    let due_of_last = due(after[count - 1]);
    let (late, usual) = after.split_at(count);
    let early = late.iter().find(|run| run.started_ns < due_of_last);
    assert!(early.is_none(), "{early:?} of {after:#?}");
    let mut too_late = late
        .iter()
        .filter(|run| run.started_ns >= due_of_last + PERIOD + START)
        .chain(
            usual
                .iter()
                .filter(|run| run.started_ns >= due(run) + START),
        );
    match too_late.next() {
        None => Ok(()),
        Some(run) => Err(format!("too late: {run:?} of {after:#?}")),
    }
}
