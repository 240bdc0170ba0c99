//! Sets of local dates, a bit for each day of 230 years.
//!
//! Dates that come again each year or each week are written out, so that a set answers in one
//! look what it has, and finds what comes next 64 days at a time. It must never grow: a day
//! outside of its years is in no set.

use std::ops::RangeInclusive;

use jiff::civil::Date;

use super::cron::{FIRST_YEAR, LAST_YEAR};
use super::days::{Month, date, day_number, weekday};
use crate::scheduler::spread::Spread;

/// The years that a set can hold: those that schedules can name.
pub(crate) const YEARS: RangeInclusive<i16> = FIRST_YEAR as i16..=LAST_YEAR as i16;
/// The first day that a set can hold, 1970-01-01, as everywhere days are counted from it.
pub(crate) const FIRST_DAY: i64 = 0;
/// The last day that a set can hold: 2199-12-31, the end of the years that schedules can name.
pub(crate) const LAST_DAY: i64 = 84_005;

const WORDS: usize = (LAST_DAY as usize) / 64 + 1;

/// A set of local dates from 1970-01-01 to 2199-12-31.
#[derive(Clone, PartialEq, Eq)]
pub struct DaySet(Box<[u64; WORDS]>);

impl Default for DaySet {
    fn default() -> Self {
        Self(Box::new([0; WORDS]))
    }
}

impl DaySet {
    /// Adds all dates from `first` to `last`, both included; those that no set can hold are
    /// left out.
    pub fn insert(&mut self, first: Date, last: Date) {
        self.insert_days(day_of(first), day_of(last));
    }

    /// Adds those from one month and day to another of every year, both included, round the end
    /// of the year where the second is the earlier one. A 29 February is in leap years alone.
    pub fn insert_yearly(&mut self, first: (i8, i8), last: (i8, i8)) {
        let wraps = i32::from(last < first);
        for year in i32::from(*YEARS.start()) - 1..=i32::from(*YEARS.end()) {
            let first = at_or_after(year, first);
            let last = at_or_before(year + wraps, last);
            self.insert_days(first, last);
        }
    }

    /// Adds those of a day of the week, 0 being Sunday.
    pub fn insert_weekly(&mut self, day_of_week: u32) {
        let first = (FIRST_DAY..FIRST_DAY + 7).find(|day| weekday(*day) == day_of_week);
        for day in (first.unwrap_or(LAST_DAY + 1)..=LAST_DAY).step_by(7) {
            self.insert_days(day, day);
        }
    }

    /// Adds all of another set.
    pub fn insert_all(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0.iter()) {
            *word |= other;
        }
    }

    /// Whether a date is in it.
    pub fn contains(&self, date: Date) -> bool {
        self.has(day_of(date))
    }

    /// Whether no date is in it.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The same for days since 1970-01-01.
    pub(crate) fn insert_days(&mut self, first: i64, last: i64) {
        let (first, last) = (first.max(FIRST_DAY), last.min(LAST_DAY));
        if first > last {
            return;
        }
        let (low, high) = (place(first), place(last));
        for index in low.0..=high.0 {
            let from = if index == low.0 { low.1 } else { 0 };
            let to = if index == high.0 { high.1 } else { 63 };
            self.0[index] |= (u64::MAX << from) & (u64::MAX >> (63 - to));
        }
    }

    /// Takes out all of another set.
    pub(super) fn remove_all(&mut self, other: &Self) {
        for (word, other) in self.0.iter_mut().zip(other.0.iter()) {
            *word &= !other;
        }
    }

    /// All days there are.
    pub(super) fn all() -> Self {
        let mut all = Self::default();
        all.insert_days(FIRST_DAY, LAST_DAY);
        all
    }

    pub(super) fn has(&self, day: i64) -> bool {
        let (index, bit) = place(day.max(0));
        day >= 0 && self.0.get(index).is_some_and(|word| word >> bit & 1 == 1)
    }

    /// The first day at or after `day` that is in the set, or that is not, as `wanted` says.
    pub(crate) fn next(&self, day: i64, wanted: bool) -> Option<i64> {
        let flip = if wanted { 0 } else { u64::MAX };
        let (start, bit) = place(day.max(FIRST_DAY));
        let mut keep = u64::MAX << bit;
        for index in start..WORDS {
            let found = (self.0[index] ^ flip) & keep;
            if found != 0 {
                let day = (index * 64) as i64 + i64::from(found.trailing_zeros());
                return (day <= LAST_DAY).then_some(day);
            }
            keep = u64::MAX;
        }
        None
    }

    /// The last day at or before `day` that is in the set.
    pub(crate) fn previous(&self, day: i64) -> Option<i64> {
        if day < FIRST_DAY {
            return None;
        }
        let (start, bit) = place(day.min(LAST_DAY));
        let mut keep = u64::MAX >> (63 - bit);
        for index in (0..=start).rev() {
            let found = self.0[index] & keep;
            if found != 0 {
                return Some((index * 64) as i64 + 63 - i64::from(found.leading_zeros()));
            }
            keep = u64::MAX;
        }
        None
    }

    /// A number for what is in it, the same on every replica.
    pub(super) fn digest(&self) -> u64 {
        let words = self.0.iter();
        words
            .fold(Spread::default(), |all, word| all.and(*word))
            .number()
    }
}

impl std::fmt::Debug for DaySet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let days: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        write!(f, "DaySet({days} days, {:016x})", self.digest())
    }
}

/// The word and the bit of a day that is not negative.
fn place(day: i64) -> (usize, u32) {
    ((day / 64) as usize, (day % 64) as u32)
}

/// The day since 1970-01-01 of a date.
pub(crate) fn day_of(date: Date) -> i64 {
    let month = Month {
        year: date.year().into(),
        month: u32::from(date.month().unsigned_abs()),
    };
    day_number(month, u32::from(date.day().unsigned_abs()))
}

/// The month and day of a year, or in a year without that day the one after it.
fn at_or_after(year: i32, (month, day): (i8, i8)) -> i64 {
    let month = Month {
        year,
        month: u32::from(month.unsigned_abs()),
    };
    day_number(month, u32::from(day.unsigned_abs()))
}

/// The month and day of a year, or in a year without that day the one before it.
fn at_or_before(year: i32, (month, day): (i8, i8)) -> i64 {
    let found = at_or_after(year, (month, day));
    let (_, landed) = date(found);
    // A 29 February that became 1 March.
    if landed == u32::from(day.unsigned_abs()) {
        found
    } else {
        found - 1
    }
}
