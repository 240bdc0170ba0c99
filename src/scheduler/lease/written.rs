//! What a call wrote into the ledger, as whoever made it hears of it: for those who count, or tell
//! others. The ledger itself is what can be relied on.

use super::{AttemptDetail, FencingToken, Outcome, RunId};
use crate::scheduler::job::JobName;
use crate::scheduler::time::Timestamp;

/// A line that a call wrote into the ledger. A call whose answer was lost and that is sent again
/// finds its work done, and writes none: nobody hears of the line then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Whose.
    pub job: JobName,
    /// Of which occurrence; the newest of them where the line stands for a stretch of time.
    pub scheduled_at: Timestamp,
    /// Which attempt, counted from 1; 0 where none was made.
    pub attempt: u32,
    /// Its id, or that of the claim that settled the occurrence.
    pub run_id: RunId,
    /// Its token; 0 where none was made.
    pub token: FencingToken,
    /// The name of the replica that ran it, or that settled the occurrence.
    pub replica: String,
    /// When it was granted, by the store's clock.
    pub started_at: Timestamp,
    /// When its end was written down, by the store's clock.
    pub ended_at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// What else is known.
    pub detail: AttemptDetail,
}

impl Written {
    /// Nothing follows on the occurrence, or on this shard of it.
    pub const fn is_final(&self) -> bool {
        self.detail.is_final()
    }

    /// It is of one shard of several.
    pub const fn is_shard(&self) -> bool {
        self.detail.shard.is_some()
    }
}
