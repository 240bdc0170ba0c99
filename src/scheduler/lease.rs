//! The words of the lease protocol: what a replica asks of the store and what it hears back.
//!
//! A *claim* asks to run one occurrence; a *grant* gives it to one replica until a deadline,
//! under a fencing token. The grant is renewed while the job runs and released with the
//! attempt's outcome. The record of the occurrence outlives the release: that, and not the
//! lease, is what makes a second start of the same occurrence impossible.
//!
//! How an occurrence goes from due to its outcome is drawn in `store::rules`.
//!
//! Must never: hold a decision. Deciding is the store's side (`store::rules`) and the
//! replica's side (`scheduler::Scheduler`).

mod asking;
mod claim;
mod closing;
mod definition;
mod ending;
mod keeping;
mod late;
mod named;
mod usage;
mod written;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::asking::{
    CommonInstant, Enrolment, Observation, ObservedLease, Opening, Order, OrderAnswer, OrderKind,
    Pause, Peer, Registration, ScheduleChange, Scope, Seen, SeenPause,
};
pub use self::claim::{
    Claim, ClaimAnswer, Dependent, Dependents, Grant, Held, Origin, Retention, Sighting,
};
pub use self::closing::{
    Closing, Delivery, DeliveryStep, TELLING_TTL, Telling, Told, Topic, Topics, Untold,
};
pub use self::definition::{Definition, Force, JobDigests, Lineage, PublishedTable};
pub use self::ending::{AttemptDetail, Captured, Cause, Outcome, Output};
pub use self::keeping::{Release, ReleaseAnswer, Renewal, RenewalAnswer, StopFor, StopOrder};
pub use self::late::{LATE_AFTER, Late};
pub use self::named::{
    Busy, HeldName, Hold, LEASE_NAME_LENGTH_LIMIT, LeaseAnswer, LeaseName, LeaseNameError,
    LeaseRequest, Mode, NAMES_PER_HOLD_LIMIT, NameState, WAITING_LIMIT, Wait,
};
pub use self::usage::{MeasuredOf, PeakMemory, Usage};
pub use self::written::Written;

use super::job::JobName;
use super::time::Timestamp;

/// The most items one call to the store carries. Larger work is cut into several calls, so
/// that no call keeps a single-threaded store busy for more than about a millisecond.
pub const BATCH_LIMIT: usize = 128;

/// A lease that ran out longer ago than this is not shown to those who look for what ran out: most
/// likely its job was removed from every table. Who looks at all, as everybody does who begins to,
/// is told of it all the same.
pub const ABANDONED_AFTER: Duration = Duration::from_secs(24 * 3600);

/// A number that rises at every grant of a job, or of a name, for ever, and stays below 2^53, so
/// that it survives JSON and JavaScript, and `as i64` for SQL. It starts at the store's time in
/// microseconds.
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
    /// For how long still nothing is granted to it, by its own clock: what is left of a grace
    /// window that it has seen. The store's clock may have jumped over the rest.
    pub held_back: Duration,
}

/// An answer, stamped with the store's time at which it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The store's clock when it answered.
    pub now: Timestamp,
    /// The answer.
    pub answer: T,
    /// The lines that it wrote into the ledger, for those who count.
    pub lines: Vec<Written>,
    /// What came to its end by the call, of jobs of which people want to be told.
    pub closings: Vec<Closing>,
}

impl<T> Answered<T> {
    /// An answer to a call that wrote no line, and by which nothing came to its end.
    pub const fn new(now: Timestamp, answer: T) -> Self {
        Self {
            now,
            answer,
            lines: Vec::new(),
            closings: Vec::new(),
        }
    }
}
