//! The end of a pause, or of the time for which a job was disabled.
//!
//! What fell due meanwhile is skipped. What was due before it may still be claimed, for its random
//! delay or for want of room: until that is settled, what is skipped after it stays a gap, as
//! nothing is settled but in order.
//!
//! Must never: settle what a replica may be about to claim.

use super::enrolling::nobody;
use super::record::Gap;
use super::step::Step;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Cause, Outcome, RunId};
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::Timestamp;

const NOBODY_CAME: &str = "no replica claimed it: all were away, or the store was";
/// What becomes of what nobody claimed.
pub(super) const MISSED: (Outcome, Cause, &str) = (Outcome::Missed, Cause::CatchUp, NOBODY_CAME);

impl Step<'_, '_> {
    /// What fell due since then, up to now, is skipped.
    pub(super) fn end_suspension(
        &mut self,
        job: &JobName,
        since: Timestamp,
        cause: Cause,
        words: String,
    ) {
        let until = self.now();
        let former = self.record.gap.as_ref().filter(|gap| {
            // Another one soon after: what was due before the first still waits.
            gap.cause == cause && !self.is_due_between(job, gap.until, since)
        });
        let gap = match former.cloned() {
            Some(gap) => Gap { until, ..gap },
            None => {
                self.close_gap(nobody(), MISSED);
                Gap {
                    since,
                    until,
                    cause,
                    words,
                }
            }
        };
        self.record.gap = Some(gap);
        self.close_gap_in_turn(job);
    }

    /// Skips what is in the gap, once all before it is settled.
    pub(super) fn close_gap_in_turn(&mut self, job: &JobName) {
        if let Some(gap) = &self.record.gap
            && !self.is_due_between(job, self.record.settled_until, gap.since)
        {
            self.close_gap(nobody(), MISSED);
        }
    }

    /// Skips what is in the gap. What was due before and was not claimed has the fate that is given.
    pub(super) fn close_gap(&mut self, run_id: RunId, unclaimed: (Outcome, Cause, &str)) {
        if let Some(gap) = self.record.gap.take() {
            let (outcome, cause, words) = unclaimed;
            self.pass_over(run_id, gap.since, outcome, cause, words);
            self.pass_over(run_id, gap.until, Outcome::Skipped, gap.cause, gap.words);
        }
    }

    /// Whether the schedule in force has an instant after the one and up to the other.
    fn is_due_between(&self, job: &JobName, after: Timestamp, until: Timestamp) -> bool {
        let schedule = Schedule::from_identity(&self.record.schedule, job.as_str());
        let next = schedule.and_then(|schedule| schedule.next_after(after));
        next.is_some_and(|at| at <= until)
    }
}
