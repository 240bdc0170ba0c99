//! Lines of the ledger that stand for all instants of a schedule in a stretch of time: what was
//! missed in an outage, or skipped in a pause. Such a line is written also where nothing was due in
//! that time, as whoever writes it knows no schedule: readers don't show it.
//!
//! Must never: count a line for an instant that its schedule doesn't have.

use std::time::Duration;

use super::AttemptRecord;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::Timestamp;

/// Up to how many the instants are counted that one line stands for.
pub const COUNT_LIMIT: usize = 1000;

/// A line that stands for all instants of a schedule in a stretch of time.
#[derive(Debug)]
pub struct RangeLine<'l> {
    /// All after this …
    pub since: Timestamp,
    /// … and up to this.
    pub until: Timestamp,
    /// The identity of the schedule that was in force.
    pub identity: Option<&'l str>,
    known: Option<Known>,
}

/// A schedule that was read from its identity.
#[derive(Debug)]
pub struct Known {
    /// As it is read.
    pub schedule: Schedule,
    /// Calendars took days from it, and which is no longer known.
    pub lacks_calendars: bool,
}

impl Known {
    /// Reads a schedule's identity. The table's own schedule serves where it is the same one: it
    /// has its calendars with it, which an identity has not.
    pub fn read(identity: &str, job: &JobName, entry: Option<&Job>) -> Option<Self> {
        let same = entry.filter(|entry| entry.schedule.identity() == identity);
        if let Some(entry) = same {
            return Some(Self {
                schedule: entry.schedule.clone(),
                lacks_calendars: false,
            });
        }
        let schedule = Schedule::from_identity(identity, job.as_str())?;
        Some(Self {
            lacks_calendars: schedule.identity() != identity,
            schedule,
        })
    }
}

impl<'l> RangeLine<'l> {
    /// Reads it; none for a line of one occurrence. `job` is the table's entry, where it has one.
    pub fn of(line: &'l AttemptRecord, job: Option<&Job>) -> Option<Self> {
        let since = line.detail.since?;
        let identity = line.detail.schedule.as_deref();
        Some(Self::between(
            &line.job,
            since,
            line.scheduled_at,
            identity,
            job,
        ))
    }

    /// All instants of a job's schedule after `since` and up to `until`.
    pub fn between(
        name: &JobName,
        since: Timestamp,
        until: Timestamp,
        identity: Option<&'l str>,
        job: Option<&Job>,
    ) -> Self {
        let known = identity.and_then(|text| Known::read(text, name, job));
        Self {
            since,
            until,
            identity,
            known,
        }
    }

    /// The newest of them; none where there is none, or that can't be told any more.
    pub fn newest(&self) -> Option<Timestamp> {
        let known = self.known.as_ref().filter(|known| !known.lacks_calendars)?;
        let just_after = self.until + Duration::from_millis(1);
        let newest = known.schedule.last_before(just_after)?;
        (newest > self.since).then_some(newest)
    }

    /// The instants before `before` that it stands for, the newest first; none where its schedule,
    /// or its calendars, can't be told any more.
    pub fn newest_first(&self, before: Timestamp) -> impl Iterator<Item = Timestamp> + '_ {
        let known = self.known.as_ref().filter(|known| !known.lacks_calendars);
        let begin = before.min(self.until + Duration::from_millis(1));
        let last = move |at: &Timestamp| known?.schedule.last_before(*at);
        std::iter::successors(last(&begin), last).take_while(|at| *at > self.since)
    }

    /// How many instants it stands for, counted up to a limit; none where its schedule, or its
    /// calendars, can't be told any more.
    pub fn count(&self, limit: usize) -> Option<usize> {
        let known = self.known.as_ref().filter(|known| !known.lacks_calendars)?;
        let schedule = &known.schedule;
        let next = |at: &Timestamp| schedule.next_after(*at);
        let instants = std::iter::successors(next(&self.since), next);
        let within = instants.take_while(|at| *at <= self.until);
        Some(within.take(limit).count())
    }

    /// The schedule of that time; none where it can't be read.
    pub fn schedule(&self) -> Option<&Known> {
        self.known.as_ref()
    }
}
