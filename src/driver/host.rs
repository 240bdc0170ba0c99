//! The hands of a driver on this host: a task for each call to the store, and whatever runs
//! attempts.
//!
//! Must never: let one call wait for another.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc};

use super::CALL_TIMEOUT;
use super::attempts::Attempts;
use super::call::{Call, Patience};
use super::dispatcher::Hands;
use crate::scheduler::lease::{Caller, RunId};
use crate::scheduler::{Attempt, Effect, Ending, Event, Guard, StopReason};
use crate::store::{Store, StoreEvent};

/// What a driver works with.
pub(super) struct HostHands {
    store: Arc<dyn Store>,
    attempts: Box<dyn Attempts>,
    sender: mpsc::UnboundedSender<Event>,
    /// Where there has to be a turn before more to do is asked for, if not here.
    claims_on: Option<Handle>,
}

impl HostHands {
    /// What comes of its work is sent to `sender`.
    pub(super) fn new(
        store: Arc<dyn Store>,
        attempts: Box<dyn Attempts>,
        sender: mpsc::UnboundedSender<Event>,
    ) -> Self {
        Self {
            store,
            attempts,
            sender,
            claims_on: None,
        }
    }

    pub(super) fn claim_on(&mut self, runtime: Handle) {
        self.claims_on = Some(runtime);
    }

    /// An attempt has ended, as the dispatcher is about to be told.
    pub(super) fn forget(&mut self, run_id: RunId) {
        self.attempts.forget(run_id);
    }

    pub(super) fn news(&self) -> broadcast::Receiver<StoreEvent> {
        self.store.events()
    }

    /// Takes a replica off the list; others find out by themselves if that fails.
    pub(super) fn depart(&self, caller: Caller) -> impl Future<Output = ()> + Send + use<> {
        let store = Arc::clone(&self.store);
        async move {
            let departed = tokio::time::timeout(CALL_TIMEOUT, store.depart(&caller)).await;
            if !matches!(departed, Ok(Ok(()))) {
                tracing::debug!("could not sign off at the store");
            }
        }
    }
}

impl Hands for HostHands {
    fn call(&mut self, call: Call) {
        let (store, sender) = (Arc::clone(&self.store), self.sender.clone());
        let claims = matches!(call.effect(), Effect::Claim(_));
        let asked = async move {
            // The receiver lives as long as the loop; after it nobody wants to know.
            let _ = sender.send(call.make(&*store, Patience::Timeout).await);
        };
        match self.claims_on.as_ref().filter(|_| claims) {
            Some(runtime) => {
                // No more than to begin: whatever it holds on to meanwhile others wait for.
                let here = Handle::current();
                runtime.spawn(async move { drop(here.spawn(asked)) });
            }
            None => drop(tokio::spawn(asked)),
        }
    }

    fn start(&mut self, attempt: Attempt) {
        let (run_id, sender) = (attempt.run_id, self.sender.clone());
        let on_end = move |ending: Ending| {
            // The receiver lives as long as the loop; after it nobody wants to know.
            let _ = sender.send(Event::AttemptEnded { run_id, ending });
        };
        self.attempts.start(attempt, Box::new(on_end));
    }

    fn stop(&mut self, run_id: RunId, reason: StopReason, grace: Duration) {
        tracing::debug!(%run_id, reason = reason.as_str(), ?grace, "stopping");
        self.attempts.stop(run_id, reason, grace);
    }

    fn guard(&mut self, run_id: RunId, guard: Guard) {
        self.attempts.guard(run_id, guard);
    }

    fn kill_all(&mut self) {
        self.attempts.kill_all();
    }
}
