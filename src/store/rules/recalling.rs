//! What replicas tell a ledger that has lost data: it takes back what they have seen of it.
//!
//! ```text
//!  ledger lost ─▶ first replica: settled up to L ─▶ holders come back ─▶ window over:
//!                 others: the same, or later                            (L, birth] is missed
//! ```
//!
//! All lost: it begins with what the first replica has seen settled, and what was due from then to
//! its birth can't be told. Set back to what it was: nor can what replicas have seen settled since.
//! None of that starts, as it may have run.
//!
//! A pause is told once, when a replica hears of the loss, which is within the grace window that
//! begins with it. The window also bounds how long a pause that a person has ended meanwhile could
//! come back by the word of a replica that did not hear of that.
//!
//! Must never: believe a replica where nothing was lost; what the ledger holds is what counts.

use super::enrolling::nobody;
use super::record::Paused;
use super::step::Step;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Cause, Enrolment, Outcome, SeenPause};
use crate::scheduler::time::Timestamp;

const LOST: &str = "the ledger lost data later and can't tell whether it ran";

impl Step<'_, '_> {
    /// Takes in what a replica saw of a job before the ledger lost data. Answers whether the job
    /// is paused again by that.
    pub(super) fn recall(&mut self, enrolment: &Enrolment) -> bool {
        let seen = &enrolment.seen;
        // What its sender gave up, or a copy of it, is of another time: since then the window may have
        // ended, and the pause too.
        let window = match self.call.expired() {
            true => self.call.window(),
            false => self.call.grace(),
        };
        if self.known && window.is_zero() {
            return false;
        }
        if let Some(until) = seen.settled_until {
            self.recall_settled(until);
        }
        let pause = seen.pause.as_ref();
        pause.is_some_and(|pause| self.recall_pause(&enrolment.job, pause))
    }

    /// A replica has seen the instants up to `seen` settled.
    fn recall_settled(&mut self, seen: Timestamp) {
        let seen = seen.min(self.now());
        if self.known {
            return self.lose_until(seen);
        }
        let born = self.born();
        self.record.settled_until = seen;
        self.lose_until(match seen < born {
            true => born,
            // The ledger is older than that: it lost this job alone.
            false => self.now(),
        });
    }

    /// What was due by then and isn't settled may have run, and is not to run again.
    pub(super) fn lose_until(&mut self, until: Timestamp) {
        if until > self.record.settled_until {
            self.record.lost_until = self.record.lost_until.max(Some(until));
        }
    }

    /// Writes down what can't be told. Not before holders had the time to come back, as what they
    /// hold is known.
    pub(super) fn write_off_lost(&mut self, job: &JobName) {
        if !self.call.grace().is_zero() {
            return;
        }
        let Some(until) = self.record.lost_until.take() else {
            return;
        };
        match self.leaves_something(job, until) {
            true => self.pass_over(nobody(), until, Outcome::Missed, Cause::Unknown, LOST),
            false => self.settle(until),
        }
    }

    fn recall_pause(&mut self, job: &JobName, seen: &SeenPause) -> bool {
        let SeenPause { pause, over } = seen;
        match (&self.record.paused, over) {
            (None, false) if pause.since <= self.now() => {
                self.record.paused = Some(Paused {
                    since: pause.since,
                    by: pause.by.clone(),
                });
                true
            }
            // A ledger that fell back to what it was may have a pause that is over.
            (Some(paused), true) if paused.since == pause.since => {
                let ended = paused.suspension();
                self.record.paused = None;
                self.end_suspension(job, ended);
                false
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
