//! Events of many occurrences at once: lines of the ledger that stand for a stretch of time, which
//! this replica wrote.
//!
//! How many occurrences such a line stands for takes a walk through their schedule. It is done where
//! the event is taken, and not where it is told.
//!
//! Must never: tell of a line that another replica wrote, or of one that stands for nothing.

use std::sync::Arc;

use super::events::Event;
use crate::scheduler;
use crate::scheduler::job::Job;
use crate::scheduler::lease::{Outcome, Written};
use crate::store::{COUNT_LIMIT, RangeLine};

/// What waits for whoever listens.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Event(Event),
    /// A line, and the job that this replica has under its name.
    Stretch(Arc<Written>, Option<Arc<Job>>),
}

impl Told {
    /// None for a line that stands for nothing: what was settled while nothing was due leaves one as
    /// well.
    pub(super) fn event(self) -> Option<Event> {
        match self {
            Told::Event(event) => Some(event),
            Told::Stretch(line, job) => of_line(&line, job.as_deref()),
        }
    }
}

fn of_line(line: &Written, job: Option<&Job>) -> Option<Event> {
    let since = line.detail.since?;
    let identity = line.detail.schedule.as_deref();
    let range = RangeLine::between(&line.job, since, line.scheduled_at, identity, job);
    let occurrences = range.count(COUNT_LIMIT);
    if occurrences == Some(0) {
        return None;
    }
    let (name, since) = (line.job.as_str().to_owned(), Some(since));
    Some(match line.outcome {
        Outcome::Missed => Event::Missed {
            job: name,
            scheduled_at: line.scheduled_at,
            since,
            occurrences,
        },
        _ => Event::Skipped {
            job: name,
            scheduled_at: line.scheduled_at,
            cause: line
                .detail
                .cause
                .map_or("", |cause| cause.as_str())
                .to_owned(),
            since,
            occurrences,
        },
    })
}

/// The lines among these that stand for a stretch of time.
pub(super) fn stretches(lines: &[Written]) -> impl Iterator<Item = &Written> {
    let never_started = |line: &&Written| {
        line.attempt == 0 && matches!(line.outcome, Outcome::Missed | Outcome::Skipped)
    };
    lines
        .iter()
        .filter(|line| line.detail.since.is_some())
        .filter(never_started)
}

/// What a call of this replica wrote into the ledger.
pub(super) fn written(event: &scheduler::Event) -> &[Written] {
    use scheduler::Event;
    let lines = match event {
        Event::Registered { result, .. } => result.as_ref().map(|answered| &answered.lines),
        Event::Claimed { result, .. } => result.as_ref().map(|answered| &answered.lines),
        Event::Renewed { result, .. } => result.as_ref().map(|answered| &answered.lines),
        Event::Released { result, .. } => result.as_ref().map(|answered| &answered.lines),
        Event::Observed { result, .. } => result.as_ref().map(|answered| &answered.lines),
        Event::Swept { result } => result.as_ref().map(|answered| &answered.lines),
        _ => return &[],
    };
    lines.map_or(&[], Vec::as_slice)
}
