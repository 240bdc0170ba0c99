//! Occurrences that never started, each by its cause.

use soloist::scheduler::job::Job;
use soloist::scheduler::lease::{
    AttemptDetail, Cause, ClaimAnswer, FencingToken, OrderKind, Outcome, RunId, ScheduleChange,
};
use soloist::scheduler::policy::{CatchUp, Concurrency};
use soloist::store::AttemptRecord;
use uuid::Uuid;

use crate::world::{World, at, exit, job, name, tag};

/// 22:00 runs on r1, and 22:01 falls due.
fn busy(concurrency: Concurrency) -> (World, Job) {
    let mut minutely = job("minutely", "* * * * *");
    minutely.concurrency = concurrency;
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    world.claim("r1", &minutely, "22:00:00");
    world.set("22:01:00");
    (world, minutely)
}

#[test]
fn an_overlap_names_the_occurrence_that_was_unfinished() {
    let (mut world, minutely) = busy(Concurrency::Forbid);
    let claim = world.prepare(&minutely, "22:01:00");
    let answer = world.ask("r2", &claim);
    assert!(matches!(answer, ClaimAnswer::Overlap(_)), "{answer:?}");
    assert_eq!(
        world.why("minutely", "22:01:00"),
        [
            "minutely at 2026-11-20T22:01:00Z never started: it was skipped.",
            "r2 recorded it at 2026-11-20T22:01:00Z: overlap: the occurrence of 2026-11-20T22:00:00Z is unfinished.",
            "By `concurrency_policy = \"forbid\"`, the default, what finds an occurrence of its job unfinished is skipped."
        ]
    );
}

#[test]
fn a_full_queue_says_how_many_waited() {
    let (mut world, minutely) = busy(Concurrency::Queue { limit: 1 });
    let claim = world.prepare(&minutely, "22:01:00");
    world.ask("r2", &claim);
    world.set("22:02:00");
    let claim = world.prepare(&minutely, "22:02:00");
    let skipped = ClaimAnswer::Skipped(Cause::QueueFull);
    assert_eq!(world.ask("r2", &claim), skipped);
    assert_eq!(
        world.why("minutely", "22:02:00"),
        [
            "minutely at 2026-11-20T22:02:00Z never started: it was skipped.",
            "r2 recorded it at 2026-11-20T22:02:00Z: the queue is full (1 waiting).",
            "By `concurrency_policy = \"queue\"` no more than `queue_limit` (now 1) wait at once."
        ]
    );
}

#[test]
fn what_was_replaced_before_it_started_names_its_successor() {
    let (mut world, minutely) = busy(Concurrency::Replace);
    let claim = world.prepare(&minutely, "22:01:00");
    world.ask("r2", &claim);
    world.set("22:02:00");
    let claim = world.prepare(&minutely, "22:02:00");
    world.ask("r3", &claim);
    assert_eq!(
        world.why("minutely", "22:01:00"),
        [
            "minutely at 2026-11-20T22:01:00Z never started: it was skipped.",
            "r3 recorded it at 2026-11-20T22:02:00Z: the occurrence of 2026-11-20T22:02:00Z took its place before it started.",
            "By `concurrency_policy = \"replace\"` only the newest of those that wait is run."
        ]
    );
}

#[test]
fn what_fell_due_in_a_pause_names_who_paused_and_until_when() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("21:59:00");
    world.order(&daily, OrderKind::Pause);
    world.set("22:30:00");
    world.order(&daily, OrderKind::Resume);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was skipped.",
            "All that fell due after 2026-11-20T21:59:00Z and up to 2026-11-20T22:30:00Z was skipped: the job was paused by ann.",
            "r1 recorded that at 2026-11-20T22:30:00Z, when the pause ended. The schedule of that time was `0 22 * * *`.",
            "While a job is paused, nothing of it runs but what is triggered.",
        ]
    );
}

#[test]
fn what_fell_due_while_disabled_says_so() {
    let daily = job("daily", "0 22 * * *");
    let mut off = daily.clone();
    off.enabled = false;
    let world = World::new([daily.clone()]);
    world.set("21:30:00");
    world.register(&off, None);
    world.set("22:30:00");
    world.register(&daily, None);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was skipped.",
            "All that fell due after 2026-11-20T21:30:00Z and up to 2026-11-20T22:30:00Z was skipped: the job was disabled.",
            "r1 recorded that at 2026-11-20T22:30:00Z, when the job was enabled again. The schedule of that time was `0 22 * * *`.",
            "While a job is disabled in the table, nothing of it runs.",
        ]
    );
}

#[test]
fn what_no_replica_could_run_names_the_tags() {
    let mut daily = job("daily", "0 22 * * *");
    daily.run_on = tag("zone", "b");
    let mut world = World::new([daily.clone()]);
    world.set("22:01:01");
    let mut claim = world.prepare(&daily, "22:00:00");
    claim.unplaced = true;
    let skipped = ClaimAnswer::Skipped(Cause::Placement);
    assert_eq!(world.ask("r1", &claim), skipped);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was skipped.",
            "r1 recorded it at 2026-11-20T22:01:01Z: no replica that has the tags of `run_on` was there to claim it in time.",
            "`run_on` (now { zone = \"b\" }) says which tags a replica must have."
        ]
    );
}

#[test]
fn what_comes_after_a_failure_names_the_job_that_failed() {
    let extract = job("extract", "0 22 * * *");
    let mut load = job("load", "@manual");
    load.after = vec![name("extract")];
    let mut world = World::new([extract.clone(), load]);
    world.set("22:00:00");
    let lease = world.claim("r1", &extract, "22:00:00");
    world.set("22:00:05");
    world.end("r1", &lease, Outcome::Failed, exit(1), None);
    assert_eq!(
        world.why("load", "22:00:00"),
        [
            "load at 2026-11-20T22:00:00Z never started: it was skipped.",
            "r1 recorded it at 2026-11-20T22:00:05Z: `extract` before it: failed.",
            "The job runs when all jobs that it comes after (now extract) have succeeded."
        ]
    );
}

#[test]
fn what_started_too_late_names_the_deadline() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:01:00.001");
    let claim = world.prepare(&daily, "22:00:00");
    assert_eq!(world.ask("r1", &claim), ClaimAnswer::TooLate);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was missed.",
            "r1 recorded it at 2026-11-20T22:01:00.001Z: starting_deadline passed before a replica could claim it.",
            "`starting_deadline` (now 1m 0s) is how late an occurrence may start."
        ]
    );
}

/// 22:00 to 22:09 fall due with nobody there, and 22:10 is claimed.
fn outage(catch_up: CatchUp) -> World {
    let mut minutely = job("minutely", "* * * * *");
    minutely.catch_up = catch_up;
    let mut world = World::new([minutely.clone()]);
    world.set("21:59:00");
    let lease = world.claim("r1", &minutely, "21:59:00");
    world.succeed("r1", &lease);
    world.set("22:10:00");
    let mut claim = world.prepare(&minutely, "22:10:00");
    claim.missed_until = Some(at("22:09:00"));
    world.start("r1", claim);
    world
}

#[test]
fn what_an_outage_left_behind_is_told_by_the_line_that_covers_it() {
    let world = outage(CatchUp::Latest);
    assert_eq!(
        world.why("minutely", "22:04:00"),
        [
            "minutely at 2026-11-20T22:04:00Z never started: it was missed.",
            "All that fell due after 2026-11-20T21:59:00Z and up to 2026-11-20T22:09:00Z was missed: nobody claimed it in time: replicas or the store were away, or no table in force had the job.",
            "r1 recorded that at 2026-11-20T22:10:00Z. The schedule of that time was `* * * * *`.",
            "By `catch_up = \"latest\"` only the newest of those that nobody could claim still runs; the others are missed.",
        ]
    );
    for edge in ["22:00:00", "22:09:00"] {
        assert!(world.why("minutely", edge)[0].contains("missed"), "{edge}");
    }
    let between = world.why("minutely", "22:04:30");
    assert_eq!(
        between,
        [
            "minutely at 2026-11-20T22:04:30Z is not an occurrence.",
            "The nearest of the schedule, `* * * * *`, are 2026-11-20T22:04:00Z and 2026-11-20T22:05:00Z.",
        ]
    );
}

#[test]
fn the_instant_before_a_stretch_of_time_is_not_part_of_it() {
    let minutely = job("minutely", "* * * * *");
    let mut world = World::new([minutely.clone()]);
    world.set("22:10:00");
    let mut claim = world.prepare(&minutely, "22:10:00");
    claim.missed_until = Some(at("22:09:00"));
    world.start("r1", claim);
    // The ledger has known the job since this very instant.
    let told = world.why("minutely", "21:00:00");
    let head = "minutely at 2026-11-20T21:00:00Z is not in the ledger.";
    assert_eq!(told[0], head, "{told:#?}");
    let told = world.why("minutely", "21:01:00");
    assert!(told[0].ends_with("it was missed."), "{told:#?}");
}

#[test]
fn what_an_outage_left_behind_says_what_the_table_wants() {
    for (catch_up, expected) in [
        (
            CatchUp::None,
            "By `catch_up = \"none\"` what nobody claims within 1 s is missed.",
        ),
        (
            CatchUp::All { limit: 7 },
            "By `catch_up = \"all\"` the newest 7 of those that nobody could claim still run, each within its `starting_deadline`; the others are missed.",
        ),
    ] {
        let told = outage(catch_up).why("minutely", "22:04:00");
        assert_eq!(told.last().map(String::as_str), Some(expected), "{told:#?}");
    }
}

#[test]
fn what_was_not_claimed_at_once_is_missed_without_catching_up() {
    let mut daily = job("daily", "0 22 * * *");
    daily.catch_up = CatchUp::None;
    let mut world = World::new([daily.clone()]);
    world.set("22:00:02");
    let mut claim = world.prepare(&daily, "22:00:00");
    claim.claim_by = at("22:00:01");
    assert_eq!(world.ask("r1", &claim), ClaimAnswer::TooLate);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was missed.",
            "r1 recorded it at 2026-11-20T22:00:02Z: no replica claimed it within 1 s, and catch_up = \"none\".",
            "By `catch_up = \"none\"` what nobody claims within 1 s is missed."
        ]
    );
}

#[test]
fn what_a_changed_schedule_took_along_is_told_by_the_former_one() {
    let (before, after) = (job("daily", "0 22 * * *"), job("daily", "0 23 * * *"));
    let mut world = World::new([before.clone()]);
    world.set("22:30:00");
    let change = ScheduleChange {
        from: before.schedule.identity(),
        run: Vec::new(),
    };
    world.register(&after, Some(change));
    world.table = Some(vec![after]);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was missed.",
            "All that fell due after 2026-11-20T21:00:00Z and up to 2026-11-20T22:30:00Z was missed: no replica claimed it before the schedule was changed.",
            "r1 recorded that at 2026-11-20T22:30:00Z. The schedule of that time was `0 22 * * *`.",
            "What the new schedule has too still runs, as far as `catch_up` says and `starting_deadline` allows.",
        ]
    );
}

#[test]
fn what_the_store_may_have_forgotten_is_not_known() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    let words = "the store was restarted later and can't tell whether it ran";
    world.lines.push(AttemptRecord {
        job: daily.name,
        scheduled_at: at("22:00:00"),
        attempt: 0,
        run_id: RunId::new(Uuid::nil()),
        token: FencingToken::default(),
        replica: "r1".to_owned(),
        started_at: at("22:00:02"),
        ended_at: at("22:00:02"),
        outcome: Outcome::Missed,
        detail: AttemptDetail::policy(Cause::Unknown, words),
    });
    world.set("22:30:00");
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z never started: it was missed.",
            "r1 recorded it at 2026-11-20T22:00:02Z: the store was restarted later and can't tell whether it ran.",
            "A second run could not be ruled out, so it was not run."
        ]
    );
}

#[test]
fn what_fell_due_before_a_ledger_that_was_lost_says_so() {
    let minutely = job("minutely", "* * * * *");
    let mut world = World::new([minutely.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &minutely, "22:00:00");
    world.succeed("r1", &lease);
    world.set("22:02:30");
    world.lose_data();
    world.tell_again(&minutely, "22:00:00");
    // Holders had the time to come back.
    world.set("22:03:10");
    world.tell_again(&minutely, "22:00:00");
    assert_eq!(
        world.why("minutely", "22:02:00"),
        [
            "minutely at 2026-11-20T22:02:00Z never started: it was missed.",
            "All that fell due after 2026-11-20T22:00:00Z and up to 2026-11-20T22:02:30Z was missed: the ledger lost data later and can't tell whether it ran.",
            "r1 recorded that at 2026-11-20T22:03:10Z. The schedule of that time was `* * * * *`.",
            "A second run could not be ruled out, so it was not run."
        ]
    );
    // Of what it had settled the ledger has lost the lines.
    assert!(world.why("minutely", "22:00:00")[0].contains("not in the ledger"));
    // What fell due since it began again still starts.
    world.claim("r1", &minutely, "22:03:00");
}

#[test]
fn what_an_unreadable_schedule_had_is_told_with_a_doubt() {
    let mut world = outage(CatchUp::Latest);
    let mut jobs = world.table.clone().expect("a table");
    let mut lines = world.lines_of("minutely").into_iter();
    let range = lines.find(|line| line.detail.since.is_some());
    let mut line = range.expect("a line for the outage");
    line.detail.schedule = Some("on every full moon".to_owned());
    line.scheduled_at = at("21:58:00");
    line.detail.since = Some(at("21:50:00"));
    world.lines.push(line);
    assert_eq!(
        world.why("minutely", "21:55:00"),
        [
            "minutely at 2026-11-20T21:55:00Z never started: it was missed.",
            "All that fell due after 2026-11-20T21:50:00Z and up to 2026-11-20T21:58:00Z was missed: nobody claimed it in time: replicas or the store were away, or no table in force had the job.",
            "r1 recorded that at 2026-11-20T22:10:00Z. The schedule of that time, `on every full moon`, can't be read any more; the one of today has this instant.",
            "By `catch_up = \"latest\"` only the newest of those that nobody could claim still runs; the others are missed.",
        ]
    );
    jobs.clear();
    world.table = Some(jobs);
    let told = world.why("minutely", "21:55:00");
    assert!(!told[0].contains("missed"), "{told:#?}");
}
