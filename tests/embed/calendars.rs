//! Calendars of the builder: which days they leave, and what of them is refused.

use std::time::Duration;

use soloist::{Calendar, Error, Job};

use crate::world::World;

/// A Friday.
const START: &str = "2026-12-18T12:00:00Z";

const FEAST: &str = "BEGIN:VCALENDAR\r
VERSION:2.0\r
BEGIN:VEVENT\r
UID:feast\r
DTSTART:20261222T230000Z\r
DTEND:20261223T010000Z\r
END:VEVENT\r
END:VCALENDAR\r
";

/// The days of December on which a job is due from the 18th to the 31st, by what schedulers say that
/// start after each of them.
async fn days_of(job: impl Fn(Job) -> Job) -> Vec<i8> {
    let mut days = Vec::new();
    let mut now = START.to_owned();
    loop {
        let world = World::at(&now);
        let report = job(world.noting("report", "0 22 * * *"));
        let scheduler = world
            .replica("one")
            .job(report)
            .start()
            .await
            .expect("sound");
        world.pass(1).await;
        let status = scheduler.status().await.expect("a store");
        scheduler.shutdown().await.expect("at work");
        let next = status.job("report").expect("known").next;
        now = next.map_or_else(String::new, |next| next.to_string());
        let Some(rest) = now.strip_prefix("2026-12-") else {
            return days;
        };
        days.push(rest[..2].parse().expect("a day"));
    }
}

#[tokio::test]
async fn a_job_is_due_on_the_days_that_its_calendars_leave() {
    let workdays = Calendar::new("workdays").weekdays(["MON-FRI"]);
    let holidays = Calendar::new("holidays").dates(["12-25..12-26", "2026-12-29"]);
    let weekend = Calendar::new("weekend").weekdays(["SAT", "SUN"]);
    let days = days_of(|job| job.only(&workdays)).await;
    assert_eq!(days, [18, 21, 22, 23, 24, 25, 28, 29, 30, 31]);
    let days = days_of(|job| job.only(&workdays).except(&holidays)).await;
    assert_eq!(days, [18, 21, 22, 23, 24, 28, 30, 31]);
    let days = days_of(|job| job.except(&holidays).except(&weekend)).await;
    assert_eq!(days, [18, 21, 22, 23, 24, 28, 30, 31]);
    let days = days_of(|job| job.only(&holidays).only(&weekend)).await;
    assert_eq!(days, [19, 20, 25, 26, 27, 29]);
}

#[tokio::test]
async fn a_day_that_is_left_out_leaves_no_run_and_no_line() {
    let world = World::at("2026-12-24T21:59:30Z");
    let holidays = Calendar::new("holidays").dates(["12-25"]);
    let job = world.noting("report", "0 22 * * *").except(&holidays);
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    world.pass(60).await;
    world.clock.jump(Duration::from_secs(86_400 - 90));
    world.pass(60).await; // 22:00 on the 25th
    world.clock.jump(Duration::from_secs(86_400 - 60));
    world.pass(60).await; // 22:00 on the 26th
    let expected = ["24", "26"].map(|day| format!("report 2026-12-{day}T22:00:00Z #1"));
    assert_eq!(world.notes.all(), expected);
    let lines = scheduler.history(None, 10).await.unwrap();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    scheduler.shutdown().await.unwrap();
}

/// It lasts from 23:00 to 01:00 in UTC: in Shanghai that is one day, in UTC two.
#[tokio::test]
async fn an_event_of_a_file_covers_the_days_that_it_touches_in_the_zone_of_the_job() {
    let feast = Calendar::new("feast").ical(FEAST);
    assert_eq!(days_of(|job| job.only(&feast)).await, [22, 23]);
    let there = days_of(|job| job.only(&feast).timezone("Asia/Shanghai")).await;
    assert_eq!(there, [23]);
}

#[tokio::test]
async fn a_calendar_that_is_wrong_is_told_once_with_all_that_is_wrong() {
    let world = World::at(START);
    let job = |name: &str| world.noting(name, "@daily");
    let wrong = Calendar::new("feasts")
        .dates(["2026-02-30"])
        .weekdays(["Saturday"])
        .ical(FEAST.replace("20261222T", "20261322T"));
    let (empty, named) = (
        Calendar::new("empty"),
        Calendar::new("a b").dates(["12-25"]),
    );
    let all = Calendar::new("all").weekdays(["MON-SUN"]);
    let also = Calendar::new("all").dates(["12-25"]);
    let started = world
        .replica("one")
        .job(job("a").except(&wrong))
        .job(job("b").only(&wrong))
        .job(job("c").only(&empty).except(&named))
        .job(job("d").except(&all))
        .job(job("e").only(&also))
        .job(world.noting("f", "@manual").only(&all))
        .start();
    let Err(Error::Invalid(faults)) = started.await else {
        panic!("all of them are wrong");
    };
    let told: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let expected = [
        "job `a`, `except`: calendar `feasts`: `2026-02-30` is no date: there is no such day; a date is",
        "job `a`, `except`: calendar `feasts`: `Saturday` is no day of the week; write `SAT`",
        "job `a`, `except`: calendar `feasts`: line 5, `DTSTART:20261322T230000Z`: ",
        "job `c`, `except`: calendar `a b`: ",
        "job `c`, `only`: calendar `empty`: it names no days; say which: ",
        "job `d`, `except`: this schedule is never due: its calendars leave none of its days; ",
        "job `e`, `only`: another calendar is called `all`; give one of them another name",
        "job `f`, `only`: it has no day to leave out: this job is due on none by itself; leave it out",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

#[tokio::test]
async fn a_calendar_that_is_made_twice_is_one() {
    let world = World::at(START);
    let holidays = || Calendar::new("holidays").dates(["12-25"]);
    let job = |name: &str| world.noting(name, "@daily").except(&holidays());
    let started = world.replica("one").job(job("a")).job(job("b")).start();
    started.await.unwrap().shutdown().await.unwrap();
}
