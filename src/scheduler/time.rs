//! Instants. Two kinds that must never be mixed up, so two types.
//!
//! [`Timestamp`] is civil time, read off the *store's* clock: schedules, claims and lease
//! deadlines are judged by it. [`BootTime`] is this host's own clock that never steps and
//! goes on counting while the host sleeps: how long a lease may be trusted is counted on it.

use std::fmt::{self, Write as _};
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An instant in civil time: milliseconds since 1970-01-01T00:00:00Z, leap seconds not counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since the Unix epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// From whole seconds since the Unix epoch.
    pub const fn from_second(second: i64) -> Self {
        Self(second.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch, rounded down.
    pub const fn as_second(self) -> i64 {
        self.0.div_euclid(1000)
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn saturating_since(self, earlier: Timestamp) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// This instant as `jiff` knows it. Instants outside jiff's range (the years -9999 to 9999)
    /// are cut to it.
    #[doc(hidden)]
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            jiff::Timestamp::MIN
        } else {
            jiff::Timestamp::MAX
        })
    }
}

#[doc(hidden)]
impl From<jiff::Timestamp> for Timestamp {
    fn from(value: jiff::Timestamp) -> Self {
        Self(value.as_millisecond())
    }
}

impl Add<Duration> for Timestamp {
    type Output = Timestamp;
    fn add(self, rhs: Duration) -> Timestamp {
        Timestamp(self.0.saturating_add(millis(rhs)))
    }
}

impl Sub<Duration> for Timestamp {
    type Output = Timestamp;
    fn sub(self, rhs: Duration) -> Timestamp {
        Timestamp(self.0.saturating_sub(millis(rhs)))
    }
}

/// RFC 3339 in UTC, with milliseconds only where there are any: `2026-11-20T22:00:00Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_jiff().fmt(f)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An instant on this host's CLOCK_BOOTTIME: counts suspended time, never steps
/// (clock_gettime(2)). Meaningless on any other host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BootTime(Duration);

impl BootTime {
    /// From the time since the host was booted.
    pub const fn since_boot(elapsed: Duration) -> Self {
        Self(elapsed)
    }

    /// The time since the host was booted.
    pub const fn as_duration(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn saturating_since(self, earlier: BootTime) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootTime {
    type Output = BootTime;
    fn add(self, rhs: Duration) -> BootTime {
        BootTime(self.0.saturating_add(rhs))
    }
}

impl Sub<Duration> for BootTime {
    type Output = BootTime;
    fn sub(self, rhs: Duration) -> BootTime {
        BootTime(self.0.saturating_sub(rhs))
    }
}

/// Whole milliseconds of a duration; durations over 292 million years are cut.
pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Units of durations, each in milliseconds, the largest first.
pub(crate) const DURATION_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A duration as tables have it: `1h30m`. What is below a millisecond is left out.
pub fn format_duration(duration: Duration) -> String {
    let mut left = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, ms) in DURATION_UNITS {
        if left >= ms {
            // Writing to a string can't fail.
            let _ = write!(text, "{}{unit}", left / ms);
            left %= ms;
        }
    }
    if text.is_empty() { "0s".into() } else { text }
}

/// A duration in at most two units: `850ms`, `12.3s`, `4m 5s`, `3h 20m`, `2d 1h`.
pub fn short_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{}ms", duration.as_millis()),
        1..60 => format!("{:.1}s", duration.as_secs_f64()),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h {}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d {}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

/// A time in seconds, to the millisecond, for JSON: no digits that nothing stands behind.
#[expect(clippy::cast_precision_loss, reason = "exact below 285,000 years")]
pub fn to_seconds(duration: Duration) -> f64 {
    let millis = duration
        .saturating_add(Duration::from_micros(500))
        .as_millis();
    millis as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_json_has_the_digits_of_its_milliseconds_and_no_more() {
        for (micros, told) in [
            (1_824_000, "1.824"),
            (1_823_600, "1.824"),
            (1_823_499, "1.823"),
            (60_000_000, "60.0"),
            (0, "0.0"),
        ] {
            let json = serde_json::to_string(&to_seconds(Duration::from_micros(micros)));
            assert_eq!(json.unwrap(), told);
        }
        for millis in 0..10_000 {
            let json = serde_json::to_string(&to_seconds(Duration::from_millis(millis))).unwrap();
            let digits = json.split_once('.').map_or(0, |(_, digits)| digits.len());
            assert!(digits <= 3, "{json}");
        }
    }

    #[test]
    fn a_duration_is_shown_in_at_most_two_units() {
        for (millis, shown) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (59_949, "59.9s"),
            (245_000, "4m 5s"),
            (12_000_000, "3h 20m"),
            (176_400_000, "2d 1h"),
        ] {
            assert_eq!(short_duration(Duration::from_millis(millis)), shown);
        }
    }
}
