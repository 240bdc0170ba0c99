//! The proleptic Gregorian calendar in integers: day numbers, months, weekdays.
//!
//! It must never know of zones or time of day. The conversions are those of Howard Hinnant,
//! "chrono-Compatible Low-Level Date Algorithms"; they are here because a search converts
//! several dates, and these take a few nanoseconds without a range check.

/// Seconds of a day. UTC days have no leap seconds in Unix time.
pub(crate) const DAY_SECONDS: i64 = 86_400;

/// After so many years the calendar repeats, weekdays included (146,097 days are 20,871 weeks):
/// a date that did not come within them never does.
pub(crate) const CYCLE_YEARS: i32 = 400;

/// A month of a year.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Month {
    /// The year, astronomical: 0 is 1 BC.
    pub(crate) year: i32,
    /// 1 to 12.
    pub(crate) month: u32,
}

impl Month {
    /// How many days it has.
    pub(crate) fn length(self) -> u32 {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        match self.month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

/// The month and the day of the month (from 1) of a day since 1970-01-01.
pub(crate) fn date(day: i64) -> (Month, u32) {
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_based = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 {
        march_based + 3
    } else {
        march_based - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (
        Month {
            year: year as i32,
            month: month as u32,
        },
        day_of_month as u32,
    )
}

/// The day since 1970-01-01 of a date.
pub(crate) fn day_number(Month { year, month }: Month, day_of_month: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let march_based = i64::from((month + 9) % 12);
    let of_year = (153 * march_based + 2) / 5 + i64::from(day_of_month) - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    era * 146_097 + of_era - 719_468
}

/// The day of the week of a day since 1970-01-01 (a Thursday): 0 is Sunday.
pub(crate) fn weekday(day: i64) -> u32 {
    (day + 4).rem_euclid(7) as u32
}
