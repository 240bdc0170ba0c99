//! The days that an iCalendar file (RFC 5545) names.
//!
//! ```text
//!  bytes ──lines──▶ components ──event, value, zone──▶ events ──rule, expand──▶ days and spans
//! ```
//!
//! An event covers each local date that it touches; its end is exclusive. An event that is
//! CANCELLED covers none. TRANSP plays no part: Google and Outlook export public holidays as
//! transparent. VTODO, VJOURNAL and VFREEBUSY are no events. Recurrences are followed to 2199.
//!
//! Must never: leave out in silence what it can't understand, or run on without a limit.

mod event;
mod expand;
mod lines;
mod rule;
mod value;
mod zone;

#[cfg(test)]
mod tests;

pub(crate) use lines::Fault;

use event::{Cover, Replaced};
use lines::{Component, Property};
use zone::Zones;

use crate::scheduler::schedule::DaySet;
use crate::scheduler::schedule::day_set::LAST_DAY;

/// What to do about a file that lacks something.
const FILE_HINT: &str = "the file is not whole: export it again";

/// What a file names.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Dates, whatever the zone.
    pub(crate) days: DaySet,
    /// From an instant up to another, in seconds since 1970-01-01T00:00:00Z: which dates these
    /// are depends on the zone.
    pub(crate) spans: Vec<(i64, i64)>,
}

impl Contents {
    /// The last day that it names, in UTC.
    pub(crate) fn last_day(&self) -> Option<i64> {
        let ends = self.spans.iter().map(|(_, end)| end.div_euclid(value::DAY));
        ends.max().max(self.days.previous(LAST_DAY))
    }
}

/// Reads a file; each event that is wrong is told.
pub(crate) fn read(bytes: &[u8]) -> Result<Contents, Vec<Fault>> {
    let calendars = lines::components(bytes).map_err(|fault| vec![fault])?;
    let mut cover = Cover::default();
    let mut faults = Vec::new();
    for calendar in &calendars {
        add(calendar, &mut cover, &mut faults);
    }
    if faults.is_empty() {
        Ok(Contents {
            days: cover.days,
            spans: cover.spans,
        })
    } else {
        Err(faults)
    }
}

fn add(calendar: &Component<'_>, cover: &mut Cover, faults: &mut Vec<Fault>) {
    if let Some(scale) = calendar.get("CALSCALE")
        && !scale.value.trim().eq_ignore_ascii_case("GREGORIAN")
    {
        let hint = "export it with the dates of the Gregorian calendar";
        faults.push(scale.fault("only the Gregorian calendar is supported", hint));
        return;
    }
    let mut zones = Zones::default();
    faults.extend(zones.read(calendar, &mut cover.budget));
    // Without its zones each of its events would be told as wrong.
    if !faults.is_empty() {
        return;
    }
    let events = || {
        calendar
            .children
            .iter()
            .filter(|inner| inner.name == "VEVENT")
    };
    let mut replaced = Replaced::new();
    for event in events() {
        match event::replaces(event) {
            Ok(Some((uid, property))) => replaced.entry(uid).or_default().push(property),
            Ok(None) => {}
            Err(fault) => faults.push(fault),
        }
    }
    for event in events() {
        faults.extend(event::read(event, &zones, &replaced, cover).err());
        if cover.budget.is_spent() {
            return;
        }
    }
}

/// The fault of a file whose recurrences never come to an end of counting.
fn too_much(property: &Property<'_>) -> Fault {
    let hint = "recurrences are counted up to 2199: let those of meetings end (UNTIL), or keep the holidays in a calendar of their own";
    property.fault(
        "up to here the file's events recur too often to be counted",
        hint,
    )
}
