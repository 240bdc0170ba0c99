//! What the rules work on: a record for each job, the state that all jobs share, and the lines
//! that go to the ledger.
//!
//! Engines keep a record as the text that is made here, beside its [`Record::agenda`], and know
//! no more of it. The names of its fields are short, as there is a record for each job; what
//! has its default is left out. Times and lengths are milliseconds.
//!
//! Must never: read a text that it doesn't understand to the end. An older version that wrote a
//! record back would drop what a newer one had put there.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::forgetting::Day;
use super::telling::Alert;
use super::{is_of_before, text};
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::lease::{
    AttemptDetail, Cause, Closing, FencingToken, Force, Held, Late, Lineage, Occurrence, Origin,
    Outcome, Replica, RunId, Sighting, StopOrder,
};
use crate::scheduler::time::Timestamp;

/// What the ledger holds of one job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct Record {
    /// Occurrences up to here are settled. Never falls.
    #[serde(rename = "u")]
    pub(in crate::store) settled_until: Timestamp,
    /// The highest token granted.
    #[serde(rename = "k")]
    pub(in crate::store) token: FencingToken,
    /// The schedule in force.
    #[serde(rename = "s", default, skip_serializing_if = "String::is_empty")]
    pub(in crate::store) schedule: String,
    /// Which definition is in force; none where no table has told of one.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) force: Option<Force>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) paused: Option<Paused>,
    /// Since when the tables have it disabled.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) disabled: Option<Timestamp>,
    /// The ledger lost what became of some of the occurrences up to here. None of the schedule's
    /// that isn't settled starts any more; they are written down as missed once holders had the
    /// time to come back.
    #[serde(rename = "g", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) lost_until: Option<Timestamp>,
    /// When it was last seen that a table has the job; day 0 where that was never written down.
    #[serde(rename = "e", default, skip_serializing_if = "text::is_default")]
    pub(in crate::store) enrolled_on: Day,
    /// Pauses that are over and not written down yet, by when they began: something is unsettled
    /// that was due before them.
    #[serde(rename = "z", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) suspensions: Vec<Suspension>,
    /// The newest occurrence that was granted; none where the job never ran.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) current: Option<Current>,
    /// Occurrences whose turn comes later, in order.
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) waiting: Vec<Waiting>,
    /// Occurrences that wait for the success of other jobs.
    #[serde(rename = "j", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) joins: Vec<Join>,
    /// What never started since the current occurrence, the newest first: up to and with the
    /// first of which it is certain that it was due.
    #[serde(rename = "n", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) unstarted: Vec<NeverStarted>,
    /// The newest triggers: a request that is sent again makes no second one.
    #[serde(rename = "t", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::store) triggered: Vec<(RunId, Timestamp)>,
    /// What people were told of the job; none where nobody wants to be told anything.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) alert: Option<Alert>,
}

/// An occurrence that never started, or a stretch of time that may have some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct NeverStarted {
    /// Its instant, or the end of the stretch.
    #[serde(rename = "a")]
    pub(in crate::store) scheduled_at: Timestamp,
    #[serde(rename = "e")]
    pub(in crate::store) outcome: Outcome,
    #[serde(rename = "c")]
    pub(in crate::store) cause: Cause,
    /// The beginning of the stretch, and the schedule that was in force in it; none for an
    /// occurrence.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) within: Option<(Timestamp, String)>,
}

/// A pause, and who asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Paused {
    #[serde(rename = "s")]
    pub(in crate::store) since: Timestamp,
    #[serde(rename = "b")]
    pub(in crate::store) by: String,
}

/// A stretch of time of which nothing of the schedule is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Suspension {
    /// What was due up to here is not concerned.
    #[serde(rename = "s")]
    pub(in crate::store) since: Timestamp,
    /// The last instant that is.
    #[serde(rename = "u")]
    pub(in crate::store) until: Timestamp,
    #[serde(rename = "c")]
    pub(in crate::store) cause: Cause,
    #[serde(rename = "w")]
    pub(in crate::store) words: String,
}

/// The occurrence that was granted last. It stays when it is over: that is what makes a second
/// start of it impossible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Current {
    #[serde(rename = "a")]
    pub(in crate::store) scheduled_at: Timestamp,
    #[serde(rename = "o", default, skip_serializing_if = "text::is_default")]
    pub(in crate::store) origin: Origin,
    /// Who asked for it.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) by: Option<String>,
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) stop: Option<StopOrder>,
    /// One where the job isn't sharded.
    #[serde(rename = "l")]
    pub(in crate::store) slots: Vec<Slot>,
}

/// One shard of the current occurrence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Slot {
    #[serde(rename = "e")]
    pub(in crate::store) state: State,
    #[serde(rename = "n")]
    pub(in crate::store) attempt: u32,
    /// How many of the attempts failed.
    #[serde(rename = "f", default, skip_serializing_if = "text::is_default")]
    pub(in crate::store) failures: u32,
    #[serde(rename = "r")]
    pub(in crate::store) run_id: RunId,
    #[serde(rename = "k")]
    pub(in crate::store) token: FencingToken,
    #[serde(rename = "h")]
    pub(in crate::store) holder: Replica,
    /// Of its lease; where it may be claimed again: not before this.
    #[serde(rename = "d")]
    pub(in crate::store) deadline: Timestamp,
    #[serde(rename = "t", with = "text::in_millis")]
    pub(in crate::store) ttl: Duration,
    #[serde(rename = "x")]
    pub(in crate::store) on_crash: OnCrash,
    /// When it was granted, or ended.
    #[serde(rename = "s")]
    pub(in crate::store) since: Timestamp,
    /// Why it was granted late; where it wasn't granted yet, what its occurrence waited for.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) late: Option<Late>,
}

/// How a shard of the current occurrence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum State {
    /// Nobody had it yet, though another shard of the occurrence was granted.
    Idle,
    /// Granted and not released; its deadline may have passed.
    Running,
    /// Its attempt was handed over, or failed and is to be followed by another.
    Again(Outcome),
    /// Over.
    Ended(Outcome),
}

/// An occurrence whose turn comes later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Waiting {
    #[serde(rename = "a")]
    pub(in crate::store) scheduled_at: Timestamp,
    #[serde(rename = "o", default, skip_serializing_if = "text::is_default")]
    pub(in crate::store) origin: Origin,
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) by: Option<String>,
    /// Since when it waits.
    #[serde(rename = "s")]
    pub(in crate::store) since: Timestamp,
    /// Until when it may start; none for what a person asked for.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) start_by: Option<Timestamp>,
    /// The job's policy let it wait. Until then any replica that has the job may claim it, to
    /// have that decided.
    #[serde(rename = "q", default, skip_serializing_if = "text::is_default")]
    pub(in crate::store) queued: bool,
    /// What held up the claim that let it wait.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) late: Option<Late>,
}

/// An occurrence that waits for the success of other jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::store) struct Join {
    #[serde(rename = "a")]
    pub(in crate::store) scheduled_at: Timestamp,
    /// Whose occurrences are over.
    #[serde(rename = "j")]
    pub(in crate::store) arrived: Vec<JobName>,
    /// One of them did not succeed: it was recorded as skipped, and only the rest is awaited.
    #[serde(rename = "x", default, skip_serializing_if = "text::is_default")]
    pub(in crate::store) dead: bool,
}

impl Slot {
    pub(in crate::store) fn is_open(&self) -> bool {
        !matches!(self.state, State::Ended(_))
    }

    pub(in crate::store) fn sighting(&self) -> Sighting {
        Sighting {
            token: self.token,
            deadline: self.deadline,
        }
    }

    /// When somebody should look at it; never where it is over.
    pub(super) fn agenda(&self) -> Option<Timestamp> {
        match self.state {
            State::Idle => Some(self.since),
            State::Running | State::Again(_) => Some(self.deadline),
            State::Ended(_) => None,
        }
    }
}

impl Current {
    /// Unfinished: it stands in the way of the job's next occurrence.
    pub(in crate::store) fn is_open(&self) -> bool {
        self.slots.iter().any(Slot::is_open)
    }

    /// How the occurrence ended, which is how the worst of its shards did.
    pub(in crate::store) fn outcome(&self) -> Option<Outcome> {
        let ends: Option<Vec<Outcome>> = self
            .slots
            .iter()
            .map(|slot| match slot.state {
                State::Ended(outcome) => Some(outcome),
                _ => None,
            })
            .collect();
        ends?
            .into_iter()
            .max_by_key(|outcome| *outcome != Outcome::Succeeded)
    }

    /// The lease of a shard, to be watched.
    pub(in crate::store) fn held(&self, shard: usize) -> Option<Held> {
        let slot = self.slots.get(shard)?;
        Some(Held {
            scheduled_at: self.scheduled_at,
            origin: self.origin,
            shard: u32::try_from(shard).unwrap_or(u32::MAX),
            sighting: slot.sighting(),
            ttl: slot.ttl,
        })
    }

    /// The lease that stands in the way of others: the first that runs, or that waits.
    pub(in crate::store) fn obstacle(&self) -> Option<Held> {
        let running = |slot: &Slot| slot.state == State::Running;
        let first = self.slots.iter().position(running);
        let first = first.or_else(|| self.slots.iter().position(Slot::is_open))?;
        self.held(first)
    }
}

impl Record {
    /// As engines keep it.
    pub(in crate::store) fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads back what [`Record::to_text`] wrote; none for anything else.
    pub(in crate::store) fn from_text(text: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(text).ok()?;
        (record.token <= FencingToken::MAX).then_some(record)
    }

    /// The current occurrence, where it is unfinished.
    pub(in crate::store) fn open(&self) -> Option<&Current> {
        self.current.as_ref().filter(|current| current.is_open())
    }
}

impl Slot {
    /// Anybody may claim it. A wait of before a step back of the clock would last for as long as
    /// the step was.
    pub(in crate::store) fn is_free(&self, now: Timestamp) -> bool {
        match self.state {
            State::Idle => true,
            State::Again(_) => self.deadline <= now || is_of_before(self.since, now),
            State::Running | State::Ended(_) => false,
        }
    }

    pub(super) fn failed_on(&self) -> Option<Uuid> {
        // One that hands over may be the very one that can't run it.
        matches!(self.state, State::Again(_)).then_some(self.holder.id)
    }
}

pub(super) fn occurrence(job: &JobName, scheduled_at: Timestamp) -> Occurrence {
    Occurrence {
        job: job.clone(),
        scheduled_at,
    }
}

/// What all jobs of a namespace share: its epoch, and two marks that rise.
///
/// The text of a group is that of its epoch alone, which changes rarely. The marks change with
/// every grant, and of two values the higher one holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct Group {
    /// The process that the ledger last knew itself in ([`Life::Process`]); empty before.
    #[serde(rename = "run")]
    pub(in crate::store) process: String,
    /// Nothing is granted before this.
    pub(in crate::store) grace_until: Timestamp,
    /// When the ledger began, or last came back from a loss of data: it knows nothing of
    /// what was due before.
    pub(in crate::store) born: Timestamp,
    /// The tables that were published, in the order in which they were first.
    #[serde(default, skip_serializing_if = "Lineage::is_empty")]
    pub(in crate::store) tables: Lineage,
    /// The highest token granted.
    #[serde(skip)]
    pub(in crate::store) token: FencingToken,
    /// The highest time at which anything was granted, in microseconds.
    #[serde(skip)]
    pub(in crate::store) clock_us: i64,
}

impl Group {
    /// Whether the ledger began between these two: whoever holds a lease has to write it anew.
    pub(in crate::store) fn is_born_in(&self, after: &Group) -> bool {
        self.born == Timestamp::default() && after.born != self.born
    }

    /// The parts without the marks: a change here concerns everybody.
    pub(in crate::store) fn has_epoch_of(&self, other: &Group) -> bool {
        let epoch = |group: &Group| (group.grace_until, group.born);
        (&self.process, &self.tables) == (&other.process, &other.tables)
            && epoch(self) == epoch(other)
    }
}

/// What is known of the life of the store that a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) enum Life {
    /// What it acknowledged is there.
    Steady,
    /// There are no data: it begins, or all of them were taken away.
    New,
    /// Its data were taken away, and these are others in their place.
    AfterLoss,
    /// A process with an id that is new at each start: one that the ledger doesn't know may
    /// have lost what was acknowledged.
    Process(String),
    /// The same, and it may have been elected while the one before it lives, which may go on to
    /// grant for as long as replicas find out.
    Elected(String),
}

impl Life {
    /// Of a process that others take the place of.
    pub(in crate::store) fn elected(self) -> Self {
        match self {
            Life::Process(id) => Life::Elected(id),
            other => other,
        }
    }
}

/// A line for the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Entry {
    pub(in crate::store) scheduled_at: Timestamp,
    pub(in crate::store) attempt: u32,
    pub(in crate::store) run_id: RunId,
    pub(in crate::store) token: FencingToken,
    pub(in crate::store) replica: String,
    pub(in crate::store) started_at: Timestamp,
    pub(in crate::store) ended_at: Timestamp,
    pub(in crate::store) outcome: Outcome,
    pub(in crate::store) detail: AttemptDetail,
}

/// What others should hear of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum News {
    /// Something may be claimed.
    Opening,
    /// A holder is to end its attempt.
    Stop,
    /// The job was paused, or its pause ended.
    PauseChanged,
}

/// What comes of a request.
#[derive(Debug)]
pub(in crate::store) struct Decision<A> {
    pub(in crate::store) answer: A,
    /// What the record becomes; none where it stays.
    pub(in crate::store) record: Option<Record>,
    pub(in crate::store) lines: Vec<Entry>,
    /// Occurrences that are over now, for the jobs that come after.
    pub(in crate::store) closed: Vec<(Timestamp, Outcome)>,
    pub(in crate::store) news: Vec<News>,
    /// What people want to hear of, with what they are to be told.
    pub(in crate::store) closings: Vec<Closing>,
}
