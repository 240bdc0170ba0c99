//! Which schedule was in force when, as far as the ledger's lines tell, and what it says.
//!
//! Must never: take today's schedule for that of the past where the ledger knows better.

use jiff::tz::TimeZone;

use super::View;
use super::account::Because;
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::Timestamp;
use crate::store::Known;

/// The schedule of a time.
pub(super) struct InForce {
    /// As the ledger or the table spells it; none where neither has one.
    pub(super) text: Option<String>,
    /// None where it can't be read, either.
    pub(super) schedule: Option<Schedule>,
    /// See [`Known::lacks_calendars`].
    pub(super) lacks_calendars: bool,
}

/// What people call a schedule: its text, where it can be read.
pub(super) fn shown(identity: &str, schedule: Option<&Schedule>) -> String {
    schedule.map_or_else(
        || identity.to_owned(),
        |schedule| schedule.text().to_owned(),
    )
}

/// The schedule in force at an instant. Each change leaves a line with the schedule before it,
/// and so does whatever settles many instants at once: the first such line that ends after the
/// instant names the schedule of that time. After the last one it is the schedule of now.
pub(super) fn in_force(view: &View<'_>, at: Timestamp) -> InForce {
    let ranges = view.lines.iter().filter(|line| line.detail.since.is_some());
    let later = ranges.filter(|line| line.scheduled_at >= at);
    let dated = later.filter_map(|line| {
        let identity = line.detail.schedule.as_deref()?;
        Some((line.scheduled_at, line.ended_at, identity))
    });
    let then = dated.min_by_key(|(until, ended_at, _)| (*until, *ended_at));
    let now = || {
        let state = view.state()?;
        (!state.schedule.is_empty()).then_some(state.schedule.as_str())
    };
    match then.map(|(.., identity)| identity).or_else(now) {
        Some(identity) => {
            let known = Known::read(identity, view.job, view.entry());
            let schedule = known.as_ref().map(|known| &known.schedule);
            InForce {
                text: Some(shown(identity, schedule)),
                lacks_calendars: known.as_ref().is_some_and(|known| known.lacks_calendars),
                schedule: known.map(|known| known.schedule),
            }
        }
        None => {
            let schedule = view.entry().map(|job| job.schedule.clone());
            InForce {
                text: schedule.as_ref().map(|schedule| schedule.text().to_owned()),
                schedule,
                lacks_calendars: false,
            }
        }
    }
}

/// Why a schedule doesn't have an instant, where there is something to say.
pub(super) fn because(schedule: &Schedule, at: Timestamp) -> Option<Because> {
    if let Some(exclusion) = schedule.excluded_by(at) {
        return Some(Because::Calendar(exclusion.to_string()));
    }
    if schedule.is_manual() {
        return Some(Because::Manual);
    }
    let local = schedule.zone().to_datetime(at.to_jiff());
    // An instant's local time exists: what doesn't run then comes at another instant too.
    let left_out = !schedule.follows_elapsed_time() && schedule.has_local(local);
    left_out.then(|| Because::Fold(schedule.dst_fold().as_str()))
}

/// What people call a zone.
pub(super) fn zone_name(zone: &TimeZone) -> String {
    let fixed = || zone.to_fixed_offset().map(|offset| offset.to_string());
    match zone.iana_name() {
        Some(name) => name.to_owned(),
        None => fixed().unwrap_or_else(|_| "its zone".to_owned()),
    }
}
