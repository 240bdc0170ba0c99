//! How each job stands by the ledger: when it last succeeded and failed, whoever ran it.
//!
//! A replica hears of its own attempts alone. After a restart it knows of none, and what another
//! replica ran is forgotten with that replica: an alert on the last success would fire, or fall
//! silent, for a restart. So the store is asked: once there is a table, and while somebody scrapes,
//! at most once in [`INTERVAL`].
//!
//! Must never: ask for what nobody wants to know, or hold anything up.

use std::sync::Arc;
use std::time::Duration;

use tracing::debug;

use super::Metrics;
use super::jobs::{Series, Shown};
use crate::scheduler::lease::Outcome;
use crate::scheduler::time::Timestamp;
use crate::store::{AttemptRecord, JobState, NeverStarted, Standing, Store, StoreError};
use crate::why::RangeLine;

/// From one question to the next, at least.
const INTERVAL: Duration = Duration::from_secs(60);

/// A question that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many jobs' histories are looked at for one question, and how far back.
const HISTORIES: usize = 100;
const LINES: usize = 50;

impl Metrics {
    /// Asks the store how jobs stand whenever somebody wants to know; for ever.
    pub async fn keep_up(self, store: Arc<dyn Store>) {
        loop {
            self.asked.notified().await;
            let shown = self.jobs.shown();
            if shown.all().is_empty() {
                continue;
            }
            let now = self.jobs.now();
            match tokio::time::timeout(PATIENCE, learn(&shown, &*store, now)).await {
                Ok(Ok(())) => {}
                Ok(Err(cause)) => debug!("failed to ask how jobs stand, for metrics: {cause}"),
                Err(_) => debug!("no answer to how jobs stand within {PATIENCE:?}, for metrics"),
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

async fn learn(shown: &Shown, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    let snapshot = store.snapshot().await?.answer;
    let known = snapshot.jobs.iter();
    known.for_each(|state| learn_state(shown, state));
    // Whose newest occurrence did not succeed, or is not over.
    let is_behind = |one: &&Series| match one.counts.last_success() {
        Some(at) => one.previous(now).is_some_and(|due| at < due),
        None => true,
    };
    let behind = shown
        .all()
        .iter()
        .filter(|one| one.job.enabled && one.job.shards == 1);
    for series in behind.filter(is_behind).take(HISTORIES) {
        let lines = store.history(Some(&series.job.name), LINES).await?;
        learn_lines(series, &lines);
    }
    Ok(())
}

fn learn_state(shown: &Shown, state: &JobState) {
    let Some(series) = shown.get(&state.job) else {
        return;
    };
    series.counts.set_paused(state.paused.is_some());
    let ended = |wanted: fn(Outcome) -> bool| {
        let is = move |standing| matches!(standing, Standing::Ended(outcome) if wanted(outcome));
        state.attempts.iter().filter(move |one| is(one.standing))
    };
    let newest = state.attempts.iter().map(|one| one.since).max();
    let all_succeeded = ended(|one| one == Outcome::Succeeded).count() == state.attempts.len();
    if let Some(at) = newest.filter(|_| all_succeeded) {
        series.counts.succeeded_at(at);
    }
    let failed = ended(is_failure).map(|one| one.since).max();
    failed
        .into_iter()
        .for_each(|at| series.counts.failed_at(at));
    let missed = state.never_started.iter();
    let missed = missed.filter(|one| one.outcome == Outcome::Missed);
    for at in missed.filter_map(|one| newest_of(one, series)) {
        series.counts.missed_at(at);
    }
}

/// Its instant; of a stretch of time the newest that was due in it, where there is one.
fn newest_of(one: &NeverStarted, series: &Series) -> Option<Timestamp> {
    let Some((since, identity)) = &one.within else {
        return Some(one.scheduled_at);
    };
    let (name, until) = (&series.job.name, one.scheduled_at);
    RangeLine::between(name, *since, until, Some(identity), Some(&series.job)).newest()
}

fn learn_lines(series: &Series, lines: &[AttemptRecord]) {
    for line in lines.iter().filter(|line| line.detail.is_final()) {
        match line.outcome {
            Outcome::Succeeded => series.counts.succeeded_at(line.ended_at),
            outcome if is_failure(outcome) => series.counts.failed_at(line.ended_at),
            _ => {}
        }
    }
}

/// It is over for good, and did not do what it was for.
const fn is_failure(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::TimedOut | Outcome::Lost)
}
