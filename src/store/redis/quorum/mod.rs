//! The store in a majority of independent servers: what `redis+quorum://` opens.
//!
//! Each server holds the whole ledger. A step is decided once, by whoever asks for it, on what a
//! majority holds, and counts when a majority has taken it:
//!
//! ```text
//!  prepare: promise my ballot, show ─▶ all ─▶ a majority ─▶ what has the newest step
//!                                                              │ decide, as for one server
//!  accept: take this step after that one, as promised ─▶ all ─▶ a majority: it counts
//!                   │ outbid: again, with a higher ballot          │
//!                   └──────────────────────────────────            └─▶ the others adopt it
//! ```
//!
//! This is Paxos over a state (Lamport, "Paxos Made Simple", 2001; Rystsov, "CASPaxos", 2018): a
//! ballot that a majority has promised shuts out all older ones, and who has it goes on from the
//! newest step that anybody of a majority has taken. As no step can be taken after another one
//! than that, it makes the ledger one line of steps, whoever dies on the way. What the critics of
//! Redlock ask for (Kleppmann, 2016) follows: tokens rise as the ledger is one, a server that was
//! started again counts only when it has caught up with the others (`forming`), time is the
//! median of the servers' clocks, and who holds a lease counts from before it asked.
//!
//! Must never: answer what a majority does not hold, or let a server count that may have
//! forgotten.

mod adopting;
mod forming;
mod gathering;
mod news;
mod pace;
mod presence;
mod reading;
mod round;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{Mutex, broadcast, mpsc};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use self::forming::majority;
use self::gathering::gather;
use self::pace::Pace;
use self::presence::Presence;
use super::RedisStore;
use super::chance;

use super::connector::{Login, Nodes};
use super::fault::Fault;
use super::request::Peace;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Output, Replica, RunId};
use crate::store::draft::{self, Draft};
use crate::store::engine::{Engine, Look, Part, Room, Survey, Terms};
use crate::store::{
    AttemptRecord, Caller, EVENT_CAPACITY, ReplicaInfo, Scope, StoreError, StoreEvent,
};
use crate::store_url::{SeveralUrl, StoreOptions, redact};

/// How long a step may take, with being begun anew where others outbid it.
const STEP_TIMEOUT: Duration = Duration::from_millis(2500);

/// A store in several Redis or Valkey servers that know nothing of each other.
pub struct QuorumStore {
    shared: Arc<Shared>,
    events: broadcast::Sender<StoreEvent>,
    news: OnceLock<AbortHandle>,
    to_mend: mpsc::Sender<usize>,
}

struct Shared {
    place: String,
    members: Vec<Arc<RedisStore>>,
    /// In ballots.
    proposer: Uuid,
    /// The highest number of a ballot that was seen.
    number: AtomicU64,
    /// The server that is asked alone: the first of those that answered the last time.
    first: AtomicUsize,
    pace: Pace,
    presence: Presence,
    /// Steps of one process wait for each other: begun together, each would outbid the others.
    turn: Mutex<()>,
    /// Those that no lease hangs on also wait here, so that a renewal waits for one of them at most.
    in_line: Mutex<()>,
}

/// Why a round came to nothing.
enum Ended {
    /// Another one got ahead of it, or may have.
    Outbid,
    Failed(StoreError),
}

impl QuorumStore {
    /// The store in the servers that `url` names, under keys of `namespace`. Nothing is connected
    /// yet.
    ///
    /// # Errors
    /// [`StoreError::BadUrl`] when the URL, the namespace, or a file for TLS can't be one.
    pub fn open(url: &str, namespace: &str, options: &StoreOptions) -> Result<Self, StoreError> {
        Self::open_part(url, namespace, options, Part::Jobs)
    }

    /// The store of a part of what is there.
    pub(in crate::store) fn open_part(
        url: &str,
        namespace: &str,
        options: &StoreOptions,
        part: Part,
    ) -> Result<Self, StoreError> {
        let members = Self::servers(url, namespace, options, part)?;
        let place = SeveralUrl::parse(url).map_or_else(|_| redact(url), |url| url.to_string());
        Ok(Self::new(place, members))
    }

    /// The servers that `url` names, each as a store of its own. Nothing is connected yet.
    pub(in crate::store) fn servers(
        url: &str,
        namespace: &str,
        options: &StoreOptions,
        part: Part,
    ) -> Result<Vec<RedisStore>, StoreError> {
        let bad = |cause: String| StoreError::BadUrl {
            url: redact(url),
            cause,
        };
        let parsed = SeveralUrl::parse(url);
        let parsed = parsed.map_err(|error| bad(format!("{error}; {}", error.hint())))?;
        let nodes = Nodes {
            place: parsed.to_string(),
            tls: parsed.tls.then(|| options.tls.clone()),
            login: Login {
                user: parsed.user,
                password: parsed.password,
                db: parsed.db,
            },
        };
        let member = |(host, port): &(String, u16)| {
            let server = nodes.server(host, *port).map_err(|fault| fault.error)?;
            RedisStore::reached_by(Arc::new(server), namespace, part, 0)
        };
        parsed.hosts.iter().map(member).collect()
    }

    /// The store in these servers.
    fn new(place: String, members: Vec<RedisStore>) -> Self {
        let all = members.len();
        let shared = Arc::new(Shared {
            place,
            members: members.into_iter().map(Arc::new).collect(),
            proposer: chance::uuid(),
            number: AtomicU64::new(0),
            first: AtomicUsize::new(0),
            pace: Pace::default(),
            presence: Presence::of(all),
            turn: Mutex::new(()),
            in_line: Mutex::new(()),
        });
        let (to_mend, mending) = mpsc::channel(16);
        if tokio::runtime::Handle::try_current().is_ok() {
            tokio::spawn(adopting::mend(Arc::downgrade(&shared), mending));
        }
        Self {
            shared,
            events: broadcast::Sender::new(EVENT_CAPACITY),
            news: OnceLock::new(),
            to_mend,
        }
    }

    /// Has those who are behind catch up.
    fn mend(&self, members: impl IntoIterator<Item = usize>) {
        for member in members {
            // One that is waiting already need not wait twice.
            let _ = self.to_mend.try_send(member);
        }
    }

    async fn take<R, S>(&self, terms: &Terms, step: &mut S) -> Result<R, Ended>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send + 'static,
    {
        let shared = &self.shared;
        // Most who claim are told that somebody was faster, for which nobody has to promise
        // anything. Who holds a lease has something to write.
        if terms.room != Room::Frees {
            let round = shared.look_in(terms).await?;
            let (answer, changes) = shared.decide(&round, step)?;
            if changes.is_empty() && round.is_settled(shared.members.len()) {
                self.mend(round.behind());
                return Ok(answer);
            }
        }
        let peace = Peace::ForAStep(shared.pace.peace());
        let round = shared.prepare(terms, peace).await?;
        let (answer, changes) = shared.decide(&round, step)?;
        shared.accept(terms, &round, changes).await?;
        self.mend(round.behind());
        Ok(answer)
    }
}

#[async_trait]
impl Engine for QuorumStore {
    fn place(&self) -> String {
        self.shared.place.clone()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let members = self.shared.members.iter().map(|member| {
            let member = Arc::clone(member);
            async move { Ok(Engine::ready(&*member).await) }
        });
        let all = self.shared.members.len();
        let are_well = |answers: &[Result<(), StoreError>]| {
            let well = answers.iter().filter(|answer| answer.is_ok()).count();
            well >= majority(all)
        };
        let (answers, _) = gather(members, are_well).await;
        let well = answers.iter().filter(|answer| answer.is_ok()).count();
        let error = answers.into_iter().find_map(Result::err);
        match error {
            Some(error) if well < majority(all) => Err(error),
            Some(error) => {
                let store = &self.shared.place;
                tracing::warn!(store, %error, "{well} of {all} servers answer, which is enough");
                Ok(())
            }
            None => Ok(()),
        }
    }

    async fn transact<R, S>(&self, terms: Terms, mut step: S) -> Result<R, StoreError>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send + 'static,
    {
        let _in_line = match terms.room {
            Room::Frees => None,
            Room::Takes | Room::Tidies => Some(self.shared.in_line.lock().await),
        };
        let _turn = self.shared.turn.lock().await;
        let mut back_off = self.shared.pace.back_off();
        let taken = async {
            loop {
                match self.take(&terms, &mut step).await {
                    Ok(answer) => return Ok(answer),
                    Err(Ended::Failed(error)) => return Err(error),
                    Err(Ended::Outbid) => tokio::time::sleep(back_off.pause()).await,
                }
            }
        };
        let late = |_| {
            let cause = format!("others kept getting ahead for {STEP_TIMEOUT:?}");
            Err(Fault::unreachable(&self.shared.place, cause).error)
        };
        timeout(STEP_TIMEOUT, taken).await.unwrap_or_else(late)
    }

    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        self.shared.look(caller, info, scope).await
    }

    async fn keep_table(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        self.shared.keep_table(digest, text).await
    }

    async fn table(&self, digest: &str) -> Result<Option<String>, StoreError> {
        self.shared.table(digest).await
    }

    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        self.shared.strike_off(replica).await
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        self.shared.survey().await
    }

    async fn names(&self) -> Result<Vec<JobName>, StoreError> {
        self.shared.names().await
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        self.shared.history(job, limit).await
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        self.shared.output(job, run_id).await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        let events = self.events.subscribe();
        if tokio::runtime::Handle::try_current().is_ok() {
            self.news.get_or_init(|| {
                let members = self.shared.members.iter();
                let heard = members.map(|member| Engine::events(&**member)).collect();
                tokio::spawn(news::forward(heard, self.events.clone())).abort_handle()
            });
        }
        events
    }
}

impl Drop for QuorumStore {
    fn drop(&mut self) {
        if let Some(news) = self.news.get() {
            news.abort();
        }
    }
}
