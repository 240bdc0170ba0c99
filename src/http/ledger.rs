//! What is asked of the store for those who ask over HTTP: a few questions at a time, each with a
//! time-out, and what all of them ask for once a second.
//!
//! Must never: let any number of clients keep the store from the replicas.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::fresh::Fresh;
use crate::clock::Clock;
use crate::config::Config;
use crate::orders::{Request, Said, Sender};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{OrderKind, Output, RunId};
use crate::store::{Answered, AttemptRecord, Snapshot, Store, StoreError};

/// How many questions and orders the store is sent at a time.
const AT_A_TIME: usize = 4;

/// How long one takes at most, with the wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(5);

/// An order may be sent three times, each with a time-out of its own.
const ORDER_TIMEOUT: Duration = Duration::from_secs(9);

/// How old the state of everything may be.
const LASTS: Duration = Duration::from_secs(1);

/// The state of everything.
pub(super) struct Look {
    /// Where that is, for people.
    pub(super) place: String,
    pub(super) answered: Answered<Snapshot>,
}

/// An order for one job.
pub(super) struct OneOrder {
    pub(super) what: OrderKind,
    pub(super) job: JobName,
    pub(super) by: String,
    pub(super) id: Option<RunId>,
}

/// The way to the store.
pub(super) struct Ledger {
    store: Arc<dyn Store>,
    turns: Arc<Semaphore>,
    look: Fresh<Result<Arc<Look>, StoreError>>,
}

impl Ledger {
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            turns: Arc::new(Semaphore::new(AT_A_TIME)),
            look: Fresh::new(clock, LASTS),
        }
    }

    /// The state of everything, at most a second old.
    pub(super) async fn look(&self) -> Result<Arc<Look>, StoreError> {
        let place = self.store.place();
        let asked = self.ask(TIMEOUT, |store| async move { store.snapshot().await });
        let look = async {
            asked
                .await
                .map(|answered| Arc::new(Look { place, answered }))
        };
        self.look.get(look).await
    }

    /// The newest lines, of one job or of all.
    pub(super) async fn lines(
        &self,
        job: Option<JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        self.ask(TIMEOUT, move |store| async move {
            store.history(job.as_ref(), limit).await
        })
        .await
    }

    /// What an attempt printed.
    pub(super) async fn output(
        &self,
        job: JobName,
        run_id: RunId,
    ) -> Result<Option<Output>, StoreError> {
        self.ask(TIMEOUT, move |store| async move {
            store.output(&job, run_id).await
        })
        .await
    }

    /// Sends an order. It goes its way though nobody waits for its answer any more.
    pub(super) async fn order(
        &self,
        order: OneOrder,
        config: Arc<Config>,
        sender: String,
    ) -> Result<Option<Said>, StoreError> {
        let said = self.ask(ORDER_TIMEOUT, move |store| async move {
            let request = Request {
                what: order.what,
                jobs: std::slice::from_ref(&order.job),
                by: &order.by,
                id: order.id,
            };
            let sender = Sender::new(&*store, &config.jobs, sender);
            sender.send(request).await
        });
        let said = said.await;
        // Whoever asks next sees what became of it.
        self.look.forget();
        said.map(|mut said| said.pop())
    }

    /// Asks in a task of its own: a client that goes away cuts nothing short, and what goes wrong
    /// with the store is no matter of an answer.
    async fn ask<T, F>(
        &self,
        within: Duration,
        question: impl FnOnce(Arc<dyn Store>) -> F + Send + 'static,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
        T: Send + 'static,
    {
        let (store, turns) = (Arc::clone(&self.store), Arc::clone(&self.turns));
        let unreachable =
            move |cause: String, place: String| StoreError::Unreachable { place, cause };
        let place = self.store.place();
        let asked = async move {
            // It is never closed.
            let _turn = turns.acquire_owned().await;
            store.ready().await?;
            question(store).await
        };
        let task = tokio::spawn(tokio::time::timeout(within, asked));
        match task.await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(unreachable(format!("no answer within {within:?}"), place)),
            Err(ended) => Err(unreachable(
                format!("the question was given up: {ended}"),
                place,
            )),
        }
    }
}
