//! What people are told of occurrences that are over: decided in the same atomic step that writes
//! the end down, so that one replica tells them, whichever it is.
//!
//! Must never: be told of anything that the ledger doesn't have.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{AttemptDetail, Cause, Occurrence, Outcome, RunId};
use crate::scheduler::job::JobName;
use crate::scheduler::time::Timestamp;

/// What people may want to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// An occurrence failed, timed out or was lost, and nothing follows on it.
    Failure,
    /// One succeeded, after others of which people were told.
    Recovery,
    /// One never started, for want of a replica or a store.
    Missed,
    /// An attempt runs for longer than `warn_after`.
    Slow,
}

impl Topic {
    /// All of them, in the order of the manual.
    pub const ALL: [Self; 4] = [Self::Failure, Self::Recovery, Self::Missed, Self::Slow];

    /// As the table and the messages spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Recovery => "recovery",
            Self::Missed => "missed",
            Self::Slow => "slow",
        }
    }

    /// What the end of an occurrence is to people, if they want to know of such ends at all. What
    /// somebody wanted, by a pause or a `kill`, is no news; nor is a skip that a policy asks for.
    pub(crate) fn of(outcome: Outcome, cause: Option<Cause>) -> Option<Self> {
        match (outcome, cause) {
            (Outcome::Succeeded, _) => Some(Self::Recovery),
            (Outcome::Failed | Outcome::TimedOut | Outcome::Lost, _) => Some(Self::Failure),
            (Outcome::Missed, _) | (Outcome::Skipped, Some(Cause::Placement)) => Some(Self::Missed),
            (Outcome::Skipped | Outcome::Cancelled | Outcome::HandedOver, _) => None,
        }
    }
}

/// A set of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Topics(u8);

impl Topics {
    /// Whether it has one.
    pub const fn has(self, topic: Topic) -> bool {
        self.0 & (1 << topic as u8) != 0
    }
}

impl FromIterator<Topic> for Topics {
    fn from_iter<I: IntoIterator<Item = Topic>>(topics: I) -> Self {
        let bits = topics.into_iter().map(|topic| 1 << topic as u8);
        Self(bits.fold(0, |all, bit| all | bit))
    }
}

/// What people want to be told of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// The names of those that are told.
    pub to: Arc<[String]>,
    /// Of what.
    pub topics: Topics,
    /// A job that goes on to fail, or to be missed, is told of again after so long.
    pub repeat: Duration,
}

/// An occurrence that a request brought to its end, or a stretch of time of which nobody ran what
/// was due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closing {
    /// The request: the attempt's id, where its own end did it.
    pub by: RunId,
    /// Which occurrence; the newest of a stretch.
    pub occurrence: Occurrence,
    /// After which instant the stretch begins; none for an occurrence.
    pub after: Option<Timestamp>,
    /// How it ended; of several shards, the worst.
    pub outcome: Outcome,
    /// The number of its last attempt; 0 where it never started.
    pub attempt: u32,
    /// The id of that one; none where there was none.
    pub run_id: Option<RunId>,
    /// The name of the replica that ran that, or that found that nobody did.
    pub replica: String,
    /// When the last attempt began, by the store's clock.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What else is known of that end.
    pub detail: AttemptDetail,
    /// What people are to be told; none where it is no news.
    pub told: Option<Told>,
}

/// News of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What kind of news.
    #[serde(rename = "e")]
    pub topic: Topic,
    /// The first occurrence of those in a row that did not succeed.
    #[serde(rename = "s")]
    pub since: Timestamp,
    /// How many there were in that row so far.
    #[serde(rename = "n")]
    pub count: u32,
}

/// For how long whoever tells people of news is left alone with it. Another replica takes them
/// over after that, unless it is heard of in between.
pub const TELLING_TTL: Duration = Duration::from_secs(15);

/// News of which the ledger doesn't know that people got them, and whose teller was not heard of
/// for [`TELLING_TTL`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// Of which occurrence.
    pub occurrence: Occurrence,
    /// The request that was told to tell.
    pub by: RunId,
    /// How the occurrence ended.
    pub outcome: Outcome,
    /// What is to be told.
    pub told: Told,
    /// The names of those that are to be told, by the table that was in force then.
    pub to: Vec<String>,
    /// Until when its teller had time.
    pub due: Timestamp,
}

/// What the teller of news has to say of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Whose news.
    pub job: JobName,
    /// The request that was told to tell.
    pub by: RunId,
    /// What kind of news.
    pub topic: Topic,
    /// How it goes.
    pub step: DeliveryStep,
}

/// How it goes with the telling of news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStep {
    /// It is over: people were told, or nobody tries any more.
    Done,
    /// It takes longer.
    GoesOn,
    /// Another replica goes on with it, where its teller has not been heard of since.
    TakenOver {
        /// Until when that had time.
        due: Timestamp,
    },
    /// It begins, of an attempt that takes long: not where people were told of such a one of
    /// the job, by whichever replica, less than `repeat` ago. Nobody takes it over.
    Slow {
        /// From one such news to the next, at least.
        repeat: Duration,
    },
}
