//! `concurrency_policy`: what becomes of an occurrence that finds its job running, on whatever
//! replica.

use soloist::scheduler::lease::{Cause, Outcome};
use soloist::store::AttemptRecord;
use test_support::family::Member;
use test_support::probe::Run;
use test_support::process::{Deaths, Process, Signal};

use super::scene::{Scene, each_is_accounted_for_once, fate, second, shown};
use crate::fleet::{SOON, instant_ns, now_ns};
use crate::together;

/// What one attempt's end takes until the next one's job is there.
const TURN: i128 = 1_000_000_000;

#[test]
fn what_finds_its_job_running_is_skipped_or_waits_for_its_turn() {
    let _machine = together();
    const TABLE: &str = r#"
[defaults]
schedule = "*/2 * * * * *"
lease_ttl = "5s"

[jobs.forbid]
command = [PROBE, "5000"]

[jobs.queue]
command = [PROBE, "5000"]
concurrency_policy = "queue"
queue_limit = 1
"#;
    let scene = Scene::on_redis(TABLE);
    let mut replicas = scene.three();
    let ran = |lines: &[AttemptRecord], count| {
        let ran = lines
            .iter()
            .filter(|line| line.outcome == Outcome::Succeeded);
        (ran.count() >= count).then_some(())
    };
    scene.wait_for_lines("queue", SOON * 2, |lines| ran(lines, 3));
    // All at once: none of them goes on with what another hands over.
    replicas
        .iter()
        .for_each(|replica| replica.signal(Signal::TERM));
    for replica in &mut replicas {
        assert_eq!(replica.wait(SOON).code(), Some(0), "{}", replica.log());
    }
    let runs = scene.fleet.runs();
    let forbidden = scene.lines("forbid");
    skipped_or_run(&forbidden, Cause::Overlap);
    let queued = scene.lines("queue");
    skipped_or_run(&queued, Cause::QueueFull);
    let gaps = in_turn(&runs, "queue");
    // Five seconds each, due every two, and one may wait: the next one is there at once.
    assert!(gaps.iter().all(|gap| *gap < TURN), "{gaps:?}");
    in_turn(&runs, "forbid");
    let waits: Vec<_> = gaps.iter().map(|gap| gap / 1_000_000).collect();
    eprintln!(
        "{}: forbid, {} lines; queue, {} lines, from one attempt to the next {waits:?} ms",
        scene.store_name(),
        forbidden.len(),
        queued.len(),
    );
}

/// Each instant up to the newest that ran was skipped for this one cause, or ran; there are some
/// of both.
fn skipped_or_run(lines: &[AttemptRecord], cause: Cause) {
    let ran = lines
        .iter()
        .filter(|line| line.outcome == Outcome::Succeeded);
    let newest = ran.clone().map(second).max().expect("some ran");
    // What is newer may still have waited when the fleet was stopped.
    let settled: Vec<AttemptRecord> = lines
        .iter()
        .filter(|line| second(line) <= newest && line.detail.is_final())
        .cloned()
        .collect();
    each_is_accounted_for_once(&settled, 2);
    let skipped = (Outcome::Skipped, Some(cause));
    let skipped = settled.iter().filter(|line| fate(line) == skipped).count();
    assert!(ran.clone().count() >= 2 && skipped >= 1, "{}", shown(lines));
    assert_eq!(ran.count() + skipped, settled.len(), "{}", shown(lines));
}

/// The job's runs are in the order of their instants, and one at a time. Gives the time between.
fn in_turn(runs: &[Run], job: &str) -> Vec<i128> {
    let runs: Vec<&Run> = runs.iter().filter(|run| run.job == job).collect();
    assert!(
        runs.is_sorted_by_key(|run| instant_ns(&run.scheduled_at)),
        "{runs:#?}"
    );
    let gap = |pair: &[&Run]| {
        let ended = pair[0].ended_ns.expect("each ended before the next began");
        assert!(pair[1].started_ns > ended, "{pair:#?}");
        pair[1].started_ns - ended
    };
    runs.windows(2).map(gap).collect()
}

/// Five processes that don't mind TERM, one of them in a session of its own, two of them orphans.
const STUBBORN: &str = r#"
[jobs.replaced]
schedule = "*/5 * * * * *"
command = [FAMILY, "stubborn"]
concurrency_policy = "replace"
kill_grace = "1s"
lease_ttl = "5s"
"#;

const FAMILY_SIZE: usize = 5;

/// The families that came so far, each by its attempt's own id, in order.
fn families(members: &[Member]) -> Vec<(String, Vec<&Member>)> {
    let mut families: Vec<(String, Vec<&Member>)> = Vec::new();
    for member in members {
        match families.iter_mut().find(|(id, _)| *id == member.run_id) {
            Some((_, found)) => found.push(member),
            None => families.push((member.run_id.clone(), vec![member])),
        }
    }
    families
}

/// Waits until the family of this number is complete.
fn complete(scene: &Scene, number: usize) -> (String, Vec<Process>) {
    scene.fleet.wait_for_members(SOON, |members| {
        let found = families(members);
        let (_, family) = found.get(number)?;
        let processes: Vec<Process> = family.iter().map(|member| member.process).collect();
        let replica = family[0].replica.clone();
        (processes.len() >= FAMILY_SIZE).then_some((replica, processes))
    })
}

fn started_ns(scene: &Scene, number: usize) -> i128 {
    let members = scene.fleet.members();
    let found = families(&members);
    found[number].1[0].started_ns
}

#[test]
fn a_replaced_tree_is_dead_to_the_last_process_before_the_new_one_starts() {
    let _machine = together();
    let scene = Scene::on_file(STUBBORN);
    let mut replicas = scene.three();
    let (_, old) = complete(&scene, 0);
    let deaths = Deaths::watch(&old, SOON);
    let (holder, second) = complete(&scene, 1);
    let died = deaths.join().last(old).expect("the first family is dead");
    let free_ms = (started_ns(&scene, 1) - died) / 1_000_000;
    assert!(died < started_ns(&scene, 1), "{:#?}", scene.fleet.members());

    // The same where nobody is there any more to end it.
    let deaths = Deaths::watch(&second, SOON);
    let killed = now_ns();
    let found = replicas.iter_mut().find(|replica| replica.name == holder);
    found.expect("one of the three").kill9();
    complete(&scene, 2);
    let died = deaths
        .join()
        .last(second)
        .expect("the second family is dead");
    assert!(died < started_ns(&scene, 2), "{:#?}", scene.fleet.members());
    let lines = scene.wait_for_lines("replaced", SOON, |lines| {
        (lines.len() >= 2).then(|| lines.to_vec())
    });
    let replaced = (Outcome::Cancelled, Some(Cause::Replaced));
    assert_eq!(fate(&lines[0]), replaced, "{}", shown(&lines));
    eprintln!(
        "{}: replace, the new tree began {free_ms} ms after the old one's last process died; \
         after kill -9 of the holder its tree was dead in {} ms, and the next began after {:.1} s",
        scene.store_name(),
        (died - killed) / 1_000_000,
        (started_ns(&scene, 2) - killed) as f64 / 1e9,
    );
}
