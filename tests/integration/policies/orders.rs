//! `trigger`, `pause`, `resume`, `kill`: what people ask for, whatever replica it concerns.

use std::time::Duration;

use soloist::scheduler::lease::{Cause, OrderAnswer, OrderKind, Origin, Outcome};
use test_support::process::{Deaths, Process};

use super::scene::{Scene, each_is_accounted_for_once, fate, ranges, shown};
use crate::fleet::{Replica, SOON, instant_ns, now_ns};
use crate::together;

const TABLE: &str = r#"
[defaults]
schedule = "@manual"
lease_ttl = "5s"

[jobs.by-hand]
shell = "NOTES; note start"

[jobs.each-second]
schedule = "* * * * * *"
shell = "NOTES; note start"

[jobs.stubborn]
command = [FAMILY, "stubborn"]
kill_grace = "2s"
retry = { max = 3 }

[jobs.again-later]
shell = "NOTES; note start; exit 1"
retry = { max = 3, backoff = "4s" }
"#;

/// What is promised on top of `kill_grace`.
const KILLED_WITHIN: Duration = Duration::from_secs(2 + 1);

#[test]
fn a_trigger_given_with_all_replicas_dead_runs_once_when_one_comes() {
    let _machine = together();
    let scene = Scene::on_file(TABLE);
    scene.three().iter_mut().for_each(Replica::kill9);
    let at = scene.trigger("by-hand");
    let _replicas = scene.three();
    let came = now_ns();
    let end = scene.wait_for_end("by-hand", SOON);
    assert_eq!((end.attempt, end.outcome), (1, Outcome::Succeeded));
    assert_eq!(end.detail.origin, Origin::Trigger);
    assert_eq!(end.detail.by.as_deref(), Some("alice@desk"));
    // Whoever would run it a second time has seen later occurrences end.
    scene.wait_for_notes(|notes| {
        let later = |at: &str| instant_ns(at) > came + 2_000_000_000;
        notes
            .iter()
            .find(|note| later(&note.scheduled_at))
            .map(drop)
    });
    let notes = scene.notes();
    let ran: Vec<_> = notes.iter().filter(|note| note.job == "by-hand").collect();
    assert_eq!(ran.len(), 1, "{ran:#?}");
    assert_eq!(
        (ran[0].scheduled_at.as_str(), ran[0].what.as_str()),
        (at.as_str(), "start")
    );
}

#[test]
fn what_falls_due_in_a_pause_is_one_line_and_what_follows_it_runs() {
    let _machine = together();
    let scene = Scene::on_redis(TABLE);
    let _replicas = scene.three();
    let of_job = |job: &'static str, after: i128| {
        scene.wait_for_notes(|notes| {
            let later = notes
                .iter()
                .filter(|note| note.job == job && instant_ns(&note.scheduled_at) > after);
            later.map(|note| instant_ns(&note.scheduled_at)).min()
        })
    };
    // One has just ended: nothing is in the way of a trigger.
    scene.wait_for_lines("each-second", SOON, |lines| lines.first().map(drop));
    let OrderAnswer::Paused { since, by } = scene.order("each-second", OrderKind::Pause) else {
        panic!("it is there");
    };
    assert_eq!(by, "alice@desk");
    let since = i128::from(since.as_millis()) * 1_000_000;
    // A trigger in the pause runs; three seconds of it are enough.
    let triggered = scene.trigger("each-second");
    of_job("each-second", instant_ns(&triggered) - 1);
    crate::fleet::sleep_until_ns(since + 3_500_000_000);
    scene.order("each-second", OrderKind::Resume);
    let resumed = now_ns();
    let next = of_job("each-second", resumed);
    let lines = scene.wait_for_lines("each-second", SOON, |lines| {
        let ended = |at| i128::from(at) * 1_000_000 >= next;
        let last = lines.last()?.scheduled_at.as_millis();
        ended(last).then(|| lines.to_vec())
    });
    let paused: Vec<_> = ranges(&lines)
        .into_iter()
        .filter(|line| fate(line) == (Outcome::Skipped, Some(Cause::Paused)))
        .collect();
    assert_eq!(paused.len(), 1, "{}", shown(&lines));
    let scheduled: Vec<_> = lines
        .iter()
        .filter(|line| line.detail.origin == Origin::Schedule)
        .cloned()
        .collect();
    each_is_accounted_for_once(&scheduled, 1);
    let scheduled_in_it = scene.notes().into_iter().filter(|note| {
        let at = instant_ns(&note.scheduled_at);
        note.job == "each-second" && at > since && at < resumed && note.scheduled_at != triggered
    });
    let scheduled_in_it: Vec<_> = scheduled_in_it.collect();
    assert!(
        scheduled_in_it.is_empty(),
        "the trigger of {triggered} alone runs in a pause: {scheduled_in_it:#?}"
    );
    eprintln!(
        "{}: paused for {:.1} s, one line: {}; the next ran {:.2} s after the resume",
        scene.store_name(),
        (resumed - since) as f64 / 1e9,
        paused[0].detail.reason.as_deref().unwrap_or_default(),
        (next - resumed) as f64 / 1e9
    );
}

#[test]
fn a_kill_ends_the_whole_tree_within_its_grace_and_a_second() {
    let _machine = together();
    let scene = Scene::on_redis(TABLE);
    let _replicas = scene.three();
    scene.trigger("stubborn");
    let (replica, tree) = scene.fleet.wait_for_members(SOON, |members| {
        let tree: Vec<Process> = members.iter().map(|member| member.process).collect();
        (tree.len() == 5).then(|| (members[0].replica.clone(), tree))
    });
    let deaths = Deaths::watch(&tree, SOON);
    let asked = now_ns();
    let answer = scene.order("stubborn", OrderKind::Kill);
    assert!(
        matches!(answer, OrderAnswer::Killed { running: 1, .. }),
        "{answer:?}"
    );
    let ended = deaths.join();
    let died = ended.last(tree).expect("all of it is dead");
    let took = Duration::from_nanos(u64::try_from(died - asked).unwrap_or(0));
    eprintln!(
        "{}: killed on {replica}, dead in {took:.2?}",
        scene.store_name()
    );
    assert!(took < KILLED_WITHIN + ended.still(), "{took:?}");
    let end = scene.wait_for_end("stubborn", SOON);
    assert_eq!(fate(&end), (Outcome::Cancelled, Some(Cause::Killed)));
    assert_eq!(scene.order("stubborn", OrderKind::Kill), OrderAnswer::Idle);
    assert_eq!(scene.fleet.members().len(), 5, "no retry follows");
}

#[test]
fn a_kill_ends_what_waits_to_be_tried_again() {
    let _machine = together();
    let scene = Scene::on_file(TABLE);
    let _replicas = scene.three();
    scene.trigger("again-later");
    let failed = scene.wait_for_lines("again-later", SOON, |lines| lines.first().cloned());
    let again = failed.detail.next_attempt_at.expect("another attempt");
    let again = i128::from(again.as_millis()) * 1_000_000;
    let answer = scene.order("again-later", OrderKind::Kill);
    assert!(
        matches!(answer, OrderAnswer::Killed { running: 0, .. }),
        "{answer:?}"
    );
    let end = scene.wait_for_end("again-later", SOON);
    assert_eq!(fate(&end), (Outcome::Cancelled, Some(Cause::Killed)));
    // Past the time of the next attempt, as another job's occurrences show.
    scene.wait_for_notes(|notes| {
        let past = |at: &str| instant_ns(at) > again + 1_000_000_000;
        notes.iter().find(|note| past(&note.scheduled_at)).map(drop)
    });
    let notes = scene.notes();
    let ran = notes.iter().filter(|note| note.job == "again-later");
    assert_eq!(ran.count(), 1);
}

/// One is due all the time, and of one nothing falls due between its pause and the loss.
const PAUSED_TABLE: &str = r#"
[defaults]
lease_ttl = "2s"
shell = "NOTES; note start"

[jobs.beat]
schedule = "* * * * * *"

[jobs.each-second]
schedule = "* * * * * *"

[jobs.yearly]
schedule = "0 0 1 1 *"
"#;

#[test]
fn a_paused_job_stays_paused_though_the_store_loses_all_its_data() {
    let _machine = together();
    let mut scene = Scene::on_redis(PAUSED_TABLE);
    let replicas = scene.three();
    let paused = ["each-second", "yearly"].map(|job| scene.order(job, OrderKind::Pause));
    let OrderAnswer::Paused { since, .. } = &paused[0] else {
        panic!("it is there: {paused:?}");
    };
    let since_ns = i128::from(since.as_millis()) * 1_000_000;
    let beat_after = |scene: &Scene, at: i128| {
        scene.wait_for_notes(|notes| {
            let later = |at_ns: &i128| *at_ns > at;
            let beats = notes.iter().filter(|note| note.job == "beat");
            beats.map(|note| instant_ns(&note.scheduled_at)).find(later)
        })
    };
    // All have asked about it by then, as they hear of it within milliseconds.
    beat_after(&scene, since_ns + 1_000_000_000);
    assert_eq!(scene.server().command(&["FLUSHALL"]), "OK");
    let flushed = now_ns();
    // After the grace window, and for some more.
    let first = beat_after(&scene, flushed + 3_000_000_000);
    beat_after(&scene, first + 2_000_000_000);
    let ran = scene
        .notes()
        .into_iter()
        .filter(|note| note.job == "each-second" && instant_ns(&note.scheduled_at) > since_ns);
    assert_eq!(ran.count(), 0);
    let again = ["each-second", "yearly"].map(|job| scene.order(job, OrderKind::Pause));
    assert_eq!(again, paused, "since when, and by whom");
    let told = replicas
        .iter()
        .map(|replica| replica.lines_with("the job is paused again"));
    assert_eq!(told.sum::<usize>(), 2, "each of them is told of once");

    scene.order("each-second", OrderKind::Resume);
    let resumed = now_ns();
    scene.wait_for_notes(|notes| {
        let later = |at: &str| instant_ns(at) > resumed;
        let mut of_job = notes.iter().filter(|note| note.job == "each-second");
        of_job.find(|note| later(&note.scheduled_at)).map(drop)
    });
    let lines = scene.lines("each-second");
    let skipped = lines
        .iter()
        .find(|line| fate(line) == (Outcome::Skipped, Some(Cause::Paused)));
    let reason = skipped.and_then(|line| line.detail.reason.as_deref());
    assert_eq!(reason, Some("the job was paused by alice@desk"));
}
