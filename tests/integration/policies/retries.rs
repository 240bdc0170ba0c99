//! `retry` and `max_attempts`: what follows a failure, and a job that takes its replica with it.

use std::time::Duration;

use soloist::scheduler::lease::{Cause, Outcome};
use test_support::machine::stood_still;

use super::scene::{Note, Scene, fate, shown};
use crate::fleet::{Replica, SOON, instant_ns, now_ns};
use crate::together;

const TABLE: &str = r#"
[defaults]
schedule = "@manual"
lease_ttl = "5s"

[jobs.third-time]
shell = 'NOTES; note start; [ "$SOLOIST_ATTEMPT" -ge 3 ]'
retry = { max = 3, backoff = "1s" }

[jobs.second-time]
shell = 'NOTES; note start; [ "$SOLOIST_ATTEMPT" -ge 2 ]'
retry = { max = 1, backoff = "6s" }

[jobs.poison]
shell = 'NOTES; note start; kill -9 "$(cat "DIR/pid.$SOLOIST_REPLICA")"; sleep 60'
max_attempts = 2
"#;

fn of(notes: &[Note], job: &str) -> Vec<Note> {
    let notes = notes.iter().filter(|note| note.job == job);
    notes.cloned().collect()
}

fn position(replicas: &[Replica], name: &str) -> usize {
    let found = replicas.iter().position(|replica| replica.name == name);
    found.expect("one of the fleet")
}

#[test]
fn what_fails_is_tried_again_elsewhere_until_it_succeeds() {
    let _machine = together();
    let scene = Scene::on_redis(TABLE);
    let _replicas = scene.three();
    let stood_before = stood_still();
    scene.trigger("third-time");
    let end = scene.wait_for_end("third-time", SOON);
    let still = (stood_still() - stood_before).as_secs_f64();
    assert_eq!((end.attempt, end.outcome), (3, Outcome::Succeeded));
    let lines = scene.lines("third-time");
    assert_eq!(lines.len(), 3, "{}", shown(&lines));
    let notes = of(&scene.notes(), "third-time");
    let waits: Vec<f64> = notes
        .windows(2)
        .map(|pair| (pair[1].at_ns - pair[0].at_ns) as f64 / 1e9)
        .collect();
    // Of one second and two a quarter at most is cut by chance.
    assert!((0.75..2.0 + still).contains(&waits[0]), "{waits:?}");
    assert!((1.5..3.5 + still).contains(&waits[1]), "{waits:?}");
    let where_to: Vec<_> = notes.iter().map(|note| note.replica.clone()).collect();
    // Others have a head start, which a busy machine may use up once.
    let moved = where_to.windows(2).filter(|pair| pair[0] != pair[1]);
    assert!(moved.count() >= 1, "{notes:#?}");
    eprintln!(
        "{}: attempts on {where_to:?}, waits {waits:.2?} s",
        scene.store_name()
    );
}

#[test]
fn a_retry_comes_although_the_replica_that_failed_is_dead() {
    let _machine = together();
    let scene = Scene::on_file(TABLE);
    let mut replicas = scene.three();
    scene.trigger("second-time");
    let failed = scene.wait_for_lines("second-time", SOON, |lines| lines.first().cloned());
    let again = failed.detail.next_attempt_at.expect("another attempt");
    let again_ns = i128::from(again.as_millis()) * 1_000_000;
    let holder = position(&replicas, &failed.replica);
    let stood_before = stood_still();
    replicas[holder].kill9();
    assert!(now_ns() < again_ns, "it was killed in the back-off");
    let end = scene.wait_for_end("second-time", SOON);
    let still = (stood_still() - stood_before).as_secs_f64() * 1e3;
    assert_eq!((end.attempt, end.outcome), (2, Outcome::Succeeded));
    assert_ne!(end.replica, failed.replica);
    let second = of(&scene.notes(), "second-time").remove(1);
    let late = (second.at_ns - again_ns) as f64 / 1e6;
    eprintln!(
        "{}: {} failed and was killed in the back-off; attempt 2 on {}, {late:.0} ms after \
         its time",
        scene.store_name(),
        failed.replica,
        second.replica
    );
    assert!((0.0..1000.0 + still).contains(&late), "{late} ms");
}

#[test]
fn a_job_that_kills_its_replicas_does_not_walk_through_the_fleet() {
    let _machine = together();
    let scene = Scene::on_redis(TABLE);
    let mut replicas = scene.three();
    let asked_ns = instant_ns(&scene.trigger("poison"));
    let end = scene.wait_for_end("poison", Duration::from_secs(40));
    let lost = (Outcome::Lost, Some(Cause::MaxAttempts));
    let lines = scene.lines("poison");
    assert_eq!(fate(&end), lost, "{}", shown(&lines));
    assert_eq!(end.attempt, 2, "{}", shown(&lines));
    let took = (now_ns() - asked_ns) as f64 / 1e9;
    let mut killed: Vec<_> = of(&scene.notes(), "poison")
        .into_iter()
        .map(|note| note.replica)
        .collect();
    assert_eq!(killed.len(), 2, "{}", shown(&lines));
    for name in &killed {
        let dead = position(&replicas, name);
        replicas[dead].wait(SOON);
    }
    killed.sort();
    killed.dedup();
    assert_eq!(killed.len(), 2, "each attempt on another replica");
    // Who is left works on.
    scene.trigger("third-time");
    let end = scene.wait_for_end("third-time", SOON);
    assert_eq!(end.outcome, Outcome::Succeeded);
    assert!(!killed.contains(&end.replica));
    eprintln!(
        "a job that kills its replica: {killed:?} died, lost for good after {took:.1} s; {} works on",
        end.replica
    );
}
