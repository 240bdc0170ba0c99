//! `shards`, `run_on`, `max_running`, and a replica that drains: who runs what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use soloist::scheduler::lease::{Cause, Outcome};
use test_support::probe::Run;

use super::scene::{Note, Scene, fate, shown};
use crate::fleet::{Replica, SOON};
use crate::together;

const SHARDED: &str = r#"
[defaults]
schedule = "@manual"
lease_ttl = "5s"
shards = 6

[jobs.quick]
shell = "NOTES; note start; sleep 0.3; note end"

[jobs.slow]
shell = "NOTES; note start; sleep 4; note end"
"#;

const SHARDS: [&str; 6] = ["0/6", "1/6", "2/6", "3/6", "4/6", "5/6"];

fn noted(notes: &[Note], what: &str, scheduled_at: &str) -> Vec<Note> {
    let wanted = |note: &&Note| note.what == what && note.scheduled_at == scheduled_at;
    notes.iter().filter(wanted).cloned().collect()
}

fn by_replica(notes: &[Note]) -> BTreeMap<&str, usize> {
    let mut shares = BTreeMap::new();
    for note in notes {
        *shares.entry(note.replica.as_str()).or_default() += 1;
    }
    shares
}

fn shards(notes: &[Note]) -> Vec<&str> {
    let mut shards: Vec<&str> = notes.iter().map(|note| note.shard.as_str()).collect();
    shards.sort_unstable();
    shards
}

#[test]
fn each_shard_runs_once_and_each_replica_has_two_of_six() {
    let _machine = together();
    let scene = Scene::on_redis(SHARDED);
    let _replicas = scene.three();
    let (mut even, mut tries) = (0, 0);
    // Who is late by more than its head start leaves its shards to the next: a busy machine may
    // have it so now and then, and not most of the time.
    while even < 4 && tries < 7 {
        tries += 1;
        let at = scene.trigger("quick");
        scene
            .wait_for_notes(|notes| (noted(notes, "end", &at).len() == SHARDS.len()).then_some(()));
        scene.wait_for_lines("quick", SOON, |lines| {
            let over = lines
                .iter()
                .filter(|line| line.scheduled_at.to_string() == at);
            (over.count() == SHARDS.len()).then_some(())
        });
        let started = noted(&scene.notes(), "start", &at);
        assert_eq!(shards(&started), SHARDS, "{started:#?}");
        let shares = by_replica(&started);
        even += u32::from(shares.values().eq([&2, &2, &2]));
        eprintln!("six shards at {at} by replica: {shares:?}");
    }
    assert!(
        even >= 4,
        "{even} of {tries} occurrences had two shards on each replica"
    );
}

/// An occurrence of `slow` with shards on each of three replicas, all of which have started.
fn spread_over_all(scene: &Scene) -> (String, Vec<Note>) {
    for _ in 0..5 {
        let at = scene.trigger("slow");
        let started = scene.wait_for_notes(|notes| {
            let started = noted(notes, "start", &at);
            (started.len() == SHARDS.len()).then_some(started)
        });
        if by_replica(&started).len() == 3 {
            return (at, started);
        }
        eprintln!("not on all three: {started:#?}");
        scene
            .wait_for_notes(|notes| (noted(notes, "end", &at).len() == SHARDS.len()).then_some(()));
    }
    panic!("no occurrence was spread over all replicas");
}

#[test]
fn a_crash_costs_its_own_shards_alone() {
    let _machine = together();
    let scene = Scene::on_redis(SHARDED);
    let mut replicas = scene.three();
    let (at, first) = spread_over_all(&scene);
    replicas[0].kill9();
    let again: BTreeSet<&str> = first
        .iter()
        .filter(|note| note.replica == "a")
        .map(|note| note.shard.as_str())
        .collect();
    let ended = scene.wait_for_notes(|notes| {
        let ended = noted(notes, "end", &at);
        (ended.len() == SHARDS.len()).then_some(ended)
    });
    assert_eq!(shards(&ended), SHARDS);
    for note in &ended {
        let attempt = if again.contains(note.shard.as_str()) {
            2
        } else {
            1
        };
        assert_eq!(note.attempt, attempt, "{note:?}");
    }
    let started = noted(&scene.notes(), "start", &at);
    assert_eq!(started.len(), SHARDS.len() + again.len(), "{started:#?}");
    scene.wait_for_lines("slow", SOON, |lines| {
        let succeeded = lines
            .iter()
            .filter(|line| line.outcome == Outcome::Succeeded)
            .filter(|line| line.scheduled_at.to_string() == at);
        (succeeded.count() == SHARDS.len()).then_some(())
    });
    eprintln!(
        "kill -9 of the holder of shards {again:?}: these ran again, on {:?}",
        ended
            .iter()
            .filter(|note| note.attempt == 2)
            .map(|note| note.replica.as_str())
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_job_runs_where_its_tags_are_and_nowhere_else() {
    let _machine = together();
    let table = r#"
[defaults]
schedule = "* * * * * *"
command = [PROBE, "1"]

[jobs.anywhere]

[jobs.in-b]
run_on = { zone = "b" }

[jobs.nowhere]
run_on = { zone = "x" }
starting_deadline = "2s"
"#;
    let scene = Scene::on_file(table);
    let _replicas = [
        scene.start_with("a", &["--tag", "zone=a"]),
        scene.start_with("b", &["--tag", "zone=b"]),
        scene.start("c"),
    ];
    let skipped = scene.wait_for_lines("nowhere", SOON, |lines| {
        (lines.len() >= 4).then(|| lines.to_vec())
    });
    let runs = scene.fleet.wait_for_runs(SOON, |runs| {
        let there = runs.iter().filter(|run| run.job == "in-b");
        let anywhere = runs.iter().filter(|run| run.job == "anywhere");
        let places: BTreeSet<_> = anywhere.map(|run| &run.replica).collect();
        (there.count() >= 6 && places.len() > 1).then(|| runs.to_vec())
    });
    let on = |job: &str| -> BTreeSet<String> {
        let own = runs.iter().filter(|run| run.job == job);
        own.map(|run| run.replica.clone()).collect()
    };
    assert_eq!(on("in-b"), BTreeSet::from(["b".to_owned()]));
    assert!(on("nowhere").is_empty(), "{:?}", on("nowhere"));
    let for_want_of_a_place = (Outcome::Skipped, Some(Cause::Placement));
    for line in &skipped {
        assert_eq!(fate(line), for_want_of_a_place, "{}", shown(&skipped));
    }
    eprintln!(
        "{}: `in-b` on {:?}, `anywhere` on {:?}, `nowhere` skipped {} times: {}",
        scene.store_name(),
        on("in-b"),
        on("anywhere"),
        skipped.len(),
        skipped[0].detail.reason.as_deref().unwrap_or_default()
    );
}

fn roomy() -> String {
    let mut table = "[scheduler]\nmax_running = 2\n[defaults]\nschedule = \"@manual\"\n".to_owned();
    for number in 0..7 {
        table += &format!("[jobs.job-{number}]\ncommand = [PROBE, \"2500\"]\n");
    }
    table + "[jobs.long]\ncommand = [PROBE, \"6000\"]\n"
}

/// How many of these ran at once on a replica, at most.
fn most_at_once(runs: &[&Run], replica: &str) -> usize {
    let own: Vec<_> = runs.iter().filter(|run| run.replica == replica).collect();
    let at = |instant: i128| {
        let alive = own.iter().filter(|run| {
            run.started_ns <= instant && run.ended_ns.is_none_or(|ended| ended > instant)
        });
        alive.count()
    };
    own.iter().map(|run| at(run.started_ns)).max().unwrap_or(0)
}

/// Triggers the seven jobs at once, and waits until they are over.
fn seven(scene: &Scene) -> Vec<Run> {
    let before = scene.fleet.runs().len();
    let names: Vec<String> = (0..7).map(|number| format!("job-{number}")).collect();
    let at: Vec<String> = names.iter().map(|name| scene.trigger(name)).collect();
    let ran = scene.fleet.wait_for_runs(SOON, |runs| {
        let ours = |run: &&Run| at.contains(&run.scheduled_at) && run.job != "long";
        let ours: Vec<Run> = runs.iter().filter(ours).cloned().collect();
        let over = ours.iter().filter(|run| run.ended_ns.is_some()).count();
        (over == names.len()).then_some(ours)
    });
    assert!(scene.fleet.runs().len() >= before + 7);
    ran
}

#[test]
fn a_full_replica_and_a_draining_one_leave_work_to_the_others() {
    let _machine = together();
    let scene = Scene::on_redis(&roomy());
    let mut replicas = scene.three();
    let ran = seven(&scene);
    let all: Vec<&Run> = ran.iter().collect();
    let most = ["a", "b", "c"].map(|name| most_at_once(&all, name));
    assert_eq!(most, [2, 2, 2], "{ran:#?}");
    let first_end = ran.iter().filter_map(|run| run.ended_ns).min();
    let last_start = ran.iter().map(|run| run.started_ns).max();
    assert!(
        last_start > first_end,
        "the seventh waits for room: {ran:#?}"
    );

    scene.trigger("long");
    let long = scene.fleet.wait_for_runs(SOON, |runs| {
        runs.iter().find(|run| run.job == "long").cloned()
    });
    let holder = replicas.iter_mut().find(|one| one.name == long.replica);
    let holder = holder.expect("one of the three");
    holder.signal(Signal::TERM);
    holder.wait_for_line(&["draining"]);
    let ran = seven(&scene);
    let others: BTreeSet<&str> = ran.iter().map(|run| run.replica.as_str()).collect();
    assert!(!others.contains(long.replica.as_str()), "{ran:#?}");
    assert_eq!(others.len(), 2, "{ran:#?}");
    let all: Vec<&Run> = ran.iter().collect();
    assert!(
        others.iter().all(|name| most_at_once(&all, name) == 2),
        "{ran:#?}"
    );
    assert_eq!(holder.wait(SOON).code(), Some(0));
    let end = scene.wait_for_end("long", Duration::from_secs(2));
    assert_eq!((end.attempt, end.outcome), (1, Outcome::Succeeded));
    eprintln!(
        "seven at once, two on each of three: at most {most:?}; while {} drained, all on {others:?}",
        long.replica
    );
    replicas.retain(|one| one.name != long.replica);
    replicas.iter_mut().for_each(Replica::drain);
}

#[test]
fn a_full_fleet_still_skips_and_replaces() {
    let _machine = together();
    let table = r#"
[scheduler]
max_running = 1
[defaults]
schedule = "@manual"
command = [PROBE, "60000"]
[jobs.forbid]
[jobs.replace]
concurrency_policy = "replace"
"#;
    let scene = Scene::on_file(table);
    let replicas = ["a", "b"].map(|name| scene.start(name));
    for job in ["forbid", "replace"] {
        scene.trigger(job);
        scene.fleet.wait_for_runs(SOON, |runs| {
            runs.iter().any(|run| run.job == job).then_some(())
        });
    }
    let skipped = scene.trigger("forbid");
    let line = scene.wait_for_lines("forbid", SOON, |lines| lines.first().cloned());
    assert_eq!(line.scheduled_at.to_string(), skipped);
    assert_eq!(fate(&line), (Outcome::Skipped, Some(Cause::Overlap)));
    let newer = scene.trigger("replace");
    scene.fleet.wait_for_runs(SOON, |runs| {
        let runs_now = |run: &Run| run.job == "replace" && run.scheduled_at == newer;
        runs.iter().any(runs_now).then_some(())
    });
    let lines = scene.lines("replace");
    assert_eq!(lines.len(), 1, "{}", shown(&lines));
    let replaced = (Outcome::Cancelled, Some(Cause::Replaced));
    assert_eq!(fate(&lines[0]), replaced);
    for replica in &replicas {
        // Nobody waits for what runs for a minute.
        replica.signal(Signal::TERM);
        replica.signal(Signal::TERM);
    }
}
