//! News from other replicas, over a connection of its own.
//!
//! Must never: matter. What is missed here is found by the next observation.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::aio::{PubSub, PubSubStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::access;
use super::back_off::BackOff;
use super::connector::Connector;
use super::fault::Fault;
use super::handshake;
use super::keys::Keys;
use super::news::{self, Spread};
use super::shard::Shard;
use crate::store::StoreEvent;
use crate::store::engine::Part;

/// How long subscribing may take.
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a silent connection is asked whether it leads to the right server.
const TERM_CHECK: Duration = Duration::from_secs(1);
/// How long after a failure it is tried again.
const FIRST_BACK_OFF: Duration = Duration::from_millis(100);
/// How long at most. A user that may not subscribe is asked for no more often.
const LONGEST_BACK_OFF: Duration = Duration::from_secs(10);

/// A task that listens until this is dropped.
pub(super) struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// What is listened for, and who is told.
pub(super) struct Subscription {
    pub(super) connector: Arc<dyn Connector>,
    pub(super) keys: Keys,
    pub(super) events: broadcast::Sender<StoreEvent>,
    /// Of which part.
    pub(super) part: Part,
}

/// Where messages come from.
enum Ear {
    Server(PubSubStream),
    Shard(Shard),
}

impl Ear {
    /// The next message; none when there are no more.
    async fn next(&mut self) -> Option<String> {
        match self {
            Self::Server(messages) => {
                let message = messages.next().await?;
                Some(message.get_payload().unwrap_or_default())
            }
            Self::Shard(shard) => shard.next().await,
        }
    }

    /// Whether there may be more. A subscription of RESP2 can't be asked.
    async fn lasts(&mut self, connector: &dyn Connector) -> bool {
        match self {
            Self::Server(_) => true,
            Self::Shard(shard) => shard.lasts(connector).await,
        }
    }
}

impl Subscription {
    /// Listens from now on.
    pub(super) fn listen(self) -> Listener {
        Listener(tokio::spawn(self.run()))
    }

    async fn run(self) {
        // Who wants a lease may have been refused it before the first time. A replica looks at all when
        // it begins, and again soon.
        let mut matters = self.part == Part::Leases;
        let mut told_before = false;
        let mut back_off = BackOff::new(FIRST_BACK_OFF, LONGEST_BACK_OFF);
        loop {
            let term = self.connector.term();
            match timeout(SUBSCRIBE_TIMEOUT, self.subscribe()).await {
                Ok(Ok(ear)) => {
                    back_off.reset();
                    if matters {
                        self.tell(StoreEvent::Reconnected);
                    }
                    matters = true;
                    self.hear(ear, term).await;
                }
                Ok(Err(fault)) => self.report(&fault, &mut told_before),
                Err(_) => {
                    self.connector.lost();
                    let store = self.connector.place();
                    tracing::debug!(store, "no answer to subscribing to events");
                }
            }
            tokio::time::sleep(back_off.pause()).await;
        }
    }

    /// Until the connection breaks off, or leads to the wrong server.
    async fn hear(&self, mut ear: Ear, term: u64) {
        while self.connector.term() == term {
            let told = match timeout(TERM_CHECK, ear.next()).await {
                Ok(Some(told)) => told,
                Ok(None) => return,
                Err(_) if ear.lasts(&*self.connector).await => continue,
                Err(_) => return,
            };
            let events = news::read(&told).into_iter();
            events.for_each(|event| self.tell(event));
        }
    }

    async fn subscribe(&self) -> Result<Ear, Fault> {
        match self.keys.spread {
            Spread::Everywhere => self.subscribe_to_server().await.map(Ear::Server),
            Spread::Shard => {
                let shard = Shard::subscribe(&*self.connector, &self.keys.events).await;
                shard.map(Ear::Shard)
            }
        }
    }

    async fn subscribe_to_server(&self) -> Result<PubSubStream, Fault> {
        let place = self.connector.place();
        let login = self.connector.login();
        let stream = handshake::reach(&*self.connector).await?;
        let pubsub = PubSub::new(&login.info(), stream).await;
        let told = |error| Fault::of(place, &error);
        let (mut sink, messages) = pubsub.map_err(told)?.split();
        sink.subscribe(&self.keys.events).await.map_err(told)?;
        Ok(messages)
    }

    /// What the calls meet as well is theirs to tell. A user who may not subscribe is told so
    /// once: all works, and takes longer.
    fn report(&self, fault: &Fault, told_before: &mut bool) {
        let (store, error) = (self.connector.place(), &fault.error);
        if !fault.denied || *told_before {
            tracing::debug!(store, %error, "failed to subscribe to events");
            return;
        }
        *told_before = true;
        let rules = access::rules_of_listening(&self.keys);
        access::warn_of_news(store, self.connector.login().name(), &rules);
    }

    fn tell(&self, event: StoreEvent) {
        // Nobody may be listening; that is no fault.
        let _ = self.events.send(event);
    }
}
