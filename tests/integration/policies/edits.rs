//! A schedule that is edited, replica by replica or between a stop of all and the next start.

use soloist::scheduler::lease::{Cause, Outcome};
use test_support::probe::Run;

use super::scene::{Scene, fate, ranges, shown};
use crate::fleet::{Replica, SOON, instant_ns, now_ns, sleep_until_ns};
use crate::together;

const SECOND: i128 = 1_000_000_000;

/// Seconds 0, 5, 10, … of a minute, and 2, 5, 8, …: some in common, some each for itself.
const FORMER: i128 = 5;
const LATER: (i128, i128) = (3, 2);

fn table(schedule: &str) -> String {
    format!(
        "[jobs.edited]\nschedule = \"{schedule}\"\ncommand = [PROBE, \"1\"]\nlease_ttl = \"5s\"\n"
    )
}

fn is_former(at: i128) -> bool {
    at % 60 % FORMER == 0
}

fn is_later(at: i128) -> bool {
    at % 60 % LATER.0 == LATER.1
}

/// The seconds that ran, in order; each once.
fn ran(scene: &Scene) -> Vec<i128> {
    let runs = scene.fleet.runs();
    let seconds: Vec<i128> = runs.iter().map(second).collect();
    assert!(seconds.is_sorted_by(|a, b| a < b), "{seconds:?}");
    seconds
}

fn second(run: &Run) -> i128 {
    instant_ns(&run.scheduled_at) / SECOND
}

/// Waits for a run that was due after that instant.
fn wait_for_run_after(scene: &Scene, at_ns: i128) {
    scene.fleet.wait_for_runs(SOON, |runs| {
        (second(runs.last()?) * SECOND > at_ns).then_some(())
    });
}

#[test]
fn a_rolling_restart_with_an_edited_schedule_loses_nothing_and_invents_nothing() {
    let _machine = together();
    let scene = Scene::on_redis(&table("*/5 * * * * *"));
    let mut replicas = scene.three();
    wait_for_run_after(&scene, now_ns());
    scene.set_table(&table("2/3 * * * * *"));
    let began = now_ns() / SECOND;
    for replica in &mut replicas {
        let name = replica.name.clone();
        replica.drain();
        *replica = scene.start(&name);
        wait_for_run_after(&scene, now_ns());
    }
    let over = now_ns() / SECOND;
    wait_for_run_after(&scene, now_ns() + 4 * SECOND);
    replicas.iter_mut().for_each(Replica::drain);
    let ran = ran(&scene);
    let lines = scene.lines("edited");
    let [first, .., last] = ran[..] else {
        panic!("{ran:?}");
    };
    for at in first..=last {
        let has_run = ran.contains(&at);
        let expected = match (is_former(at), is_later(at)) {
            (true, true) => Some(true),
            (false, false) => Some(false),
            (former, _) if at <= began => Some(former),
            (_, later) if at > over => Some(later),
            // While both tables are there, either is right.
            _ => None,
        };
        let right = expected.is_none_or(|expected| expected == has_run);
        assert!(
            right,
            "{at}: ran {has_run}; {began}..{over}\n{}",
            shown(&lines)
        );
    }
    eprintln!(
        "a rolling restart of {} s with another schedule: {} ran from one to the other, each once; \
         {} lines",
        over - began,
        ran.len(),
        lines.len()
    );
    // A line for all that was due between the last run and the edit by the former schedule alone
    // is there also where that is nothing.
    let missed = lines
        .iter()
        .filter(|line| line.outcome != Outcome::Succeeded);
    for line in missed {
        let since = line.detail.since.map(|since| i128::from(since.as_second()));
        let mut within = since.expect("a range") + 1..=i128::from(line.scheduled_at.as_second());
        assert!(!within.any(is_former), "{}", shown(&lines));
    }
}

#[test]
fn a_schedule_edited_while_all_are_away_runs_nothing_that_was_never_due() {
    let _machine = together();
    let table_former = table("*/5 * * * * *");
    let scene = Scene::on_file(&table_former);
    let mut replicas = scene.three();
    wait_for_run_after(&scene, now_ns());
    replicas.iter_mut().for_each(Replica::drain);
    let gone = now_ns();
    // What the former schedule has alone (:05n with n not in the later), the later alone, and
    // both, are all due in fifteen seconds.
    sleep_until_ns(gone + 15 * SECOND);
    scene.set_table(&table("2/3 * * * * *"));
    let starts = now_ns() / SECOND;
    let _replicas = scene.three();
    let back = now_ns() / SECOND;
    wait_for_run_after(&scene, now_ns() + 4 * SECOND);
    let ran = ran(&scene);
    let lines = scene.lines("edited");
    let gone = gone / SECOND;
    let away: Vec<_> = ran
        .iter()
        .filter(|at| (gone + 1..=starts).contains(at))
        .collect();
    // The newest of them runs, as after any outage, if both have it.
    assert!(away.len() <= 1, "{away:?}");
    assert!(
        away.iter().all(|at| is_former(**at) && is_later(**at)),
        "{}",
        shown(&lines)
    );
    for at in back + 1..=*ran.last().expect("some ran") {
        assert_eq!(ran.contains(&at), is_later(at), "{at}\n{}", shown(&lines));
    }
    let changed = (Outcome::Missed, Some(Cause::ScheduleChanged));
    let told: Vec<_> = ranges(&lines)
        .into_iter()
        .filter(|line| fate(line) == changed)
        .collect();
    // One line, or one before and one after what both have.
    let most = 1 + away.len();
    assert!((1..=most).contains(&told.len()), "{}", shown(&lines));
    let schedule = told[0].detail.schedule.as_deref().unwrap_or_default();
    eprintln!(
        "{}: edited while all were away for {} s: of these {away:?} ran; one line, after {:?} \
         to {}, of the former schedule `{schedule}`",
        scene.store_name(),
        starts - gone,
        told[0].detail.since.map(|since| since.to_string()),
        told[0].scheduled_at
    );
}
