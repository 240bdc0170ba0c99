//! Pauses, and jobs that the tables disable: nothing of the schedule starts meanwhile, and what
//! fell due meanwhile is skipped when that is over.
//!
//! What was due before and that nobody could claim is no part of that. As long as there may be
//! such, the suspension stays in the record after its end, for whoever settles what comes later.
//!
//! Must never: skip what was due before a suspension, or let run what was due in it.

use super::enrolling::nobody;
use super::record::{Paused, Suspension};
use super::step::Step;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Cause, Outcome, Pause};
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::Timestamp;

/// How many suspensions that are over a record keeps. A further one settles the oldest.
const SUSPENSIONS_KEPT: usize = 8;

impl Paused {
    /// As others see it.
    pub(in crate::store) fn shown(&self) -> Pause {
        Pause {
            since: self.since,
            by: self.by.clone(),
        }
    }

    /// What it keeps from running, as long as nobody ends it.
    pub(super) fn suspension(&self) -> Suspension {
        let words = format!("the job was paused by {}", self.by);
        Suspension::lasting(self.since, Cause::Paused, words)
    }
}

impl Suspension {
    pub(super) fn disabled(since: Timestamp) -> Self {
        Self::lasting(since, Cause::Disabled, "the job was disabled".to_owned())
    }

    fn lasting(since: Timestamp, cause: Cause, words: String) -> Self {
        let until = Timestamp::from_millis(i64::MAX);
        Self {
            since,
            until,
            cause,
            words,
        }
    }
}

impl Step<'_, '_> {
    /// All that are not settled, by when they began: those that are over, and those that last.
    pub(super) fn suspensions(&self) -> Vec<Suspension> {
        let mut all = self.record.suspensions.clone();
        all.extend(self.suspension());
        all.sort_by_key(|one| one.since);
        all
    }

    /// What keeps the job from starting anything of its schedule now.
    pub(super) fn suspension(&self) -> Option<Suspension> {
        let paused = self.record.paused.as_ref().map(Paused::suspension);
        let disabled = self.record.disabled.map(Suspension::disabled);
        let both = paused.into_iter().chain(disabled);
        both.min_by_key(|one| one.since)
    }

    /// Since when the job is, or was, suspended at an instant.
    pub(super) fn suspended_since(&self, at: Timestamp) -> Option<Timestamp> {
        let all = self.suspensions();
        let at_it = all.iter().find(|one| one.since < at && at <= one.until);
        at_it.map(|one| one.since)
    }

    /// A suspension is over by now. What fell due in it is skipped at once, unless something that
    /// was due before waits to be claimed.
    pub(super) fn end_suspension(&mut self, job: &JobName, ended: Suspension) {
        let now = self.now();
        if now <= self.record.settled_until {
            return;
        }
        self.record.suspensions.push(Suspension {
            until: now,
            ..ended
        });
        self.record.suspensions.sort_by_key(|one| one.since);
        self.settle_suspensions(job);
        if self.record.suspensions.len() > SUSPENSIONS_KEPT {
            let oldest = self.record.suspensions[0].until;
            self.pass_all_over(oldest);
        }
    }

    /// Skips what fell due in suspensions before which nothing is left.
    pub(super) fn settle_suspensions(&mut self, job: &JobName) {
        self.drop_settled_suspensions();
        while let Some(first) = self.record.suspensions.first() {
            let (since, until) = (first.since, first.until);
            if self.leaves_something(job, since) {
                return;
            }
            self.pass_all_over(until);
        }
    }

    /// Whether an instant of the schedule up to `until` is unsettled.
    pub(super) fn leaves_something(&self, job: &JobName, until: Timestamp) -> bool {
        let settled = self.record.settled_until;
        let schedule = Schedule::from_identity(&self.record.schedule, job.as_str());
        settled < until
            && schedule
                .and_then(|schedule| schedule.next_after(settled))
                .is_some_and(|next| next <= until)
    }

    fn pass_all_over(&mut self, until: Timestamp) {
        let (outcome, cause) = (Outcome::Missed, Cause::CatchUp);
        self.pass_over(nobody(), until, outcome, cause, super::due::NOBODY_CAME);
    }
}
