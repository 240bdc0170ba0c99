//! Attempts that began late, and why: as the ledger has it, or that it has not.

use std::time::Duration;

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{
    AttemptDetail, Claim, ClaimAnswer, Late, OrderKind, Origin, Outcome,
};
use soloist::scheduler::policy::Concurrency;

use crate::world::{Lease, World, at, exit, job, name};

const SECOND: Duration = Duration::from_secs(1);

fn daily() -> (Job, World) {
    let daily = job("daily", "0 22 * * *");
    (daily.clone(), World::new([daily]))
}

/// What is said of the beginning of the last attempt: its line, from there on.
fn beginning(world: &World, job: &str, time: &str) -> String {
    let told = world.why(job, time);
    let line = told.iter().rfind(|line| line.contains(" ran on "));
    let line = line.expect("an attempt");
    let from = line.find(". It").map(|at| &line[at + 2..]);
    from.unwrap_or_default().to_owned()
}

/// The daily one, granted at a time, and over one second later.
fn run_at(world: &mut World, time: &str, adjust: impl FnOnce(&mut Claim)) {
    let daily = world.table.clone().expect("a table").remove(0);
    world.set(time);
    let mut claim = world.prepare(&daily, "22:00:00");
    adjust(&mut claim);
    let lease = world.start("r1", claim);
    world.succeed("r1", &lease);
}

#[test]
fn what_began_within_a_second_needs_no_reason() {
    let (_, mut world) = daily();
    run_at(&mut world, "22:00:01", |claim| {
        claim.late = Some(Late::Room)
    });
    assert_eq!(beginning(&world, "daily", "22:00:00"), "");
    assert_eq!(world.lines_of("daily")[0].detail.late, None);
}

#[test]
fn what_nobody_can_tell_is_not_guessed() {
    let (_, mut world) = daily();
    run_at(&mut world, "22:00:01.001", |_| {});
    assert_eq!(
        beginning(&world, "daily", "22:00:00"),
        "It began 1.0s after its instant; why it started late isn't recorded."
    );
}

#[test]
fn what_waited_for_room_and_what_nobody_claimed_say_so() {
    for (late, told) in [
        (
            Late::Room,
            "It began 12.0s after its instant: its replica had no room for it before (`max_running`).",
        ),
        (
            Late::Away,
            "It began 12.0s after its instant: nobody claimed it before: replicas were away or full, did not reach the store, or had no table in force that has the job.",
        ),
    ] {
        let (_, mut world) = daily();
        run_at(&mut world, "22:00:12", |claim| claim.late = Some(late));
        assert_eq!(beginning(&world, "daily", "22:00:00"), told);
    }
}

#[test]
fn what_runs_says_why_it_began_late() {
    let (daily, mut world) = daily();
    world.set("22:00:12");
    let mut claim = world.prepare(&daily, "22:00:00");
    claim.late = Some(Late::Room);
    world.start("r1", claim);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z is running.",
            "Attempt 1 began on r1 at 2026-11-20T22:00:12Z (now) under token 1795212012000000; its lease lasts until 2026-11-20T22:00:27Z (in 15.0s) unless it is renewed. It began 12.0s after its instant: its replica had no room for it before (`max_running`).",
        ]
    );
}

#[test]
fn a_random_delay_is_no_lateness_and_what_is_over_it_is_not_explained_by_it() {
    let mut daily = job("daily", "0 22 * * *");
    daily.random_delay = 50 * SECOND;
    for (time, told) in [
        (
            "22:00:06.600",
            "It began 6.6s after its instant: its `random_delay` ended at 2026-11-20T22:00:06.5Z.",
        ),
        (
            "22:00:16.500",
            "It began 16.5s after its instant: its `random_delay` ended at 2026-11-20T22:00:06.5Z; why it started 10.0s later than that isn't recorded.",
        ),
    ] {
        let mut world = World::new([daily.clone()]);
        run_at(&mut world, time, |_| {});
        assert_eq!(beginning(&world, "daily", "22:00:00"), told);
    }
}

/// 22:00 runs until 22:01:30, and 22:01 waits for it.
fn queued() -> (World, Job) {
    let mut minutely = job("minutely", "* * * * *");
    minutely.concurrency = Concurrency::Queue { limit: 10 };
    minutely.starting_deadline = 600 * SECOND;
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    let first = world.claim("r1", &minutely, "22:00:00");
    world.set("22:01:00");
    let claim = world.prepare(&minutely, "22:01:00");
    assert_eq!(world.ask("r2", &claim), ClaimAnswer::Waiting);
    world.set("22:01:30");
    world.succeed("r1", &first);
    (world, minutely)
}

#[test]
fn what_waited_for_its_turn_names_what_it_waited_for() {
    let (mut world, minutely) = queued();
    let lease = world.claim("r2", &minutely, "22:01:00");
    world.succeed("r2", &lease);
    assert_eq!(
        beginning(&world, "minutely", "22:01:00"),
        "It began 30.0s after its instant: it waited for its turn behind the occurrence of 2026-11-20T22:00:00Z, which was over at 2026-11-20T22:01:30Z."
    );
    let (mut world, minutely) = queued();
    world.set("22:01:40");
    let lease = world.claim("r2", &minutely, "22:01:00");
    world.succeed("r2", &lease);
    assert_eq!(
        beginning(&world, "minutely", "22:01:00"),
        "It began 40.0s after its instant: it waited for its turn behind the occurrence of 2026-11-20T22:00:00Z, which was over at 2026-11-20T22:01:30Z; why it started 10.0s later than that isn't recorded."
    );
}

#[test]
fn a_turn_that_came_just_now_explains_more_than_a_look_that_came_late() {
    for (time, told) in [
        (
            "22:01:30.500",
            "behind the occurrence of 2026-11-20T22:00:00Z",
        ),
        ("22:01:45", "its replica had no room for it before"),
    ] {
        let (mut world, minutely) = queued();
        world.set(time);
        let mut claim = world.prepare(&minutely, "22:01:00");
        claim.late = Some(Late::Room);
        let lease = world.start("r2", claim);
        world.succeed("r2", &lease);
        let said = beginning(&world, "minutely", "22:01:00");
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn what_comes_after_other_jobs_began_when_these_had_succeeded() {
    let extract = job("extract", "0 22 * * *");
    let mut load = job("load", "@manual");
    load.after = vec![name("extract")];
    let mut world = World::new([extract.clone(), load.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &extract, "22:00:00");
    world.set("22:00:20");
    world.succeed("r1", &lease);
    let mut claim = world.prepare(&load, "22:00:00");
    claim.origin = Origin::After;
    let lease = world.start("r2", claim);
    world.succeed("r2", &lease);
    assert_eq!(
        beginning(&world, "load", "22:00:00"),
        "It began 20.0s after its instant: what it comes after had succeeded at 2026-11-20T22:00:20Z, and not before."
    );
}

/// A store whose clock was set back to 22:00:01: it grants nothing until 22:00:31.
fn in_grace() -> (Job, World) {
    let (daily, minutely) = (job("daily", "0 22 * * *"), job("minutely", "* * * * *"));
    let mut world = World::new([daily.clone(), minutely.clone()]);
    world.set("22:30:00");
    world.claim("r1", &minutely, "22:30:00");
    world.set("22:00:01");
    world.register(&daily, None);
    (daily, world)
}

#[test]
fn what_a_grace_window_held_names_its_end() {
    let (_, mut world) = in_grace();
    run_at(&mut world, "22:00:31", |claim| {
        claim.late = Some(Late::Away)
    });
    assert_eq!(
        beginning(&world, "daily", "22:00:00"),
        "It began 31.0s after its instant: the store, which was new, had lost data or been restarted, or whose clock was set, granted nothing until 2026-11-20T22:00:31Z."
    );
}

#[test]
fn what_its_holder_wrote_anew_after_a_loss_does_not_say_that_it_began_then() {
    let (daily, mut before) = daily();
    before.set("22:00:00");
    let lease: Lease = before.claim("r1", &daily, "22:00:00");
    let (_, world) = in_grace();
    world.set("22:00:10");
    world.renew("r1", &lease);
    world.set("22:00:12");
    world.succeed("r1", &lease);
    assert_eq!(
        beginning(&world, "daily", "22:00:00"),
        "Its beginning is not recorded: the store lost it, and its holder wrote it down anew at that time."
    );
}

#[test]
fn a_retry_names_its_back_off_and_what_held_it_longer() {
    let (daily, mut world) = daily();
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:03");
    world.end("r1", &lease, Outcome::Failed, exit(1), Some(2 * SECOND));
    world.set("22:00:35");
    let mut claim = world.prepare(&daily, "22:00:00");
    claim.late = Some(Late::Room);
    let lease = world.start("r2", claim);
    world.end("r2", &lease, Outcome::Failed, exit(1), Some(2 * SECOND));
    assert_eq!(
        beginning(&world, "daily", "22:00:00"),
        "It began 35.0s after its instant: its replica had no room for it before (`max_running`). The next one could begin 2.0s later, at 2026-11-20T22:00:37Z."
    );
    world.set("22:00:47");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.succeed("r1", &lease);
    assert_eq!(
        beginning(&world, "daily", "22:00:00"),
        "It began 47.0s after its instant: attempt 2 had failed, and its back-off ended at 2026-11-20T22:00:37Z; why it started 10.0s later than that isn't recorded."
    );
}

#[test]
fn a_trigger_that_waited_for_a_replica_does_not_say_that_it_was_busy() {
    let manual = job("manual", "@manual");
    let mut world = World::new([manual.clone()]);
    world.set("22:00:00.250");
    world.order(&manual, OrderKind::Trigger);
    world.set("22:00:10.250");
    let mut claim = world.prepare(&manual, "22:00:00.250");
    claim.origin = Origin::Trigger;
    let lease = world.start("r1", claim);
    world.succeed("r1", &lease);
    assert_eq!(
        beginning(&world, "manual", "22:00:00.250"),
        "It began 10.0s after its instant; why it started late isn't recorded."
    );
}

#[test]
fn a_line_from_before_there_were_reasons_is_read_and_has_none() {
    let detail: AttemptDetail = serde_json::from_str(r#"{"exit_code":0}"#).expect("an old line");
    assert_eq!(detail.late, None);
    let (_, mut world) = daily();
    run_at(&mut world, "22:00:12", |claim| {
        claim.late = Some(Late::Room)
    });
    let mut line = world.lines_of("daily").remove(0);
    assert_eq!(line.detail.late, Some(Late::Room));
    line.detail = detail;
    let (_, mut old) = daily();
    old.set("22:01:00");
    old.lines = vec![line];
    assert_eq!(
        beginning(&old, "daily", "22:00:00"),
        "It began 12.0s after its instant; why it started late isn't recorded."
    );
}

#[test]
fn programs_are_told_the_reason_in_fields() {
    let (mut world, minutely) = queued();
    let lease = world.claim("r2", &minutely, "22:01:00");
    world.succeed("r2", &lease);
    let answer = world.answer("minutely", &at("22:01:00").to_string());
    let json = serde_json::to_value(&answer).expect("JSON");
    let late = &json["accounts"][0]["shards"][0]["attempts"][0]["late"];
    assert_eq!(
        *late,
        serde_json::json!({
            "seconds": 30.0,
            "late_by": "turn",
            "behind": "2026-11-20T22:00:00Z",
            "until": "2026-11-20T22:01:30Z",
        })
    );
}
