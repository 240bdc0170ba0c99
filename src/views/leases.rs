//! Named leases, as `lock --list --json` shows them.
//!
//! Names in here are relied on: they may be added to, and never changed.

use serde::Serialize;

use crate::scheduler::lease::{Mode, NameState};
use crate::scheduler::time::{Timestamp, to_seconds};

/// A name that somebody has or waits for.
#[derive(Serialize)]
pub(crate) struct LeaseView<'a> {
    name: &'a str,
    /// How those have it who do.
    mode: Mode,
    /// Each by itself: one that was let in again stands here twice.
    holders: Vec<HolderView<'a>>,
    /// In the order in which it will be theirs.
    waiting: Vec<WaiterView<'a>>,
}

/// Who has it.
#[derive(Serialize)]
struct HolderView<'a> {
    holder: &'a str,
    token: u64,
    /// By the store's clock.
    expires_at: String,
    /// 0 where it ran out, and nobody wanted it since.
    lease_left_seconds: f64,
    ttl_seconds: f64,
}

/// Who waits for it.
#[derive(Serialize)]
struct WaiterView<'a> {
    holder: &'a str,
    mode: Mode,
}

impl<'a> LeaseView<'a> {
    /// How it stood at that moment.
    pub(crate) fn of(state: &'a NameState, now: Timestamp) -> Self {
        let holders = state.held.iter().map(|held| HolderView {
            holder: &held.by,
            token: held.sighting.token.get(),
            expires_at: held.sighting.deadline.to_string(),
            lease_left_seconds: to_seconds(held.sighting.deadline.saturating_since(now)),
            ttl_seconds: to_seconds(held.ttl),
        });
        let waiting = state.waiting.iter().map(|(holder, mode)| WaiterView {
            holder,
            mode: *mode,
        });
        Self {
            name: state.name.as_str(),
            mode: state.mode,
            holders: holders.collect(),
            waiting: waiting.collect(),
        }
    }
}
