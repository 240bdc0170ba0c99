//! The words of the lease protocol: what a replica asks of the store and what it hears back.
//!
//! A *claim* asks to run one occurrence; a *grant* gives it to one replica until a deadline,
//! under a fencing token. The grant is renewed while the job runs and released with the
//! attempt's outcome. The record of the occurrence outlives the release: that, and not the
//! lease, is what makes a second start of the same occurrence impossible.
//!
//! ```text
//!             claim                    release (outcome)
//!   due ───────────────▶ running ─────────────────────────▶ succeeded | failed |
//!    │                    │   ▲ ╲ release (hand over)        timed out | cancelled
//!    │ overlap, too late  │   │  ╲
//!    ▼                    │   │   ▶ handed over
//!   skipped, missed       │   └───────── claim: attempt + 1
//!                         │ deadline passed, watched by another
//!                         └──▶ lost, and running again as attempt + 1
//!                              (`on_crash = "skip"`, or no attempts left: lost for good)
//! ```
//!
//! Must never: hold a decision. Deciding is the store's side (`store::rules`) and the
//! replica's side (`scheduler::Scheduler`).

mod usage;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::usage::{MeasuredOf, PeakMemory, Usage};

use super::job::{JobName, OnCrash};
use super::time::Timestamp;

/// The most items one call to the store carries. Larger work is cut into several calls, so
/// that no call keeps a single-threaded store busy for more than about a millisecond.
pub const BATCH_LIMIT: usize = 128;

/// A lease that ran out longer ago than this is not shown to those who look for leases to take
/// over: most likely its job was removed from every table. Who claims a later occurrence of the
/// job is told of it all the same.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// A number that rises at every grant of a job, for ever, and stays below 2^53, so that it
/// survives JSON and JavaScript. It starts at the store's time in microseconds.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The largest token: 2^53 - 1, reached in the year 2255.
    pub const MAX: FencingToken = FencingToken((1 << 53) - 1);

    /// From its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// The unique id of one attempt. It is drawn before the claim is sent and is the claim's
/// identity too: a claim that is sent again with it gets the same answer again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(Uuid);

impl RunId {
    /// Takes an id that was drawn elsewhere; it must be unique.
    pub const fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Reads it back from its text.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text).ok().map(Self)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Who a replica is: an identity that is new at each start, and a name for people. Only the
/// identity decides; two replicas of one name are two replicas.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replica {
    /// Random, new at each start: host names and process ids come back, this doesn't.
    pub id: Uuid,
    /// What logs and `status` show.
    pub name: String,
}

impl fmt::Display for Replica {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

/// One due instant of one job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Occurrence {
    /// Which job.
    pub job: JobName,
    /// When it was due.
    pub scheduled_at: Timestamp,
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.job, self.scheduled_at)
    }
}

/// What brought an occurrence about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Origin {
    /// The schedule: claiming it consumes it and all older ones.
    #[default]
    Schedule,
    /// A person: an occurrence of its own that consumes none of the schedule's.
    Manual,
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

/// A request to run one occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is to be run.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// The attempt's id if it is granted, and the identity of this request.
    pub run_id: RunId,
    /// What becomes of the occurrence if this attempt's holder vanishes.
    pub on_crash: OnCrash,
    /// How many attempts the occurrence may have in all.
    pub max_attempts: u32,
    /// The first attempt isn't granted after this instant.
    pub start_by: Timestamp,
    /// How long the grant lasts unless it is renewed.
    pub ttl: Duration,
    /// Set when the claim is to take over a lease that was watched and found dead.
    pub watched: Option<Sighting>,
    /// How much of the job's past is kept.
    pub retention: Retention,
}

impl Claim {
    /// `start_by` of a claim that starts nothing: a newer occurrence is claimed, and this one
    /// only asks what became of it.
    pub const ONLY_ASKS: Timestamp = Timestamp::from_millis(i64::MIN);
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

/// What the store says to a [`Claim`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimAnswer {
    /// The occurrence is the caller's. Said again to the same request sent again.
    Granted(Grant),
    /// A lease of this very occurrence is there and was not proven dead.
    Held(Held),
    /// Another occurrence of the job is unfinished: this one is recorded as skipped.
    Overlap(Held),
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
}

/// The right to run one occurrence until a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Rises at every grant.
    pub token: FencingToken,
    /// Counted from 1 over all replicas.
    pub attempt: u32,
    /// The deadline by the store's clock.
    pub deadline: Timestamp,
    /// What is left until the deadline, as the store said it. Zero: it is too late.
    pub remaining: Duration,
}

/// A lease in somebody else's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which occurrence it is for.
    pub scheduled_at: Timestamp,
    /// What to watch.
    pub sighting: Sighting,
    /// How long its grants last.
    pub ttl: Duration,
}

/// A request to keep a lease for another TTL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// Which occurrence.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// Which attempt; must match.
    pub run_id: RunId,
    /// Its token; must match.
    pub token: FencingToken,
    /// Its number, to write the record anew if the store lost it.
    pub attempt: u32,
    /// What becomes of it if the holder vanishes; likewise.
    pub on_crash: OnCrash,
    /// How long it is to last from now.
    pub ttl: Duration,
    /// The last deadline heard of: the new one is later even on a clock that stands still.
    pub last_deadline: Timestamp,
}

/// What the store says to a [`Renewal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalAnswer {
    /// It lasts until the deadline.
    Renewed {
        /// The new deadline by the store's clock.
        deadline: Timestamp,
        /// What is left until then.
        remaining: Duration,
    },
    /// It is somebody else's, or closed: the attempt has to end now.
    Lost,
}

/// How an occurrence or an attempt of it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and ended with a success code.
    Succeeded,
    /// It ran and ended otherwise, or could not be started.
    Failed,
    /// It was ended for running longer than its `timeout`.
    TimedOut,
    /// Its holder vanished or could not keep the lease.
    Lost,
    /// It was ended on request and won't run again.
    Cancelled,
    /// It was ended by a drain and another replica is to run it.
    HandedOver,
    /// It never started, by a policy.
    Skipped,
    /// It never started, for want of a replica or a store.
    Missed,
}

impl Outcome {
    /// As the contract and the history spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::TimedOut => "timed_out",
            Outcome::Lost => "lost",
            Outcome::Cancelled => "cancelled",
            Outcome::HandedOver => "handed_over",
            Outcome::Skipped => "skipped",
            Outcome::Missed => "missed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A request to give a lease back, with how the attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Which occurrence.
    pub occurrence: Occurrence,
    /// What brought it about.
    pub origin: Origin,
    /// Which attempt; must match.
    pub run_id: RunId,
    /// Its token; must match.
    pub token: FencingToken,
    /// Its number.
    pub attempt: u32,
    /// What becomes of the occurrence if it is lost.
    pub on_crash: OnCrash,
    /// How it ended. [`Outcome::HandedOver`] leaves the occurrence open for the next attempt.
    pub outcome: Outcome,
    /// What is known of the end.
    pub detail: AttemptDetail,
    /// What the attempt printed.
    pub output: Output,
    /// How much of the job's past is kept.
    pub retention: Retention,
}

/// What the store says to a [`Release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseAnswer {
    /// Done, now or by an earlier sending of the same request.
    Released,
    /// The lease was somebody else's by then; the occurrence's fate is theirs to tell.
    Superseded,
}

/// What is known of how an attempt ended, beyond its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptDetail {
    /// What exit(3) was called with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    /// In words, where the code doesn't say it all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// What it used; none where nothing could be measured, or nothing ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
}

impl AttemptDetail {
    /// A detail of words alone.
    pub fn reason(text: impl Into<String>) -> Self {
        Self {
            reason: Some(text.into()),
            ..Self::default()
        }
    }
}

/// What an attempt printed: of each stream the first and last part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

/// The first and last part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its last bytes, those of `head` not repeated.
    pub tail: Vec<u8>,
    /// How many bytes came in all.
    pub total: u64,
}

impl Captured {
    /// How many bytes were not kept.
    pub fn cut(&self) -> u64 {
        self.total
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// Who asks, and under which conditions.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The replica.
    pub replica: Replica,
    /// How long grants are held back after the store lost data or its clock stepped back: at
    /// least the longest TTL of any lease plus the margins.
    pub quarantine: Duration,
    /// The highest token that the caller has seen: grants are above it even where the store
    /// forgot them.
    pub token_floor: FencingToken,
    /// By the store's clock: a claim that arrives later does nothing. It keeps a claim that
    /// was stuck in a frozen server from coming alive when its sender has long given up.
    pub send_by: Option<Timestamp>,
}

/// An answer, stamped with the store's time at which it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The store's clock when it answered.
    pub now: Timestamp,
    /// The answer.
    pub answer: T,
}

/// What the ledger holds of a job, or holds from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// Occurrences up to here are settled: run, skipped, or from before the job was known.
    pub settled_until: Timestamp,
    /// The job was not in the ledger before.
    pub new: bool,
}

/// How much of the live leases an observation wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those that ran out or were handed over.
    Overdue,
    /// All: a replica that has just come looks once, so that its watch begins early.
    All,
}

/// What there is to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Leases that ran out or were handed over (and live ones, for [`Scope::All`]).
    pub leases: Vec<ObservedLease>,
    /// When the next live lease runs out, unless it is renewed.
    pub next_deadline: Option<Timestamp>,
    /// What is left of a grace window; zero when there is none.
    pub grace: Duration,
}

/// A lease as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLease {
    /// Whose.
    pub job: JobName,
    /// Its occurrence and what to watch of it.
    pub held: Held,
    /// It was handed over: free to be claimed as it is.
    pub handed_over: bool,
}
