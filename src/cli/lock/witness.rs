//! Sees what the store answers, so that people can be told what is waited for, and of what a lease
//! was lost.
//!
//! ```text
//!  Leases ─▶ Witness ─▶ the store
//!               └─ Seen ─▶ Teller
//! ```
//!
//! Must never: change a request or an answer, or wait.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{broadcast, watch};

use crate::clock::{Clock as _, SystemClock};
use crate::scheduler::lease::{
    Answered, Busy, Caller, HeldName, LeaseAnswer, LeaseName, LeaseRequest, NameState,
};
use crate::scheduler::time::{BootTime, short_duration};
use crate::store::{LeaseStore, StoreError, StoreEvent};

/// A call that nobody waits for any more took no longer than this, unless this process stood still
/// meanwhile, which is not the store's fault.
const LONGEST_CALL: Duration = Duration::from_secs(3);

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// When it last answered.
    pub(super) answered_at: Option<BootTime>,
    /// Since when it does not answer, or refuses, and why.
    pub(super) away: Option<(BootTime, String)>,
    /// Why the lease that is wanted was not granted.
    pub(super) in_the_way: Option<InTheWay>,
    /// It said of a lease that it is not this one's any more.
    pub(super) refused: bool,
}

/// Why a lease is not granted.
#[derive(Clone, Debug)]
pub(super) enum InTheWay {
    /// Others have it, or came first.
    Others(Busy),
    /// Nothing is granted for so long.
    Grace(Duration),
}

/// A store that is looked at.
pub(super) struct Witness {
    store: Arc<dyn LeaseStore>,
    seen: watch::Sender<Seen>,
}

impl Witness {
    /// Looks at a store from now on.
    pub(super) fn of(store: Arc<dyn LeaseStore>) -> (Arc<Self>, watch::Receiver<Seen>) {
        let (seen, receiver) = watch::channel(Seen::default());
        (Arc::new(Self { store, seen }), receiver)
    }

    fn answered(&self, requests: &[LeaseRequest], answers: &[LeaseAnswer]) {
        self.seen.send_modify(|seen| {
            seen.answered_at = Some(SystemClock.boot());
            seen.away = None;
            for (request, answer) in requests.iter().zip(answers) {
                match (request, answer) {
                    (LeaseRequest::Acquire { .. }, LeaseAnswer::Busy(busy)) => {
                        seen.in_the_way = Some(InTheWay::Others(busy.clone()));
                    }
                    (LeaseRequest::Acquire { .. }, LeaseAnswer::Grace { wait }) => {
                        seen.in_the_way = Some(InTheWay::Grace(*wait));
                    }
                    (LeaseRequest::Acquire { .. }, LeaseAnswer::Granted { .. }) => {
                        seen.in_the_way = None;
                    }
                    (LeaseRequest::Renew { .. }, LeaseAnswer::Lost) => seen.refused = true,
                    _ => {}
                }
            }
        });
    }

    fn failed(&self, error: &StoreError) {
        self.seen.send_modify(|seen| {
            let since = seen.away.take().map(|(since, _)| since);
            let since = since.unwrap_or_else(|| SystemClock.boot());
            seen.away = Some((since, error.to_string()));
        });
    }
}

/// A call that is under way. Dropped before it has an answer, it is one whose time is over.
struct Underway<'w> {
    witness: &'w Witness,
    sent: BootTime,
    is_over: bool,
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let took = SystemClock.boot().saturating_since(self.sent);
        if !self.is_over && took <= LONGEST_CALL {
            self.witness.failed(&StoreError::Unreachable {
                place: self.witness.store.place(),
                cause: format!("no answer within {}", short_duration(took)),
            });
        }
    }
}

#[async_trait]
impl LeaseStore for Witness {
    fn place(&self) -> String {
        self.store.place()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let ready = self.store.ready().await;
        if ready.is_ok() {
            self.answered(&[], &[]);
        }
        ready
    }

    async fn ask(
        &self,
        caller: &Caller,
        requests: &[LeaseRequest],
    ) -> Result<Answered<Vec<LeaseAnswer>>, StoreError> {
        let mut call = Underway {
            witness: self,
            sent: SystemClock.boot(),
            is_over: false,
        };
        let result = self.store.ask(caller, requests).await;
        call.is_over = true;
        match &result {
            Ok(answered) => self.answered(requests, &answered.answer),
            Err(error) => self.failed(error),
        }
        result
    }

    async fn tidy(
        &self,
        caller: &Caller,
        names: &[LeaseName],
        dead: &[HeldName],
    ) -> Result<Answered<()>, StoreError> {
        self.store.tidy(caller, names, dead).await
    }

    async fn names(&self) -> Result<Answered<Vec<NameState>>, StoreError> {
        self.store.names().await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        self.store.events()
    }
}
