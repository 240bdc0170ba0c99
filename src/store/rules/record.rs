//! What the rules work on: a record for each job, the state that all jobs share, and the lines
//! that go to the ledger.

use std::time::Duration;

use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{AttemptDetail, FencingToken, Outcome, Replica, RunId};
use crate::scheduler::time::Timestamp;

/// What the ledger holds of one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct Record {
    pub(in crate::store) scheduled_at: Timestamp,
    pub(in crate::store) state: State,
    pub(in crate::store) holder: Replica,
    pub(in crate::store) run_id: RunId,
    pub(in crate::store) token: FencingToken,
    pub(in crate::store) deadline: Timestamp,
    pub(in crate::store) attempt: u32,
    pub(in crate::store) ttl: Duration,
    /// Occurrences up to here are settled. Never falls.
    pub(in crate::store) settled_until: Timestamp,
    pub(in crate::store) on_crash: OnCrash,
    /// When it was granted, or ended.
    pub(in crate::store) since: Timestamp,
}

/// How the newest occurrence of a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What all jobs of a namespace share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Group {
    /// The highest token granted.
    pub(in crate::store) token: FencingToken,
    /// Nothing is granted before this.
    pub(in crate::store) grace_until: Timestamp,
    /// The highest time at which anything was granted, in microseconds.
    pub(in crate::store) clock_us: i64,
    /// When the ledger began, or last came back from a loss of data: it knows nothing of
    /// what was due before.
    pub(in crate::store) born: Timestamp,
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
