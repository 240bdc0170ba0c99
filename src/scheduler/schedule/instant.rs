//! The schedules that are no fields: `@every` with its duration, `@at` with its date and time.
//!
//! It must never look at a clock: whether an `@at` is over is not known here.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::cron::{Cron, Days, DaysOfMonth, DaysOfWeek, FIRST_YEAR, LAST_YEAR, Times};
use super::field::Bits;
use super::piece::Piece;
use super::{Rule, ScheduleError};

/// The longest interval: a century. Anything longer is a slip.
const EVERY_LIMIT_SECONDS: i64 = 36_525 * 86_400;

/// The units of a duration, from the longest, in seconds.
const UNITS: [(char, i64); 4] = [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)];

/// Reads what follows `@every`: `5m`, `1h30m`.
pub(super) fn every(duration: Piece<'_>) -> Result<Rule, ScheduleError> {
    if duration.text.is_empty() {
        return Err(duration
            .error("`@every` needs a duration")
            .hint("write `@every 5m`"));
    }
    let mut seconds = 0i64;
    let mut units = UNITS.as_slice();
    let mut rest = duration;
    while !rest.text.is_empty() {
        let digits = rest.text.bytes().take_while(u8::is_ascii_digit).count();
        let unit = rest.text[digits..]
            .bytes()
            .take_while(|b| !b.is_ascii_digit())
            .count();
        let part = rest.to(digits + unit);
        rest = rest.from(digits + unit);
        let at = units
            .iter()
            .position(|(name, _)| part.from(digits).text == name.encode_utf8(&mut [0; 4]));
        let (Some(count), Some(at)) = (part.to(digits).number(), at) else {
            return Err(bad_duration(duration, part, part.from(digits)));
        };
        let part = i64::try_from(count)
            .unwrap_or(i64::MAX)
            .saturating_mul(units[at].1);
        seconds = seconds.saturating_add(part);
        units = &units[at + 1..];
    }
    if seconds == 0 {
        let error = duration.error("an interval is at least one second");
        return Err(
            error.hint("write `@every 1s` or longer, or `@manual` for a job that is never due")
        );
    }
    if seconds > EVERY_LIMIT_SECONDS {
        return Err(duration.error("an interval is at most 36525d, a century"));
    }
    Ok(Rule::Every(seconds))
}

fn bad_duration(duration: Piece<'_>, part: Piece<'_>, unit: Piece<'_>) -> ScheduleError {
    let hint = "write whole numbers with `d`, `h`, `m`, `s`, the longest first and without spaces: `@every 1h30m`";
    if matches!(unit.text, "ms" | "us" | "µs" | "ns") {
        let error = part.error(format!("`{}` is no whole number of seconds", part.text));
        return error.hint("schedules are in whole seconds: write `@every 1s` or longer");
    }
    part.error(format!("`{}` is not a duration", duration.text))
        .hint(hint)
}

/// Reads what follows `@at`: a date and time, with an offset or in the job's zone.
pub(super) fn at(when: Piece<'_>) -> Result<Rule, ScheduleError> {
    let hint = "write `@at 2027-01-01T00:00:00Z`, with another offset such as `+08:00`, or without any for the job's zone";
    if when.text.is_empty() {
        return Err(when.error("`@at` needs a date and time").hint(hint));
    }
    if let Some(at) = when.text.find('[') {
        let zone = when.from(at);
        let error = zone.error("a schedule can't name a time zone");
        return Err(error.hint("set `timezone` on the job, and leave out the offset here"));
    }
    let Some((date_time, instant)) = moment(when.text) else {
        return Err(when
            .error(format!("`{}` is not a date and time", when.text))
            .hint(hint));
    };
    if date_time.subsec_nanosecond() != 0 {
        let error = when.error("a schedule can't have fractions of a second");
        return Err(error.hint("schedules are in whole seconds"));
    }
    let years = FIRST_YEAR..=LAST_YEAR;
    if !u16::try_from(date_time.year()).is_ok_and(|year| years.contains(&year)) {
        return Err(when.error(format!("years go from {FIRST_YEAR} to {LAST_YEAR}")));
    }
    Ok(match instant {
        Some(instant) => Rule::At(instant.as_second()),
        None => Rule::Cron(only(date_time)),
    })
}

/// A date and time: that of UTC and its instant where there is an offset, else the local one.
fn moment(text: &str) -> Option<(DateTime, Option<Timestamp>)> {
    // jiff reads a date alone as its midnight, an hour alone as the full one, and a 60th second
    // as the one before, which are more than RFC 3339 says or less than was meant.
    if text.as_bytes().get(13) != Some(&b':') || text.contains(":60") {
        return None;
    }
    match text.parse::<Timestamp>() {
        Ok(instant) => Some((TimeZone::UTC.to_datetime(instant), Some(instant))),
        Err(_) => Some((text.parse().ok()?, None)),
    }
}

/// The schedule of one local time, in a year that a field can name: daylight saving treats it as
/// any other.
fn only(local: DateTime) -> Cron {
    Cron {
        times: Times {
            seconds: 1 << local.second(),
            minutes: 1 << local.minute(),
            hours: 1 << local.hour(),
        },
        days: Days {
            of_month: DaysOfMonth {
                days: 1 << local.day(),
                ..DaysOfMonth::default()
            },
            of_week: DaysOfWeek {
                days: 0x7f,
                ..DaysOfWeek::default()
            },
            either: false,
            months: 1 << local.month(),
            years: Some(Box::new(Bits::year(local.year()))),
        },
    }
}
