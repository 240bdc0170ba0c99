//! Where leases and the ledger live: one trait, and one folder an engine.
//!
//! Every operation is one atomic step judged by the store's own clock, carries a batch, and
//! may be sent again with the same identity: the second sending finds the work done and gives
//! the same answer. What the rules are is written once, in `rules`. Engines (`engine`) keep what
//! comes of them, and see to it that a step is written all or nothing; one conformance suite
//! holds all of them to the same behaviour.
//!
//! ```text
//!  Store ─▶ engine ─▶ batch, rules over a draft ─▶ memory │ SQLite │ Redis: read, write
//! ```
//!
//! Must never: decide when something is due, or trust the caller's clock.

#![cfg_attr(
    not(feature = "redis"),
    allow(
        dead_code,
        reason = "some of what engines have in common, Redis alone takes"
    )
)]

mod batch;
mod draft;
mod engine;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod history;
mod leases;
mod limits;
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
mod rules;
#[cfg(feature = "daemon")]
mod scratch;
mod shown;
#[cfg(feature = "sqlite")]
pub mod sqlite;
mod stretch;
mod url;
mod withdrawal;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;
use uuid::Uuid;

pub use self::history::AttemptRecord;
pub use self::leases::LeaseStore;
#[cfg(feature = "daemon")]
pub use self::scratch::{Detour, PlainLock, Scratch};
pub use self::stretch::{COUNT_LIMIT, Known, RangeLine};
pub use self::url::{check_url, open, open_at, open_leases, open_with};
pub use self::withdrawal::Withdrawal;

use crate::scheduler::job::JobName;
pub use crate::scheduler::lease::{
    ABANDONED_AFTER, Answered, Caller, Enrolment, Observation, ObservedLease, Opening, Order,
    OrderAnswer, OrderKind, Pause, Registration, Scope,
};
use crate::scheduler::lease::{
    Cause, Claim, ClaimAnswer, Delivery, FencingToken, Force, JobDigests, Late, Lineage, Origin,
    Outcome, Output, PublishedTable, Release, ReleaseAnswer, Renewal, RenewalAnswer, Replica,
    RunId,
};
use crate::scheduler::policy::Tags;
use crate::scheduler::time::Timestamp;

/// Of how many attempts of a job the output is kept. The attempts themselves are kept up to
/// `history_limit`: a line each, where output may be kilobytes.
pub const OUTPUTS_KEPT: usize = 100;

/// How many overdue leases one observation shows; more of them show as these are settled.
pub const OVERDUE_LIMIT: usize = 128;

/// How many leases an observation of all of them shows: those that run out first.
pub const SCOPE_ALL_LIMIT: usize = 10_000;

/// How long a replica that was not heard of stays listed.
pub const REPLICA_RETENTION: Duration = Duration::from_secs(24 * 3600);

/// The capacity of the event channel. A receiver that lags learns that it lagged and looks
/// for itself, so nothing hangs on the figure.
const EVENT_CAPACITY: usize = 64;

/// What a replica tells of itself, and how often it is heard of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaInfo {
    /// Its software.
    pub version: String,
    /// Its host's name, for people.
    pub host: String,
    /// Its process id on that host.
    pub pid: u32,
    /// How far its wall clock is ahead of the store's, in milliseconds.
    pub skew_ms: i64,
    /// How long the store's last answer to it took, in milliseconds.
    #[serde(default)]
    pub round_trip_ms: u64,
    /// How many attempts it is running.
    pub running: u32,
    /// How many jobs its table has.
    pub jobs: u32,
    /// It takes no new work.
    pub draining: bool,
    /// What it has, for jobs that ask for it.
    #[serde(default)]
    pub tags: Tags,
    /// How many attempts it runs at once, at most.
    #[serde(default)]
    pub max_running: Option<u32>,
    /// It takes no more work for now, for whatever reason.
    #[serde(default)]
    pub declines: bool,
    /// A digest of its table: replicas with different ones run different tables. Empty from whoever
    /// runs none.
    #[serde(default)]
    pub digest: String,
    /// The `revision` of its table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// How many signs of life it has given.
    #[serde(default)]
    pub beat: u64,
    /// It was to take another table, which it could not read, and why: it goes on with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_refused: Option<String>,
    /// For how long it is taken for alive without being heard of again, in milliseconds.
    #[serde(default)]
    pub alive_ms: u64,
}

/// The state of everything, for `status`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// What is left of a grace window; zero when there is none.
    pub grace: Duration,
    /// When the ledger began, was taken up by another process of its server, or lost data: what
    /// was acknowledged before may be gone. None where nothing of that kind happened to it yet.
    pub born: Option<Timestamp>,
    /// What of its server's settings puts it at risk, as far as known.
    pub conditions: Vec<StoreCondition>,
    /// Every job that the ledger knows, by name.
    pub jobs: Vec<JobState>,
    /// Every replica that was heard of in the last day, by name.
    pub replicas: Vec<ReplicaState>,
    /// What the tables of replicas say of each job, by the tables' digests.
    pub tables: BTreeMap<String, JobDigests>,
    /// The tables that were published, in the order in which they were first.
    pub lineage: Lineage,
}

/// How the server of a store is set up, where that puts the ledger at risk.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreCondition {
    /// It deletes keys of ours when its memory runs short.
    #[error(
        "the server may delete leases and history when memory runs short (maxmemory-policy \
         {policy}): set maxmemory-policy to noeviction, or to one of volatile-*"
    )]
    Evicts {
        /// Its `maxmemory-policy`.
        policy: String,
    },
    /// It has its data in memory alone.
    #[error(
        "the server keeps nothing on disk: with a restart the ledger is lost; \
         set appendonly to yes to keep it"
    )]
    KeepsNothing,
}

impl StoreCondition {
    /// In a word, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            StoreCondition::Evicts { .. } => "evicts",
            StoreCondition::KeepsNothing => "keeps_nothing",
        }
    }
}

/// What the ledger holds of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobState {
    /// Which job.
    pub job: JobName,
    /// Occurrences up to here are settled.
    pub settled_until: Timestamp,
    /// Which definition of it is in force; none where no table has told of one.
    pub force: Option<Force>,
    /// The schedule in force, see [`crate::scheduler::schedule::Schedule::identity`]; empty
    /// where none was told yet.
    pub schedule: String,
    /// Its pause, if it is paused.
    pub paused: Option<Pause>,
    /// Since when it is disabled, if it is.
    pub disabled: Option<Timestamp>,
    /// Pauses that are over and are no line yet, as something that was due before them may still
    /// be claimed.
    pub suspensions: Vec<PastSuspension>,
    /// The newest attempt, of each shard of the newest occurrence that was granted; empty where
    /// the job never ran.
    pub attempts: Vec<LastAttempt>,
    /// What waits for its turn, in order.
    pub waiting: Vec<WaitingOccurrence>,
    /// What waits for the success of other jobs: the instant, and whose occurrences of it are
    /// over.
    pub joins: Vec<(Timestamp, Vec<JobName>)>,
    /// What never started since the newest attempts' occurrence, the newest first.
    pub never_started: Vec<NeverStarted>,
    /// The newest triggers, in order, whatever became of them.
    pub triggers: Vec<Timestamp>,
}

/// A time that is over, and of which nothing of the schedule is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastSuspension {
    /// What was due up to here is not concerned.
    pub since: Timestamp,
    /// The last instant that is.
    pub until: Timestamp,
    /// What its line will say.
    pub reason: String,
}

impl JobState {
    /// The attempt that says most of how the job stands: one that runs, or else one that is not
    /// over, or that did not succeed.
    pub fn last(&self) -> Option<&LastAttempt> {
        self.attempts.iter().min_by_key(|one| match one.standing {
            Standing::Running { .. } => 0,
            Standing::Again { .. } => 1,
            Standing::Idle => 2,
            Standing::Ended(Outcome::Succeeded) => 4,
            Standing::Ended(_) => 3,
        })
    }
}

/// An occurrence that never started, or a stretch of time that may have some: what fell due in it
/// was skipped, or missed. What a pause, `enabled = false` or a `kill` kept from starting is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeverStarted {
    /// Its instant, or the end of the stretch.
    pub scheduled_at: Timestamp,
    /// Skipped or missed.
    pub outcome: Outcome,
    /// By which policy.
    pub cause: Cause,
    /// After which instant the stretch begins, and the identity of the schedule that was in force
    /// in it; none for an occurrence.
    pub within: Option<(Timestamp, String)>,
}

/// An occurrence that waits for its turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingOccurrence {
    /// Its instant.
    pub scheduled_at: Timestamp,
    /// What brought it about.
    pub origin: Origin,
    /// Who asked for it.
    pub by: Option<String>,
    /// Since when it waits.
    pub since: Timestamp,
    /// Until when it may start.
    pub start_by: Option<Timestamp>,
}

/// The newest attempt of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its occurrence.
    pub scheduled_at: Timestamp,
    /// What brought that about.
    pub origin: Origin,
    /// Who asked for it.
    pub by: Option<String>,
    /// Its number; 0 where the shard wasn't started yet.
    pub attempt: u32,
    /// Its id.
    pub run_id: RunId,
    /// Its token.
    pub token: FencingToken,
    /// The name of the replica that ran it.
    pub replica: String,
    /// Since when it is as it is: its start, or its end.
    pub since: Timestamp,
    /// Why it was granted late, where it was and that is known.
    pub late: Option<Late>,
    /// How it stands.
    pub standing: Standing,
}

/// Whether an attempt runs, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has a lease until the deadline; one in the past means that its holder is gone.
    Running {
        /// By the store's clock.
        deadline: Timestamp,
    },
    /// It ended, and another attempt may begin at that instant.
    Again {
        /// How it ended.
        outcome: Outcome,
        /// The earliest instant of the next.
        at: Timestamp,
    },
    /// It is free to be claimed for the first time.
    Idle,
    /// It ended.
    Ended(Outcome),
}

/// A replica as the store last heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// Which one.
    pub replica: Replica,
    /// What it said of itself.
    pub info: ReplicaInfo,
    /// When.
    pub seen_at: Timestamp,
}

/// News that shorten a wait. They may be lost: nothing depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreEvent {
    /// Something may be claimed: it was handed over, its turn came, or somebody asked for it.
    Opening,
    /// Somebody's attempt is to end: holders learn by renewing whether it is theirs.
    StopAsked,
    /// A job was paused, or its pause ended.
    PauseChanged,
    /// A hold that waits for leases may have them now.
    Turn(Uuid),
    /// News are heard from now on, for the first time or again: what happened before was not.
    Reconnected,
}

/// Why the store could not answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// It can't be reached, or did not answer in time. Sending again may help.
    #[error("the store at {place} can't be reached: {cause}")]
    Unreachable {
        /// Where, without secrets.
        place: String,
        /// What happened.
        cause: String,
    },
    /// It was reached and refuses. Sending again doesn't help until somebody mends it.
    #[error("the store at {place} refuses: {cause}; {cure}")]
    Refused {
        /// Where, without secrets.
        place: String,
        /// What it said.
        cause: String,
        /// What to do about it.
        cure: String,
    },
    /// Another version of soloist keeps its ledger there. Nothing of it is read or written;
    /// sending again helps once the ledger is this version's.
    #[error("the store at {place} is another version's: {cause}; {cure}")]
    OtherVersion {
        /// Where, without secrets.
        place: String,
        /// What was found.
        cause: String,
        /// What to do about it.
        cure: String,
    },
    /// It holds something that this version can't read.
    #[error("the store at {place} holds what can't be read: {cause}; {cure}")]
    Unreadable {
        /// Where, without secrets.
        place: String,
        /// What was found.
        cause: String,
        /// What to do about it.
        cure: String,
    },
    /// The URL names no store.
    #[error("`{url}` is no store: {cause}")]
    BadUrl {
        /// The URL, without secrets.
        url: String,
        /// What is wrong with it.
        cause: String,
    },
}

/// Where leases and the ledger live. See the module for what all engines hold to.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Where it is, for people; without secrets.
    fn place(&self) -> String;

    /// Makes sure that the store can be used: connects, creates what has to be there.
    async fn ready(&self) -> Result<(), StoreError>;

    /// Makes jobs known to the ledger, with the schedules that are in force from now on. A job
    /// that was not known has everything up to now settled: a new job never runs its past.
    /// Answers in the order of `jobs`.
    async fn register(
        &self,
        caller: &Caller,
        jobs: &[Enrolment],
    ) -> Result<Answered<Vec<Registration>>, StoreError>;

    /// Claims occurrences, at most [`crate::scheduler::lease::BATCH_LIMIT`], of different jobs.
    /// Answers in the order of `claims`.
    async fn claim(
        &self,
        caller: &Caller,
        claims: &[Claim],
    ) -> Result<Answered<Vec<ClaimAnswer>>, StoreError>;

    /// Renews leases. Answers in the order of `renewals`.
    async fn renew(
        &self,
        caller: &Caller,
        renewals: &[Renewal],
    ) -> Result<Answered<Vec<RenewalAnswer>>, StoreError>;

    /// Gives leases back and writes down how the attempts ended. Answers in the order of
    /// `releases`.
    async fn release(
        &self,
        caller: &Caller,
        releases: &[Release],
    ) -> Result<Answered<Vec<ReleaseAnswer>>, StoreError>;

    /// Does what people ask for, whatever replica it concerns. Answers in the order of `orders`.
    async fn order(
        &self,
        caller: &Caller,
        orders: &[Order],
    ) -> Result<Answered<Vec<OrderAnswer>>, StoreError>;

    /// Says how it goes with the telling of news, of different jobs: answers for each in their
    /// order whether they are still to be told by the caller.
    async fn deliver(
        &self,
        caller: &Caller,
        deliveries: &[Delivery],
    ) -> Result<Answered<Vec<bool>>, StoreError>;

    /// Says that the caller lives, and sees what there is to take over.
    async fn observe(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Answered<Observation>, StoreError>;

    /// Shows others what the caller's table says of each job. It stays as long as a replica is
    /// listed that has this table.
    async fn publish(
        &self,
        caller: &Caller,
        table: &PublishedTable,
    ) -> Result<Answered<()>, StoreError>;

    /// What a table says of each job, by its digest; none where nobody has published it.
    async fn table(&self, digest: &str) -> Result<Option<JobDigests>, StoreError>;

    /// Takes the caller off the list of replicas, and tells the others.
    async fn depart(&self, caller: &Caller) -> Result<(), StoreError>;

    /// Forgets jobs that no table has had for a month and of which nothing runs, waits or is
    /// paused: answers which. For replicas that have enrolled theirs for long enough that a mark
    /// of them is recent. Longer than other calls, and rare.
    async fn sweep(&self, caller: &Caller) -> Result<Answered<Vec<JobName>>, StoreError>;

    /// The state of everything.
    async fn snapshot(&self) -> Result<Answered<Snapshot>, StoreError>;

    /// Ended attempts, of one job or of all, newest first, at most `limit`.
    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError>;

    /// What an ended attempt printed; none when it isn't kept (any more).
    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError>;

    /// Subscribes to news from other replicas.
    fn events(&self) -> broadcast::Receiver<StoreEvent>;
}
