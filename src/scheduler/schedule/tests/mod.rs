//! What a schedule must hold to.

mod clocks;
mod dialect;
mod errors;
mod expression;
mod oracle;
mod speed;

use jiff::tz::TimeZone;

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
