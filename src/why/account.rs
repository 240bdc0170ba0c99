//! The answer as data: what became of one occurrence.
//!
//! Must never: hold a sentence; those are made in `told`. The ledger's own words are quoted.

use std::fmt::Display;

use serde::{Serialize, Serializer};

use super::candidates::Candidates;
use super::lateness::Lateness;
use super::suspension::Suspension;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Cause, FencingToken, Origin, Outcome, RunId};
use crate::scheduler::time::Timestamp;

/// What became of one occurrence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Account {
    /// Of which job.
    pub job: JobName,
    /// Its instant.
    #[serde(serialize_with = "rfc3339")]
    pub scheduled_at: Timestamp,
    /// The same in the job's zone; none where that is UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// What brought it about.
    #[serde(flatten)]
    pub origins: Origins,
    /// What became of it.
    #[serde(flatten)]
    pub fate: Fate,
    /// Each shard that was claimed; one where the job isn't sharded; none where it never started.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shards: Vec<Shard>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
}

/// What brought an occurrence about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Origins {
    /// The schedule, a person, or other jobs.
    pub origin: Origin,
    /// Who asked for it, or the jobs that it came after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// What became of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// It ran, and it is over.
    Ended {
        /// How; the worst of its shards.
        outcome: Outcome,
        /// When.
        #[serde(serialize_with = "rfc3339")]
        ended_at: Timestamp,
    },
    /// An attempt of it runs.
    Running,
    /// The lease of an attempt of it ran out, and nobody took it over yet.
    Abandoned,
    /// Another attempt follows; nothing of it runs now.
    WaitsForAttempt {
        /// The earliest instant of that.
        #[serde(serialize_with = "rfc3339")]
        at: Timestamp,
        /// Who could make it.
        candidates: Candidates,
    },
    /// Its lines say that another attempt follows, and the ledger has forgotten it.
    Interrupted,
    /// It never started, by the ledger.
    NeverStarted {
        /// Skipped or missed.
        outcome: Outcome,
        /// By which policy.
        #[serde(skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// The ledger's words.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When it was written down.
        #[serde(serialize_with = "rfc3339")]
        recorded_at: Timestamp,
        /// By which replica.
        recorded_by: String,
        /// What the table says of that policy, where there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        setting: Option<Setting>,
        /// It shares its line with others.
        #[serde(skip_serializing_if = "Option::is_none")]
        range: Option<Range>,
    },
    /// It waits for its turn.
    WaitsInQueue {
        /// Its place, from 1.
        place: usize,
        /// What waits before it.
        #[serde(serialize_with = "rfc3339")]
        ahead: Vec<Timestamp>,
        /// The unfinished occurrence that all of them wait for.
        #[serde(serialize_with = "rfc3339")]
        behind: Option<Timestamp>,
        /// Since when.
        #[serde(serialize_with = "rfc3339")]
        since: Timestamp,
        /// Until when it may start; none where it may for ever.
        #[serde(serialize_with = "rfc3339")]
        start_by: Option<Timestamp>,
        /// Who could start it.
        candidates: Candidates,
    },
    /// It waits for other jobs to succeed.
    WaitsForJobs {
        /// Those that have.
        arrived: Vec<JobName>,
        /// Those that have not; none where the table doesn't say.
        missing: Option<Vec<JobName>>,
    },
    /// It fell due while the job was, and is, paused or disabled.
    Suspended {
        /// Why it doesn't run.
        suspension: Suspension,
    },
    /// It is due, and nobody has claimed it.
    Due {
        /// From when on it may start: later than its instant by the delay drawn for it.
        #[serde(serialize_with = "rfc3339")]
        start_from: Timestamp,
        /// Until when; none where no table says.
        #[serde(serialize_with = "rfc3339")]
        start_by: Option<Timestamp>,
        /// Who could start it.
        candidates: Candidates,
    },
    /// Its time has not come.
    ToCome {
        /// From when on it may start: later than its instant by the delay drawn for it.
        #[serde(serialize_with = "rfc3339")]
        start_from: Timestamp,
        /// What keeps it from running unless it ends before.
        #[serde(skip_serializing_if = "Option::is_none")]
        suspension: Option<Suspension>,
        /// The jobs that it comes after.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        after: Vec<JobName>,
        /// Why nobody would run it if it were due now, where that is so.
        #[serde(skip_serializing_if = "Option::is_none")]
        outlook: Option<Candidates>,
    },
    /// Nothing was, or is, due at this instant.
    NotAnOccurrence {
        /// The schedule that says so; none where none is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        schedule: Option<String>,
        /// Why it is none, where there is something to say.
        #[serde(skip_serializing_if = "Option::is_none")]
        because: Option<Because>,
        /// The schedule's last instant before.
        #[serde(serialize_with = "rfc3339")]
        before: Option<Timestamp>,
        /// The schedule's first instant after.
        #[serde(serialize_with = "rfc3339")]
        after: Option<Timestamp>,
    },
    /// It is an occurrence of the schedule, and the ledger has nothing of it.
    NotRecorded {
        /// Why.
        #[serde(flatten)]
        why: Unrecorded,
    },
}

/// Some of the instants in a row that share one line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Range {
    /// All after this …
    #[serde(serialize_with = "rfc3339")]
    pub since: Timestamp,
    /// … and up to this.
    #[serde(serialize_with = "rfc3339")]
    pub until: Timestamp,
    /// The schedule of that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Why that schedule can't be asked whether it had the instant, where it can't.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<Doubt>,
}

/// Why a schedule of the past can't be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// It isn't known, or can't be read: today's has the instant.
    Schedule,
    /// Its calendars aren't known any more: without them it has the instant.
    Calendars,
}

/// A key of the table, with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The key.
    pub key: &'static str,
    /// Its value, as jobs.toml spells it.
    pub value: String,
}

/// Why an instant is not an occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "what", rename_all = "snake_case")]
pub enum Because {
    /// The job is only run when somebody says so.
    Manual,
    /// The job's occurrences come from those of other jobs.
    After(Vec<JobName>),
    /// Its local time comes twice, and `dst_fold` has the other.
    Fold(&'static str),
    /// Its local time is skipped, and `dst_gap` is `skip`.
    Gap,
    /// A calendar took it away.
    Calendar(String),
    /// Today's schedule has it; the one of that time had not.
    LaterSchedule(String),
}

/// Why the ledger has nothing of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Unrecorded {
    /// No replica has told the ledger of the job.
    Unenrolled,
    /// The job became known only later: a new job never runs its past.
    BeforeKnown {
        /// When.
        #[serde(serialize_with = "rfc3339")]
        known_since: Timestamp,
    },
    /// It is from before the oldest line that is kept.
    BeforeOldest {
        /// Of when that is; none where no line is left.
        #[serde(serialize_with = "rfc3339")]
        oldest: Option<Timestamp>,
        /// `history_limit`, where a table says.
        #[serde(skip_serializing_if = "Option::is_none")]
        history_limit: Option<u32>,
        /// `history_age` in seconds, where a table says.
        #[serde(skip_serializing_if = "Option::is_none")]
        history_age_seconds: Option<u64>,
    },
    /// It should be there.
    Gap,
    /// Neither table nor ledger has a schedule of the job.
    NoSchedule,
}

/// What else there is to say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "remark", rename_all = "snake_case")]
pub enum Remark {
    /// The clocks being set touched it.
    Clocks {
        /// Completes "this occurrence …".
        what: String,
    },
    /// The job is paused or disabled now, which matters to this occurrence.
    Suspended {
        /// How.
        suspension: Suspension,
    },
    /// The table has no such job: it was taken out, or renamed.
    NotInTable,
    /// The table has another schedule than the ledger: no replica has told it yet.
    OtherSchedule {
        /// The table's.
        table: String,
        /// The one in force.
        in_force: String,
    },
    /// The ledger has a newer definition of the job than the table: replicas with this table leave
    /// it to others.
    OtherDefinition {
        /// The table's, in short.
        table: String,
        /// The one in force.
        in_force: String,
        /// The names of the live replicas that have it.
        replicas: Vec<String>,
    },
    /// Calendars took days from the schedule of that time, and which is no longer known.
    LacksCalendars,
    /// The ledger has occurrences close by that aren't the schedule's.
    Near {
        /// Up to three of them.
        occurrences: Vec<Near>,
    },
    /// The ledger may have known of it: it began, lost data, or its server was started anew, since.
    MayBeLost {
        /// When.
        #[serde(serialize_with = "rfc3339")]
        born: Timestamp,
    },
    /// Newer instants are due too, and `catch_up` says what becomes of this one.
    NewerAreDue {
        /// What it says.
        catch_up: Setting,
    },
}

/// An occurrence close to the instant that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Near {
    /// Its instant.
    #[serde(serialize_with = "rfc3339")]
    pub scheduled_at: Timestamp,
    /// What brought it about.
    #[serde(flatten)]
    pub origins: Origins,
}

/// One shard of an occurrence; the whole of one that isn't sharded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shard {
    /// Which, from 0.
    pub shard: u32,
    /// Of how many.
    pub shards: u32,
    /// How it stands.
    #[serde(flatten)]
    pub course: Course,
    /// Its ended attempts, in order.
    pub attempts: Vec<PastAttempt>,
}

/// How a shard stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Course {
    /// It is over.
    Ended {
        /// How.
        outcome: Outcome,
        /// When.
        #[serde(serialize_with = "rfc3339")]
        ended_at: Timestamp,
    },
    /// It runs, or its lease ran out.
    Running {
        /// On which replica.
        replica: String,
        /// As which attempt.
        attempt: u32,
        /// Under which token.
        token: FencingToken,
        /// Since when.
        #[serde(serialize_with = "rfc3339")]
        since: Timestamp,
        /// Why it began late, where it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        late: Option<Lateness>,
        /// Until when its lease lasts.
        #[serde(serialize_with = "rfc3339")]
        deadline: Timestamp,
    },
    /// Another attempt may begin then.
    Again {
        /// As which attempt.
        attempt: u32,
        /// The earliest instant.
        #[serde(serialize_with = "rfc3339")]
        at: Timestamp,
    },
    /// Nobody has claimed it yet.
    Idle {
        /// Since when it may be claimed.
        #[serde(serialize_with = "rfc3339")]
        since: Timestamp,
    },
    /// Its last line announces another attempt of which the ledger knows nothing.
    Interrupted,
    /// The ledger keeps nothing of it any more.
    Forgotten,
}

/// An attempt that ended, or a line that closed a shard after its last attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PastAttempt {
    /// Its number; 0 where none was made.
    pub attempt: u32,
    /// No attempt: what ended the wait for the next one.
    pub closing: bool,
    /// Its id.
    #[serde(serialize_with = "as_text")]
    pub run_id: RunId,
    /// On which replica; of what closed a shard, that of the attempt before.
    pub replica: String,
    /// Under which token.
    pub token: FencingToken,
    /// From when …
    #[serde(serialize_with = "rfc3339")]
    pub started_at: Timestamp,
    /// Why it began late, where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<Lateness>,
    /// … until when.
    #[serde(serialize_with = "rfc3339")]
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// By which policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What exit(3) was called with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The ledger's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The earliest instant of the next attempt, where one was to follow.
    #[serde(serialize_with = "rfc3339", skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Timestamp>,
}

/// What holds instants, to be written as RFC 3339 in UTC.
pub(super) trait Instants {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

impl Instants for Timestamp {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Instants for Option<Timestamp> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Some(at) => serializer.collect_str(at),
            None => serializer.serialize_none(),
        }
    }
}

impl Instants for Vec<Timestamp> {
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(ToString::to_string))
    }
}

pub(super) fn rfc3339<S: Serializer>(at: &impl Instants, serializer: S) -> Result<S::Ok, S::Error> {
    at.write(serializer)
}

pub(super) fn as_text<S: Serializer>(
    value: &impl Display,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}
