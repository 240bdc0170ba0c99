//! Dates and days of the week as people write them in a calendar.
//!
//! Must never: guess which part of a date is the month, or take a range that runs backwards.

use std::ops::Range;

use jiff::civil::Date;

use crate::jobs::ValueError;
use crate::scheduler::schedule::DaySet;
use crate::scheduler::schedule::day_set::YEARS;

pub(crate) const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const DATE_HINT: &str = "a date is `\"2026-12-25\"`, a range `\"2026-12-24..2027-01-01\"`, and without the year it is every year's: `\"12-25\"`, `\"12-24..01-01\"`";
const WEEKDAY_HINT: &str = "days are SUN, MON, TUE, WED, THU, FRI, SAT; a range is `\"MON-FRI\"`";

/// One end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A date.
    Once(Date),
    /// A month and a day of every year.
    Yearly(i8, i8),
}

/// Adds what an item of `dates` names. An error's message follows the text.
pub(crate) fn add_dates(days: &mut DaySet, text: &str) -> Result<(), ValueError> {
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (end(first)?, end(last)?),
        None => (end(text)?, end(text)?),
    };
    match (first, last) {
        (End::Once(first), End::Once(last)) if first <= last => days.insert(first, last),
        (End::Once(_), End::Once(_)) => {
            let hint = "write the earlier date first; both are included";
            return error("runs backwards", hint);
        }
        (End::Yearly(month, day), End::Yearly(last_month, last_day)) => {
            days.insert_yearly((month, day), (last_month, last_day));
        }
        _ => {
            let hint = "write the year in both dates of a range, or in neither";
            return error("has a year at one end alone", hint);
        }
    }
    Ok(())
}

fn end(text: &str) -> Result<End, ValueError> {
    let text = text.trim();
    let parts: Vec<&str> = text.split('-').collect();
    let two = |text: &str| number(text, 2..3).and_then(|number| i8::try_from(number).ok());
    let read = match parts[..] {
        [year, month, day] => {
            let parts = (number(year, 4..5), two(month), two(day));
            let (Some(year), Some(month), Some(day)) = parts else {
                return no_date();
            };
            if !YEARS.contains(&year) {
                let message = format!("is not in the years {} to {}", YEARS.start(), YEARS.end());
                return error(
                    message,
                    "calendars are for the years that schedules can name",
                );
            }
            Date::new(year, month, day).map(End::Once)
        }
        [month, day] => {
            let (Some(month), Some(day)) = (two(month), two(day)) else {
                return no_date();
            };
            // A leap year has all days there are.
            Date::new(2000, month, day).map(|date| End::Yearly(date.month(), date.day()))
        }
        _ => return no_date(),
    };
    read.or_else(|_| error("is no date: there is no such day", DATE_HINT))
}

fn number(text: &str, length: Range<usize>) -> Option<i16> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    (digits && length.contains(&text.len())).then(|| text.parse().ok())?
}

fn no_date() -> Result<End, ValueError> {
    error("is no date", DATE_HINT)
}

/// Adds what an item of `weekdays` names. An error's message follows the text.
pub(crate) fn add_weekdays(days: &mut DaySet, text: &str) -> Result<(), ValueError> {
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (weekday(first)?, weekday(last)?),
        None => (weekday(text)?, weekday(text)?),
    };
    let mut day = first;
    loop {
        days.insert_weekly(day);
        if day == last {
            return Ok(());
        }
        day = (day + 1) % 7;
    }
}

fn weekday(text: &str) -> Result<u32, ValueError> {
    let text = text.trim();
    let found = (0..).zip(WEEKDAYS);
    let mut found = found.filter(|(_, name)| name.eq_ignore_ascii_case(text));
    if let Some((number, _)) = found.next() {
        return Ok(number);
    }
    let short = text.get(..3).unwrap_or_default().to_ascii_uppercase();
    if WEEKDAYS.contains(&short.as_str()) {
        return error("is no day of the week", format!("write `{short}`"));
    }
    error("is no day of the week", WEEKDAY_HINT)
}

fn error<T>(message: impl Into<String>, hint: impl Into<String>) -> Result<T, ValueError> {
    Err(ValueError {
        message: message.into(),
        hint: hint.into(),
    })
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn dates(text: &str) -> DaySet {
        let mut days = DaySet::default();
        add_dates(&mut days, text).unwrap_or_else(|error| panic!("`{text}` {}", error.message));
        days
    }

    #[test]
    fn dates_and_ranges_are_of_one_year_or_of_all() {
        let mut one = DaySet::default();
        one.insert(date(2026, 12, 25), date(2026, 12, 25));
        assert!(dates("2026-12-25") == one);
        let mut range = DaySet::default();
        range.insert(date(2026, 12, 24), date(2027, 1, 1));
        assert!(dates("2026-12-24..2027-01-01") == range);
        assert!(dates(" 2026-12-24 .. 2027-01-01 ") == range);
        let mut yearly = DaySet::default();
        yearly.insert_yearly((12, 24), (1, 1));
        assert!(dates("12-24..01-01") == yearly);
        assert!(dates("02-29").contains(date(2028, 2, 29)));
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for (text, message) in [
            ("", "is no date"),
            ("Christmas", "is no date"),
            ("25.12.2026", "is no date"),
            ("26-12-25", "is no date"),
            ("2026-1-5", "is no date"),
            ("2026-12-25..", "is no date"),
            ("2026-12-24..2026-12-25..2026-12-26", "is no date"),
            ("2026-12-24T00:00:00", "is no date"),
            ("2026-02-29", "is no date: there is no such day"),
            ("02-30", "is no date: there is no such day"),
            ("1969-12-31", "is not in the years 1970 to 2199"),
            ("2027-01-01..2026-12-24", "runs backwards"),
            ("2026-12-24..01-01", "has a year at one end alone"),
        ] {
            let error = add_dates(&mut DaySet::default(), text).expect_err(text);
            assert_eq!(error.message, message, "{text}");
        }
    }

    #[test]
    fn weekdays_are_names_and_ranges_may_go_round() {
        let read = |text| {
            let mut days = DaySet::default();
            let read = add_weekdays(&mut days, text);
            read.map(|()| {
                let week = (1..=7).filter(|day| days.contains(date(2026, 11, *day)));
                week.collect::<Vec<_>>()
            })
        };
        // 1 November 2026 is a Sunday.
        assert_eq!(read("SAT"), Ok(vec![7]));
        assert_eq!(read("mon-fri"), Ok(vec![2, 3, 4, 5, 6]));
        assert_eq!(read("FRI-MON"), Ok(vec![1, 2, 6, 7]));
        assert_eq!(read("SUN-SAT").map(|days| days.len()), Ok(7));
        for (text, hint) in [
            ("Saturday", "write `SAT`"),
            ("1", WEEKDAY_HINT),
            ("SAT,SUN", "write `SAT`"),
            ("MON-", WEEKDAY_HINT),
            ("é", WEEKDAY_HINT),
        ] {
            assert_eq!(read(text).expect_err(text).hint, hint, "{text}");
        }
    }
}
