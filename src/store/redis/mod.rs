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
//!                 ▲                  │ one connection, made anew when it fails:
//!                 └───── reply ◀─────┘ connector (the way there), handshake (what is said first)
//!  events ◀── listener ◀── [S]SUBSCRIBE     survey, history ◀── reading
//! ```
//!
//! Renewals and releases have a link of their own, as have claims and looks, and readings: what
//! holds one of them up holds up none of the others.
//!
//! Must never: write what was decided over anything but what was read, or take an answer that
//! it does not understand for a win.

mod access;
mod back_off;
mod chance;
mod cluster;
mod connector;
mod fault;
#[cfg(any(test, fuzzing))]
pub(super) mod fuzzing;
mod handshake;
mod health;
mod keys;
mod link;
mod listener;
mod news;
mod place;
pub mod quorum;
mod reading;
mod record;
mod reply;
mod request;
#[cfg(feature = "daemon")]
mod scratch;
mod scripts;
mod sentinel;
mod server;
mod shard;
mod step;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
mod tls;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use self::connector::Connector;
use self::fault::Fault;
use self::health::Health;
use self::keys::Keys;
use self::link::Link;
use self::listener::{Listener, Subscription};
use self::reading::Reader;
use self::reply::{Misread, Standing};
use self::step::Plan;
use super::draft::{self, Draft};
use super::engine::{Engine, Look, Part, Room, Survey, Terms};
use super::{AttemptRecord, Caller, EVENT_CAPACITY, ReplicaInfo, Scope, StoreError, StoreEvent};
use crate::scheduler::job::{JobName, check_name};
use crate::scheduler::lease::{Output, Replica, RunId};
use crate::store_url::StoreOptions;

/// How long a call that leases hang on may take. Callers with shorter leases give up sooner.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a call for people's reading may take.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// A store in a Redis or Valkey server.
pub struct RedisStore {
    place: String,
    keys: Keys,
    /// What leases that are held hang on: renewals, releases.
    keeping: Link,
    /// All else that replicas ask: claims, observations.
    asking: Link,
    reader: Reader,
    health: Arc<Health>,
    /// How many replicas have to have what is written before it counts.
    acknowledgements: u32,
    part: Part,
    connector: Arc<dyn Connector>,
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
        Self::open_with(url, namespace, &StoreOptions::default())
    }

    /// The same, with what the URL leaves unsaid.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`], also when one of the files can't be read.
    pub fn open_with(
        url: &str,
        namespace: &str,
        options: &StoreOptions,
    ) -> Result<Self, StoreError> {
        Self::open_part(url, namespace, options, Part::Jobs)
    }

    /// The store of a part of what is there.
    pub(super) fn open_part(
        url: &str,
        namespace: &str,
        options: &StoreOptions,
        part: Part,
    ) -> Result<Self, StoreError> {
        let connector = place::parse(url, namespace, &options.tls)?;
        Self::reached_by(connector, namespace, part, options.min_replicas_ack)
    }

    /// The store in whatever server `connector` leads to.
    fn reached_by(
        connector: Arc<dyn Connector>,
        namespace: &str,
        part: Part,
        acknowledgements: u32,
    ) -> Result<Self, StoreError> {
        let place = connector.place().to_owned();
        check_name(namespace).map_err(|error| StoreError::BadUrl {
            url: place.clone(),
            cause: format!("its namespace `{namespace}` is no name: {error}"),
        })?;
        let keys = Keys {
            spread: connector.spread(),
            ..Keys::of(namespace, part)
        };
        let link = |timeout| Link::new(Arc::clone(&connector), timeout);
        Ok(Self {
            keeping: link(CALL_TIMEOUT),
            asking: link(CALL_TIMEOUT),
            reader: Reader::new(link(READ_TIMEOUT), keys.clone(), place.clone()),
            health: Arc::new(Health::new(&place)),
            events: broadcast::Sender::new(EVENT_CAPACITY),
            listener: OnceLock::new(),
            connector,
            place,
            keys,
            acknowledgements,
            part,
        })
    }

    /// What a step goes by.
    fn link(&self, room: Room) -> &Link {
        match room {
            Room::Takes | Room::Tidies => &self.asking,
            Room::Frees => &self.keeping,
        }
    }

    /// How it stands among several servers.
    async fn standing(&self) -> Result<Standing, Fault> {
        let mut commands = redis::pipe();
        let fields = [keys::PROMISED, keys::BALLOT, keys::MEMBER];
        commands.cmd("HMGET").arg(&self.keys.jobs).arg(&fields);
        let answers = self.asking.send(commands).await?;
        let standing = answers
            .first()
            .ok_or(Misread::Form)
            .and_then(reply::standing);
        standing.map_err(|misread| Fault::misread(&self.place, &misread))
    }

    /// Listens for news from now on, where there is a runtime to do so.
    fn listen(&self) {
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        self.listener.get_or_init(|| {
            let subscription = Subscription {
                connector: Arc::clone(&self.connector),
                keys: self.keys.clone(),
                events: self.events.clone(),
                part: self.part,
            };
            subscription.listen()
        });
    }

    /// Asks for what every call will need, and writes what changes nothing: a server that
    /// refuses either is found now, and not by the first claim.
    async fn try_out(&self) -> Result<(), Fault> {
        self.check_access().await?;
        let mut commands = redis::pipe();
        commands.cmd("HGET").arg(&self.keys.jobs).arg(keys::LAYOUT);
        commands.cmd("HDEL").arg(&self.keys.replicas).arg("");
        commands.cmd("ZCARD").arg(&self.keys.agenda);
        let answers = self.keeping.send(commands).await?;
        match answers.first().and_then(reply::text) {
            None | Some(keys::CURRENT_LAYOUT) => Ok(()),
            Some(other) => Err(Fault::layout(&self.place, other)),
        }
    }

    /// Whether the user is allowed all that is needed.
    async fn check_access(&self) -> Result<(), Fault> {
        let also = match self.acknowledgements {
            0 => &[],
            _ => access::OF_ACKNOWLEDGEMENTS,
        };
        let trials = access::trials(&self.keys, also);
        let answers = self.keeping.try_out(trials).await?;
        let lacking = access::lacking(&self.keys, also, &answers);
        let user = self.connector.login().name();
        if !lacking.needed.is_empty() {
            let rules: Vec<&str> = lacking.needed.iter().map(String::as_str).collect();
            return Err(access::lacks(&self.place, user, &rules, Some(&self.keys)));
        }
        if !lacking.of_news.is_empty() {
            access::warn_of_news(&self.place, user, &lacking.of_news);
        }
        Ok(())
    }

    /// What came of a call. Where a permission may be what it lacked, which one is found out.
    async fn told<T>(&self, result: Result<T, Fault>) -> Result<T, StoreError> {
        match result {
            Ok(answer) => Ok(answer),
            Err(fault) if fault.denied => match self.check_access().await {
                Err(lacks) if !lacks.disconnect => Err(lacks.error),
                _ => Err(fault.error),
            },
            Err(fault) => Err(fault.error),
        }
    }
}

#[async_trait]
impl Engine for RedisStore {
    fn place(&self) -> String {
        self.place.clone()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.told(self.keeping.server().await).await?;
        self.told(self.try_out().await).await?;
        self.told(self.asking.server().await).await?;
        self.health.look(&self.asking).await;
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
            acknowledgements: self.acknowledgements,
            // A master that nobody follows any more writes, and has nothing acknowledged.
            may_have_twin: self.connector.follows_elections() && self.acknowledgements == 0,
        };
        let link = self.link(plan.terms.room);
        let result = link.converse(|talk| step::take(talk, plan, step)).await;
        self.told(result).await?
    }

    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        let request = request::observe(&self.keys, caller, info, scope);
        let reply = self.told(self.asking.run(request).await).await?;
        self.health.watch(&self.asking).await;
        reply::look(&reply).map_err(|misread| Fault::misread(&self.place, &misread).error)
    }

    async fn names(&self) -> Result<Vec<JobName>, StoreError> {
        self.told(self.reader.jobs().await).await
    }

    async fn keep_table(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        let hash = &self.keys.tables;
        commands.cmd("HSET").arg(hash).arg(digest).arg(text);
        let result = self.asking.send(commands).await;
        self.told(result).await.map(|_| ())
    }

    async fn table(&self, digest: &str) -> Result<Option<String>, StoreError> {
        self.told(self.reader.table(digest).await).await
    }

    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        let mut commands = redis::pipe();
        let id = replica.id.to_string();
        commands.cmd("HDEL").arg(&self.keys.replicas).arg(id);
        let result = self.asking.send(commands).await;
        self.told(result).await.map(|_| ())
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        self.told(self.reader.survey().await).await
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        self.told(self.reader.history(job, limit).await).await
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        self.told(self.reader.output(job, run_id).await).await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        let events = self.events.subscribe();
        self.listen();
        events
    }
}
