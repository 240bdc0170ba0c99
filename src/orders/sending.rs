//! Orders on their way to the store: drawn once, sent until there is an answer.
//!
//! Must never: send an order under a second id; by its id the store does it once, however often
//! it arrives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{
    Answered, BATCH_LIMIT, Caller, Dependents, Enrolment, FencingToken, Order, OrderAnswer,
    OrderKind, Replica, Retention, RunId, Written,
};
use crate::scheduler::margins::{LONGEST_TTL, Margins};
use crate::scheduler::time::Timestamp;
use crate::scheduler::{dependents_of, draw_replica_id};
use crate::store::{Store, StoreError};

/// How long the store may take to answer.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);

/// The waits between sendings: a connection that broke is made anew, a store that restarts is
/// waited for, and a person not for long.
const WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_millis(1000)];

/// A call to the store on its way.
type Call<'c, T> = BoxFuture<'c, Result<Answered<T>, StoreError>>;

/// What is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Request<'r> {
    pub(crate) what: OrderKind,
    pub(crate) jobs: &'r [JobName],
    pub(crate) by: &'r str,
    /// The identity of the order, where whoever asks has one: only with a single job. Drawn
    /// otherwise.
    pub(crate) id: Option<RunId>,
}

/// What the store said to an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) job: JobName,
    pub(crate) answer: OrderAnswer,
    /// The store's time.
    pub(crate) now: Timestamp,
    /// An earlier sending had no answer, and may have arrived.
    pub(crate) again: bool,
}

/// Where orders go, and what is known of their jobs here.
pub(crate) struct Sender<'s> {
    store: &'s dyn Store,
    /// Empty where there is no table here.
    table: &'s [Job],
    caller: Caller,
    /// An order went to the store, whatever became of it.
    has_sent: AtomicBool,
    written: Mutex<Vec<Written>>,
}

impl<'s> Sender<'s> {
    /// `sender` is what the store may call who sends.
    pub(crate) fn new(store: &'s dyn Store, table: &'s [Job], sender: String) -> Self {
        // Without a table, any lease may be out there.
        let ttls = table.iter().map(|job| job.lease_ttl);
        let longest = ttls.max().unwrap_or(LONGEST_TTL);
        let caller = Caller {
            replica: Replica {
                id: draw_replica_id(Uuid::new_v4().into_bytes()),
                name: sender,
            },
            quarantine: longest + Margins::of(longest).call_timeout(),
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        Self {
            store,
            table,
            caller,
            has_sent: AtomicBool::new(false),
            written: Mutex::default(),
        }
    }

    /// What its orders wrote into the ledger, as far as it heard of it.
    pub(crate) fn into_written(self) -> Vec<Written> {
        let written = self.written.into_inner();
        written.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any order may have arrived: none has as long as the store was never there.
    #[cfg(feature = "daemon")]
    pub(crate) fn has_sent(&self) -> bool {
        self.has_sent.load(Ordering::Relaxed)
    }

    /// Sends an order for each job. A job that the ledger doesn't know and the table does is made
    /// known first, so that what is asked for before any replica's first start is not lost.
    pub(crate) async fn send(&self, request: Request<'_>) -> Result<Vec<Said>, StoreError> {
        let orders: Vec<Order> = request
            .jobs
            .iter()
            .map(|job| self.order(request, job))
            .collect();
        let mut all = Vec::with_capacity(orders.len());
        for batch in orders.chunks(BATCH_LIMIT) {
            let mut said = self.deliver(batch).await?;
            self.settle_what_never_was(request.what, &mut said);
            let (orders, enrolments) = self.unknown(batch, &said);
            if !orders.is_empty() {
                let register = || self.store.register(&self.caller, &enrolments);
                self.insist(register).await?;
                for newer in self.deliver(&orders).await? {
                    said.retain(|older| older.job != newer.job);
                    said.push(newer);
                }
            }
            all.extend(said);
        }
        let place = |said: &Said| request.jobs.iter().position(|job| *job == said.job);
        all.sort_by_key(place);
        Ok(all)
    }

    fn order(&self, request: Request<'_>, job: &JobName) -> Order {
        let known = self.table.iter().find(|known| known.name == *job);
        Order {
            job: job.clone(),
            what: request.what,
            by: request.by.to_owned(),
            id: request.id.unwrap_or_else(|| RunId::new(Uuid::new_v4())),
            retention: known.map_or(Retention::LONGEST, |known| known.retention),
            dependents: match known {
                Some(_) => dependents_of(job, self.table),
                None => Dependents::default(),
            },
        }
    }

    async fn deliver(&self, orders: &[Order]) -> Result<Vec<Said>, StoreError> {
        let order = || self.store.order(&self.caller, orders);
        let (answered, again) = self.insist(order).await?;
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.extend(answered.lines);
        drop(written);
        let answers = orders.iter().zip(answered.answer);
        let said = answers.map(|(order, answer)| Said {
            job: order.job.clone(),
            answer,
            now: answered.now,
            again,
        });
        Ok(said.collect())
    }

    /// Of a job that no replica ever had nothing runs and nothing is paused: no need to enrol it.
    fn settle_what_never_was(&self, what: OrderKind, said: &mut [Said]) {
        let nothing = match what {
            OrderKind::Trigger | OrderKind::Pause => return,
            OrderKind::Resume => OrderAnswer::Resumed { since: None },
            OrderKind::Kill => OrderAnswer::Idle,
        };
        let unknown = said
            .iter_mut()
            .filter(|said| said.answer == OrderAnswer::Unknown);
        for said in unknown {
            if self.table.iter().any(|known| known.name == said.job) {
                said.answer = nothing.clone();
            }
        }
    }

    /// The orders whose jobs the ledger doesn't know and the table does, and what it is to know.
    fn unknown(&self, orders: &[Order], said: &[Said]) -> (Vec<Order>, Vec<Enrolment>) {
        let unknown = orders.iter().zip(said);
        let unknown = unknown.filter(|(_, said)| said.answer == OrderAnswer::Unknown);
        let both = unknown.filter_map(|(order, _)| {
            let known = self.table.iter().find(|known| known.name == order.job)?;
            Some((order.clone(), Enrolment::of(known)))
        });
        both.unzip()
    }

    /// Asks until there is an answer; with it, whether it took more than one sending.
    async fn insist<'c, T>(
        &self,
        call: impl Fn() -> Call<'c, T> + Sync,
    ) -> Result<(Answered<T>, bool), StoreError> {
        for (sendings, wait) in WAITS.into_iter().enumerate() {
            match self.once(&call).await {
                Err(cause @ StoreError::Unreachable { .. }) => {
                    tracing::debug!(%cause, "asking again in {wait:?}");
                }
                ended => return ended.map(|answered| (answered, sendings > 0)),
            }
            tokio::time::sleep(wait).await;
        }
        let answered = self.once(&call).await?;
        Ok((answered, true))
    }

    async fn once<'c, T>(
        &self,
        call: &(impl Fn() -> Call<'c, T> + Sync),
    ) -> Result<Answered<T>, StoreError> {
        let asked = async {
            self.store.ready().await?;
            self.has_sent.store(true, Ordering::Relaxed);
            call().await
        };
        match tokio::time::timeout(CALL_TIMEOUT, asked).await {
            Ok(ended) => ended,
            Err(_) => Err(StoreError::Unreachable {
                place: self.store.place(),
                cause: format!("no answer within {CALL_TIMEOUT:?}"),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
