//! What an RRULE says (RFC 5545, 3.3.10), as far as it is about days.
//!
//! It must never take a part that it doesn't act on: a rule by the hour, or of another calendar's
//! months, is refused.

use std::collections::BTreeSet;

use super::lines::{Fault, Property};
use super::value::Value;

/// How often a rule begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frequency {
    Yearly,
    Monthly,
    Weekly,
    Daily,
}

/// `MO`, `2MO`, `-1SU`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WeekdayNumber {
    /// Which one of its month or year, from the end where negative; 0 for each.
    pub(super) nth: i64,
    /// 0 is Sunday.
    pub(super) weekday: u32,
}

/// A rule by which an event comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) frequency: Frequency,
    pub(super) interval: i64,
    pub(super) count: Option<u64>,
    pub(super) until: Option<Value>,
    pub(super) months: Vec<i64>,
    pub(super) weeks: Vec<i64>,
    pub(super) year_days: Vec<i64>,
    pub(super) month_days: Vec<i64>,
    pub(super) weekdays: Vec<WeekdayNumber>,
    pub(super) positions: Vec<i64>,
    /// The day that weeks begin with, 0 is Sunday.
    pub(super) week_start: u32,
}

const WEEKDAYS: [&str; 7] = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"];

/// The largest INTERVAL: anything longer comes but once in all years that calendars know.
const INTERVAL_LIMIT: i64 = 100_000;

/// The parts that a rule may have, for hints.
const PARTS: &str = "the parts are FREQ, INTERVAL, COUNT, UNTIL, BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY, BYSETPOS and WKST";

impl Rule {
    /// Reads the value of an RRULE.
    pub(super) fn read(property: &Property<'_>) -> Result<Self, Fault> {
        let mut parts: Vec<(String, &str)> = Vec::new();
        for part in property.value.trim().trim_end_matches(';').split(';') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(property.fault(format!("`{part}` is no part of a rule"), PARTS));
            };
            let name = name.trim().to_ascii_uppercase();
            if parts.iter().any(|(other, _)| *other == name) {
                return Err(property.fault(format!("{name} is there twice"), "keep one of them"));
            }
            parts.push((name, value.trim()));
        }
        let mut rule = Self {
            frequency: frequency(property, &parts)?,
            interval: 1,
            count: None,
            until: None,
            months: Vec::new(),
            weeks: Vec::new(),
            year_days: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            positions: Vec::new(),
            week_start: 1,
        };
        for (name, value) in &parts {
            rule.take(property, name, value)?;
        }
        rule.check().map_or(Ok(rule), |message| {
            Err(property.fault(
                message,
                "RFC 5545, section 3.3.10, says which parts go together",
            ))
        })
    }

    fn take(&mut self, property: &Property<'_>, name: &str, value: &str) -> Result<(), Fault> {
        let numbers = |most: i64, signed: bool| numbers(property, name, value, most, signed);
        match name {
            "FREQ" => {}
            "INTERVAL" => self.interval = number(property, name, value, INTERVAL_LIMIT)?,
            "COUNT" => self.count = Some(number(property, name, value, i64::MAX)?.unsigned_abs()),
            "UNTIL" => self.until = Some(Value::read(property, value)?),
            "BYMONTH" => self.months = numbers(12, false)?,
            "BYWEEKNO" => self.weeks = numbers(53, true)?,
            "BYYEARDAY" => self.year_days = numbers(366, true)?,
            "BYMONTHDAY" => self.month_days = numbers(31, true)?,
            "BYSETPOS" => self.positions = numbers(366, true)?,
            "WKST" => {
                self.week_start = weekday(value).ok_or_else(|| {
                    property.fault(format!("`{value}` is no day of the week"), WEEKDAY_HINT)
                })?;
            }
            "BYDAY" => {
                let days = value.split(',').map(|day| {
                    weekday_number(day.trim()).ok_or_else(|| {
                        property.fault(format!("`{day}` is no day of the week"), WEEKDAY_HINT)
                    })
                });
                let days: BTreeSet<WeekdayNumber> = days.collect::<Result<_, _>>()?;
                self.weekdays = days.into_iter().collect();
            }
            "BYHOUR" | "BYMINUTE" | "BYSECOND" => {
                let hint = "a calendar is of days: leave the time of day to DTSTART";
                return Err(property.fault(format!("{name} is not supported"), hint));
            }
            _ => return Err(property.fault(format!("`{name}` is no part of a rule"), PARTS)),
        }
        Ok(())
    }

    /// What parts don't go together.
    fn check(&self) -> Option<&'static str> {
        use Frequency::{Monthly, Weekly, Yearly};
        let is = self.frequency;
        let numbered = self.weekdays.iter().any(|day| day.nth != 0);
        let by_nothing = self.months.is_empty() && self.names_no_day();
        let wrong = [
            (
                self.count.is_some() && self.until.is_some(),
                "COUNT and UNTIL can't go together",
            ),
            (
                !self.weeks.is_empty() && is != Yearly,
                "BYWEEKNO goes with FREQ=YEARLY alone",
            ),
            (
                !self.year_days.is_empty() && is != Yearly,
                "BYYEARDAY goes with FREQ=YEARLY alone",
            ),
            (
                !self.month_days.is_empty() && is == Weekly,
                "BYMONTHDAY can't go with FREQ=WEEKLY",
            ),
            (
                numbered && is != Monthly && is != Yearly,
                "numbered days in BYDAY go with FREQ=MONTHLY or FREQ=YEARLY",
            ),
            (
                numbered && !self.weeks.is_empty(),
                "numbered days in BYDAY can't go with BYWEEKNO",
            ),
            (
                !self.positions.is_empty() && by_nothing,
                "BYSETPOS chooses among what another BY part names, and there is none",
            ),
        ];
        let found = wrong.into_iter().find(|(is_wrong, _)| *is_wrong);
        found.map(|(_, message)| message)
    }

    /// Whether its days are left to DTSTART, but perhaps for the month.
    pub(super) fn names_no_day(&self) -> bool {
        self.weeks.is_empty()
            && self.year_days.is_empty()
            && self.month_days.is_empty()
            && self.weekdays.is_empty()
    }
}

const WEEKDAY_HINT: &str = "days are SU, MO, TU, WE, TH, FR, SA, in BYDAY also numbered: `4TH` is the fourth Thursday, `-1MO` the last Monday";

fn frequency(property: &Property<'_>, parts: &[(String, &str)]) -> Result<Frequency, Fault> {
    let value = parts.iter().find(|(name, _)| name == "FREQ");
    let value = value.map(|(_, value)| value.to_ascii_uppercase());
    match value.as_deref() {
        Some("YEARLY") => Ok(Frequency::Yearly),
        Some("MONTHLY") => Ok(Frequency::Monthly),
        Some("WEEKLY") => Ok(Frequency::Weekly),
        Some("DAILY") => Ok(Frequency::Daily),
        Some(other @ ("HOURLY" | "MINUTELY" | "SECONDLY")) => {
            let hint = "a calendar is of days: YEARLY, MONTHLY, WEEKLY or DAILY";
            Err(property.fault(format!("FREQ={other} is not supported"), hint))
        }
        Some(other) => {
            let hint = "a rule is YEARLY, MONTHLY, WEEKLY or DAILY";
            Err(property.fault(format!("`{other}` is no FREQ"), hint))
        }
        None => Err(property.fault("this rule has no FREQ", PARTS)),
    }
}

fn number(property: &Property<'_>, name: &str, text: &str, most: i64) -> Result<i64, Fault> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text
        .parse()
        .ok()
        .filter(|n| digits && (1..=most).contains(n));
    number.ok_or_else(|| {
        let hint = if most == i64::MAX {
            format!("{name} is a whole number from 1")
        } else {
            format!("{name} is a whole number from 1 to {most}")
        };
        property.fault(format!("`{text}` is no {name}"), hint)
    })
}

fn numbers(
    property: &Property<'_>,
    name: &str,
    text: &str,
    most: i64,
    signed: bool,
) -> Result<Vec<i64>, Fault> {
    let one = |text: &str| {
        let text = text.trim();
        let number: Option<i64> = text.parse().ok();
        let within = number.filter(|n| (1..=most).contains(&n.abs()) && (signed || *n > 0));
        within.ok_or_else(|| {
            let from_end = if signed {
                ", or from the end with a `-`"
            } else {
                ""
            };
            let hint = format!("{name} counts from 1 to {most}{from_end}");
            property.fault(format!("`{text}` is no {name}"), hint)
        })
    };
    // A number that is there a thousand times would be looked at as often, for each day.
    let all: Result<BTreeSet<i64>, Fault> = text.split(',').map(one).collect();
    Ok(all?.into_iter().collect())
}

fn weekday(text: &str) -> Option<u32> {
    let found = (0..).zip(WEEKDAYS);
    let mut found = found.filter(|(_, name)| name.eq_ignore_ascii_case(text));
    found.next().map(|(number, _)| number)
}

fn weekday_number(text: &str) -> Option<WeekdayNumber> {
    let at = text.len().checked_sub(2)?;
    let (nth, name) = (text.get(..at)?, text.get(at..)?);
    let nth = match nth {
        "" => 0,
        nth => nth
            .parse()
            .ok()
            .filter(|n: &i64| (1..=53).contains(&n.abs()))?,
    };
    Some(WeekdayNumber {
        nth,
        weekday: weekday(name)?,
    })
}
