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

use super::text;
use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{AttemptDetail, FencingToken, Outcome, Replica, RunId};
use crate::scheduler::time::Timestamp;

/// What the ledger holds of one job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct Record {
    #[serde(rename = "at")]
    pub(in crate::store) scheduled_at: Timestamp,
    #[serde(rename = "state")]
    pub(in crate::store) state: State,
    #[serde(rename = "holder")]
    pub(in crate::store) holder: Replica,
    #[serde(rename = "run")]
    pub(in crate::store) run_id: RunId,
    #[serde(rename = "token")]
    pub(in crate::store) token: FencingToken,
    #[serde(rename = "until")]
    pub(in crate::store) deadline: Timestamp,
    #[serde(rename = "n", skip_serializing_if = "text::is_default", default)]
    pub(in crate::store) attempt: u32,
    #[serde(
        rename = "ttl",
        with = "text::in_millis",
        skip_serializing_if = "text::is_default",
        default
    )]
    pub(in crate::store) ttl: Duration,
    /// Occurrences up to here are settled. Never falls.
    #[serde(rename = "settled")]
    pub(in crate::store) settled_until: Timestamp,
    #[serde(rename = "crash", skip_serializing_if = "text::is_default", default)]
    pub(in crate::store) on_crash: OnCrash,
    /// When it was granted, or ended.
    #[serde(rename = "since")]
    pub(in crate::store) since: Timestamp,
}

impl Record {
    /// When somebody should look at it: where it is open, its deadline.
    pub(in crate::store) fn agenda(&self) -> Option<Timestamp> {
        self.state.is_open().then_some(self.deadline)
    }

    /// As engines keep it.
    pub(in crate::store) fn to_text(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads back what [`Record::to_text`] wrote; none for anything else.
    pub(in crate::store) fn from_text(text: &str) -> Option<Self> {
        let record: Self = serde_json::from_str(text).ok()?;
        (record.token <= FencingToken::MAX).then_some(record)
    }
}

/// How the newest occurrence of a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum State {
    /// The job is known and never ran.
    New,
    /// Granted and not released; its deadline may have passed.
    Running,
    /// Over, or [`Outcome::HandedOver`]: open for the next attempt.
    Ended(Outcome),
}

impl State {
    /// Unfinished: it stands in the way of the job's next occurrence.
    pub(in crate::store) fn is_open(self) -> bool {
        matches!(self, State::Running | State::Ended(Outcome::HandedOver))
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
    /// The highest token granted.
    #[serde(skip)]
    pub(in crate::store) token: FencingToken,
    /// The highest time at which anything was granted, in microseconds.
    #[serde(skip)]
    pub(in crate::store) clock_us: i64,
}

impl Group {
    /// The parts without the marks: a change here concerns everybody.
    pub(in crate::store) fn has_epoch_of(&self, other: &Group) -> bool {
        (&self.process, self.grace_until, self.born)
            == (&other.process, other.grace_until, other.born)
    }
}

/// What is known of the life of the store that a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) enum Life {
    /// What it acknowledged is there.
    Steady,
    /// Its data were taken away, and these are others in their place.
    AfterLoss,
    /// A process with an id that is new at each start: one that the ledger doesn't know may
    /// have lost what was acknowledged.
    Process(String),
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

/// What comes of a request.
#[derive(Debug)]
pub(in crate::store) struct Decision<A> {
    pub(in crate::store) answer: A,
    /// What the record becomes; none where it stays.
    pub(in crate::store) record: Option<Record>,
    pub(in crate::store) entry: Option<Entry>,
}

impl<A> Decision<A> {
    pub(super) fn keep(answer: A) -> Self {
        Self {
            answer,
            record: None,
            entry: None,
        }
    }

    pub(super) fn write(answer: A, record: Record, entry: Option<Entry>) -> Self {
        Self {
            answer,
            record: Some(record),
            entry,
        }
    }
}
