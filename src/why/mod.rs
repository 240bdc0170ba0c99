//! What became of an occurrence, and why: told from the table, the ledger's records and its
//! lines, for people and programs.
//!
//! ```text
//!  TIME ──asked──▶ instants ──account──▶ Account ──told──▶ sentences
//!                               ▲           └────serde───▶ JSON
//!        table, snapshot, lines ┘
//! ```
//!
//! An occurrence's fate is looked for where it would be, in this order: attempts, ended or
//! under way (`attempts`); the record of what waits (`pending`); a line of its own, or one that
//! stands for many (`ranges`); and where there is nothing, the schedule that was in force says
//! whether anything was due at all (`schedules`, `pending`). What began late has its reason
//! (`lateness`), and what is open those who could claim it (`candidates`).
//!
//! Lines are written in the order of ends, by many replicas: one that announces another attempt
//! is not the last word on its occurrence.
//!
//! Must never: read a clock, connect, or decide anything.

mod account;
mod asked;
mod attempts;
mod candidates;
mod definitions;
mod lateness;
mod pending;
mod ranges;
mod schedules;
mod suspension;
mod told;

pub use self::account::{
    Account, Because, Course, Doubt, Fate, Near, Origins, PastAttempt, Range, Remark, Setting,
    Shard, Unrecorded,
};
pub use self::asked::{Asked, Clocks, NoTime, Written};
pub use self::candidates::Candidates;
pub use self::lateness::{Lateness, Reason};
pub use self::suspension::Suspension;
pub use self::told::tell;
pub use crate::store::RangeLine;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Serialize;

use crate::scheduler::job::{Job, JobName};
use crate::scheduler::schedule::{DstGap, Oddity};
use crate::scheduler::time::Timestamp;
use crate::store::{AttemptRecord, JobState, Snapshot};

/// All that is known of a job. The snapshot is taken first and the lines are read after it: what
/// ended in between is told by its line.
#[derive(Clone, Copy, Debug)]
pub struct View<'v> {
    /// Which job.
    pub job: &'v JobName,
    /// The table, where there is one.
    pub table: Option<&'v [Job]>,
    /// The state of everything.
    pub snapshot: &'v Snapshot,
    /// The store's clock when it was taken.
    pub now: Timestamp,
    /// The ledger's lines of this job.
    pub lines: &'v [AttemptRecord],
}

impl<'v> View<'v> {
    /// The job as the table has it.
    pub fn entry(&self) -> Option<&'v Job> {
        let mut jobs = self.table?.iter();
        jobs.find(|job| job.name == *self.job)
    }

    /// The job as the ledger has it.
    pub fn state(&self) -> Option<&'v JobState> {
        let mut jobs = self.snapshot.jobs.iter();
        jobs.find(|state| state.job == *self.job)
    }

    /// Table or ledger has the job.
    pub fn is_known(&self) -> bool {
        self.entry().is_some() || self.state().is_some() || !self.lines.is_empty()
    }

    /// The zone in which local times of the job are read.
    pub fn zone(&self) -> TimeZone {
        let in_table = self.entry().map(|job| job.schedule.zone().clone());
        let in_force = || schedules::in_force(self, self.now).schedule;
        in_table
            .or_else(|| in_force().map(|schedule| schedule.zone().clone()))
            .unwrap_or(TimeZone::UTC)
    }
}

/// The answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// Which job.
    pub job: JobName,
    /// The store's clock when its state was taken.
    #[serde(serialize_with = "account::rfc3339")]
    pub now: Timestamp,
    /// What the clocks being set made of the local time that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClocksNote>,
    /// One for each instant that was meant: two where a local time comes twice.
    pub accounts: Vec<Account>,
}

/// A local time that doesn't exist, or comes twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "clocks", rename_all = "snake_case")]
pub enum ClocksNote {
    /// It is skipped.
    Skipped {
        /// The local time.
        #[serde(serialize_with = "account::as_text")]
        local: DateTime,
        /// Where.
        zone: String,
        /// When the clocks are set forward past it.
        #[serde(serialize_with = "account::rfc3339")]
        until: Timestamp,
        /// What stands in for it.
        stand_in: StandIn,
    },
    /// It comes twice.
    Twice {
        /// The local time.
        #[serde(serialize_with = "account::as_text")]
        local: DateTime,
        /// Where.
        zone: String,
        /// Which of the two the job's `dst_fold` has; none where that doesn't concern it.
        dst_fold: Option<&'static str>,
    },
}

/// What stands in for a local time that is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StandIn {
    /// The instant at which the clocks are set: `dst_gap = "run_after"`.
    EndOfGap,
    /// Nothing: `dst_gap = "skip"`.
    Nothing,
    /// Nothing has to: the schedule doesn't have this local time, or follows elapsed time.
    NotNeeded,
}

/// What became of the occurrences that were asked for.
pub fn answer(view: &View<'_>, asked: &Asked) -> Answer {
    let zone = || schedules::zone_name(&view.zone());
    let (clocks, accounts) = match asked.clocks {
        None => (None, accounts(view, &asked.instants)),
        Some(Clocks::Twice { local }) => {
            let schedule = schedules::in_force(view, view.now).schedule;
            let concerned = schedule.filter(|schedule| !schedule.follows_elapsed_time());
            let note = ClocksNote::Twice {
                local,
                zone: zone(),
                dst_fold: concerned.map(|schedule| schedule.dst_fold().as_str()),
            };
            (Some(note), accounts(view, &asked.instants))
        }
        Some(Clocks::Skipped { local, until }) => {
            let stand_in = stand_in(view, local, until);
            let account = match stand_in {
                StandIn::EndOfGap => account(view, until),
                StandIn::Nothing => pending::beside(view, until, Some(Because::Gap)),
                StandIn::NotNeeded => pending::beside(view, until, None),
            };
            let note = ClocksNote::Skipped {
                local,
                zone: zone(),
                until,
                stand_in,
            };
            (Some(note), vec![account])
        }
    };
    Answer {
        job: view.job.clone(),
        now: view.now,
        clocks,
        accounts,
    }
}

fn accounts(view: &View<'_>, instants: &[Timestamp]) -> Vec<Account> {
    instants.iter().map(|at| account(view, *at)).collect()
}

/// What became of the occurrence of one instant.
pub fn account(view: &View<'_>, at: Timestamp) -> Account {
    attempts::account(view, at)
        .or_else(|| pending::waiting(view, at))
        .or_else(|| ranges::never_started(view, at))
        .or_else(|| pending::joining(view, at))
        .unwrap_or_else(|| pending::by_schedule(view, at))
}

fn stand_in(view: &View<'_>, local: DateTime, until: Timestamp) -> StandIn {
    let schedule = schedules::in_force(view, until).schedule;
    let concerned =
        schedule.filter(|schedule| !schedule.follows_elapsed_time() && schedule.has_local(local));
    match concerned {
        None => StandIn::NotNeeded,
        Some(schedule) => match schedule.oddity(until) {
            Some(Oddity::AfterGap { .. }) => StandIn::EndOfGap,
            _ if schedule.dst_gap() == DstGap::Skip => StandIn::Nothing,
            _ => StandIn::NotNeeded,
        },
    }
}
