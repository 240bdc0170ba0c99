//! Occurrences that wait: for their turn, or for somebody to say what the job's policy makes of
//! them.

use super::due::UNPLACED;
use super::record::{Current, News, Waiting};
use super::step::{Step, Unstarted};
use crate::scheduler::lease::{
    Cause, Claim, ClaimAnswer, Origin, Outcome, RunId, StopFor, StopOrder,
};
use crate::scheduler::policy::Concurrency;
use crate::scheduler::time::Timestamp;

impl Step<'_, '_> {
    /// A claim to an occurrence that waits. It settles what becomes of all that wait: whoever
    /// asks for one has the job's policy.
    pub(super) fn claim_waiting(&mut self, claim: &Claim) -> ClaimAnswer {
        if claim.claim_by == Claim::ONLY_ASKS {
            return ClaimAnswer::Finished;
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        self.drop_forgotten(claim);
        self.drop_expired(claim);
        if !claim.unplaced {
            // Where it can't run, nothing makes way for it.
            self.apply_policy(claim);
        }
        self.grant_turn(claim)
    }

    /// Grants what waits, where it is its turn.
    pub(super) fn grant_turn(&mut self, claim: &Claim) -> ClaimAnswer {
        if self.record.open().is_some() {
            return self.told_of(claim.due());
        }
        let first = self.record.waiting.first();
        if first.is_none_or(|one| one.scheduled_at != claim.due()) {
            if first.is_some() {
                // It may be the first since just now, and then nobody asks for it yet.
                self.tell(News::Opening);
            }
            return self.told_of(claim.due());
        }
        if claim.grants_nothing() {
            return ClaimAnswer::NoRoom;
        }
        let one = self.record.waiting.remove(0);
        self.open(&one, claim.shards);
        let answer = self.grant(claim);
        self.apply_policy(claim);
        answer
    }

    /// What a claim is told of an occurrence that was not granted to it.
    pub(super) fn told_of(&self, due: Timestamp) -> ClaimAnswer {
        let obstacle = self.record.open().and_then(Current::obstacle);
        match (self.fate_of(due), obstacle) {
            (None, _) => ClaimAnswer::Waiting,
            (Some((Outcome::Skipped, Some(Cause::Overlap))), Some(held)) => {
                ClaimAnswer::Overlap(held)
            }
            (Some((Outcome::Skipped, Some(cause))), _) => ClaimAnswer::Skipped(cause),
            (Some(_), _) => ClaimAnswer::TooLate,
        }
    }

    /// Drops what may run once only, and may have been granted by a store that has forgotten it.
    fn drop_forgotten(&mut self, claim: &Claim) {
        for one in std::mem::take(&mut self.record.waiting) {
            if let Some(words) = self.may_have_run(claim, one.scheduled_at, one.origin) {
                let (outcome, cause) = (Outcome::Missed, Cause::Unknown);
                self.drop_waiting(claim.run_id, &one, outcome, cause, words);
            } else {
                self.record.waiting.push(one);
            }
        }
    }

    /// Drops what may not start any more.
    fn drop_expired(&mut self, claim: &Claim) {
        let (run_id, now) = (claim.run_id, self.now());
        let unplaced = claim.unplaced && self.record.open().is_none();
        let paused = self.record.paused.is_some();
        let waiting = std::mem::take(&mut self.record.waiting);
        for one in waiting {
            if paused && one.origin != Origin::Trigger {
                let words = "the job was paused when its turn came";
                self.drop_waiting(run_id, &one, Outcome::Skipped, Cause::Paused, words);
            } else if one.start_by.is_none_or(|until| now <= until) {
                self.record.waiting.push(one);
            } else if unplaced {
                let (outcome, cause) = (Outcome::Skipped, Cause::Placement);
                self.drop_waiting(run_id, &one, outcome, cause, UNPLACED);
            } else {
                let words = "starting_deadline passed while it waited for its turn";
                self.drop_waiting(run_id, &one, Outcome::Missed, Cause::Deadline, words);
            }
        }
    }

    fn drop_waiting(
        &mut self,
        run_id: RunId,
        one: &Waiting,
        outcome: Outcome,
        cause: Cause,
        words: impl Into<String>,
    ) {
        let unstarted = Unstarted {
            run_id,
            scheduled_at: one.scheduled_at,
            waiting: Some(one),
        };
        self.never_started(unstarted, outcome, cause, words);
    }

    /// What the job's policy says to those that wait and that it was not asked about yet.
    pub(super) fn apply_policy(&mut self, claim: &Claim) {
        match claim.concurrency {
            Concurrency::Replace => self.leave_the_newest(claim.run_id),
            _ if self.record.open().is_none() => {}
            Concurrency::Forbid => self.skip_undecided(claim.run_id, 0, Cause::Overlap),
            Concurrency::Queue { limit } => {
                self.skip_undecided(claim.run_id, limit as usize, Cause::QueueFull);
            }
        }
    }

    /// Of those that were not decided yet, lets wait whose place is below the limit.
    fn skip_undecided(&mut self, run_id: RunId, limit: usize, cause: Cause) {
        let open = self.record.open();
        let unfinished = open.map(|current| current.scheduled_at).unwrap_or_default();
        let waiting = std::mem::take(&mut self.record.waiting);
        for mut one in waiting {
            let place = self.record.waiting.len();
            if one.queued || place < limit {
                one.queued = true;
                self.record.waiting.push(one);
                continue;
            }
            let words = match cause {
                Cause::QueueFull => format!("the queue is full ({place} waiting)"),
                _ => format!("overlap: the occurrence of {unfinished} is unfinished"),
            };
            self.drop_waiting(run_id, &one, Outcome::Skipped, cause, words);
        }
    }

    /// The newest takes the place of all before it: of those that wait too, and of the running
    /// one, which is told to end.
    fn leave_the_newest(&mut self, run_id: RunId) {
        let Some(mut newest) = self.record.waiting.pop() else {
            return;
        };
        let due = newest.scheduled_at;
        for one in std::mem::take(&mut self.record.waiting) {
            let words = format!("the occurrence of {due} took its place before it started");
            self.drop_waiting(run_id, &one, Outcome::Skipped, Cause::Replaced, words);
        }
        newest.queued = true;
        self.record.waiting.push(newest);
        if self.record.open().is_some() {
            self.stop(StopOrder {
                why: StopFor::Replaced,
                by: format!("the occurrence of {due}"),
                at: self.now(),
            });
        }
    }
}
