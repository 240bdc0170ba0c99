//! What the ledger has of each occurrence that fell due: asked once, told by the same functions
//! that `soloist why` goes by.
//!
//! Must never: take what it does not find for a fate.

use std::sync::Arc;

use super::checker::{Due, Fate};
use super::plan::JobPlan;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::Outcome;
use crate::scheduler::time::Timestamp;
use crate::store::{Store, StoreError};
use crate::why::{self, View};

/// More lines than a job of a self-test has.
const LINES_LIMIT: usize = 100_000;

/// The instants that are judged: after the first, up to the second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) after: Timestamp,
    pub(super) until: Timestamp,
}

/// The instants of a job in a span.
pub(super) fn instants(job: &JobPlan, span: Span) -> impl Iterator<Item = Timestamp> + use<> {
    let every = i64::from(job.every_seconds);
    let first = span.after.as_second().div_euclid(every) + 1;
    let last = span.until.as_second().div_euclid(every);
    (first..=last).map(move |number| Timestamp::from_second(number * every))
}

/// The fate of each.
pub(super) async fn read(
    store: &Arc<dyn Store>,
    jobs: &[JobPlan],
    table: &[Job],
    span: Span,
) -> Result<Vec<Due>, StoreError> {
    // In this order: what ends in between has its line.
    let snapshot = store.snapshot().await?;
    let mut found = Vec::new();
    for job in jobs {
        let Ok(name) = JobName::new(job.name) else {
            continue;
        };
        let lines = store.history(Some(&name), LINES_LIMIT).await?;
        let view = View {
            job: &name,
            table: Some(table),
            snapshot: &snapshot.answer,
            now: snapshot.now,
            lines: &lines,
        };
        found.extend(instants(job, span).map(|at| Due {
            job: job.name,
            at,
            fate: told(&why::account(&view, at).fate),
        }));
    }
    Ok(found)
}

fn told(fate: &why::Fate) -> Fate {
    match fate {
        why::Fate::Ended {
            outcome: Outcome::Succeeded,
            ..
        } => Fate::Succeeded,
        why::Fate::Ended { outcome, .. } => Fate::Closed(outcome.to_string()),
        why::Fate::NeverStarted {
            outcome: Outcome::Missed,
            ..
        } => Fate::Missed,
        why::Fate::NeverStarted { .. } => Fate::Skipped,
        why::Fate::Running => Fate::Open("it runs".to_owned()),
        why::Fate::Abandoned => Fate::Open("its lease ran out".to_owned()),
        why::Fate::WaitsForAttempt { .. } => Fate::Open("another attempt follows".to_owned()),
        why::Fate::Interrupted => Fate::Unrecorded("its next attempt is forgotten".to_owned()),
        why::Fate::WaitsInQueue { .. } => Fate::Open("it waits for its turn".to_owned()),
        why::Fate::WaitsForJobs { .. } => Fate::Open("it waits for other jobs".to_owned()),
        why::Fate::Due { .. } => Fate::Open("nobody has claimed it".to_owned()),
        why::Fate::Suspended { .. } => Fate::Unrecorded("it is paused".to_owned()),
        why::Fate::ToCome { .. } => Fate::Unrecorded("its time has not come".to_owned()),
        why::Fate::NotAnOccurrence { .. } => Fate::Unrecorded("it was never due".to_owned()),
        why::Fate::NotRecorded { why } => Fate::Unrecorded(format!("{why:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_instants_of_a_span_are_those_after_its_beginning_up_to_its_end() {
        let job = JobPlan {
            name: "long",
            every_seconds: 10,
            lasts: std::time::Duration::ZERO,
            once: false,
            queues: false,
        };
        let span = Span {
            after: Timestamp::from_millis(10_000),
            until: Timestamp::from_millis(40_500),
        };
        let found: Vec<i64> = instants(&job, span).map(Timestamp::as_second).collect();
        assert_eq!(found, [20, 30, 40]);
    }
}
