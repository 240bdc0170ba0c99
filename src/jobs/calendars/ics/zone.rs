//! The zones that times in an iCalendar file are in: those of the IANA database, and those that
//! the file itself defines (VTIMEZONE, RFC 5545, 3.6.5), as Outlook does.
//!
//! It must never take a zone for another: a name that neither the database nor the file knows is
//! a fault.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::expand::{Budget, days};
use super::lines::{Component, Fault, Property};
use super::rule::Rule;
use super::value::{DAY, Value};
use super::{FILE_HINT, too_much};
use crate::jobs::zone::find_zone;

/// A zone.
#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// One of the database.
    Known(TimeZone),
    /// One that the file defines.
    Own(Arc<Own>),
}

/// A zone as a file defines it: changes of its offset, by instant.
#[derive(Debug)]
pub(super) struct Own(Vec<Change>);

#[derive(Clone, Copy, Debug)]
struct Change {
    at: i64,
    before: i64,
    after: i64,
}

/// The zones of a file, by name.
#[derive(Debug, Default)]
pub(super) struct Zones(BTreeMap<String, Zone>);

impl Zone {
    pub(super) fn utc() -> Self {
        Self::Known(TimeZone::UTC)
    }

    /// The instant of a local time: after a gap's skipped time by as much as that is into the
    /// gap, the first of two.
    pub(super) fn instant(&self, local: i64) -> i64 {
        match self {
            Self::Known(zone) => {
                let instant = to_jiff(local).map(|as_if_utc| {
                    let local = TimeZone::UTC.to_datetime(as_if_utc);
                    zone.to_ambiguous_timestamp(local).compatible()
                });
                // Only years that no calendar knows are out of the range of the zone's.
                instant.map_or(local, |instant| instant.map_or(local, Timestamp::as_second))
            }
            Self::Own(own) => local - own.offset_of_local(local),
        }
    }

    /// The local time of an instant.
    pub(super) fn local(&self, instant: i64) -> i64 {
        match self {
            Self::Known(zone) => {
                let offset = to_jiff(instant).map(|at| zone.to_offset(at).seconds());
                instant + i64::from(offset.unwrap_or(0))
            }
            Self::Own(own) => instant + own.offset_at(instant),
        }
    }
}

fn to_jiff(second: i64) -> Option<Timestamp> {
    Timestamp::from_second(second).ok()
}

impl Own {
    fn offset_at(&self, instant: i64) -> i64 {
        let past = self.0.partition_point(|change| change.at <= instant);
        self.last_of(past)
            .map_or(self.at_first(), |change| change.after)
    }

    /// Local times in a gap take the offset before it, as RFC 5545 has it; so do those that come
    /// twice, and are the first of the two.
    fn offset_of_local(&self, local: i64) -> i64 {
        let past = self
            .0
            .partition_point(|change| change.at + change.before <= local);
        match self.last_of(past) {
            Some(gap) if local < gap.at + gap.after => gap.before,
            Some(change) => change.after,
            None => self.at_first(),
        }
    }

    fn last_of(&self, count: usize) -> Option<&Change> {
        count.checked_sub(1).and_then(|last| self.0.get(last))
    }

    fn at_first(&self) -> i64 {
        self.0.first().map_or(0, |first| first.before)
    }
}

impl Zones {
    /// Reads the zones that a calendar defines.
    pub(super) fn read(&mut self, calendar: &Component<'_>, budget: &mut Budget) -> Vec<Fault> {
        let zones = calendar.children.iter();
        let zones = zones.filter(|inner| inner.name == "VTIMEZONE");
        let mut faults = Vec::new();
        for zone in zones {
            match self.define(zone, budget) {
                Ok(()) => {}
                Err(fault) => faults.push(fault),
            }
        }
        faults
    }

    fn define(&mut self, zone: &Component<'_>, budget: &mut Budget) -> Result<(), Fault> {
        let Some(name) = zone.single("TZID")? else {
            return Err(zone.begin.fault("this VTIMEZONE has no TZID", FILE_HINT));
        };
        let name = name.value.trim();
        // The database knows more of a zone's past and future than a file says.
        let zone = match find_zone(name) {
            Ok(zone) => Zone::Known(zone),
            Err(_) => Zone::Own(Arc::new(Own(changes(zone, budget)?))),
        };
        self.0.insert(name.into(), zone);
        Ok(())
    }

    /// The zone of a property; none where it names none.
    pub(super) fn of(&self, property: &Property<'_>) -> Result<Option<Zone>, Fault> {
        let Some(name) = property.parameter("TZID").map(str::trim) else {
            return Ok(None);
        };
        if let Some(zone) = self.0.get(name) {
            return Ok(Some(zone.clone()));
        }
        match find_zone(name) {
            Ok(zone) => Ok(Some(Zone::Known(zone))),
            Err(_) => {
                let message = format!("the zone `{name}` is not known");
                let hint = "it is no IANA zone, and no VTIMEZONE of the file defines it: export the calendar with its zones";
                Err(property.fault(message, hint))
            }
        }
    }
}

fn changes(zone: &Component<'_>, budget: &mut Budget) -> Result<Vec<Change>, Fault> {
    let mut changes = Vec::new();
    let parts = zone.children.iter();
    for part in parts.filter(|part| matches!(part.name.as_str(), "STANDARD" | "DAYLIGHT")) {
        let needed = |name| {
            let missing = || {
                let message = format!("this {} has no {name}", part.name);
                part.begin.fault(message, FILE_HINT)
            };
            part.single(name)?.ok_or_else(missing)
        };
        let before = offset(needed("TZOFFSETFROM")?)?;
        let after = offset(needed("TZOFFSETTO")?)?;
        let locals = beginnings(part, needed("DTSTART")?, before, budget)?;
        changes.extend(locals.into_iter().map(|local| Change {
            at: local - before,
            before,
            after,
        }));
    }
    if changes.is_empty() {
        let message = "this VTIMEZONE has neither STANDARD nor DAYLIGHT";
        return Err(zone.begin.fault(message, FILE_HINT));
    }
    changes.sort_by_key(|change| change.at);
    changes.dedup_by_key(|change| change.at);
    Ok(changes)
}

/// When an offset begins to hold, by the clock of the one before.
fn beginnings(
    part: &Component<'_>,
    start: &Property<'_>,
    before: i64,
    budget: &mut Budget,
) -> Result<Vec<i64>, Fault> {
    let Value::Local(local) = Value::read(start, &start.value)? else {
        let hint = "in a VTIMEZONE it is a local date and time: `19701025T030000`";
        return Err(start.fault("this DTSTART is no local time", hint));
    };
    let (start, of_day) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    let mut locals = vec![local];
    for property in part.all("RRULE") {
        let rule = Rule::read(property)?;
        let until = rule.until.map_or(i64::MAX, |until| match until {
            Value::Date(day) => day * DAY + DAY - 1,
            Value::Local(local) => local,
            Value::Utc(at) => at + before,
        });
        let last = (until - of_day).div_euclid(DAY);
        let found = days(&rule, start, last, budget).map_err(|_| too_much(property))?;
        locals.extend(found.into_iter().map(|day| day * DAY + of_day));
    }
    for property in part.all("RDATE") {
        for value in property.value.split(',') {
            locals.push(match Value::read(property, value)? {
                Value::Local(local) => local,
                Value::Date(day) => day * DAY + of_day,
                Value::Utc(at) => at + before,
            });
        }
    }
    Ok(locals)
}

/// Reads `+0100`, `-043000`.
fn offset(property: &Property<'_>) -> Result<i64, Fault> {
    let text = property.value.trim();
    let parsed = || {
        let sign = match text.get(..1)? {
            "+" => 1,
            "-" => -1,
            _ => return None,
        };
        let digits = text.get(1..)?;
        let is_right = matches!(digits.len(), 4 | 6) && digits.bytes().all(|b| b.is_ascii_digit());
        let two = |at: usize| {
            digits
                .get(at..at + 2)
                .map_or(Some(0), |two| two.parse::<i64>().ok())
        };
        let seconds = two(0)? * 3600 + two(2)? * 60 + two(4)?;
        (is_right && seconds < DAY).then_some(sign * seconds)
    };
    parsed().ok_or_else(|| {
        let hint = "an offset is `+0100` or `-0430`";
        property.fault(format!("`{text}` is no offset from UTC"), hint)
    })
}
