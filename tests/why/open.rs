//! Occurrences that run, or wait for something.

use std::time::Duration;

use soloist::scheduler::lease::{AttemptDetail, ClaimAnswer, OrderKind, Outcome};
use soloist::scheduler::policy::Concurrency;

use crate::world::{World, exit, job, name, tag};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn what_runs_names_its_holder_and_the_lease() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    world.claim("r1", &daily, "22:00:00");
    world.set("22:00:04");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is running.",
            "Attempt 1 began on r1 at 2026-11-20T22:00:00Z (4.0s ago) under token 1795212000000000; its lease lasts until 2026-11-20T22:00:15Z (in 11.0s) unless it is renewed."
        ]
    );
}

#[test]
fn what_was_handed_over_runs_elsewhere() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:05");
    let drained = AttemptDetail::reason("the replica was shut down");
    world.end("r1", &lease, Outcome::HandedOver, drained, None);
    world.set("22:00:05.100");
    world.claim("r2", &daily, "22:00:00");
    world.set("22:00:06");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is running.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:05Z (5.0s) under token 1795212000000000, and was handed over: the replica was shut down. The next one could begin at once.",
            "Attempt 2 began on r2 at 2026-11-20T22:00:05.1Z (900ms ago) under token 1795212005100000; its lease lasts until 2026-11-20T22:00:20.1Z (in 14.1s) unless it is renewed. It began 5.1s after its instant: attempt 1 was handed over at 2026-11-20T22:00:05Z."
        ]
    );
}

#[test]
fn what_its_holder_abandoned_is_not_said_to_run() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    world.claim("r1", &daily, "22:00:00");
    world.set("22:01:00");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z was running on a replica that was not heard of since.",
            "Attempt 1 began on r1 at 2026-11-20T22:00:00Z (1m 0s ago) under token 1795212000000000; its lease ran out at 2026-11-20T22:00:15Z (45.0s ago): any replica that watched it may take over."
        ]
    );
}

#[test]
fn what_failed_and_is_tried_again_says_when() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:03");
    world.end("r1", &lease, Outcome::Failed, exit(7), Some(30 * SECOND));
    world.alive("r1", |_| {});
    world.alive("r2", |_| {});
    world.set("22:00:13");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z waits for its next attempt.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:03Z (3.0s) under token 1795212000000000, and failed: exit code 7. The next one could begin 30.0s later, at 2026-11-20T22:00:33Z.",
            "Attempt 2 may begin at 2026-11-20T22:00:33Z (in 20.0s).",
            "Any of these may claim it: r1, r2.",
        ]
    );
}

/// 22:00 runs, and 22:01 and 22:02 wait.
fn a_queue() -> World {
    let mut minutely = job("minutely", "* * * * *");
    minutely.concurrency = Concurrency::Queue { limit: 10 };
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    world.claim("r1", &minutely, "22:00:00");
    for time in ["22:01:00", "22:02:00"] {
        world.set(time);
        let claim = world.prepare(&minutely, time);
        assert_eq!(world.ask("r2", &claim), ClaimAnswer::Waiting);
    }
    world.set("22:02:30");
    world
}

#[test]
fn what_waits_in_a_queue_says_behind_what_and_how_long_it_may() {
    let world = a_queue();
    assert_eq!(
        world.why("minutely", "22:02:00"),
        [
            "minutely at 2026-11-20T22:02:00Z waits for its turn.",
            "It waits since 2026-11-20T22:02:00Z (30.0s ago); it is number 2, behind the unfinished occurrence of 2026-11-20T22:00:00Z and that of 2026-11-20T22:01:00Z. It may start until 2026-11-20T22:03:00Z (in 30.0s).",
        ]
    );
}

#[test]
fn what_waits_in_a_queue_of_a_paused_job_will_not_run() {
    let mut world = a_queue();
    let minutely = world.table.clone().expect("a table").remove(0);
    world.order(&minutely, OrderKind::Pause);
    let told = world.why("minutely", "22:01:00");
    let expected = "The job has been paused since 2026-11-20T22:02:30Z, by ann: unless that ends before its turn comes, it is skipped.";
    assert_eq!(told.last().map(String::as_str), Some(expected), "{told:#?}");
}

#[test]
fn a_trigger_that_no_replica_saw_yet_waits_for_one() {
    let manual = job("manual", "@manual");
    let mut world = World::new([manual.clone()]);
    world.set("22:00:00.250");
    world.order(&manual, OrderKind::Trigger);
    world.set("22:00:10");
    assert_eq!(
        world.why("manual", "22:00:00.250"),
        [
            "manual at 2026-11-20T22:00:00.25Z waits for its turn.",
            "It was triggered by ann.",
            "It waits since 2026-11-20T22:00:00.25Z (9.8s ago); nothing is before it. It may start however late.",
            "Nobody can claim it: no replica has been heard of lately."
        ]
    );
}

/// `load` comes after `extract` and `fetch`.
fn a_pipeline() -> World {
    let (extract, fetch) = (job("extract", "0 22 * * *"), job("fetch", "0 22 * * *"));
    let mut load = job("load", "@manual");
    load.after = vec![name("extract"), name("fetch")];
    World::new([extract, fetch, load])
}

#[test]
fn what_waits_for_other_jobs_names_those_that_are_missing() {
    let mut world = a_pipeline();
    let [extract, fetch] = ["extract", "fetch"].map(|name| job(name, "0 22 * * *"));
    world.set("22:00:00");
    let lease = world.claim("r1", &extract, "22:00:00");
    let before = world.why("load", "22:00:00");
    assert_eq!(
        before,
        [
            "load at 2026-11-20T22:00:00Z waits for other jobs.",
            "The job comes after extract, fetch.",
            "None of them has succeeded yet: `extract`, `fetch`.",
        ]
    );
    world.set("22:00:05");
    world.succeed("r1", &lease);
    world.claim("r1", &fetch, "22:00:00");
    assert_eq!(
        world.why("load", "22:00:00"),
        [
            "load at 2026-11-20T22:00:00Z waits for other jobs.",
            "The job comes after extract, fetch.",
            "Succeeded: `extract`. Not yet: `fetch`.",
        ]
    );
}

#[test]
fn what_is_to_come_after_other_jobs_says_so() {
    let world = a_pipeline();
    assert_eq!(
        world.why("load", "22:00:00"),
        [
            "load at 2026-11-20T22:00:00Z is still to come.",
            "The job comes after extract, fetch.",
            "What it comes after is due in 1h 0m; it runs when all of that has succeeded.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
        ]
    );
    assert_eq!(
        world.why("load", "22:10:00"),
        [
            "load at 2026-11-20T22:10:00Z is not an occurrence.",
            "The job runs when `extract`, `fetch` have succeeded, at their instants, and this is none that the ledger has.",
        ]
    );
}

#[test]
fn what_is_to_come_says_when() {
    let world = World::new([job("daily", "0 22 * * *")]);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
        ]
    );
}

#[test]
fn a_random_delay_is_part_of_what_is_to_come() {
    let mut daily = job("daily", "0 22 * * *");
    daily.random_delay = 600 * SECOND;
    let world = World::new([daily]);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "Its `random_delay` is 1m 18s: it starts at 2026-11-20T22:01:18.002Z, on whatever replica.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
        ]
    );
    world.set("22:00:01");
    let told = world.why("daily", "22:00:00");
    assert_eq!(told[0], "daily at 2026-11-20T22:00:00Z is still to come.");
}

#[test]
fn what_is_to_come_of_a_suspended_job_will_not_run() {
    let daily = job("daily", "0 22 * * *");
    let mut off = job("off", "0 22 * * *");
    off.enabled = false;
    let mut world = World::new([daily.clone(), off]);
    world.order(&daily, OrderKind::Pause);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "The job has been paused since 2026-11-20T21:00:00Z, by ann: unless that ends before, it is skipped."
        ]
    );
    assert_eq!(
        world.why("off", "22:00:00"),
        [
            "off at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "The job has been disabled since 2026-11-20T21:00:00Z: unless that ends before, it is skipped.",
        ]
    );
    world.set("22:05:00");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z does not run: the job is paused.",
            "The job has been paused since 2026-11-20T21:00:00Z, by ann: what falls due meanwhile is recorded as skipped when that ends.",
        ]
    );
    assert_eq!(
        world.why("off", "22:00:00"),
        [
            "off at 2026-11-20T22:00:00Z does not run: the job is disabled.",
            "The job has been disabled since 2026-11-20T21:00:00Z: what falls due meanwhile is recorded as skipped when that ends.",
        ]
    );
}

fn last_line(world: &World, job: &str) -> String {
    let mut told = world.why(job, "22:00:00");
    assert_eq!(
        told[0],
        format!("{job} at 2026-11-20T22:00:00Z is due, and nobody has claimed it yet.")
    );
    told.pop().unwrap_or_default()
}

#[test]
fn what_is_due_and_unclaimed_names_who_could_and_what_holds_them() {
    let mut tagged = job("tagged", "0 22 * * *");
    tagged.run_on = tag("zone", "b");
    let world = World::new([job("daily", "0 22 * * *"), tagged]);
    world.set("22:00:01");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is due, and nobody has claimed it yet.",
            "It may start until 2026-11-20T22:01:00Z (in 59.0s), by `starting_deadline`.",
            "Nobody can claim it: no replica has been heard of lately."
        ]
    );
    world.alive("r1", |_| {});
    assert_eq!(last_line(&world, "daily"), "Any of these may claim it: r1.");
    assert_eq!(
        last_line(&world, "tagged"),
        "Nobody can claim it: none of the replicas that are alive (r1) has the tags of `run_on = { zone = \"b\" }`."
    );
    world.alive("r1", |info| {
        info.draining = true;
        info.declines = true;
    });
    world.alive("r2", |info| info.declines = true);
    assert_eq!(
        last_line(&world, "daily"),
        "Every replica that could claim it takes nothing new: r2 full; r1 draining."
    );
}

#[test]
fn what_fell_due_before_a_pause_runs_only_where_that_ends_in_time() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:05");
    world.order(&daily, OrderKind::Pause);
    world.alive("r1", |_| {});
    let told = world.why("daily", "22:00:00");
    assert_eq!(told[told.len() - 2], "Any of these may claim it: r1.");
    let expected = "The job has been paused since 2026-11-20T22:00:05Z, by ann: unless that ends before its turn comes, it is skipped.";
    assert_eq!(told[told.len() - 1], expected);
    // It was heard of for the last time more than a minute ago.
    world.set("22:01:06");
    let expected = "Nobody can claim it: no replica has been heard of lately.";
    assert_eq!(last_line(&world, "daily"), expected);
}

#[test]
fn what_is_due_past_its_deadline_will_be_missed() {
    let world = World::new([job("daily", "0 22 * * *"), job("minutely", "* * * * *")]);
    world.set("22:05:30");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is due, and nobody has claimed it yet.",
            "It was to start by 2026-11-20T22:01:00Z (4m 30s ago), by `starting_deadline`: the next replica that looks records it as missed.",
            "Nobody can claim it: no replica has been heard of lately."
        ]
    );
    assert_eq!(
        world.why("minutely", "22:05:00"),
        [
            "minutely at 2026-11-20T22:05:00Z is due, and nobody has claimed it yet.",
            "It may start until 2026-11-20T22:06:00Z (in 30.0s), by `starting_deadline`.",
            "Nobody can claim it: no replica has been heard of lately.",
        ]
    );
    assert_eq!(
        world.why("minutely", "22:04:00"),
        [
            "minutely at 2026-11-20T22:04:00Z is due, and nobody has claimed it yet.",
            "It was to start by 2026-11-20T22:05:00Z (30.0s ago), by `starting_deadline`: the next replica that looks records it as missed.",
            "Nobody can claim it: no replica has been heard of lately.",
            "Newer ones are due as well. By `catch_up = \"latest\"` only the newest of those that nobody could claim still runs; the others are missed.",
        ]
    );
}

#[test]
fn a_grace_window_holds_what_is_due() {
    let (daily, minutely) = (job("daily", "0 22 * * *"), job("minutely", "* * * * *"));
    let mut world = World::new([daily.clone(), minutely.clone()]);
    world.set("22:30:00");
    world.claim("r1", &minutely, "22:30:00");
    // The store's clock is set back by more than is waited out in place.
    world.set("22:00:01");
    world.register(&daily, None);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is due, and nobody has claimed it yet.",
            "It may start until 2026-11-20T22:01:00Z (in 59.0s), by `starting_deadline`.",
            "Nothing is granted until 2026-11-20T22:00:31Z (in 30.0s): the store is new, lost data, or its clock was set.",
        ]
    );
}

#[test]
fn what_ended_while_the_state_was_read_is_told_by_its_line() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.read_before = Some(world.snapshot());
    world.set("22:00:03");
    world.end("r1", &lease, Outcome::Failed, exit(7), Some(30 * SECOND));
    let told = world.why("daily", "22:00:00");
    let head = "daily at 2026-11-20T22:00:00Z waits for its next attempt.";
    assert_eq!(told[0], head, "{told:#?}");

    world.read_before = Some(world.snapshot());
    world.set("22:00:33");
    let lease = world.claim("r2", &daily, "22:00:00");
    world.set("22:00:35");
    world.succeed("r2", &lease);
    let told = world.why("daily", "22:00:00");
    let head = "daily at 2026-11-20T22:00:00Z succeeded at attempt 2.";
    assert_eq!(told[0], head, "{told:#?}");
}

#[test]
fn what_was_forgotten_between_two_attempts_is_not_said_to_go_on() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:03");
    world.end("r1", &lease, Outcome::Failed, exit(7), Some(30 * SECOND));
    let mut state = world.snapshot();
    state.answer.jobs[0].attempts.clear();
    world.read_before = Some(state);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z did not come to an end, as far as the ledger knows.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:03Z (3.0s) under token 1795212000000000, and failed: exit code 7. The next one could begin 30.0s later, at 2026-11-20T22:00:33Z.",
            "Another attempt was to follow, and the ledger knows nothing of it.",
        ]
    );
}

#[test]
fn what_waited_while_the_state_was_read_and_is_over_since_does_not_wait() {
    let mut world = a_queue();
    let minutely = world.table.clone().expect("a table").remove(0);
    world.read_before = Some(world.snapshot());
    world.set("22:02:30");
    let claim = world.prepare(&minutely, "22:01:00");
    assert_eq!(world.ask("r2", &claim), ClaimAnswer::TooLate);
    let told = world.why("minutely", "22:01:00");
    let head = "minutely at 2026-11-20T22:01:00Z never started: it was missed.";
    assert_eq!(told[0], head, "{told:#?}");
}

#[test]
fn what_fell_due_in_a_pause_that_is_over_did_not_wait_like_what_was_due_before_it() {
    let mut hourly = job("hourly", "0 * * * *");
    hourly.starting_deadline = 4 * 3600 * SECOND;
    let mut world = World::new([hourly.clone()]);
    world.set("22:10:00");
    world.order(&hourly, OrderKind::Pause);
    world.set("22:20:00");
    let due = [
        "hourly at 2026-11-20T22:00:00Z is due, and nobody has claimed it yet.",
        "It may start until 2026-11-21T02:00:00Z (in 3h 40m), by `starting_deadline`.",
        "Nobody can claim it: no replica has been heard of lately.",
    ];
    let paused = "The job has been paused since 2026-11-20T22:10:00Z, by ann: unless that ends before its turn comes, it is skipped.";
    assert_eq!(
        world.why("hourly", "22:00:00"),
        [due[0], due[1], due[2], paused]
    );
    world.set("23:10:00");
    world.order(&hourly, OrderKind::Resume);
    world.set("22:20:00");
    assert_eq!(world.why("hourly", "22:00:00"), due);
    world.set("23:20:00");
    assert_eq!(
        world.why("hourly", "23:00:00"),
        [
            "hourly at 2026-11-20T23:00:00Z does not run: the job was paused by ann.",
            "That lasted from 2026-11-20T22:10:00Z to 2026-11-20T23:10:00Z. It is recorded as skipped once what was due before that has run or is missed.",
        ]
    );
    let lease = world.claim("r1", &hourly, "22:00:00");
    world.succeed("r1", &lease);
    world.set("2026-11-21T00:00:00");
    world.claim("r1", &hourly, "2026-11-21T00:00:00");
    let recorded = world.why("hourly", "23:00:00");
    assert_eq!(
        recorded[0],
        "hourly at 2026-11-20T23:00:00Z never started: it was skipped."
    );
}
