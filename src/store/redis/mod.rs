//! The store in one Redis or Valkey server: what `redis://` opens.
//!
//! Every operation is one script (`lua/`), judged inside the server by the server's clock. The
//! scripts say what `store::rules` says. A change of the server's run id means that data may
//! be lost (a restart, a failover, a wipe), and opens a grace window.
//!
//! ```text
//!  RedisStore ─▶ request ─▶ link ─▶ EVALSHA … ─▶ lua/*.lua
//!       ▲                    │ one connection, made anew when it fails
//!       └────── reply ◀──────┘
//!  events ◀── listener ◀── SUBSCRIBE        snapshot, history ◀── reading ◀── link of its own
//! ```
//!
//! Must never: decide anything about a lease outside a script, or take an answer that it does
//! not understand for a win.

mod fault;
mod keys;
mod link;
mod listener;
mod place;
mod reading;
mod record;
mod reply;
mod request;
mod scripts;
mod server;

use std::sync::OnceLock;
use std::time::Duration;

use async_trait::async_trait;
use redis::Value;
use tokio::sync::broadcast;

use self::fault::Fault;
use self::keys::Keys;
use self::link::Link;
use self::listener::{Listener, Subscription};
use self::reading::Reader;
use self::reply::Reply;
use self::request::Request;
use super::limits::check_batch;
use super::{
    Answered, AttemptRecord, Caller, EVENT_CAPACITY, Observation, Registration, ReplicaInfo, Scope,
    Snapshot, Store, StoreError, StoreEvent,
};
use crate::scheduler::job::{JobName, check_name};
use crate::scheduler::lease::{
    Claim, ClaimAnswer, Output, Release, ReleaseAnswer, Renewal, RenewalAnswer, RunId,
};

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

    /// Sends a batch in one round trip.
    async fn batch<'a, I, A>(
        &self,
        items: &'a [I],
        job: impl Fn(&'a I) -> &'a JobName,
        request: impl FnOnce(&[I]) -> Request + Send,
        decode: fn(&[Value]) -> Option<A>,
    ) -> Result<Answered<Vec<A>>, StoreError>
    where
        I: Sync,
        A: Send,
    {
        check_batch(&self.place, items.iter().map(job))?;
        let reply = self.calls.run(request(items)).await?;
        self.understood(reply::batch(&reply, items.len(), decode))
    }

    /// The answer in a reply; a reply that has none is an error.
    fn understood<A>(&self, reply: Option<Reply<A>>) -> Result<Answered<A>, StoreError> {
        let unread = || Fault::unreadable(&self.place, "a script's reply in another form").error;
        let Reply { answered, fault } = reply.ok_or_else(unread)?;
        if !fault.is_empty() {
            tracing::warn!(store = %self.place, error = fault, "failed to write history");
        }
        Ok(answered)
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
        commands.cmd("ZCARD").arg(&self.keys.leases);
        let answers = self.calls.send(commands).await?;
        match answers.first().and_then(reply::text) {
            None | Some(keys::CURRENT_LAYOUT) => Ok(()),
            Some(other) => Err(Fault::newer_layout(&self.place, other).error),
        }
    }
}

#[async_trait]
impl Store for RedisStore {
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

    async fn register(
        &self,
        caller: &Caller,
        jobs: &[JobName],
    ) -> Result<Answered<Vec<Registration>>, StoreError> {
        let request = |jobs: &[JobName]| request::register(&self.keys, caller, jobs);
        self.batch(jobs, |job| job, request, reply::registration)
            .await
    }

    async fn claim(
        &self,
        caller: &Caller,
        claims: &[Claim],
    ) -> Result<Answered<Vec<ClaimAnswer>>, StoreError> {
        let request = |claims: &[Claim]| request::claim(&self.keys, caller, claims);
        self.batch(claims, |claim| &claim.occurrence.job, request, reply::claim)
            .await
    }

    async fn renew(
        &self,
        caller: &Caller,
        renewals: &[Renewal],
    ) -> Result<Answered<Vec<RenewalAnswer>>, StoreError> {
        let request = |renewals: &[Renewal]| request::renew(&self.keys, caller, renewals);
        self.batch(
            renewals,
            |renewal| &renewal.occurrence.job,
            request,
            reply::renewal,
        )
        .await
    }

    async fn release(
        &self,
        caller: &Caller,
        releases: &[Release],
    ) -> Result<Answered<Vec<ReleaseAnswer>>, StoreError> {
        let request = |releases: &[Release]| request::release(&self.keys, caller, releases);
        self.batch(
            releases,
            |release| &release.occurrence.job,
            request,
            reply::release,
        )
        .await
    }

    async fn observe(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Answered<Observation>, StoreError> {
        let request = request::observe(&self.keys, caller, info, scope);
        let reply = self.calls.run(request).await?;
        self.understood(reply::observation(&reply))
    }

    async fn depart(&self, caller: &Caller) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        let id = caller.replica.id.to_string();
        commands.cmd("HDEL").arg(&self.keys.replicas).arg(id);
        self.calls.send(commands).await.map(|_| ())
    }

    async fn snapshot(&self) -> Result<Answered<Snapshot>, StoreError> {
        self.reader.snapshot().await
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
