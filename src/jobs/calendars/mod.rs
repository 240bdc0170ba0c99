//! The days that a calendar names: dates, days of the week, and what an iCalendar file has.
//!
//! Must never: read a file, or the host's time zone.

pub(crate) mod dates;
pub(crate) mod ics;

use jiff::tz::TimeZone;

use crate::scheduler::schedule::DaySet;

/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;

/// A calendar's days in a zone: its dates, and those that its timed events touch there. The spans are
/// as [`ics::Contents`] has them.
pub(crate) fn days_in(zone: &TimeZone, days: &DaySet, spans: &[(i64, i64)]) -> DaySet {
    let mut days = days.clone();
    for (first, end) in spans {
        let last = (*end - 1).max(*first);
        days.insert_days(local_day(zone, *first), local_day(zone, last));
    }
    days
}

/// The local date of an instant, in days since 1970-01-01.
fn local_day(zone: &TimeZone, at: i64) -> i64 {
    let instant = jiff::Timestamp::from_second(at);
    let offset = instant.map_or(0, |instant| i64::from(zone.to_offset(instant).seconds()));
    (at + offset).div_euclid(DAY)
}
