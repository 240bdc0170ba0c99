//! The fields of a schedule as sets of bits, and the search for the next or previous local time
//! in them.
//!
//! Local times are seconds since 1970-01-01T00:00:00 on the wall clock, as if there were no
//! zones; this file must never know of one. Days are found a month at a time, times of day by
//! counting zero bits, so a search costs much the same however rare the match is.

use super::days::{self, CYCLE_YEARS, DAY_SECONDS, Month};

/// The years a field can name: 1970 to 2199, as many as Quartz has, and 100 more.
pub(super) const FIRST_YEAR: u16 = 1970;
/// The last of the years a field can name.
pub(super) const LAST_YEAR: u16 = 2199;

/// What a schedule of fields matches.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    /// The times of day.
    pub(super) times: Times,
    /// The days.
    pub(super) days: Days,
}

/// A set of times of day. No field is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Bits 0 to 59.
    pub(super) seconds: u64,
    /// Bits 0 to 59.
    pub(super) minutes: u64,
    /// Bits 0 to 23.
    pub(super) hours: u64,
}

/// A set of days.
#[derive(Clone, Debug)]
pub(super) struct Days {
    /// By the day of the month.
    pub(super) of_month: DaysOfMonth,
    /// By the day of the week.
    pub(super) of_week: DaysOfWeek,
    /// Whether one of the two is enough: crontab(5), when both are restricted.
    pub(super) either: bool,
    /// Bits 1 to 12.
    pub(super) months: u64,
    /// The years, as bits from [`FIRST_YEAR`] on; none for every year.
    pub(super) years: Option<Box<[u64; 4]>>,
}

/// Days by their place in the month.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DaysOfMonth {
    /// Bits 1 to 31.
    pub(super) days: u32,
    /// Bit n: n days before the last (`L` is bit 0).
    pub(super) before_last: u32,
    /// Bits 1 to 31: the day from Monday to Friday that is nearest (`15W`).
    pub(super) nearest: u32,
    /// `LW`.
    pub(super) last_weekday: bool,
}

/// Days by their place in the week, 0 is Sunday.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DaysOfWeek {
    /// Bits 0 to 6.
    pub(super) days: u32,
    /// Bits 0 to 6: the last such day of a month (`5L`).
    pub(super) last: u32,
    /// For each day of the week, bits 1 to 5: the first to the fifth of a month (`FRI#2`).
    pub(super) nth: [u8; 7],
}

impl Cron {
    /// The first local time at or after `local`.
    pub(super) fn next(&self, local: i64) -> Option<i64> {
        let (day, time) = (local.div_euclid(DAY_SECONDS), local.rem_euclid(DAY_SECONDS));
        let mut found = self.days.next(day)?;
        if found == day {
            if let Some(time) = self.times.next(time) {
                return Some(day * DAY_SECONDS + time);
            }
            found = self.days.next(day + 1)?;
        }
        Some(found * DAY_SECONDS + self.times.first())
    }

    /// The last local time at or before `local`.
    pub(super) fn previous(&self, local: i64) -> Option<i64> {
        let (day, time) = (local.div_euclid(DAY_SECONDS), local.rem_euclid(DAY_SECONDS));
        let mut found = self.days.previous(day)?;
        if found == day {
            if let Some(time) = self.times.previous(time) {
                return Some(day * DAY_SECONDS + time);
            }
            found = self.days.previous(day - 1)?;
        }
        Some(found * DAY_SECONDS + self.times.last())
    }

    /// Whether every hour of the day has a match.
    pub(super) fn is_due_in_all_hours(&self) -> bool {
        self.times.hours == (1 << 24) - 1
    }

    /// Whether it is limited to certain years.
    pub(super) fn has_years(&self) -> bool {
        self.days.years.is_some()
    }
}

impl Times {
    fn next(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = at_or_above(self.seconds, second)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = at_or_above(self.minutes, minute + 1) {
                return Some(hour * 3600 + minute * 60 + lowest(self.seconds));
            }
        }
        let hour = at_or_above(self.hours, hour + 1)?;
        Some(hour * 3600 + lowest(self.minutes) * 60 + lowest(self.seconds))
    }

    fn previous(&self, time: i64) -> Option<i64> {
        let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = below(self.seconds, second + 1)
            {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = below(self.minutes, minute) {
                return Some(hour * 3600 + minute * 60 + highest(self.seconds));
            }
        }
        let hour = below(self.hours, hour)?;
        Some(hour * 3600 + highest(self.minutes) * 60 + highest(self.seconds))
    }

    fn first(&self) -> i64 {
        lowest(self.hours) * 3600 + lowest(self.minutes) * 60 + lowest(self.seconds)
    }

    fn last(&self) -> i64 {
        highest(self.hours) * 3600 + highest(self.minutes) * 60 + highest(self.seconds)
    }
}

impl Days {
    /// The first day at or after `day`, days being counted from 1970-01-01.
    pub(super) fn next(&self, day: i64) -> Option<i64> {
        let (start, first_day) = days::date(day);
        let mut keep = u32::MAX << first_day;
        let first_year = start.year.max(self.first_year());
        for year in first_year..=first_year + CYCLE_YEARS {
            let from = if year == start.year { start.month } else { 1 };
            let mut months = self.months_of(year) & (u64::MAX << from);
            while months != 0 {
                let month = Month {
                    year,
                    month: months.trailing_zeros(),
                };
                if month != start {
                    keep = u32::MAX;
                }
                let found = self.of(month) & keep;
                if found != 0 {
                    return Some(days::day_number(month, found.trailing_zeros()));
                }
                months &= months - 1;
            }
        }
        None
    }

    /// The last day at or before `day`.
    pub(super) fn previous(&self, day: i64) -> Option<i64> {
        let (start, last_day) = days::date(day);
        let mut keep = u32::MAX >> (31 - last_day);
        let last_year = start.year.min(self.last_year());
        for year in (last_year - CYCLE_YEARS..=last_year).rev() {
            let to = if year == start.year { start.month } else { 12 };
            let mut months = self.months_of(year) & (u64::MAX >> (63 - to));
            while months != 0 {
                let month = Month {
                    year,
                    month: 63 - months.leading_zeros(),
                };
                if month != start {
                    keep = u32::MAX;
                }
                let found = self.of(month) & keep;
                if found != 0 {
                    return Some(days::day_number(month, 31 - found.leading_zeros()));
                }
                months &= !(1 << month.month);
            }
        }
        None
    }

    /// The months that are due in a year.
    fn months_of(&self, year: i32) -> u64 {
        let due = self.years.as_ref().is_none_or(|years| {
            let bit = u32::try_from(year - i32::from(FIRST_YEAR)).unwrap_or(u32::MAX);
            years
                .get((bit / 64) as usize)
                .is_some_and(|word| word >> (bit % 64) & 1 == 1)
        });
        if due { self.months } else { 0 }
    }

    fn first_year(&self) -> i32 {
        if self.years.is_some() {
            i32::from(FIRST_YEAR)
        } else {
            i32::MIN
        }
    }

    fn last_year(&self) -> i32 {
        if self.years.is_some() {
            i32::from(LAST_YEAR)
        } else {
            i32::MAX
        }
    }

    /// The days of one month, bits 1 to 31.
    fn of(&self, month: Month) -> u32 {
        let length = month.length();
        let first = days::weekday(days::day_number(month, 1));
        let of_month = self.of_month.of(length, first);
        let of_week = self.of_week.of(length, first);
        let days = if self.either {
            of_month | of_week
        } else {
            of_month & of_week
        };
        days & all(length)
    }
}

impl DaysOfMonth {
    fn of(&self, length: u32, first: u32) -> u32 {
        let mut days = self.days;
        for before in bits(self.before_last) {
            days |= 1u32.checked_shl(length.saturating_sub(before)).unwrap_or(0) & !1;
        }
        if self.last_weekday {
            days |= 1 << nearest_weekday(length, length, first);
        }
        for day in bits(self.nearest).filter(|day| *day <= length) {
            days |= 1 << nearest_weekday(day, length, first);
        }
        days
    }
}

impl DaysOfWeek {
    fn of(&self, length: u32, first: u32) -> u32 {
        let mut days = weekly(self.days, first);
        if self.last != 0 {
            days |= weekly(self.last, first) & !all(length - 7);
        }
        for (weekday, nth) in (0..).zip(self.nth) {
            for n in bits(u32::from(nth)) {
                let day = 1 + (weekday + 7 - first) % 7 + 7 * (n - 1);
                days |= 1u32.checked_shl(day).unwrap_or(0);
            }
        }
        days
    }
}

/// The Monday-to-Friday day nearest to `day` in the same month (Quartz's `W`).
fn nearest_weekday(day: u32, length: u32, first: u32) -> u32 {
    match (first + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == length => day - 2,
        0 => day + 1,
        _ => day,
    }
}

/// A set of weekdays, as days of a month that begins with weekday `first`.
fn weekly(weekdays: u32, first: u32) -> u32 {
    let from_first = ((u64::from(weekdays) * 0x81) >> first) & 0x7f;
    // The same seven bits five times, from bit 1 on.
    ((from_first * 0x1020_4081) << 1) as u32
}

/// Bits 1 to `length`.
fn all(length: u32) -> u32 {
    (2u32 << length).wrapping_sub(2)
}

fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(bit)
    })
}

fn has(set: u64, bit: i64) -> bool {
    set >> bit & 1 == 1
}

/// The lowest bit at or above `bit`, which is 60 at most.
fn at_or_above(set: u64, bit: i64) -> Option<i64> {
    let rest = set & (u64::MAX << bit);
    (rest != 0).then(|| lowest(rest))
}

/// The highest bit below `bit`, which is 60 at most.
fn below(set: u64, bit: i64) -> Option<i64> {
    let rest = set & !(u64::MAX << bit);
    (rest != 0).then(|| highest(rest))
}

fn lowest(set: u64) -> i64 {
    i64::from(set.trailing_zeros())
}

fn highest(set: u64) -> i64 {
    63 - i64::from(set.leading_zeros())
}
