//! How occurrences and attempts end, and what is kept of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Late, Origin, Usage};
use crate::scheduler::time::Timestamp;

/// How an occurrence or an attempt of it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran and ended with a success code.
    Succeeded,
    /// It ran and ended otherwise, or could not be started.
    Failed,
    /// It was ended for running longer than its `timeout`.
    TimedOut,
    /// Its holder vanished or could not keep the lease.
    Lost,
    /// It was ended on request and won't run again.
    Cancelled,
    /// It was ended by a drain and another replica is to run it.
    HandedOver,
    /// It never started, by a policy.
    Skipped,
    /// It never started, for want of a replica or a store.
    Missed,
}

impl Outcome {
    /// It ran to an end that may be tried again.
    pub const fn is_failure(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::TimedOut)
    }

    /// As the contract and the history spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::TimedOut => "timed_out",
            Outcome::Lost => "lost",
            Outcome::Cancelled => "cancelled",
            Outcome::HandedOver => "handed_over",
            Outcome::Skipped => "skipped",
            Outcome::Missed => "missed",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Which policy kept an occurrence from running, or ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Skipped: the job was busy, and `concurrency_policy` is `forbid`.
    Overlap,
    /// Skipped: `queue_limit` others waited already.
    QueueFull,
    /// Skipped or cancelled: a newer one took its place.
    Replaced,
    /// Skipped: the job was paused.
    Paused,
    /// Skipped: the job was disabled.
    Disabled,
    /// Skipped: no replica had the tags that the job asks for.
    Placement,
    /// Skipped: a job that it comes after did not succeed.
    After,
    /// Missed: nobody claimed it in time.
    Deadline,
    /// Missed: nobody was there, and `catch_up` doesn't run it.
    CatchUp,
    /// Missed: the schedule was changed before anybody claimed it.
    ScheduleChanged,
    /// Missed: the store can't tell whether it ran.
    Unknown,
    /// Lost: `max_attempts` is used up.
    MaxAttempts,
    /// Lost: `on_crash` is `skip`.
    OnCrash,
    /// Cancelled: somebody asked for it.
    Killed,
}

impl Cause {
    /// As the ledger and `--json` spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::Overlap => "overlap",
            Cause::QueueFull => "queue_full",
            Cause::Replaced => "replaced",
            Cause::Paused => "paused",
            Cause::Disabled => "disabled",
            Cause::Placement => "placement",
            Cause::After => "after",
            Cause::Deadline => "deadline",
            Cause::CatchUp => "catch_up",
            Cause::ScheduleChanged => "schedule_changed",
            Cause::Unknown => "unknown",
            Cause::MaxAttempts => "max_attempts",
            Cause::OnCrash => "on_crash",
            Cause::Killed => "killed",
        }
    }
}

/// What is known of how an attempt ended, beyond its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptDetail {
    /// What exit(3) was called with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signal: Option<i32>,
    /// In words, where the code doesn't say it all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
    /// What it used; none where nothing could be measured, or nothing ran.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub usage: Option<Usage>,
    /// What brought the occurrence about, where it wasn't the schedule.
    #[serde(skip_serializing_if = "Origin::is_schedule", default)]
    pub origin: Origin,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<String>,
    /// Which shard, and of how many; none where it isn't sharded.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shard: Option<(u32, u32)>,
    /// Which policy decided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cause: Option<Cause>,
    /// Another attempt follows, at this instant at the earliest. None: this line is the last
    /// word on its occurrence (or shard).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next_attempt_at: Option<Timestamp>,
    /// The line stands for all occurrences after this instant, up to and with its own, that
    /// `schedule` has.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub since: Option<Timestamp>,
    /// The schedule that was in force in that time, see
    /// [`crate::scheduler::schedule::Schedule::identity`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub schedule: Option<String>,
    /// Why the attempt began late. None: it did not, or that is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late: Option<Late>,
}

impl AttemptDetail {
    /// A detail of words alone.
    pub fn reason(text: impl Into<String>) -> Self {
        Self {
            reason: Some(text.into()),
            ..Self::default()
        }
    }

    /// A policy's word, with an explanation.
    pub fn policy(cause: Cause, text: impl Into<String>) -> Self {
        Self {
            cause: Some(cause),
            ..Self::reason(text)
        }
    }

    /// Nothing follows on the line's occurrence, or shard.
    pub const fn is_final(&self) -> bool {
        self.next_attempt_at.is_none()
    }
}

/// What an attempt printed: of each stream the first and last part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

/// The first and last part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// Its first bytes.
    pub head: Vec<u8>,
    /// Its last bytes, those of `head` not repeated.
    pub tail: Vec<u8>,
    /// How many bytes came in all.
    pub total: u64,
}

impl Captured {
    /// How many bytes were not kept.
    pub fn cut(&self) -> u64 {
        self.total
            .saturating_sub((self.head.len() + self.tail.len()) as u64)
    }

    /// Nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
}
