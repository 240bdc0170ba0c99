//! Claims to occurrences that wait: for their turn, or for somebody to say what the job's policy
//! makes of them.

use super::record::Waiting;
use super::step::{Step, Unstarted};
use crate::scheduler::lease::{Cause, Claim, ClaimAnswer, Origin, Outcome};
use crate::scheduler::policy::Concurrency;
use crate::scheduler::time::Timestamp;

impl Step<'_, '_> {
    /// A claim to an occurrence that waits, in its place from 0.
    pub(super) fn claim_waiting(&mut self, claim: &Claim, place: usize) -> ClaimAnswer {
        if claim.claim_by == Claim::ONLY_ASKS {
            return ClaimAnswer::Finished;
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        let now = self.now();
        let one = self.record.waiting[place].clone();
        if let Some((outcome, cause, words)) = self.no_more(&one, now) {
            self.record.waiting.remove(place);
            let unstarted = Unstarted {
                waiting: Some(&one),
                ..claim.unstarted()
            };
            self.never_started(unstarted, outcome, cause, words);
            return match outcome {
                Outcome::Skipped => ClaimAnswer::Skipped(cause),
                _ => ClaimAnswer::TooLate,
            };
        }
        if self.record.open().is_some() {
            return self.wait_its_turn(claim, place);
        }
        if place > 0 {
            // Those before it may be past their time, and then nobody would ask for them.
            return self.expire_before(claim, place);
        }
        self.record.waiting.remove(0);
        self.open(&one, claim.shards);
        self.grant(claim)
    }

    /// Why an occurrence that waited can't start any more, if it can't.
    fn no_more(&self, one: &Waiting, now: Timestamp) -> Option<(Outcome, Cause, &'static str)> {
        let paused = self.record.paused.is_some() && one.origin != Origin::Trigger;
        if paused {
            return Some((
                Outcome::Skipped,
                Cause::Paused,
                "the job was paused when its turn came",
            ));
        }
        if one.start_by.is_some_and(|until| now > until) {
            let words = "starting_deadline passed while it waited for its turn";
            return Some((Outcome::Missed, Cause::Deadline, words));
        }
        None
    }

    /// What the job's policy says to an occurrence that waits while another one is unfinished.
    fn wait_its_turn(&mut self, claim: &Claim, place: usize) -> ClaimAnswer {
        if self.record.waiting[place].queued {
            return ClaimAnswer::Waiting;
        }
        let refused = match claim.concurrency {
            Concurrency::Forbid => Some(Cause::Overlap),
            Concurrency::Queue { limit } if place >= limit as usize => Some(Cause::QueueFull),
            Concurrency::Queue { .. } => None,
            Concurrency::Replace => {
                self.replace(claim);
                None
            }
        };
        // Those before it may have gone.
        let due = claim.due();
        let place = self
            .record
            .waiting
            .iter()
            .position(|one| one.scheduled_at == due);
        let Some(place) = place else {
            return ClaimAnswer::Finished;
        };
        match refused {
            None => {
                self.record.waiting[place].queued = true;
                ClaimAnswer::Waiting
            }
            Some(cause) => {
                let one = self.record.waiting.remove(place);
                let unstarted = Unstarted {
                    waiting: Some(&one),
                    ..claim.unstarted()
                };
                self.skip(unstarted, cause)
            }
        }
    }

    /// Drops what waits before a place and is past its time, and asks again where that makes the
    /// claim the first.
    fn expire_before(&mut self, claim: &Claim, place: usize) -> ClaimAnswer {
        let now = self.now();
        let before: Vec<_> = self.record.waiting.drain(..place).collect();
        let mut kept = Vec::new();
        for one in before {
            match self.no_more(&one, now) {
                None => kept.push(one),
                Some((outcome, cause, words)) => {
                    let unstarted = Unstarted {
                        run_id: claim.run_id,
                        scheduled_at: one.scheduled_at,
                        waiting: Some(&one),
                    };
                    self.never_started(unstarted, outcome, cause, words);
                }
            }
        }
        let first = kept.is_empty();
        self.record.waiting.splice(..0, kept);
        match first {
            true => self.claim_waiting(claim, 0),
            // Still undecided, if it was: that is for when it is known what runs then.
            false => ClaimAnswer::Waiting,
        }
    }
}
