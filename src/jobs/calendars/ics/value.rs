//! Dates, times and durations of an iCalendar file (RFC 5545, 3.3), without zones.
//!
//! Local times are seconds since 1970-01-01T00:00:00 on the wall clock. It must never round: what
//! is no whole second is no value.

use jiff::civil::{Date, DateTime};

use super::lines::{Fault, Property};
use crate::scheduler::schedule::day_set::day_of;

/// Seconds of a day.
pub(super) const DAY: i64 = 86_400;

/// A date, or a date and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Days since 1970-01-01.
    Date(i64),
    /// A local time, in the zone that its property names.
    Local(i64),
    /// An instant.
    Utc(i64),
}

/// How long an event lasts: days of the wall clock, then seconds of elapsed time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Length {
    pub(super) days: i64,
    pub(super) seconds: i64,
}

const VALUE_HINT: &str =
    "a date is `20261225`, a date and time `20261225T090000`, in UTC with a `Z` at its end";

impl Value {
    /// Reads `20261225`, `20261225T090000` or `20261225T090000Z`.
    pub(super) fn read(property: &Property<'_>, text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        Self::parse(text)
            .ok_or_else(|| property.fault(format!("`{text}` is no date or time"), VALUE_HINT))
    }

    fn parse(text: &str) -> Option<Self> {
        let number = |range: std::ops::Range<usize>| {
            let digits = text.get(range)?;
            let all = digits.bytes().all(|byte| byte.is_ascii_digit());
            all.then(|| digits.parse::<i16>().ok())?
        };
        let small = |range| number(range).and_then(|number| i8::try_from(number).ok());
        let date = Date::new(number(0..4)?, small(4..6)?, small(6..8)?).ok()?;
        let rest = text.get(8..)?;
        if rest.is_empty() {
            return Some(Self::Date(day_of(date)));
        }
        let (hour, minute, second) = (small(9..11)?, small(11..13)?, small(13..15)?);
        // A leap second, which RFC 5545 allows, is read as the one before it.
        let time = DateTime::new(
            date.year(),
            date.month(),
            date.day(),
            hour,
            minute,
            if second == 60 { 59 } else { second },
            0,
        );
        let time = time.ok()?.time();
        let of_day = i64::from(time.hour()) * 3600
            + i64::from(time.minute()) * 60
            + i64::from(time.second());
        let local = day_of(date) * DAY + of_day;
        match (&rest[..1], text.get(15..)?) {
            ("T" | "t", "") => Some(Self::Local(local)),
            ("T" | "t", "Z" | "z") => Some(Self::Utc(local)),
            _ => None,
        }
    }
}

impl Length {
    /// Reads `P1D`, `PT15M`, `P2W`, `P1DT12H`.
    pub(super) fn read(property: &Property<'_>, text: &str) -> Result<Self, Fault> {
        Self::parse(text.trim()).ok_or_else(|| {
            let hint = "a duration is `P1D`, `PT1H30M` or `P2W`, and less than 100 years";
            property.fault(format!("`{text}` is no duration of an event"), hint)
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_uppercase();
        let text = text.strip_prefix('+').unwrap_or(&text);
        let mut rest = text.strip_prefix('P')?;
        let mut length = Self::default();
        let mut in_time = false;
        let mut parts = 0;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('T').filter(|_| !in_time) {
                (in_time, rest) = (true, after);
                continue;
            }
            let digits = rest.find(|c: char| !c.is_ascii_digit())?;
            let count: i64 = rest[..digits].parse().ok()?;
            let (days, seconds) = match (&rest.get(digits..digits + 1)?, in_time) {
                (&"W", false) => (7, 0),
                (&"D", false) => (1, 0),
                (&"H", true) => (0, 3600),
                (&"M", true) => (0, 60),
                (&"S", true) => (0, 1),
                _ => return None,
            };
            length.days += count.checked_mul(days)?;
            length.seconds += count.checked_mul(seconds)?;
            // Less than a century each, so that no sum comes near any limit.
            if length.days > 36_500 || length.seconds > 36_500 * DAY {
                return None;
            }
            parts += 1;
            rest = &rest[digits + 1..];
        }
        (parts > 0).then_some(length)
    }
}
