//! Why an attempt began late, as far as that is known where it is claimed and granted.
//!
//! It is written down for people, with the attempt. Must never: decide anything.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::scheduler::time::Timestamp;

/// An attempt that began no later than this needs no reason.
pub const LATE_AFTER: Duration = Duration::from_secs(1);

/// Why an attempt began late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Late {
    /// It waited for its turn.
    Turn {
        /// Behind this occurrence, the last before it.
        behind: Timestamp,
        /// Which was over then.
        until: Timestamp,
    },
    /// The jobs that it comes after had not all succeeded before.
    After {
        /// Then they had.
        until: Timestamp,
    },
    /// The store granted nothing before.
    Grace {
        /// The end of its grace window.
        until: Timestamp,
    },
    /// The replica that claimed it had no room for it before, and no other took it.
    Room,
    /// Nobody claimed it before: replicas were away, did not reach the store, or left the job to a
    /// newer table.
    Away,
    /// Its record was lost, and its holder wrote it anew: that is the beginning that is known.
    Reasserted,
}

impl Late {
    /// Since when this no longer held it, where that is known.
    pub const fn until(self) -> Option<Timestamp> {
        match self {
            Late::Turn { until, .. } | Late::After { until } | Late::Grace { until } => Some(until),
            Late::Room | Late::Away | Late::Reasserted => None,
        }
    }
}
