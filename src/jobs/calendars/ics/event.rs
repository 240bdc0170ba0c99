//! One VEVENT: when it is, how long, and when again (RFC 5545, 3.6.1 and 3.8.5).
//!
//! All its times are brought to its own clock, the one that DTSTART is written in. It must never
//! leave an event out that it does not understand: that is a fault.

use std::collections::{BTreeMap, HashSet};

use super::expand::{Budget, ZONED_COST, days};
use super::lines::{Component, Fault, Property};
use super::rule::Rule;
use super::value::{DAY, Length, Value};
use super::zone::{Zone, Zones};
use super::{FILE_HINT, too_much};
use crate::scheduler::schedule::DaySet;
use crate::scheduler::schedule::day_set::LAST_DAY;

/// What the times of an event are read by.
#[derive(Clone, Debug)]
enum Clock {
    /// Whole days.
    Days,
    /// Whatever zone the reader is in.
    Floating,
    In(Zone),
}

/// A time of an event by its own clock.
#[derive(Clone, Copy, Debug)]
enum Point {
    /// A whole day.
    Day(i64),
    /// A local time.
    Local(i64),
}

/// What the events of a file cover.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// Days in any zone.
    pub(super) days: DaySet,
    /// First instant, and first instant after; the same where an event takes no time.
    pub(super) spans: Vec<(i64, i64)>,
    pub(super) budget: Budget,
}

/// The occurrences that other events of a file take the place of, by UID.
pub(super) type Replaced<'c> = BTreeMap<&'c str, Vec<&'c Property<'c>>>;

/// Adds what an event covers.
pub(super) fn read(
    event: &Component<'_>,
    zones: &Zones,
    replaced: &Replaced<'_>,
    cover: &mut Cover,
) -> Result<(), Fault> {
    if is_cancelled(event)? {
        return Ok(());
    }
    if let Some(property) = event.get("EXRULE") {
        let hint = "RFC 5545 has done away with it: name the days in EXDATE";
        return Err(property.fault("EXRULE is not supported", hint));
    }
    let Some(property) = event.single("DTSTART")? else {
        return Err(event.begin.fault("this VEVENT has no DTSTART", FILE_HINT));
    };
    let value = Value::read(property, &property.value)?;
    let (clock, start) = match (value, zones.of(property)?) {
        (Value::Date(day), _) => (Clock::Days, day * DAY),
        (Value::Utc(at), _) => (Clock::In(Zone::utc()), at),
        (Value::Local(local), Some(zone)) => (Clock::In(zone), local),
        (Value::Local(local), None) => (Clock::Floating, local),
    };
    let times = Times { zones, clock };
    let length = times.length(event, start)?;
    let mut starts = vec![(start, length)];
    times.add_rules(event, start, length, &mut starts, &mut cover.budget)?;
    times.add_dates(event, start, length, &mut starts)?;
    let mut left_out = LeftOut::default();
    for property in event.all("EXDATE") {
        for text in property.value.split(',') {
            left_out.add(times.point(property, text)?);
        }
    }
    let uid = event.get("UID").map(|uid| uid.value.trim());
    let instances = uid.and_then(|uid| replaced.get(uid));
    // What takes the place of an occurrence is not replaced itself.
    if event.get("RECURRENCE-ID").is_none() {
        for property in instances.into_iter().flatten() {
            left_out.add(times.point(property, &property.value)?);
        }
    }
    starts.retain(|(start, _)| !left_out.has(*start));
    if matches!(times.clock, Clock::In(_)) {
        let steps = starts.len() as u64 * ZONED_COST;
        let spent = cover.budget.spend(steps);
        spent.map_err(|_| too_much(property))?;
    }
    for (start, length) in starts {
        times.cover(start, length, cover);
    }
    Ok(())
}

/// Whether an event was called off.
fn is_cancelled(event: &Component<'_>) -> Result<bool, Fault> {
    let status = event.single("STATUS")?;
    Ok(status.is_some_and(|status| status.value.trim().eq_ignore_ascii_case("CANCELLED")))
}

/// The occurrence that an event takes the place of.
pub(super) fn replaces<'c>(
    event: &'c Component<'c>,
) -> Result<Option<(&'c str, &'c Property<'c>)>, Fault> {
    let Some(property) = event.single("RECURRENCE-ID")? else {
        return Ok(None);
    };
    if property.parameter("RANGE").is_some() {
        let hint = "let the event end (UNTIL) where the next one, with the change, begins";
        return Err(property.fault("RANGE is not supported", hint));
    }
    let Some(uid) = event.get("UID") else {
        let hint = "it says which event it changes one occurrence of";
        return Err(property.fault("an event with RECURRENCE-ID needs a UID", hint));
    };
    Ok(Some((uid.value.trim(), property)))
}

/// Occurrences of an event that are none: named by day, or by their start.
#[derive(Default)]
struct LeftOut {
    days: HashSet<i64>,
    starts: HashSet<i64>,
}

impl LeftOut {
    fn add(&mut self, point: Point) {
        match point {
            Point::Day(day) => self.days.insert(day),
            Point::Local(start) => self.starts.insert(start),
        };
    }

    fn has(&self, start: i64) -> bool {
        self.starts.contains(&start) || self.days.contains(&start.div_euclid(DAY))
    }
}

/// Reads the times of one event.
struct Times<'z> {
    zones: &'z Zones,
    clock: Clock,
}

impl Times<'_> {
    /// A date or time, by the event's clock.
    fn point(&self, property: &Property<'_>, text: &str) -> Result<Point, Fault> {
        let (value, zone) = (Value::read(property, text)?, self.zones.of(property)?);
        let instant = match (value, zone) {
            (Value::Date(day), _) => return Ok(Point::Day(day)),
            (Value::Utc(at), _) => Ok(at),
            (Value::Local(local), Some(zone)) => Ok(zone.instant(local)),
            (Value::Local(local), None) => Err(local),
        };
        match (&self.clock, value, instant) {
            // Outlook writes the midnight of a day that is left out.
            (Clock::Days, Value::Local(at) | Value::Utc(at), _) => {
                Ok(Point::Day(at.div_euclid(DAY)))
            }
            (Clock::In(zone), _, Ok(instant)) => Ok(Point::Local(zone.local(instant))),
            (Clock::In(_) | Clock::Floating, _, Err(local)) => Ok(Point::Local(local)),
            (_, _, Ok(_)) => Err(property.fault(
                "this time has a zone, and the event's DTSTART has none",
                "give both a zone, or none",
            )),
            (Clock::Days, Value::Date(_), Err(at)) => Ok(Point::Day(at.div_euclid(DAY))),
        }
    }

    /// How long each occurrence is: by DTEND, which is exclusive, or DURATION.
    fn length(&self, event: &Component<'_>, start: i64) -> Result<Length, Fault> {
        if let Some(property) = event.single("DTEND")? {
            let end = self.point(property, &property.value)?;
            return self.length_to(property, start, end);
        }
        match event.single("DURATION")? {
            Some(property) => {
                let length = Length::read(property, &property.value)?;
                self.of_whole_days(property, length)
            }
            None => Ok(Length {
                days: i64::from(matches!(self.clock, Clock::Days)),
                seconds: 0,
            }),
        }
    }

    fn length_to(&self, property: &Property<'_>, start: i64, end: Point) -> Result<Length, Fault> {
        let length = match (&self.clock, end) {
            // An end on the same day is not what the RFC allows, and common.
            (Clock::Days, Point::Day(day)) => Length {
                days: match day - start.div_euclid(DAY) {
                    0 => 1,
                    days => days,
                },
                seconds: 0,
            },
            (Clock::Floating, Point::Local(end)) => Length {
                days: 0,
                seconds: end - start,
            },
            (Clock::In(zone), Point::Local(end)) => Length {
                days: 0,
                seconds: zone.instant(end) - zone.instant(start),
            },
            _ => {
                let hint = "both are dates, or both have a time of day";
                return Err(property.fault("this end is not of the kind that DTSTART is", hint));
            }
        };
        if length.days < 0 || length.seconds < 0 {
            let hint = "DTEND is after DTSTART; for a day, it is the day after";
            return Err(property.fault("this event ends before it begins", hint));
        }
        Ok(length)
    }

    /// A whole day lasts days, not hours, as some have 23 or 25.
    fn of_whole_days(&self, property: &Property<'_>, length: Length) -> Result<Length, Fault> {
        let Clock::Days = self.clock else {
            return Ok(length);
        };
        if length.seconds % DAY != 0 {
            let hint = "a DTSTART without a time of day takes days or weeks: `P1D`";
            return Err(property.fault("this event of whole days lasts part of one", hint));
        }
        Ok(Length {
            days: (length.days + length.seconds / DAY).max(1),
            seconds: 0,
        })
    }

    fn add_rules(
        &self,
        event: &Component<'_>,
        start: i64,
        length: Length,
        starts: &mut Vec<(i64, Length)>,
        budget: &mut Budget,
    ) -> Result<(), Fault> {
        let (day, of_day) = (start.div_euclid(DAY), start.rem_euclid(DAY));
        for property in event.all("RRULE") {
            let rule = Rule::read(property)?;
            let until = match (rule.until, &self.clock) {
                (None, _) => i64::MAX,
                (Some(Value::Date(day)), _) => day * DAY + DAY - 1,
                (Some(Value::Utc(at)), Clock::In(zone)) => zone.local(at),
                (Some(Value::Local(at) | Value::Utc(at)), Clock::Days) => at.div_euclid(DAY) * DAY,
                (Some(Value::Local(at) | Value::Utc(at)), _) => at,
            };
            let last = (until - of_day).div_euclid(DAY);
            let found = days(&rule, day, last, budget).map_err(|_| too_much(property))?;
            // The first is there already.
            let again = found.iter().skip(1).map(|day| day * DAY + of_day);
            starts.extend(again.map(|start| (start, length)));
        }
        Ok(())
    }

    /// RDATE: dates, times, or periods with a length of their own.
    fn add_dates(
        &self,
        event: &Component<'_>,
        start: i64,
        length: Length,
        starts: &mut Vec<(i64, Length)>,
    ) -> Result<(), Fault> {
        for property in event.all("RDATE") {
            for text in property.value.split(',') {
                let (from, to) = match text.split_once('/') {
                    Some((from, to)) => (from, Some(to.trim())),
                    None => (text, None),
                };
                let from = match self.point(property, from)? {
                    Point::Day(day) => day * DAY + start.rem_euclid(DAY),
                    Point::Local(local) => local,
                };
                let length = match to {
                    None => length,
                    Some(to) if to.starts_with(['P', 'p']) => {
                        self.of_whole_days(property, Length::read(property, to)?)?
                    }
                    Some(to) => self.length_to(property, from, self.point(property, to)?)?,
                };
                starts.push((from, length));
            }
        }
        Ok(())
    }

    /// Adds the days of one occurrence.
    fn cover(&self, start: i64, length: Length, cover: &mut Cover) {
        let from = start + length.days * DAY;
        match &self.clock {
            Clock::Days | Clock::Floating => {
                let last = (from + length.seconds - 1).max(start);
                let (first, last) = (start.div_euclid(DAY), last.div_euclid(DAY));
                cover.days.insert_days(first, last);
            }
            Clock::In(zone) => {
                let (first, end) = (zone.instant(start), zone.instant(from) + length.seconds);
                // A day to either side is more than any zone is away from UTC.
                if end >= -2 * DAY && first <= (LAST_DAY + 2) * DAY {
                    cover.spans.push((first, end.max(first)));
                }
            }
        }
    }
}
