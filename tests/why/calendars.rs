//! Instants that calendars took away.

use std::sync::Arc;

use soloist::scheduler::job::Job;
use soloist::scheduler::schedule::{Calendar, DayFilter, DaySet};

use crate::world::{World, at, job};

/// Every day but Saturdays and Sundays; the day of most tests is a Friday.
fn on_weekdays(mut job: Job) -> Job {
    let mut days = DaySet::default();
    days.insert_weekly(0);
    days.insert_weekly(6);
    let name = "weekend".into();
    let filter = DayFilter::new(vec![Arc::new(Calendar { name, days })], Vec::new());
    job.schedule = job.schedule.on_days(filter).expect("days are left");
    job
}

#[test]
fn what_a_calendar_took_away_names_it() {
    let world = World::new([on_weekdays(job("daily", "0 22 * * *"))]);
    assert_eq!(
        world.why("daily", "2026-11-21T22:00:00Z"),
        [
            "daily at 2026-11-21T22:00:00Z is not an occurrence.",
            "It is not due: calendar \"weekend\".",
            "The nearest of the schedule, `0 22 * * *`, are 2026-11-20T22:00:00Z and 2026-11-23T22:00:00Z.",
        ]
    );
    let told = world.why("daily", "2026-11-21T22:00:01Z");
    assert_eq!(
        told.len(),
        2,
        "none of the schedule, calendar or not: {told:#?}"
    );
}

/// The job missed what was due up to the Monday after, and its table lost the calendar by then.
fn without_its_calendar() -> World {
    let weekdays = on_weekdays(job("daily", "0 22 * * *"));
    let mut world = World::new([weekdays.clone()]);
    world.set("2026-11-24T22:00:00");
    let mut claim = world.prepare(&weekdays, "2026-11-24T22:00:00");
    claim.missed_until = Some(at("2026-11-23T22:00:00"));
    world.start("r1", claim);
    world
}

#[test]
fn a_stretch_of_time_is_read_with_the_calendars_of_the_table() {
    let world = without_its_calendar();
    let missed = world.why("daily", "2026-11-20T22:00:00Z");
    assert_eq!(
        missed[0],
        "daily at 2026-11-20T22:00:00Z never started: it was missed."
    );
    let sunday = world.why("daily", "2026-11-22T22:00:00Z");
    assert_eq!(
        sunday[0],
        "daily at 2026-11-22T22:00:00Z is not an occurrence."
    );
}

#[test]
fn calendars_that_are_no_longer_known_leave_a_doubt() {
    let mut world = without_its_calendar();
    world.table = None;
    assert_eq!(
        world.why("daily", "2026-11-22T22:00:00Z"),
        [
            "daily at 2026-11-22T22:00:00Z never started: it was missed.",
            "All that fell due after 2026-11-20T21:00:00Z and up to 2026-11-23T22:00:00Z was missed: nobody claimed it in time: replicas or the store were away, or no table in force had the job.",
            "r1 recorded that at 2026-11-24T22:00:00Z. The schedule of that time was `0 22 * * *`, on days that its calendars left; which those were is no longer known.",
        ]
    );
    assert_eq!(
        world.why("daily", "2026-11-28T22:00:00Z"),
        [
            "daily at 2026-11-28T22:00:00Z is still to come.",
            "It is due in 4d 0h.",
            "As things are now: nobody can claim it: no replica has been heard of lately.",
            "That schedule is due on days that its calendars leave; which those are is not known here.",
        ]
    );
}
