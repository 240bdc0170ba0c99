//! From a rule to its days, from the event's first to the last that calendars know.
//!
//! In each period (a year, month, week or day) the candidates are the days that BYMONTH and
//! BYMONTHDAY leave, and every other part is a condition on one day; so what RFC 5545 calls
//! expanding and limiting (its table in 3.3.10) is one thing here. It must never run on without a
//! [`Budget`]: a file of a few megabytes can name days for hours.

use super::rule::{Frequency, Rule, WeekdayNumber};
use crate::scheduler::schedule::day_set::LAST_DAY;
use crate::scheduler::schedule::days::{Month, date, day_number, weekday};

/// How many steps the recurrences of one file may take: 32 million, which is a second or two. A
/// holiday on a fixed date takes some 230, one on a weekday of its month 7,000, and a meeting of
/// each week that never ends 150,000.
const BUDGET: u64 = 32_000_000;

/// What one occurrence at a time of day costs in steps, as zones are looked up for it.
pub(super) const ZONED_COST: u64 = 8;

/// Steps that are left.
#[derive(Debug)]
pub(super) struct Budget(u64);

/// There are no steps left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OverBudget;

impl Default for Budget {
    fn default() -> Self {
        Self(BUDGET)
    }
}

impl Budget {
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), OverBudget> {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or(0);
        left.map(|_| ()).ok_or(OverBudget)
    }

    pub(super) fn is_spent(&self) -> bool {
        self.0 == 0
    }
}

/// The days of a rule that begins on `start`, up to `last`. As in RFC 5545, `start` is the first
/// of them, and counts, whether or not the rule names it.
pub(super) fn days(
    rule: &Rule,
    start: i64,
    last: i64,
    budget: &mut Budget,
) -> Result<Vec<i64>, OverBudget> {
    let rule = completed(rule, start);
    let last = last.min(LAST_DAY);
    let mut found = Vec::new();
    let most = rule.count.unwrap_or(u64::MAX);
    if start > last {
        return Ok(found);
    }
    found.push(start);
    for step in 0.. {
        let Some(candidates) = candidates(&rule, start, step).filter(|(from, _)| *from <= last)
        else {
            break;
        };
        let (_, candidates) = candidates;
        budget.spend(1 + candidates.len() as u64)?;
        let due = candidates.into_iter().filter(|day| matches(&rule, *day));
        for day in chosen(&rule, due.collect()) {
            if day > last || found.len() as u64 >= most {
                return Ok(found);
            }
            if day > start {
                found.push(day);
            }
        }
    }
    Ok(found)
}

/// The rule with what it leaves to the event's first day.
fn completed(rule: &Rule, start: i64) -> Rule {
    let mut rule = rule.clone();
    let (month, day) = date(start);
    let of_start = WeekdayNumber {
        nth: 0,
        weekday: weekday(start),
    };
    match rule.frequency {
        Frequency::Yearly if rule.names_no_day() => {
            if rule.months.is_empty() {
                rule.months = vec![i64::from(month.month)];
            }
            rule.month_days = vec![i64::from(day)];
        }
        Frequency::Yearly
            if !rule.weeks.is_empty() && rule.weekdays.is_empty() && rule.month_days.is_empty() =>
        {
            rule.weekdays = vec![of_start];
        }
        Frequency::Monthly if rule.names_no_day() => rule.month_days = vec![i64::from(day)],
        Frequency::Weekly if rule.weekdays.is_empty() => rule.weekdays = vec![of_start],
        _ => {}
    }
    rule
}

/// The first day of a period, and the days in it that may match; none when the period is beyond
/// all years.
fn candidates(rule: &Rule, start: i64, step: i64) -> Option<(i64, Vec<i64>)> {
    let (month, _) = date(start);
    let steps = step.checked_mul(rule.interval)?;
    match rule.frequency {
        Frequency::Yearly => {
            let year = i32::try_from(i64::from(month.year).checked_add(steps)?).ok()?;
            let months =
                (1..=12).filter(|month| rule.months.is_empty() || has(&rule.months, *month));
            let days = months.flat_map(|month| of_month(rule, Month { year, month }));
            Some((day_number(Month { year, month: 1 }, 1), days.collect()))
        }
        Frequency::Monthly => {
            let months = i64::from(month.year) * 12 + i64::from(month.month) - 1;
            let months = months.checked_add(steps)?;
            let month = Month {
                year: i32::try_from(months.div_euclid(12)).ok()?,
                month: months.rem_euclid(12) as u32 + 1,
            };
            let is_due = rule.months.is_empty() || has(&rule.months, month.month);
            let days = is_due.then(|| of_month(rule, month));
            Some((day_number(month, 1), days.unwrap_or_default()))
        }
        Frequency::Weekly => {
            let into = i64::from((weekday(start) + 7 - rule.week_start) % 7);
            let first = steps.checked_mul(7)?.checked_add(start - into)?;
            Some((first, (first..first.checked_add(7)?).collect()))
        }
        Frequency::Daily => {
            let day = start.checked_add(steps)?;
            Some((day, vec![day]))
        }
    }
}

/// The days of a month that BYMONTHDAY leaves.
fn of_month(rule: &Rule, month: Month) -> Vec<i64> {
    let length = i64::from(month.length());
    let first = day_number(month, 1);
    if rule.month_days.is_empty() {
        return (first..first + length).collect();
    }
    let from_start = |day: &i64| if *day < 0 { length + 1 + day } else { *day };
    let mut days: Vec<i64> = rule
        .month_days
        .iter()
        .map(from_start)
        .filter(|day| (1..=length).contains(day))
        .map(|day| first + day - 1)
        .collect();
    days.sort_unstable();
    days.dedup();
    days
}

/// Whether all parts of a rule take a day.
fn matches(rule: &Rule, day: i64) -> bool {
    let (month, of_month) = date(day);
    let length = month.length();
    (rule.months.is_empty() || has(&rule.months, month.month))
        && (rule.month_days.is_empty() || has_from_either_end(&rule.month_days, of_month, length))
        && (rule.year_days.is_empty() || {
            let (of_year, length) = of_year(month.year, day);
            has_from_either_end(&rule.year_days, of_year, length)
        })
        && (rule.weeks.is_empty() || {
            let (week, weeks) = week_of(rule, day);
            has_from_either_end(&rule.weeks, week, weeks)
        })
        && (rule.weekdays.is_empty()
            || rule.weekdays.iter().any(|asked| {
                asked.weekday == weekday(day) && is_nth(rule, asked.nth, day, month, of_month)
            }))
}

/// Whether a day is the nth of its weekday: in its month, or in its year where no months are
/// named.
fn is_nth(rule: &Rule, nth: i64, day: i64, month: Month, of_month: u32) -> bool {
    let (from_start, length) = if rule.frequency == Frequency::Yearly && rule.months.is_empty() {
        of_year(month.year, day)
    } else {
        (of_month, month.length())
    };
    let week = |days: u32| i64::from(days / 7 + 1);
    match nth {
        0 => true,
        1.. => week(from_start - 1) == nth,
        _ => week(length - from_start) == -nth,
    }
}

/// The day of the year, from 1, and how many the year has.
fn of_year(year: i32, day: i64) -> (u32, u32) {
    let first = day_number(Month { year, month: 1 }, 1);
    let next = day_number(
        Month {
            year: year + 1,
            month: 1,
        },
        1,
    );
    ((day - first + 1) as u32, (next - first) as u32)
}

/// The number of a day's week, and how many weeks that week's year has: the first is the first
/// with four days in the year (ISO 8601, but for the day that it begins with).
fn week_of(rule: &Rule, day: i64) -> (u32, u32) {
    let into = i64::from((weekday(day) + 7 - rule.week_start) % 7);
    let middle = day - into + 3;
    let (month, _) = date(middle);
    let (of_year, length) = of_year(month.year, middle);
    let (before, after) = ((of_year - 1) / 7, (length - of_year) / 7);
    (before + 1, before + 1 + after)
}

/// What BYSETPOS chooses of a period's days; all of them without it.
fn chosen(rule: &Rule, due: Vec<i64>) -> Vec<i64> {
    if rule.positions.is_empty() {
        return due;
    }
    let count = due.len() as u32;
    let due = (1..).zip(due);
    due.filter(|(at, _)| has_from_either_end(&rule.positions, *at, count))
        .map(|(_, day)| day)
        .collect()
}

fn has(numbers: &[i64], number: u32) -> bool {
    numbers.contains(&i64::from(number))
}

/// Whether the numbers have one of `length` things: counted from the start, or negative, from
/// the end.
fn has_from_either_end(numbers: &[i64], number: u32, length: u32) -> bool {
    has(numbers, number) || numbers.contains(&(i64::from(number) - i64::from(length) - 1))
}
