//! Why an attempt began late: from its line or its record, from the line of the attempt before it,
//! and from the delay that the table has drawn for its occurrence.
//!
//! Must never: guess. What none of these tells isn't recorded, and that is said.

use serde::Serialize;

use super::View;
use super::account::rfc3339;
use crate::scheduler::lease::{LATE_AFTER, Late, Origin, Outcome};
use crate::scheduler::time::{Timestamp, to_seconds};
use crate::store::AttemptRecord;

/// How late an attempt began, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lateness {
    /// How long after the occurrence's instant, in seconds.
    pub seconds: f64,
    /// Why.
    #[serde(flatten)]
    pub reason: Reason,
    /// For how much of it, at the end, there is no reason on record, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unexplained_seconds: Option<f64>,
}

/// Why an attempt began late.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "late_by", rename_all = "snake_case")]
pub enum Reason {
    /// Its `random_delay`, as the table has it today.
    RandomDelay {
        /// Its end.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// It waited for its turn.
    Turn {
        /// Behind this occurrence.
        #[serde(serialize_with = "rfc3339")]
        behind: Timestamp,
        /// Which was over then.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// The jobs that it comes after had not all succeeded before.
    After {
        /// Then they had.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// The store granted nothing before.
    Grace {
        /// Until then.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// Its replica had no room for it before.
    Room,
    /// No replica claimed it before.
    Away,
    /// When it began isn't known: its holder wrote its record anew after a loss.
    Reasserted,
    /// The attempt before it failed, and it had to wait.
    Retry {
        /// Which attempt failed.
        attempt: u32,
        /// The end of the wait.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// The lease of the attempt before it had run out.
    Takeover {
        /// Which attempt was lost.
        attempt: u32,
    },
    /// The attempt before it was handed over.
    HandOver {
        /// Which attempt.
        attempt: u32,
        /// When.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// Nothing tells.
    NotRecorded,
}

/// An attempt that began.
pub(super) struct Beginning<'b> {
    pub(super) attempt: u32,
    pub(super) started_at: Timestamp,
    /// What was written down.
    pub(super) recorded: Option<Late>,
    /// The line of the attempt before it, where it is kept.
    pub(super) before: Option<&'b AttemptRecord>,
}

/// Why an attempt began late, if it did.
pub(super) fn lateness(
    view: &View<'_>,
    scheduled_at: Timestamp,
    origin: Origin,
    beginning: &Beginning<'_>,
) -> Option<Lateness> {
    let late = beginning.started_at.saturating_since(scheduled_at);
    if late <= LATE_AFTER {
        return None;
    }
    let delay = view.entry().filter(|_| origin.is_schedule());
    let delayed_to = delay.map(|job| scheduled_at + job.delay(scheduled_at));
    let delayed_to = delayed_to.filter(|until| *until > scheduled_at);
    let recorded = beginning.recorded.map(Reason::from);
    let before = beginning.before.map(|line| after(line, scheduled_at));
    let (reason, until) = match (before, recorded) {
        // What held it since it could begin is told by its own record.
        (Some((_, free_since)), Some(recorded))
            if beginning.started_at.saturating_since(free_since) > LATE_AFTER =>
        {
            (recorded, recorded.until())
        }
        (Some((reason, free_since)), _) => (reason, Some(free_since)),
        (None, Some(recorded)) => (recorded, recorded.until()),
        (None, None) => match delayed_to.filter(|_| beginning.attempt == 1) {
            Some(until) => (Reason::RandomDelay { until }, Some(until)),
            None => (Reason::NotRecorded, None),
        },
    };
    let rest = until.map(|until| beginning.started_at.saturating_since(until));
    Some(Lateness {
        seconds: to_seconds(late),
        reason,
        unexplained_seconds: rest.filter(|rest| *rest > LATE_AFTER).map(to_seconds),
    })
}

/// What the attempt before it has to do with its beginning, and since when it could begin.
fn after(line: &AttemptRecord, scheduled_at: Timestamp) -> (Reason, Timestamp) {
    let attempt = line.attempt;
    let until = line.detail.next_attempt_at.unwrap_or(line.ended_at);
    let reason = match line.outcome {
        Outcome::Lost => Reason::Takeover { attempt },
        Outcome::HandedOver => Reason::HandOver { attempt, until },
        _ => Reason::Retry { attempt, until },
    };
    (reason, until.max(scheduled_at))
}

impl Reason {
    fn until(self) -> Option<Timestamp> {
        match self {
            Reason::RandomDelay { until }
            | Reason::Turn { until, .. }
            | Reason::After { until }
            | Reason::Grace { until }
            | Reason::Retry { until, .. }
            | Reason::HandOver { until, .. } => Some(until),
            Reason::Room
            | Reason::Away
            | Reason::Reasserted
            | Reason::Takeover { .. }
            | Reason::NotRecorded => None,
        }
    }
}

impl From<Late> for Reason {
    fn from(late: Late) -> Self {
        match late {
            Late::Turn { behind, until } => Reason::Turn { behind, until },
            Late::After { until } => Reason::After { until },
            Late::Grace { until } => Reason::Grace { until },
            Late::Room => Reason::Room,
            Late::Away => Reason::Away,
            Late::Reasserted => Reason::Reasserted,
        }
    }
}
