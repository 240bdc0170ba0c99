//! Instants of which the ledger has nothing.

use soloist::scheduler::lease::{OrderKind, Origin, ScheduleChange};

use crate::world::{World, job, job_in};

#[test]
fn what_is_no_occurrence_has_neighbours() {
    let world = World::new([
        job("daily", "0 22 * * *"),
        job("once", "@at 2026-11-20T22:00:00Z"),
    ]);
    assert_eq!(
        world.why("daily", "22:30:00"),
        [
            "daily at 2026-11-20T22:30:00Z is not an occurrence.",
            "The nearest of the schedule, `0 22 * * *`, are 2026-11-20T22:00:00Z and 2026-11-21T22:00:00Z."
        ]
    );
    assert_eq!(
        world.why("once", "21:30:00"),
        [
            "once at 2026-11-20T21:30:00Z is not an occurrence.",
            "The first of the schedule, `@at 2026-11-20T22:00:00Z`, is 2026-11-20T22:00:00Z; none comes before.",
        ]
    );
    assert_eq!(
        world.why("once", "22:30:00"),
        [
            "once at 2026-11-20T22:30:00Z is not an occurrence.",
            "The last of the schedule, `@at 2026-11-20T22:00:00Z`, is 2026-11-20T22:00:00Z; none comes after.",
        ]
    );
}

#[test]
fn what_was_triggered_close_by_is_pointed_out() {
    let manual = job("manual", "@manual");
    let mut world = World::new([manual.clone()]);
    world.set("22:00:00.250");
    world.order(&manual, OrderKind::Trigger);
    let mut claim = world.prepare(&manual, "22:00:00.250");
    claim.origin = Origin::Trigger;
    let lease = world.start("r1", claim);
    world.succeed("r1", &lease);
    assert_eq!(
        world.why("manual", "22:00:00"),
        [
            "manual at 2026-11-20T22:00:00Z is not an occurrence.",
            "The job runs only when somebody says so: its schedule is `@manual`.",
            "Close to it the ledger has 2026-11-20T22:00:00.25Z (triggered by ann)."
        ]
    );
    assert_eq!(world.why("manual", "22:30:00").len(), 2);
}

#[test]
fn what_was_due_before_the_job_was_known_is_not_in_the_ledger() {
    let world = World::new([job("daily", "0 22 * * *")]);
    assert_eq!(
        world.why("daily", "2026-11-19T22:00:00Z"),
        [
            "daily at 2026-11-19T22:00:00Z is not in the ledger.",
            "The ledger has known the job since 2026-11-20T21:00:00Z, and a new job never runs its past."
        ]
    );
}

#[test]
fn what_was_due_in_the_instant_in_which_the_job_became_known_is_its_past() {
    let world = World::new([job("minutely", "* * * * *")]);
    world.set("21:00:30");
    let told = world.why("minutely", "21:00:00");
    let head = "minutely at 2026-11-20T21:00:00Z is not in the ledger.";
    assert_eq!(told[0], head, "{told:#?}");
}

#[test]
fn what_no_replica_has_told_the_ledger_of_is_not_in_it() {
    let world = World::unregistered([job("daily", "0 22 * * *")]);
    assert_eq!(
        world.why("daily", "2026-11-19T22:00:00Z"),
        [
            "daily at 2026-11-19T22:00:00Z is not in the ledger.",
            "No replica has told the ledger of the job yet: it is new, and a new job never runs its past."
        ]
    );
    let told = world.why("daily", "22:00:00");
    assert_eq!(
        told,
        [
            "daily at 2026-11-20T22:00:00Z is still to come.",
            "It is due in 1h 0m.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
        ]
    );
}

#[test]
fn what_is_older_than_the_history_says_how_far_that_goes() {
    let mut minutely = job("minutely", "* * * * *");
    minutely.retention.limit = 2;
    let mut world = World::new([minutely.clone()]);
    for time in ["22:00:00", "22:01:00", "22:02:00"] {
        world.set(time);
        let lease = world.claim("r1", &minutely, time);
        world.succeed("r1", &lease);
    }
    assert_eq!(
        world.why("minutely", "22:00:00"),
        [
            "minutely at 2026-11-20T22:00:00Z is not in the ledger.",
            "The oldest line of the job goes back to 2026-11-20T22:01:00Z: its history is kept for 30d 0h and 2 lines (`history_age`, `history_limit`). Or the job was not known by then."
        ]
    );
}

#[test]
fn what_the_ledger_should_have_and_has_not_is_said_to_be_lost() {
    let minutely = job("minutely", "* * * * *");
    let mut world = World::new([minutely.clone()]);
    for time in ["22:00:00", "22:02:00"] {
        world.set(time);
        let lease = world.claim("r1", &minutely, time);
        world.succeed("r1", &lease);
    }
    assert_eq!(
        world.why("minutely", "22:01:00"),
        [
            "minutely at 2026-11-20T22:01:00Z is not in the ledger.",
            "It should be: the store lost data, or the job's schedule was another one by then."
        ]
    );
}

#[test]
fn a_job_that_no_table_has_is_told_from_the_ledger() {
    let daily = job("daily", "0 22 * * *");
    let mut world = World::new([daily.clone()]);
    world.set("22:00:00");
    let lease = world.claim("r1", &daily, "22:00:00");
    world.set("22:00:01");
    world.succeed("r1", &lease);
    world.table = Some(vec![job("weekly", "@weekly")]);
    assert_eq!(
        world.why("daily", "22:00:00"),
        [
            "daily at 2026-11-20T22:00:00Z succeeded.",
            "Attempt 1 ran on r1 from 2026-11-20T22:00:00Z to 2026-11-20T22:00:01Z (1.0s) under token 1795212000000000, and succeeded.",
            "This table has no such job: it was taken out or renamed, or is another fleet's."
        ]
    );
    world.table = None;
    assert_eq!(world.why("daily", "22:00:00").len(), 2);
    assert_eq!(
        world.why("daily", "23:00:00"),
        [
            "daily at 2026-11-20T23:00:00Z is not an occurrence.",
            "The nearest of the schedule, `0 22 * * *`, are 2026-11-20T22:00:00Z and 2026-11-21T22:00:00Z.",
        ]
    );
}

#[test]
fn the_schedule_of_the_time_decides_and_not_the_one_of_today() {
    let (before, after) = (job("daily", "0 22 * * *"), job("daily", "0 20 * * *"));
    let mut world = World::new([before.clone()]);
    world.set("2026-11-21T20:30:00");
    let change = ScheduleChange {
        from: before.schedule.identity(),
        run: Vec::new(),
    };
    world.register(&after, Some(change));
    world.table = Some(vec![after]);
    assert_eq!(
        world.why("daily", "2026-11-21T20:00:00Z"),
        [
            "daily at 2026-11-21T20:00:00Z is not an occurrence.",
            "Today's schedule, `0 20 * * *`, has it; the one in force at that time had not.",
            "The nearest of the schedule, `0 22 * * *`, are 2026-11-20T22:00:00Z and 2026-11-21T22:00:00Z."
        ]
    );
    let told = world.why("daily", "2026-11-22T20:00:00Z");
    assert_eq!(told[0], "daily at 2026-11-22T20:00:00Z is still to come.");
}

#[test]
fn schedules_that_differ_in_their_zone_alone_are_told_apart_by_it() {
    let mut world = World::new([job("daily", "0 22 * * *")]);
    let (gap, fold) = Default::default();
    let elsewhere = job_in("daily", "0 22 * * *", "Asia/Tokyo", gap, fold);
    world.table = Some(vec![elsewhere]);
    let told = world.why("daily", "2026-11-20T13:00:00Z");
    let last = "This table has the schedule `0 22 * * * in Asia/Tokyo`, the ledger `0 22 * * * in UTC`: no replica has taken up the table's yet.";
    assert_eq!(told.last().map(String::as_str), Some(last), "{told:#?}");
}

#[test]
fn a_table_that_no_replica_runs_yet_is_said_to_be_one() {
    let mut world = World::new([job("daily", "0 22 * * *")]);
    world.table = Some(vec![job("daily", "0 23 * * *")]);
    assert_eq!(
        world.why("daily", "23:00:00"),
        [
            "daily at 2026-11-20T23:00:00Z is not an occurrence.",
            "The nearest of the schedule, `0 22 * * *`, are 2026-11-20T22:00:00Z and 2026-11-21T22:00:00Z.",
            "This table has the schedule `0 23 * * *`, the ledger `0 22 * * *`: no replica has taken up the table's yet."
        ]
    );
}
