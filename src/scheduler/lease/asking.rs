//! What replicas and people ask of the ledger beside leases: to know a job, to take orders, and
//! to show what there is to do.

use std::time::Duration;

use uuid::Uuid;

use super::{
    Definition, Dependents, FencingToken, Force, Held, Lineage, Occurrence, Origin, Retention,
    RunId, Untold,
};
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::policy::Tags;
use crate::scheduler::time::Timestamp;

/// A job that is made known to the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enrolment {
    /// Which job.
    pub job: JobName,
    /// Its schedule, see [`crate::scheduler::schedule::Schedule::identity`]; empty from whoever has
    /// no say in that, and then `enabled` says nothing either.
    pub schedule: String,
    /// What falls due while it is not is skipped.
    pub enabled: bool,
    /// All that the table says of it, in short. Where the ledger has a newer one in force, the
    /// enrolment changes nothing; one that says nothing is as good as any.
    pub definition: Definition,
    /// The definition in force, of which the caller knows that no live replica has it any more:
    /// while it is still in force, an older one takes its place.
    pub over: Option<String>,
    /// Set where the ledger had another schedule, and it was looked at what that means.
    pub change: Option<ScheduleChange>,
    /// How much of its past is kept.
    pub retention: Retention,
    /// The ledger was told before, and may have lost it. Where it hasn't, this changes nothing.
    pub again: bool,
    /// What the replica has seen of it, for a ledger that lost data.
    pub seen: Seen,
}

/// What a replica has seen of a job in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The schedule's instants up to here were settled; none where that isn't known.
    pub settled_until: Option<Timestamp>,
    /// The newest pause. It is told once, when it is heard that data were lost: somebody may have
    /// ended it later.
    pub pause: Option<SeenPause>,
    /// Which definition was in force, and which were known.
    pub force: Option<Force>,
}

impl Enrolment {
    /// What a table says of a job.
    pub fn of(job: &Job) -> Self {
        Self {
            job: job.name.clone(),
            schedule: job.schedule.identity(),
            enabled: job.enabled,
            definition: job.definition.clone(),
            over: None,
            change: None,
            retention: job.retention,
            again: false,
            seen: Seen::default(),
        }
    }
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Since when.
    pub since: Timestamp,
    /// Who asked for it.
    pub by: String,
}

/// A pause as a replica saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenPause {
    /// Which.
    pub pause: Pause,
    /// It was seen to be over.
    pub over: bool,
}

/// A change from one schedule to another while nobody was there to run what was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleChange {
    /// The schedule that the ledger had.
    pub from: String,
    /// The instants that both schedules have, nobody claimed, and `catch_up` runs; oldest first.
    /// All else that was due by the former schedule is missed.
    pub run: Vec<CommonInstant>,
}

/// An unsettled instant that a job's former schedule has, and its new one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommonInstant {
    /// Which.
    pub at: Timestamp,
    /// Until when it may start.
    pub start_by: Timestamp,
    /// The former schedule has an instant between this and the one before it, or what is settled.
    pub missed_before: bool,
}

/// What the ledger holds of a job, or holds from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Occurrences up to here are settled: run, skipped, or from before the job was known.
    pub settled_until: Timestamp,
    /// The job was not in the ledger before.
    pub new: bool,
    /// The ledger has another schedule of it, and nothing was done: the enrolment is to be
    /// sent again with the [`ScheduleChange`].
    pub former_schedule: Option<String>,
    /// Another definition of it is in force, which is newer: nothing was changed, and nothing of
    /// the caller's is granted.
    pub outdated: Option<Definition>,
    /// Which definition is in force; none where none was told yet.
    pub force: Option<Force>,
    /// For how long the ledger remembers that a table has it, without being told again.
    pub fresh_for: Duration,
    /// What of it anybody may claim, also where it has waited for so long that no look shows it.
    pub openings: Vec<Opening>,
    /// Its pause, if it is paused.
    pub paused: Option<Pause>,
    /// The ledger had lost that pause, and has it again by this enrolment.
    pub pause_came_back: bool,
    /// Since when the ledger remembers everything, as in [`Observation::born`].
    pub born: Timestamp,
}

/// What a person asks for, of whichever replica.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// Of which job.
    pub job: JobName,
    /// What.
    pub what: OrderKind,
    /// Who asks, for the ledger.
    pub by: String,
    /// The request's identity: sent again with it, it is done once.
    pub id: RunId,
    /// How much of the job's past is kept.
    pub retention: Retention,
    /// The jobs that come after it.
    pub dependents: Dependents,
}

/// What a person can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderKind {
    /// An occurrence now, under the job's policies.
    Trigger,
    /// No more occurrences until [`OrderKind::Resume`], but for triggers.
    Pause,
    /// The end of a pause. What fell due in it stays skipped.
    Resume,
    /// The end of what runs, and of what waits to be tried again; where there is neither, of
    /// triggers that wait.
    Kill,
}

impl OrderKind {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            OrderKind::Trigger => "trigger",
            OrderKind::Pause => "pause",
            OrderKind::Resume => "resume",
            OrderKind::Kill => "kill",
        }
    }
}

/// What came of an [`Order`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderAnswer {
    /// The ledger doesn't know the job: no replica ever had it in its table.
    Unknown,
    /// The job is disabled in the table: nobody would run it.
    Disabled,
    /// Too many of its occurrences wait already.
    Full,
    /// It waits for a replica.
    Triggered {
        /// The instant of the occurrence.
        scheduled_at: Timestamp,
    },
    /// It is paused, now or by an earlier order.
    Paused {
        /// Since when.
        since: Timestamp,
        /// By whom.
        by: String,
    },
    /// It is no longer paused; none where it wasn't.
    Resumed {
        /// Since when it was.
        since: Option<Timestamp>,
    },
    /// Its attempts were told to end.
    Killed {
        /// Of which occurrence.
        scheduled_at: Timestamp,
        /// How many of them run.
        running: u32,
        /// How many that only waited for their turn were withdrawn; the occurrence is the first of
        /// them. None where one had been begun.
        withdrawn: u32,
    },
    /// Nothing of it runs, or waits to be tried again.
    Idle,
}

/// How much of the live leases an observation wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What needs somebody by now.
    Overdue,
    /// All: a replica that has just come looks once, so that its watch begins early.
    All,
}

/// What there is to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Leases that ran out (and live ones, for [`Scope::All`]).
    pub leases: Vec<ObservedLease>,
    /// What anybody may claim.
    pub openings: Vec<Opening>,
    /// News that nobody seems to tell.
    pub untold: Vec<Untold>,
    /// When there is something new to look at: the next live lease runs out, unless it is
    /// renewed, or something may be claimed.
    pub next_look: Option<Timestamp>,
    /// The replicas that were heard of lately, the caller with them.
    pub peers: Vec<Peer>,
    /// What is left of a grace window; zero when there is none.
    pub grace: Duration,
    /// The highest token that the ledger knows of.
    pub token: FencingToken,
    /// Since when the ledger remembers everything: it began then, or may have lost data.
    pub born: Timestamp,
    /// The tables that the ledger knows, in order.
    pub tables: Lineage,
    /// The digests of those of which it has what they say of each job.
    pub published: Vec<String>,
}

/// A lease as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// Whose.
    pub job: JobName,
    /// Its occurrence and what to watch of it.
    pub held: Held,
}

/// Something that anybody may claim as it is: it was handed over, its wait after a failure is
/// over, its turn has come, or a person asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Of which occurrence.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// Which shard of it.
    pub shard: u32,
    /// In how many it runs, where that is settled.
    pub shards: Option<u32>,
    /// The attempt that it follows was this replica's, and failed or was handed over.
    pub failed_on: Option<Uuid>,
    /// It, or what waits behind it, may not start any more: whoever claims it has that written
    /// down, be there room and tags for it or not.
    pub expired: bool,
}

/// A replica, as the others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Which one.
    pub id: Uuid,
    /// Its name, for people.
    pub name: String,
    /// What it has.
    pub tags: Tags,
    /// It takes no more work for now: it is draining, or full.
    pub declines: bool,
    /// It takes no more work for good.
    pub draining: bool,
    /// Its table; one that says nothing from whoever runs none.
    pub table: Definition,
    /// Changes with each sign of life.
    pub beat: u64,
    /// For how long it is taken for alive without another one.
    pub alive_for: Duration,
}
