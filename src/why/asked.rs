//! Which instant is meant: what people write as TIME, read in the job's zone.
//!
//! Must never: guess. A text that could be two things is refused; a local time that comes twice
//! is both of them, and one that doesn't exist is said not to.

use jiff::ToSpan as _;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};

use crate::scheduler::time::Timestamp;

/// How many days back the newest instant with a time of day is looked for: the first of them
/// that the zone has is taken, and no zone skips two in a row.
const DAYS_BACK: i32 = 3;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// An instant, wherever.
    Instant(Timestamp),
    /// A local date and time.
    Local(DateTime),
    /// A time of day: the newest such up to now.
    TimeOfDay(Time),
}

/// What is meant by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The instants, in order: one, or two where a local time comes twice.
    pub instants: Vec<Timestamp>,
    /// Set where the clocks being set matter.
    pub clocks: Option<Clocks>,
}

/// What the clocks being set did to a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// It doesn't exist: the clocks are set forward past it.
    Skipped {
        /// The local time.
        local: DateTime,
        /// When they are set: the one instant in [`Asked::instants`].
        until: Timestamp,
    },
    /// It comes twice.
    Twice {
        /// The local time.
        local: DateTime,
    },
}

/// Why a text is no TIME.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTime {
    /// A date alone.
    #[error("it says which day and not what time")]
    DateAlone,
    /// Anything else.
    #[error("it is no instant, date and time, or time of day")]
    Unreadable,
}

impl NoTime {
    /// What to do about it.
    pub const fn hint(self) -> &'static str {
        match self {
            NoTime::DateAlone => "add the time of day: `2026-11-20 02:30`, in the job's zone",
            NoTime::Unreadable => {
                "write `2026-11-20T22:00:00Z`, `2026-11-20 02:30` in the job's zone, or `02:30` for the newest one up to now"
            }
        }
    }
}

impl Written {
    /// Reads it; seconds may be left out.
    pub fn parse(text: &str) -> Result<Self, NoTime> {
        let text = text.trim();
        if let Ok(instant) = text.parse::<jiff::Timestamp>() {
            return Ok(Self::Instant(instant.into()));
        }
        // An offset or zone that makes no instant is a mistake, and not to be read past.
        let local = text
            .chars()
            .all(|c| c.is_ascii_digit() || "-:. Tt".contains(c));
        if !local {
            return Err(NoTime::Unreadable);
        }
        if !text.contains(':') {
            let date = text.parse::<Date>();
            return Err(date.map_or(NoTime::Unreadable, |_| NoTime::DateAlone));
        }
        let date_and_time = text.parse::<DateTime>().map(Self::Local);
        date_and_time
            .or_else(|_| text.parse::<Time>().map(Self::TimeOfDay))
            .map_err(|_| NoTime::Unreadable)
    }

    /// Reads it in a zone.
    pub fn in_zone(self, zone: &TimeZone, now: Timestamp) -> Asked {
        match self {
            Self::Instant(at) => Asked {
                instants: vec![at],
                clocks: None,
            },
            Self::Local(local) => Asked::local(local, zone),
            Self::TimeOfDay(time) => {
                let today = zone.to_datetime(now.to_jiff()).date();
                let days = (0..=DAYS_BACK).filter_map(|back| today.checked_sub(back.days()).ok());
                let mut asked = days.map(|day| Asked::local(day.to_datetime(time), zone));
                let begun = |asked: &Asked| asked.instants.first().is_some_and(|at| *at <= now);
                asked
                    .find(begun)
                    .unwrap_or_else(|| Asked::local(today.to_datetime(time), zone))
            }
        }
    }
}

impl Asked {
    fn local(local: DateTime, zone: &TimeZone) -> Self {
        let instant = |offset: Offset| {
            let at = offset.to_timestamp(local);
            // Only the first and last hours of jiff's range have no instant.
            at.map_or(Timestamp::default(), Timestamp::from)
        };
        match zone.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => Self {
                instants: vec![instant(offset)],
                clocks: None,
            },
            AmbiguousOffset::Fold { before, after } => Self {
                instants: vec![instant(before), instant(after)],
                clocks: Some(Clocks::Twice { local }),
            },
            AmbiguousOffset::Gap { before, after } => {
                // By the new offset it would be before the change, and nothing else is between.
                let just_before = instant(after);
                let mut changes = zone.following(just_before.to_jiff());
                let until = changes.next().map(|change| change.timestamp().into());
                let until = until.unwrap_or_else(|| instant(before));
                Self {
                    instants: vec![until],
                    clocks: Some(Clocks::Skipped { local, until }),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse::<jiff::Timestamp>().unwrap().into()
    }

    fn local(text: &str) -> DateTime {
        text.parse().unwrap()
    }

    fn asked(text: &str, zone: &str, now: &str) -> Asked {
        let zone = TimeZone::get(zone).unwrap();
        Written::parse(text).unwrap().in_zone(&zone, at(now))
    }

    fn one(instant: &str) -> Asked {
        Asked {
            instants: vec![at(instant)],
            clocks: None,
        }
    }

    const NOW: &str = "2026-11-21T00:00:00Z";

    #[test]
    fn an_instant_is_the_same_in_every_zone() {
        let expected = one("2026-11-20T22:00:00Z");
        for text in [
            "2026-11-20T22:00:00Z",
            "2026-11-20 22:00Z",
            "2026-11-21T06:00:00+08:00",
            "2026-11-21T06:00+08:00[Asia/Shanghai]",
        ] {
            assert_eq!(asked(text, "America/New_York", NOW), expected, "{text}");
        }
        assert_eq!(
            asked("2026-11-20T22:00:00.037Z", "UTC", NOW),
            one("2026-11-20T22:00:00.037Z")
        );
    }

    #[test]
    fn a_local_time_is_read_in_the_zone_with_or_without_seconds() {
        for text in [
            "2026-11-21 06:00",
            "2026-11-21T06:00:00",
            " 2026-11-21 06:00:00 ",
        ] {
            let expected = one("2026-11-20T22:00:00Z");
            assert_eq!(asked(text, "Asia/Shanghai", NOW), expected, "{text}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_newest_one_up_to_now() {
        let newest = |text, now| asked(text, "Asia/Shanghai", now);
        assert_eq!(newest("06:00", NOW), one("2026-11-20T22:00:00Z"));
        assert_eq!(newest("08:00", NOW), one(NOW));
        assert_eq!(newest("08:00:01", NOW), one("2026-11-20T00:00:01Z"));
        assert_eq!(newest("23:59", NOW), one("2026-11-20T15:59:00Z"));
    }

    #[test]
    fn a_local_time_that_is_skipped_stands_for_the_end_of_the_gap() {
        let (day, until) = ("2027-03-14T02:30:00", at("2027-03-14T07:00:00Z"));
        let skipped = Asked {
            instants: vec![until],
            clocks: Some(Clocks::Skipped {
                local: local(day),
                until,
            }),
        };
        let zone = "America/New_York";
        assert_eq!(asked("2027-03-14 02:30", zone, NOW), skipped);
        assert_eq!(asked("02:30", zone, "2027-03-14T12:00:00Z"), skipped);
        let earlier = one("2027-03-13T07:30:00Z");
        assert_eq!(asked("02:30", zone, "2027-03-14T06:59:59Z"), earlier);
    }

    #[test]
    fn a_local_time_that_comes_twice_is_both() {
        let twice = Asked {
            instants: vec![at("2027-11-07T05:30:00Z"), at("2027-11-07T06:30:00Z")],
            clocks: Some(Clocks::Twice {
                local: local("2027-11-07T01:30:00"),
            }),
        };
        assert_eq!(asked("2027-11-07 01:30", "America/New_York", NOW), twice);
    }

    #[test]
    fn what_could_be_two_things_is_refused() {
        for (text, expected) in [
            ("2026-11-20", NoTime::DateAlone),
            ("", NoTime::Unreadable),
            ("yesterday", NoTime::Unreadable),
            ("0230", NoTime::Unreadable),
            ("2026-11-20 25:00", NoTime::Unreadable),
            ("2026-02-30 02:30", NoTime::Unreadable),
            ("24:30", NoTime::Unreadable),
            ("2026-11-20 02:30[Nowhere/Land]", NoTime::Unreadable),
            ("02:30Z", NoTime::Unreadable),
            ("2:30 pm", NoTime::Unreadable),
        ] {
            assert_eq!(Written::parse(text), Err(expected), "`{text}`");
        }
    }
}
