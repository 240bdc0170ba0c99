//! What the ledger forgets: jobs that no table has had for long.
//!
//! ```text
//!  a table has it ─▶ enrolled again each few hours ─▶ marked with the day, once a week
//!  no table has it ─▶ the mark grows old ─▶ forgotten, unless it runs, waits or is paused
//! ```
//!
//! Days are enough, and a week between two marks: a record is mostly read, and seldom written for
//! this. Must never: forget a job by the age of its mark alone where a replica that has it may not
//! have had the time to renew that; [`crate::scheduler`] sees to it that those who sweep have
//! seen a calm day.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Call;
use super::record::{Record, Slot};
use super::step::Step;
use crate::scheduler::time::Timestamp;

/// How long a job is kept that no table has: as long as its lines are by default (`history_age`),
/// so that what goes with it has mostly gone by then. Taken out by mistake, or for a month, it
/// comes back as what it was.
const KEPT_DAYS: u32 = 30;

/// How old a mark is when an enrolment in the course of a round renews it.
const MARK_RENEWED_DAYS: u32 = 7;

/// How old it is when the first enrolment of a replica does. All jobs of a table are enrolled at
/// once then, so that what rounds can do is left to them; a fleet whose replicas never live for a
/// round keeps its jobs all the same.
const MARK_RENEWED_AT_START_DAYS: u32 = 14;

/// A day of the store's clock, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(in crate::store) struct Day(pub(in crate::store) u32);

impl Day {
    pub(super) fn of(at: Timestamp) -> Self {
        Self(u32::try_from(at.as_second().div_euclid(24 * 3600)).unwrap_or(0))
    }

    /// So many days are over since `mark`; or it is of a day that is still to come, by a clock
    /// that was wrong.
    fn is_past(self, mark: Day, days: u32) -> bool {
        mark > self || self.0 - mark.0 >= days
    }
}

/// What becomes of a job's record when somebody looks whether it is still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) enum Verdict {
    /// It stays as it is.
    Kept,
    /// It stays, and is marked: nobody knows since when no table has it.
    Marked(Box<Record>),
    /// No table has had it for long.
    Forgotten,
}

impl Call<'_> {
    /// Judges whether a job is still needed.
    pub(in crate::store) fn judge(&self, record: &Record) -> Verdict {
        if !self.grace().is_zero() {
            return Verdict::Kept;
        }
        let (today, mark) = (Day::of(self.now), record.enrolled_on);
        if mark == Day::default() || mark > today {
            return Verdict::Marked(Box::new(Record {
                enrolled_on: today,
                ..record.clone()
            }));
        }
        match today.is_past(mark, KEPT_DAYS) && !record.is_wanted(self.now) {
            true => Verdict::Forgotten,
            false => Verdict::Kept,
        }
    }
}

impl Record {
    /// For how long a round need not come back to it.
    pub(super) fn mark_is_fresh_for(&self, now: Timestamp) -> Duration {
        let day = i64::from(self.enrolled_on.0) + i64::from(MARK_RENEWED_DAYS);
        Timestamp::from_second(day * 24 * 3600).saturating_since(now)
    }

    /// Something of it runs or waits, or somebody has paused it. What has been free for as long
    /// as the job was in no table, and nobody took it, waits no longer; what a person asked for
    /// does.
    fn is_wanted(&self, now: Timestamp) -> bool {
        let long_ago = now - Duration::from_secs(u64::from(KEPT_DAYS) * 24 * 3600);
        let is_open = |slot: &Slot| slot.is_open() && slot.since.max(slot.deadline) > long_ago;
        let mut slots = self.current.iter().flat_map(|current| &current.slots);
        let in_time = |start_by: Option<Timestamp>| start_by.is_none_or(|until| until >= now);
        self.paused.is_some()
            || slots.any(is_open)
            || self.waiting.iter().any(|one| in_time(one.start_by))
    }
}

impl Step<'_, '_> {
    /// Notes that a table has the job.
    pub(super) fn note_table(&mut self, again: bool) {
        let today = Day::of(self.now());
        let renewed_after = match again {
            true => MARK_RENEWED_DAYS,
            false => MARK_RENEWED_AT_START_DAYS,
        };
        if !self.known || today.is_past(self.record.enrolled_on, renewed_after) {
            self.record.enrolled_on = today;
        }
    }
}

#[cfg(test)]
mod tests;
