//! What the ledger has of each occurrence that fell due: asked once, told by the same functions
//! that `soloist why` goes by.
//!
//! Must never: take what it does not find for a fate.

use std::sync::Arc;

use super::checker::{Due, Fate};
use super::part::CANT_WRITE;
use super::plan::JobPlan;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::Outcome;
use crate::scheduler::time::Timestamp;
use crate::store::{AttemptRecord, Store, StoreError};
use crate::why::{self, Unrecorded, View};

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

/// What the ledger has.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Of each occurrence that fell due, but of those that it has forgotten.
    pub(super) due: Vec<Due>,
    /// It forgot what it had acknowledged in the span: up to when, if it says so.
    pub(super) forgot: Option<Option<Timestamp>>,
}

/// What it has of each.
pub(super) async fn read(
    store: &Arc<dyn Store>,
    jobs: &[JobPlan],
    table: &[Job],
    span: Span,
) -> Result<Ledger, StoreError> {
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
            fate: told(
                &why::account(&view, at).fate,
                lines.iter().find(|line| line.scheduled_at == at),
            ),
        }));
    }
    let snapshot = &snapshot.answer;
    Ok(forgetful(
        found,
        span,
        snapshot.born,
        snapshot.jobs.is_empty(),
    ))
}

/// A ledger that began anew in the span, or is not there, has nothing of what was due before. That is
/// the store's doing: whatever it still has is judged.
fn forgetful(mut due: Vec<Due>, span: Span, born: Option<Timestamp>, is_empty: bool) -> Ledger {
    let born = born.filter(|born| *born > span.after);
    let is_gone = |due: &Due| {
        let before = is_empty || born.is_some_and(|born| due.at <= born);
        before && matches!(due.fate, Fate::Unrecorded(_))
    };
    let forgot = due.iter().any(is_gone).then_some(born);
    if forgot.is_some() {
        due.retain(|due| !is_empty && born.is_some_and(|born| due.at > born));
    }
    Ledger { due, forgot }
}

/// With the newest line of the occurrence.
fn told(fate: &why::Fate, line: Option<&AttemptRecord>) -> Fate {
    match fate {
        why::Fate::Ended {
            outcome: Outcome::Succeeded,
            ..
        } => Fate::Succeeded,
        why::Fate::Ended { outcome, .. } => match line {
            Some(line) if line.detail.exit_code == Some(i32::from(CANT_WRITE)) => Fate::Unwritten,
            _ => Fate::Closed(how(*outcome, line)),
        },
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
        why::Fate::NotRecorded { why } => Fate::Unrecorded(
            match why {
                Unrecorded::Unenrolled => "it does not know the job",
                Unrecorded::BeforeKnown { .. } => "it came to know the job only later",
                Unrecorded::BeforeOldest { .. } => "its oldest line is from later",
                Unrecorded::Gap => "there are lines before and after it",
                Unrecorded::NoSchedule => "it has no schedule of the job",
            }
            .to_owned(),
        ),
    }
}

fn how(outcome: Outcome, line: Option<&AttemptRecord>) -> String {
    let detail = line.map(|line| &line.detail);
    let code = detail.and_then(|detail| detail.exit_code);
    let signal = detail.and_then(|detail| detail.signal);
    match (code, signal) {
        (Some(code), _) => format!("{outcome}, exit code {code}"),
        (None, Some(signal)) => format!("{outcome}, killed by signal {signal}"),
        (None, None) => outcome.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_ledger_that_began_anew_has_nothing_of_is_the_stores_doing() {
        let at = Timestamp::from_second;
        let span = Span {
            after: at(10),
            until: at(40),
        };
        let due = |second, fate: &Fate| Due {
            job: "job",
            at: at(second),
            fate: fate.clone(),
        };
        let gone = Fate::Unrecorded("gone".to_owned());
        let all = || {
            vec![
                due(20, &gone),
                due(21, &Fate::Missed),
                due(30, &Fate::Succeeded),
            ]
        };
        let left = |born: Option<i64>, is_empty| {
            let ledger = forgetful(all(), span, born.map(at), is_empty);
            (ledger.forgot.is_some(), ledger.due.len())
        };
        // As it was before the test began, or without a word of it: nothing is excused.
        assert_eq!(left(Some(5), false), (false, 3));
        assert_eq!(left(None, false), (false, 3));
        assert_eq!(left(Some(15), false), (false, 3));
        assert_eq!(left(Some(25), false), (true, 1));
        assert_eq!(left(None, true), (true, 0));
        // It was taken up again with all its data.
        let kept = vec![due(20, &Fate::Missed), due(30, &Fate::Succeeded)];
        let ledger = forgetful(kept, span, Some(at(25)), false);
        assert!(ledger.forgot.is_none() && ledger.due.len() == 2);
    }

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
