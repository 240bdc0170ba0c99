//! What a schedule must hold to.

mod calendars;
mod clocks;
mod day_set;
mod days;
mod dialect;
mod errors;
mod expression;
mod hashed;
mod history;
mod names;
mod oddities;
mod oracle;
mod other_crate;
mod special;
mod speed;
mod walk;

use jiff::tz::TimeZone;
use proptest::test_runner::Config;

use super::*;

/// An RFC 3339 instant.
fn at(text: &str) -> Timestamp {
    text.parse::<jiff::Timestamp>().expect("an instant").into()
}

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).expect("a zone of the bundled database")
}

fn read(text: &str, name: &str) -> Result<Schedule, ScheduleError> {
    Schedule::parse(
        text,
        name,
        TimeZone::UTC,
        DstGap::default(),
        DstFold::default(),
    )
}

fn utc(text: &str) -> Schedule {
    read(text, "job").unwrap_or_else(|error| panic!("`{text}`: {error}"))
}

fn zoned(text: &str, name: &str, gap: DstGap, fold: DstFold) -> Schedule {
    Schedule::parse(text, "job", zone(name), gap, fold)
        .unwrap_or_else(|error| panic!("`{text}` in {name}: {error}"))
}

/// The next `count` occurrences after `after`, as text in UTC.
fn next(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let first = schedule.next_after(at(after));
    let following = std::iter::successors(first, |at| schedule.next_after(*at));
    following.take(count).map(|at| at.to_string()).collect()
}

/// The same as local times with their offset.
fn next_local(schedule: &Schedule, after: &str, count: usize) -> Vec<String> {
    let first = schedule.next_after(at(after));
    let following = std::iter::successors(first, |at| schedule.next_after(*at));
    let local = |at: Timestamp| {
        let zoned = at.to_jiff().to_zoned(schedule.zone().clone());
        zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    };
    following.take(count).map(local).collect()
}

/// How often a property is tried: `PROPTEST_CASES` times in a long run, else few enough for
/// every day. A failure prints its smallest input, which belongs in a test of its own.
fn config(cases: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok();
    Config {
        cases: asked.and_then(|asked| asked.parse().ok()).unwrap_or(cases),
        failure_persistence: None,
        ..Config::default()
    }
}
