//! The store in one Redis or Valkey server: what `redis://` opens.
//!
//! A step is a conversation of two scripts (`lua/`). `read` shows the server's time, the group
//! and the records; the rules decide, here; `write` compares what the decision hangs on and
//! writes all, or nothing. Where somebody was faster it shows how things are, and they are
//! decided anew. A step that writes nothing is over after `read`. A change of the server's run
//! id means that data may be lost (a restart, a failover, a wipe): the rules open a grace window.
//!
//! ```text
//!  RedisStore ─▶ step ─▶ request ─▶ link ─▶ EVALSHA … ─▶ lua/*.lua
//!                 ▲                  │ one connection, made anew when it fails
//!                 └───── reply ◀─────┘
//!  events ◀── listener ◀── SUBSCRIBE        survey, history ◀── reading ◀── link of its own
//! ```
//!
//! Must never: write what was decided over anything but what was read, or take an answer that
//! it does not understand for a win.

mod fault;
mod keys;
mod link;
mod listener;
mod news;
mod place;
mod reading;
mod record;
mod reply;
mod request;
mod scripts;
mod server;
mod step;

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use self::fault::Fault;
use self::keys::Keys;
use self::link::Link;
use self::listener::{Listener, Subscription};
use self::reading::Reader;
use self::step::Plan;
use super::draft::{self, Draft};
use super::engine::{Engine, Look, Survey, Terms};
use super::{AttemptRecord, Caller, EVENT_CAPACITY, ReplicaInfo, Scope, StoreError, StoreEvent};
use crate::scheduler::job::{JobName, check_name};
use crate::scheduler::lease::{Output, Replica, RunId};

/// How long a call that leases hang on may take. Callers with shorter leases give up sooner.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a call for people's reading may take.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A store in a Redis or Valkey server.
pub struct RedisStore {
    place: String,
    keys: Keys,
    calls: Link,
    reader: Reader,
    client: redis::Client,
    events: broadcast::Sender<StoreEvent>,
    listener: OnceLock<Listener>,
}

impl RedisStore {
    /// The store in the server that `url` names, under keys of `namespace`. Nothing is
    /// connected yet.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] when the URL, or the namespace, can't be one.
    pub fn open(url: &str, namespace: &str) -> Result<Self, StoreError> {
        let (client, place) = place::parse(url)?;
        check_name(namespace).map_err(|error| StoreError::BadUrl {
            url: place.clone(),
            cause: format!("its namespace `{namespace}` is no name: {error}"),
        })?;
        let keys = Keys::new(namespace);
        let reads = Link::new(client.clone(), place.clone(), READ_TIMEOUT);
        Ok(Self {
            calls: Link::new(client.clone(), place.clone(), CALL_TIMEOUT),
            reader: Reader::new(reads, keys.clone(), place.clone()),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            listener: OnceLock::new(),
            place,
            keys,
            client,
        })
    }

    /// Listens for news from now on, where there is a runtime to do so.
    fn listen(&self) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.listener.get_or_init(|| {
            let subscription = Subscription {
                client: self.client.clone(),
                place: self.place.clone(),
                channel: self.keys.events.clone(),
                events: self.events.clone(),
            };
            subscription.listen()
        });
    }

    /// Asks for what every call will need, and writes what changes nothing: a server that
    /// refuses either is found now, and not by the first claim.
    async fn try_out(&self) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        commands.cmd("HGET").arg(&self.keys.jobs).arg(keys::LAYOUT);
        commands.cmd("HDEL").arg(&self.keys.replicas).arg("");
        commands.cmd("ZCARD").arg(&self.keys.agenda);
        let answers = self.calls.send(commands).await?;
        match answers.first().and_then(reply::text) {
            None | Some(keys::CURRENT_LAYOUT) => Ok(()),
            Some(other) => Err(Fault::layout(&self.place, other).error),
        }
    }
}

#[async_trait]
impl Engine for RedisStore {
    fn place(&self) -> String {
        self.place.clone()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let server = self.calls.server().await?;
        if server.evicts() {
            tracing::warn!(
                store = %self.place,
                policy = server.eviction,
                "the server may delete leases and history when memory runs short: \
                 set maxmemory-policy to noeviction, or to one of volatile-*"
            );
        }
        self.try_out().await?;
        self.listen();
        Ok(())
    }

    async fn transact<R, S>(&self, terms: Terms, step: S) -> Result<R, StoreError>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send + 'static,
    {
        let plan = Plan {
            place: self.place.clone(),
            keys: self.keys.clone(),
            terms,
        };
        self.calls
            .converse(|talk| step::take(talk, plan, step))
            .await?
    }

    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        let request = request::observe(&self.keys, caller, info, scope);
        let reply = self.calls.run(request).await?;
        reply::look(&reply).map_err(|misread| Fault::misread(&self.place, &misread).error)
    }

    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        let id = replica.id.to_string();
        commands.cmd("HDEL").arg(&self.keys.replicas).arg(id);
        self.calls.send(commands).await.map(|_| ())
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        self.reader.survey().await
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        self.reader.history(job, limit).await
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        self.reader.output(job, run_id).await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        let events = self.events.subscribe();
        self.listen();
        events
    }
}
