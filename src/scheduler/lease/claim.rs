//! Claims: what a replica asks for when an occurrence is due, and what it hears.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Cause, Definition, FencingToken, Late, Occurrence, RunId, Telling};
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::policy::Concurrency;
use crate::scheduler::time::Timestamp;

/// What brought an occurrence about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The schedule: claiming it consumes it and all older ones.
    #[default]
    Schedule,
    /// `soloist trigger`: an occurrence of its own that consumes none of the schedule's.
    Trigger,
    /// The success of the jobs that this one comes after.
    After,
    /// `soloist run-once`: here and now, and nobody else's to run.
    RunOnce,
}

impl Origin {
    /// It is the schedule's.
    pub const fn is_schedule(&self) -> bool {
        matches!(self, Origin::Schedule)
    }
}

/// What a replica saw of a lease that looked dead: the store takes it over only while these
/// two are still what the record says (compare and take over).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sighting {
    /// The token of the lease.
    pub token: FencingToken,
    /// Its deadline, which rises at every renewal.
    pub deadline: Timestamp,
}

/// A request to run one occurrence, or one shard of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// What is to be run.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// Which shard of it, from 0.
    pub shard: u32,
    /// In how many shards it runs.
    pub shards: u32,
    /// The attempt's id if it is granted, and the identity of this request.
    pub run_id: RunId,
    /// The digest of what the caller's table says of the job: where another definition is in force,
    /// nothing is granted, and nothing changes. Empty from whoever has no say in what runs.
    pub definition: String,
    /// What becomes of the occurrence if this attempt's holder vanishes.
    pub on_crash: OnCrash,
    /// How many attempts the occurrence may have in all.
    pub max_attempts: u32,
    /// What becomes of the occurrence if the job is busy.
    pub concurrency: Concurrency,
    /// The occurrence is consumed only until this instant; claimed later, it is missed. Not after
    /// `start_by`.
    pub claim_by: Timestamp,
    /// The first attempt isn't granted after this instant.
    pub start_by: Timestamp,
    /// How long the grant lasts unless it is renewed.
    pub ttl: Duration,
    /// Set when the claim is to take over a lease that was watched and found dead.
    pub watched: Option<Sighting>,
    /// The newest of the job's instants before this one that are not in the backlog, where this
    /// replica can't be sure that they were claimed: whatever of them is unsettled is missed.
    pub missed_until: Option<Timestamp>,
    /// The instant before it that this replica knows to be settled, where `missed_until` names
    /// none: if the ledger knows nothing of that, it has lost something.
    pub follows: Option<Timestamp>,
    /// Older instants that are to run first, in order, where they are unsettled.
    pub backlog: Vec<Timestamp>,
    /// Who claims may not run it, for want of tags or as it is disabled there: the claim only
    /// writes down that nobody did, or closes what may not run again.
    pub unplaced: bool,
    /// Who claims has no room for another attempt: the claim is granted nothing, and only what
    /// needs no room is decided.
    pub no_room: bool,
    /// What is passed over was held back for want of room.
    pub no_room_before: bool,
    /// What held the claim up on its replica, to be written down if it is granted late.
    pub late: Option<Late>,
    /// How much of the job's past is kept.
    pub retention: Retention,
    /// The jobs that come after this one.
    pub dependents: Dependents,
    /// What people want to be told of the job; none where they want to be told nothing.
    pub telling: Option<Telling>,
}

impl Claim {
    /// `claim_by` of a claim that starts nothing and consumes nothing: a newer occurrence is
    /// claimed, and this one only asks whether it was granted before.
    pub const ONLY_ASKS: Timestamp = Timestamp::from_millis(i64::MIN);

    /// A claim to an occurrence of the schedule, under the contract's defaults, that may start
    /// for a minute.
    pub fn new(occurrence: Occurrence, run_id: RunId) -> Self {
        let minute = Duration::from_secs(60);
        let start_by = occurrence.scheduled_at + minute;
        Self {
            occurrence,
            origin: Origin::Schedule,
            shard: 0,
            shards: 1,
            run_id,
            definition: String::new(),
            on_crash: OnCrash::default(),
            max_attempts: 10,
            concurrency: Concurrency::default(),
            claim_by: start_by,
            start_by,
            ttl: Duration::from_secs(15),
            watched: None,
            missed_until: None,
            follows: None,
            backlog: Vec::new(),
            unplaced: false,
            no_room: false,
            no_room_before: false,
            late: None,
            retention: Retention {
                limit: 1000,
                age: minute * 60 * 24 * 30,
            },
            dependents: Dependents::default(),
            telling: None,
        }
    }
}

/// The jobs that come after a job.
pub type Dependents = Arc<[Dependent]>;

/// A job that comes after others.
#[derive(Clone, Debug, PartialEq)]
pub struct Dependent {
    /// Which job.
    pub job: JobName,
    /// All the jobs that it comes after.
    pub after: Vec<JobName>,
    /// A disabled one is skipped.
    pub enabled: bool,
    /// How late after the last success it may start.
    pub starting_deadline: Duration,
    /// How much of its past is kept.
    pub retention: Retention,
    /// The jobs that come after it in turn: where it is skipped, so are they.
    pub dependents: Dependents,
}

/// How much of a job's past the ledger keeps; what is over either limit goes at the next
/// line that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// How many lines.
    pub limit: u32,
    /// How old they get, counted from their end.
    pub age: Duration,
}

impl Retention {
    /// As much as any table may ask for. Whoever doesn't know what the job's table says drops
    /// nothing by it; the next line that a replica writes keeps what the table says.
    pub const LONGEST: Self = Self {
        limit: 1_000_000,
        age: Duration::from_secs(10 * 365 * 86_400),
    };
}

/// What the store says to a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The occurrence is the caller's. Said again to the same request sent again.
    Granted(Grant),
    /// A lease of this very occurrence is there and was not proven dead.
    Held(Held),
    /// Another occurrence of the job is unfinished: this one is recorded as skipped.
    Overlap(Held),
    /// It is its job's turn later: it waits behind a running occurrence, or behind others that
    /// wait. Whoever looks is shown it when its turn comes.
    Waiting,
    /// It could be had, by a replica that has room for it.
    NoRoom,
    /// It never started, by a policy; recorded as skipped.
    Skipped(Cause),
    /// The job is paused, or disabled: nothing of its schedule is consumed meanwhile, but for
    /// what was due before.
    Suspended {
        /// Since when.
        since: Timestamp,
    },
    /// The occurrence was finished, skipped or missed before.
    Finished,
    /// Not due yet by the store's clock.
    Early {
        /// How long it still takes.
        wait: Duration,
    },
    /// It could not start in time any more; recorded as missed.
    TooLate,
    /// Its holder vanished and it may not run again; recorded as lost.
    Closed,
    /// The store lost data or its clock stepped: nothing is granted until holders have had
    /// the time to re-assert their leases.
    Grace {
        /// How long it still takes.
        wait: Duration,
    },
    /// The request arrived after its own deadline and did nothing.
    RequestExpired,
    /// Another definition of the job is in force than the caller's; nothing was changed.
    Outdated {
        /// Which.
        in_force: Definition,
    },
}

/// The right to run one occurrence until a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Rises at every grant.
    pub token: FencingToken,
    /// Counted from 1 over all replicas.
    pub attempt: u32,
    /// How many of the attempts before failed.
    pub failures: u32,
    /// In how many shards the occurrence runs: its first claim settled that.
    pub shards: u32,
    /// The deadline by the store's clock.
    pub deadline: Timestamp,
    /// What is left until the deadline, as the store said it. Zero: it is too late.
    pub remaining: Duration,
    /// The same claim came before and was granted then: what is left was measured by a clock that
    /// may have been set since.
    pub replayed: bool,
}

/// A lease in somebody else's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which occurrence it is for.
    pub scheduled_at: Timestamp,
    /// What brought that about.
    pub origin: Origin,
    /// Which shard of it.
    pub shard: u32,
    /// What to watch.
    pub sighting: Sighting,
    /// How long its grants last.
    pub ttl: Duration,
}
