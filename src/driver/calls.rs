//! Calls to the store: each in a task of its own, under a time-out, its answer sent back as an
//! event stamped with the boot time *before* it was sent.
//!
//! Must never: let one call wait for another, or lose an event: whatever happens to a call, its
//! event comes back.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc};

use crate::clock::Clock;
use crate::scheduler::lease::{Answered, Caller};
use crate::scheduler::margins::Margins;
use crate::scheduler::time::{format_duration, millis};
use crate::scheduler::{CallResult, Effect, Event, Scheduler};
use crate::store::{ReplicaInfo, Store, StoreError, StoreEvent};

/// The time-out of calls on which no lease hangs.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// That of a look through all jobs, which is many calls.
const SWEEP_TIMEOUT: Duration = Duration::from_secs(60);

/// The store, and where its answers go.
pub(super) struct Calls {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    sender: mpsc::UnboundedSender<Event>,
    host: String,
    /// Why the newest table could not be read, where it could not.
    table_refused: Option<String>,
}

impl Calls {
    pub(super) fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        sender: mpsc::UnboundedSender<Event>,
    ) -> Self {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Self {
            store,
            clock,
            sender,
            host,
            table_refused: None,
        }
    }

    /// The newest table could not be read, and why; or it could.
    pub(super) fn table_refused(&mut self, cause: Option<String>) {
        self.table_refused = cause;
    }

    pub(super) fn news(&self) -> broadcast::Receiver<StoreEvent> {
        self.store.events()
    }

    /// Makes the call that an effect asks for.
    pub(super) fn make(&self, effect: Effect, scheduler: &Scheduler) {
        let sent = self.clock.boot();
        let timeout = call_timeout(&effect);
        let caller = scheduler.caller(sent, timeout);
        let store = Arc::clone(&self.store);
        match effect {
            Effect::Register(jobs) => self.spawn(async move {
                let result = answer(timeout, store.register(&caller, &jobs)).await;
                Event::Registered { jobs, sent, result }
            }),
            Effect::Claim(claims) => self.spawn(async move {
                let result = answer(timeout, store.claim(&caller, &claims)).await;
                Event::Claimed {
                    claims,
                    sent,
                    result,
                }
            }),
            Effect::Renew(renewals) => self.spawn(async move {
                let result = answer(timeout, store.renew(&caller, &renewals)).await;
                Event::Renewed {
                    renewals,
                    sent,
                    result,
                }
            }),
            Effect::Release(releases) => self.spawn(async move {
                let result = answer(timeout, store.release(&caller, &releases)).await;
                let runs = releases.iter().map(|release| release.run_id).collect();
                Event::Released { runs, sent, result }
            }),
            Effect::Observe(scope) => {
                let info = self.info(scheduler);
                self.spawn(async move {
                    let result = answer(timeout, store.observe(&caller, &info, scope)).await;
                    Event::Observed {
                        scope,
                        sent,
                        result,
                    }
                });
            }
            Effect::Sweep => self.spawn(async move {
                let result = answer(timeout, store.sweep(&caller)).await;
                Event::Swept { result }
            }),
            Effect::Publish(table) => self.spawn(async move {
                let result = answer(timeout, store.publish(&caller, &table)).await;
                Event::Published { sent, result }
            }),
            Effect::ReadTable(digest) => self.read_table(digest, timeout),
            Effect::Start(_)
            | Effect::Stop { .. }
            | Effect::Guard { .. }
            | Effect::Report(_)
            | Effect::Finish => {
                unreachable!("not a call to the store")
            }
        }
    }

    fn read_table(&self, digest: String, timeout: Duration) {
        let store = Arc::clone(&self.store);
        self.spawn(async move {
            let result = match tokio::time::timeout(timeout, store.table(&digest)).await {
                Ok(read) => read.map_err(|error| error.to_string()),
                Err(_) => Err(no_answer(timeout)),
            };
            Event::TableRead { digest, result }
        });
    }

    /// Takes this replica off the list; others find out by themselves if that fails.
    pub(super) async fn depart(&self, scheduler: &Scheduler) {
        let caller = self.caller(scheduler);
        let departed = tokio::time::timeout(CALL_TIMEOUT, self.store.depart(&caller)).await;
        if !matches!(departed, Ok(Ok(()))) {
            tracing::debug!("could not sign off at the store");
        }
    }

    fn caller(&self, scheduler: &Scheduler) -> Caller {
        scheduler.caller(self.clock.boot(), CALL_TIMEOUT)
    }

    fn spawn(&self, call: impl Future<Output = Event> + Send + 'static) {
        let sender = self.sender.clone();
        tokio::spawn(async move {
            // The receiver lives as long as the loop; after it nobody wants to know.
            let _ = sender.send(call.await);
        });
    }

    fn info(&self, scheduler: &Scheduler) -> ReplicaInfo {
        let wall = self.clock.wall().as_millis();
        let store = scheduler.store_time(self.clock.boot());
        ReplicaInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.host.clone(),
            pid: std::process::id(),
            skew_ms: store.map_or(0, |store| wall - store.as_millis()),
            round_trip_ms: millis(scheduler.round_trip()).unsigned_abs(),
            running: u32::try_from(scheduler.running()).unwrap_or(u32::MAX),
            jobs: u32::try_from(scheduler.jobs()).unwrap_or(u32::MAX),
            draining: scheduler.is_draining(),
            tags: scheduler.tags().clone(),
            max_running: scheduler.max_running(),
            declines: scheduler.declines(),
            digest: scheduler.digest().to_owned(),
            revision: scheduler.revision(),
            beat: scheduler.beat(),
            table_refused: self.table_refused.clone(),
            alive_ms: millis(scheduler.alive_for()).unsigned_abs(),
        }
    }
}

/// How long a call to the store may take that an effect asks for: no longer than the shortest of
/// its leases allows. What comes back later comes to nobody.
pub fn call_timeout(effect: &Effect) -> Duration {
    let shortest = match effect {
        Effect::Claim(claims) => claims.iter().map(|claim| claim.ttl).min(),
        Effect::Renew(renewals) => renewals.iter().map(|renewal| renewal.ttl).min(),
        Effect::Sweep => return SWEEP_TIMEOUT,
        _ => None,
    };
    shortest.map_or(CALL_TIMEOUT, |ttl| Margins::of(ttl).call_timeout())
}

fn no_answer(within: Duration) -> String {
    format!("no answer within {}", format_duration(within))
}

async fn answer<T>(
    timeout: Duration,
    call: impl Future<Output = Result<Answered<T>, StoreError>>,
) -> CallResult<T> {
    match tokio::time::timeout(timeout, call).await {
        Ok(Ok(answered)) => Ok(answered),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(no_answer(timeout)),
    }
}
