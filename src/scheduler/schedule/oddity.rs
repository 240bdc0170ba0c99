//! What daylight saving did to an occurrence, for people who look at a preview.
//!
//! It must never decide when a job is due; it only names what the search in `zoned` did.

use std::fmt;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::zoned::{Transition, has_match};
use super::{DstFold, DstGap, FIRST_SECOND, LAST_SECOND, Rule, Schedule};
use crate::scheduler::time::Timestamp;

/// How many gaps [`Schedule::skipped_between`] lists at most.
const SKIPPED_LIMIT: usize = 100;

/// That the clocks being set touched an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// It runs at the end of a gap in place of local times that are skipped.
    AfterGap {
        /// The first of those local times.
        first: DateTime,
        /// The last of them; the same where there was one.
        last: DateTime,
    },
    /// Its local time comes twice, and this is the first.
    RepeatedFirst,
    /// Its local time comes twice, and this is the second.
    RepeatedSecond,
}

/// Local times of a schedule that don't exist on one day, and that nothing runs in place of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedTimes {
    /// When the clocks are set forward.
    pub at: Timestamp,
    /// The first of the local times.
    pub first: DateTime,
    /// The last of them; the same where there was one.
    pub last: DateTime,
}

impl Schedule {
    /// What daylight saving did to the occurrence `at`; none for most, and for `@every` and an
    /// `@at` with an offset, which know no local time.
    pub fn oddity(&self, at: Timestamp) -> Option<Oddity> {
        let Rule::Cron(cron) = &self.0.rule else {
            return None;
        };
        let second = at.as_second();
        if !(FIRST_SECOND..=LAST_SECOND).contains(&second) {
            return None;
        }
        let segment = self.0.zone.segment(second);
        if let Some(start) = segment.start
            && start.at == second
            && self.0.zone.runs_after(cron, start)
        {
            let (first, last) = self.matches_in(start)?;
            Some(Oddity::AfterGap { first, last })
        } else if segment.second_pass(second).is_some() {
            Some(Oddity::RepeatedSecond)
        } else if segment.first_pass(second).is_some() {
            Some(Oddity::RepeatedFirst)
        } else {
            None
        }
    }

    /// The local times that `dst_gap = "skip"` leaves out after `after` and up to `until`, the
    /// first 100 gaps at most, but for those on days that calendars take away. Empty for a
    /// schedule due in all 24 hours: it loses nothing.
    pub fn skipped_between(&self, after: Timestamp, until: Timestamp) -> Vec<SkippedTimes> {
        match &self.0.rule {
            Rule::Cron(cron) if self.0.gap == DstGap::Skip && !cron.is_due_in_all_hours() => {}
            _ => return Vec::new(),
        }
        let zone = &self.0.zone;
        let transitions = zone.time_zone().following(after.to_jiff());
        transitions
            .map(|transition| Timestamp::from(transition.timestamp()))
            .take_while(|at| *at <= until)
            .filter_map(|at| {
                let (first, last) = self.matches_in(zone.segment(at.as_second()).start?)?;
                let days = self.0.days.as_ref();
                let is_open = days.is_none_or(|days| days.open().contains(first.date()));
                is_open.then_some(SkippedTimes { at, first, last })
            })
            .take(SKIPPED_LIMIT)
            .collect()
    }

    /// Whether it is due at this very instant.
    pub fn has(&self, at: Timestamp) -> bool {
        self.next_after(at - Duration::from_millis(1)) == Some(at)
    }

    /// Whether its fields have this local time, whether or not the zone has it, once or twice.
    /// False for what knows no local time.
    pub fn has_local(&self, local: DateTime) -> bool {
        let Rule::Cron(cron) = &self.0.rule else {
            return false;
        };
        let Ok(as_if_utc) = TimeZone::UTC.to_timestamp(local) else {
            return false;
        };
        let second = as_if_utc.as_second();
        local.subsec_nanosecond() == 0 && has_match(cron, second..second + 1)
    }

    /// Whether it follows elapsed time, so that `dst_gap` and `dst_fold` don't concern it.
    pub fn follows_elapsed_time(&self) -> bool {
        match &self.0.rule {
            Rule::Cron(cron) => cron.is_due_in_all_hours(),
            Rule::Every(_) | Rule::At(_) | Rule::Manual => true,
        }
    }

    /// What becomes of local times that are skipped.
    pub fn dst_gap(&self) -> DstGap {
        self.0.gap
    }

    /// What becomes of local times that come twice.
    pub fn dst_fold(&self) -> DstFold {
        self.0.fold
    }

    /// The first and the last match among the local times that a transition skips.
    fn matches_in(&self, transition: Transition) -> Option<(DateTime, DateTime)> {
        let Rule::Cron(cron) = &self.0.rule else {
            return None;
        };
        let skipped = transition.skipped();
        if !has_match(cron, skipped.clone()) {
            return None;
        }
        Some((
            civil(cron.next(skipped.start)?)?,
            civil(cron.previous(skipped.end - 1)?)?,
        ))
    }
}

fn civil(local: i64) -> Option<DateTime> {
    let as_if_utc = jiff::Timestamp::from_second(local).ok()?;
    Some(TimeZone::UTC.to_datetime(as_if_utc))
}

/// Completes "this occurrence …".
impl fmt::Display for Oddity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AfterGap { first, last } if first == last => {
                write!(f, "stands for {first}, which is skipped")
            }
            Self::AfterGap { first, last } => {
                write!(f, "stands for {first} to {last}, which are skipped")
            }
            Self::RepeatedFirst => f.write_str("has a local time that comes twice: the first"),
            Self::RepeatedSecond => f.write_str("has a local time that comes twice: the second"),
        }
    }
}
