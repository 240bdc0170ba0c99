//! Pauses and disabled jobs: what keeps an occurrence from running.
//!
//! Must never: say of what was due before a suspension that it was due in it.

use serde::Serialize;

use super::View;
use super::account::rfc3339;
use crate::scheduler::time::Timestamp;

/// What keeps a job from running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Suspension {
    /// `soloist pause`.
    Paused {
        /// Since when.
        #[serde(serialize_with = "rfc3339")]
        since: Timestamp,
        /// Who asked for it.
        by: String,
    },
    /// `enabled = false`.
    Disabled {
        /// Since when; none where only this table has it so.
        #[serde(serialize_with = "rfc3339")]
        since: Option<Timestamp>,
    },
    /// One of the two, that is over.
    Over {
        /// Since when.
        #[serde(serialize_with = "rfc3339")]
        since: Timestamp,
        /// Until when.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
        /// Which, and who asked for it.
        reason: String,
    },
}

impl Suspension {
    /// What was due before it began was not due in it.
    pub(super) fn concerns(&self, at: Timestamp) -> bool {
        match self {
            Suspension::Paused { since, .. } => at > *since,
            Suspension::Disabled { since } => since.is_some_and(|since| at > since),
            Suspension::Over { since, until, .. } => at > *since && at <= *until,
        }
    }
}

/// What keeps the job from running now.
pub(super) fn suspension(view: &View<'_>) -> Option<Suspension> {
    let state = view.state();
    let paused = state.and_then(|state| state.paused.as_ref());
    let disabled = state.and_then(|state| state.disabled);
    match (paused, disabled) {
        (Some(pause), _) => Some(Suspension::Paused {
            since: pause.since,
            by: pause.by.clone(),
        }),
        (None, Some(since)) => Some(Suspension::Disabled { since: Some(since) }),
        (None, None) => {
            let off = view.entry().is_some_and(|job| !job.enabled);
            off.then_some(Suspension::Disabled { since: None })
        }
    }
}

/// What kept the job from running at an instant, where that is over and not settled yet.
pub(super) fn past_suspension(view: &View<'_>, at: Timestamp) -> Option<Suspension> {
    let over = view
        .state()?
        .suspensions
        .iter()
        .map(|one| Suspension::Over {
            since: one.since,
            until: one.until,
            reason: one.reason.clone(),
        });
    over.into_iter().find(|one| one.concerns(at))
}
