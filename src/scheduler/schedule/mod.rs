//! Schedules: the rule that says when a job is due.
//!
//! Pure: a schedule is a function from an instant to the next or the previous one. Nothing in
//! here reads a clock or the host's time zone, draws random numbers, or steps through time
//! second by second, so every search is bounded and every replica finds the same instants.
//!
//! # The dialect
//!
//! | form | fields |
//! |---|---|
//! | 5 fields | minute hour day-of-month month day-of-week, at second 0 (crontab(5)) |
//! | 6 fields | second first (Quartz, Spring) |
//! | 7 fields | second first, year last, 1970 to 2199 (Quartz) |
//! | `@hourly` `@daily` `@midnight` `@weekly` `@monthly` `@yearly` `@annually` | exactly as crontab(5) spells them out |
//! | `@every 1h30m` | multiples of that since 1970-01-01T00:00:00Z, whatever the zone |
//! | `@at 2027-01-01T00:00:00Z` | once; without an offset it is read in the job's zone |
//! | `@manual` | never due; runs only when triggered |
//!
//! In a field: `*`, `a`, `a-b`, `*/n`, `a-b/n`, `a/n` (from a to the end, as in Quartz), lists,
//! `JAN`–`DEC`, `SUN`–`SAT`. Days of the week are cron's: 0 and 7 are Sunday, 1 is Monday
//! (Quartz counts from 1 = Sunday: write names when in doubt); a range may go round the end of
//! the week, `FRI-MON`. Day of month also takes `L`, `L-3` (third before the last), `LW` (last
//! Monday-to-Friday day), `15W` (the one nearest to the 15th in the same month; none in a month
//! without that day); day of week takes `5L` (last Friday) and `FRI#2`. `?` is `*` in both.
//!
//! When day of month and day of week are both restricted, a day that matches *either* is due;
//! a field that begins with `*`, `*/2` too, or is `?` counts as unrestricted, and then both must
//! match (crontab(5), and the `DOM_STAR` and `DOW_STAR` flags of Vixie cron).
//!
//! `H` is a number hashed from the job's name, as in Jenkins, so that jobs spread out: `H`,
//! `H/15`, `H(0-29)`, `H(0-29)/10`.
//!
//! # Daylight saving
//!
//! What counts is the set of local times, not how it is spelled. A schedule due in all 24 hours
//! follows elapsed time: nothing is added for an hour that the clocks skip, and a repeated hour
//! runs twice. Any other has fixed local times, and [`DstGap`] and [`DstFold`] decide. A change of
//! a zone's offset for any other reason, a day skipped at the date line too, is treated alike.
//!
//! # Calendars
//!
//! A [`DayFilter`] takes whole local dates away: gaps and folds come first, and the date that an
//! instant then has is what counts.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::time::Timestamp;

mod calendar;
mod cron;
pub(crate) mod day_set;
pub(crate) mod days;
mod field;
mod filtered;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod hash;
mod identity;
mod instant;
mod oddity;
mod parse;
mod piece;
mod unit;
mod zoned;

#[cfg(test)]
mod tests;

pub use calendar::{Calendar, CalendarNames, DayFilter, Exclusion};
pub use day_set::DaySet;
pub use filtered::Taken;
pub use identity::told_apart;
pub use oddity::{Oddity, SkippedTimes};

use cron::Cron;
use zoned::Zone;

/// When a job is due: a rule, read in a time zone, with a policy for daylight saving.
/// Cheap to clone.
#[derive(Clone)]
pub struct Schedule(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    text: Box<str>,
    rule: Rule,
    zone: Zone,
    gap: DstGap,
    fold: DstFold,
    /// The days that calendars leave; none where there are no calendars.
    days: Option<DayFilter>,
    warnings: Box<[ScheduleWarning]>,
}

/// The rule itself. Instants are whole seconds since 1970-01-01T00:00:00Z.
#[derive(Clone)]
enum Rule {
    /// Fields, matched against local time.
    Cron(Cron),
    /// Multiples of so many seconds.
    Every(i64),
    /// This instant. (One local time is [`Rule::Cron`] with a year.)
    At(i64),
    /// Never.
    Manual,
}

/// What happens to occurrences whose local time is skipped when clocks are set forward.
///
/// It does not concern schedules that are due in all 24 hours, nor `@every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DstGap {
    /// They run at the first instant after the gap, once, however many there were.
    #[default]
    RunAfter,
    /// They don't run that day.
    Skip,
}

/// What happens to occurrences whose local time comes twice when clocks are set back.
///
/// It does not concern schedules that are due in all 24 hours, nor `@every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DstFold {
    /// They run the first time.
    #[default]
    First,
    /// They run the second time.
    Last,
    /// They run both times.
    Both,
}

/// Why a text is no schedule: `span` is the range of bytes of the text that is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScheduleError {
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// Where, as bytes of the text.
    pub span: Range<usize>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Something in a valid schedule that may not be what was meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleWarning {
    /// What may surprise, lower case, without a full stop.
    pub message: String,
    /// Where, as bytes of the text.
    pub span: Range<usize>,
}

/// No occurrence is before this: 0001-01-01T00:00:00Z.
const FIRST_SECOND: i64 = -62_135_596_800;
/// No occurrence is after this, 9998-12-31T23:59:59Z, so that a day to either side of every
/// occurrence is within the range of `jiff`.
const LAST_SECOND: i64 = 253_370_764_799;

impl Schedule {
    /// Reads a schedule; `name` is what `H` is hashed from (the job's name).
    ///
    /// A schedule that can never be due, such as 30 February, is an error. One that was due in
    /// the past only is not, as "now" is unknown here: see [`Schedule::never_fires_after`].
    pub fn parse(
        text: &str,
        name: &str,
        zone: TimeZone,
        gap: DstGap,
        fold: DstFold,
    ) -> Result<Self, ScheduleError> {
        let zone = Zone::new(zone, gap, fold);
        let (rule, warnings) = parse::rule(text, name)?;
        // Set-based, so that `*`, `*/1` and `0-23` are one and the same.
        let zone = match &rule {
            Rule::Cron(cron) if cron.is_due_in_all_hours() => zone.following_elapsed_time(),
            _ => zone,
        };
        let schedule = Self(Arc::new(Inner {
            text: text.into(),
            rule,
            zone,
            gap,
            fold,
            days: None,
            warnings: warnings.into(),
        }));
        schedule.refuse_never()
    }

    /// A year and a skipped local time together can leave nothing, which only a search shows.
    fn refuse_never(self) -> Result<Self, ScheduleError> {
        let has_end = matches!(&self.0.rule, Rule::Cron(cron) if cron.has_years());
        if has_end && self.never_fires_after(Timestamp::from_second(FIRST_SECOND)) {
            return Err(ScheduleError {
                message: "this schedule is never due: its only local times are skipped when clocks are set forward".into(),
                span: 0..self.0.text.len(),
                hint: Some("choose another time of day, or set `dst_gap = \"run_after\"`".into()),
            });
        }
        Ok(self)
    }

    /// The first occurrence strictly after `after`; none when the schedule never fires again.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        // Rounded down, so that the next whole second is strictly after.
        let from = after.as_second().saturating_add(1).max(FIRST_SECOND);
        if from > LAST_SECOND {
            return None;
        }
        let found = match &self.0.days {
            Some(days) => self.filtered_next(days, from),
            None => self.bare_next(from),
        };
        found.map(Timestamp::from_second)
    }

    /// The first occurrence at or after `from`, whatever calendars leave out.
    fn bare_next(&self, from: i64) -> Option<i64> {
        let found = match &self.0.rule {
            Rule::Cron(cron) => self.0.zone.next(cron, from),
            Rule::Every(every) => Some(from + (-from).rem_euclid(*every)),
            Rule::At(at) => Some(*at).filter(|at| *at >= from),
            Rule::Manual => None,
        };
        found.filter(|at| *at <= LAST_SECOND)
    }

    /// The last occurrence strictly before `before`; none when there was none.
    pub fn last_before(&self, before: Timestamp) -> Option<Timestamp> {
        let until = before
            .as_millis()
            .saturating_sub(1)
            .div_euclid(1000)
            .min(LAST_SECOND);
        if until < FIRST_SECOND {
            return None;
        }
        let found = match &self.0.days {
            Some(days) => self.filtered_previous(days, until),
            None => self.bare_previous(until),
        };
        found.map(Timestamp::from_second)
    }

    /// The last occurrence at or before `until`, whatever calendars leave out.
    fn bare_previous(&self, until: i64) -> Option<i64> {
        let found = match &self.0.rule {
            Rule::Cron(cron) => self.0.zone.previous(cron, until),
            Rule::Every(every) => Some(until - until.rem_euclid(*every)),
            Rule::At(at) => Some(*at).filter(|at| *at <= until),
            Rule::Manual => None,
        };
        found.filter(|at| *at >= FIRST_SECOND)
    }

    /// Whether nothing is due after `t` though something was meant to be: `@at` in the past, or
    /// a year that is over. `@manual` is never due on purpose, so it says no.
    pub fn never_fires_after(&self, t: Timestamp) -> bool {
        !self.is_manual() && self.next_after(t).is_none()
    }

    /// Whether this is `@manual`, which is due only when triggered.
    pub fn is_manual(&self) -> bool {
        matches!(self.0.rule, Rule::Manual)
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The zone it is read in.
    pub fn zone(&self) -> &TimeZone {
        self.0.zone.time_zone()
    }

    /// The calendars that leave out days; none where there are none.
    pub fn days(&self) -> Option<&DayFilter> {
        self.0.days.as_ref()
    }

    /// What may not be what was meant; in the order of the text.
    pub fn warnings(&self) -> &[ScheduleWarning] {
        &self.0.warnings
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedule")
            .field("text", &self.text())
            .field("zone", self.zone())
            .field("gap", &self.0.gap)
            .field("fold", &self.0.fold)
            .field("days", &self.0.days)
            .finish()
    }
}
