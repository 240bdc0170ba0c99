//! Claims to occurrences that nobody claimed before: who gets one, and what becomes of it where
//! nobody does.

use super::record::{Current, Waiting};
use super::step::Step;
use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{Cause, Claim, ClaimAnswer, Origin, Outcome};
use crate::scheduler::policy::Concurrency;
use crate::scheduler::time::Timestamp;

/// How many occurrences of a job wait at most, whatever its policies and people ask for: each
/// is a part of its record.
pub(super) const WAITING_LIMIT: usize = 2000;

pub(super) const NOBODY_CAME: &str =
    "nobody claimed it in time: replicas or the store were away, or no table in force had the job";
pub(super) const FORGOTTEN: &str = "the store was restarted later and can't tell whether it ran";
const TWIN: &str =
    "it fell due in a failover, and the server that was the master before may have granted it";
const NO_ROOM: &str = "no replica had room for it (`max_running`) before the next was due";
pub(super) const UNPLACED: &str =
    "no replica that has the tags of `run_on` was there to claim it in time";

/// How many occurrences wait at most behind those that are caught up with.
const BACKLOG_LIMIT: usize = 100;

impl Step<'_, '_> {
    /// A claim to an occurrence of the schedule that nobody claimed yet.
    pub(super) fn claim_new(&mut self, claim: &Claim) -> ClaimAnswer {
        let (due, now) = (claim.due(), self.now());
        if claim.claim_by == Claim::ONLY_ASKS {
            return ClaimAnswer::Finished;
        }
        if let Some(since) = self.suspended_since(due)
            && !mutant!(PauseIgnored)
        {
            return ClaimAnswer::Suspended { since };
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        self.write_off_lost(&claim.occurrence.job);
        if self.known && due <= self.record.settled_until {
            return ClaimAnswer::TooLate;
        }
        self.settle_before(claim);
        let refusal = self.refusal(claim, now);
        let free = self.record.open().is_none() && self.record.waiting.is_empty();
        if refusal.is_none() && free && claim.grants_nothing() {
            return ClaimAnswer::NoRoom;
        }
        if let Some((outcome, cause, words)) = refusal {
            if let Some(until) = claim.backlog.last() {
                // What is too late for the newest is too late for those before it.
                self.pass_over(claim.run_id, *until, outcome, cause, words);
            }
            self.settle(due);
            self.never_started(claim.unstarted(), outcome, cause, words);
            self.settle_suspensions(&claim.occurrence.job);
            return match outcome {
                Outcome::Skipped => ClaimAnswer::Skipped(cause),
                _ => ClaimAnswer::TooLate,
            };
        }
        self.queue_backlog(claim);
        self.settle(due);
        self.settle_suspensions(&claim.occurrence.job);
        let free = self.record.open().is_none();
        if self.record.waiting.len() >= WAITING_LIMIT {
            return self.refuse_to_queue(claim);
        }
        if !free && mutant!(StartsBeside) {
            self.open(&claim.waiting(now), claim.shards);
            return self.grant(claim);
        }
        if !free {
            return self.busy(claim);
        }
        self.record.waiting.push(claim.waiting(now));
        self.apply_policy(claim);
        self.grant_turn(claim)
    }

    /// Settles what was due before the claim and its backlog, as far as it is unsettled.
    fn settle_before(&mut self, claim: &Claim) {
        let run_id = claim.run_id;
        if let Some(until) = claim.missed_until {
            let (outcome, cause, words) = match claim.unplaced {
                true => (Outcome::Skipped, Cause::Placement, UNPLACED),
                false if claim.no_room_before => (Outcome::Missed, Cause::CatchUp, NO_ROOM),
                false => (Outcome::Missed, Cause::CatchUp, NOBODY_CAME),
            };
            self.pass_over(run_id, until, outcome, cause, words);
        } else if let Some(until) = claim.follows
            && self.suspensions().is_empty()
        {
            // Whoever claims heard that it was settled, by a store that has forgotten it since.
            self.pass_over(run_id, until, Outcome::Missed, Cause::Unknown, FORGOTTEN);
        }
        // Of those that are to run first.
        let mut backlog = claim.backlog.iter().rev();
        let found = backlog.find_map(|at| {
            let words = self.may_have_run(claim, *at, claim.origin)?;
            Some((*at, words))
        });
        if let Some((until, words)) = found {
            self.pass_over(run_id, until, Outcome::Missed, Cause::Unknown, words);
        }
    }

    /// Lets older instants wait that are to run first, where they are unsettled.
    fn queue_backlog(&mut self, claim: &Claim) {
        let (due, now) = (claim.due(), self.now());
        for at in claim.backlog.iter().copied().filter(|at| *at < due) {
            let settled = at <= self.record.settled_until;
            if settled || self.suspended_since(at).is_some() {
                continue;
            }
            self.settle(at);
            self.record.waiting.push(Waiting {
                scheduled_at: at,
                start_by: Some(at + claim.start_by.saturating_since(due)),
                ..claim.waiting(now)
            });
        }
    }

    /// Why an occurrence can't start any more, if it can't.
    fn refusal(&self, claim: &Claim, now: Timestamp) -> Option<(Outcome, Cause, &'static str)> {
        if claim.due() <= self.call.group.born && !self.known {
            let words = "the ledger began later and can't tell whether it ran";
            return Some((Outcome::Missed, Cause::Unknown, words));
        }
        if let Some(words) = self.forgotten(claim) {
            // A store that was started anew may have forgotten a grant that it acknowledged.
            return Some((Outcome::Missed, Cause::Unknown, words));
        }
        if claim.unplaced {
            return Some((Outcome::Skipped, Cause::Placement, UNPLACED));
        }
        if now > claim.start_by {
            let words = match claim.no_room {
                true => "starting_deadline passed before a replica had room (`max_running`)",
                false => "starting_deadline passed before a replica could claim it",
            };
            return Some((Outcome::Missed, Cause::Deadline, words));
        }
        if now > claim.claim_by {
            let words = "no replica claimed it within 1 s, and catch_up = \"none\"";
            return Some((Outcome::Missed, Cause::CatchUp, words));
        }
        if let Some(suspension) = self.suspension()
            && !mutant!(PauseIgnored)
        {
            let words = "the job was paused or disabled before it could start";
            return Some((Outcome::Skipped, suspension.cause, words));
        }
        None
    }

    /// Why an occurrence that may run once only may have been granted without a trace, if so.
    pub(super) fn forgotten(&self, claim: &Claim) -> Option<&'static str> {
        self.may_have_run(claim, claim.due(), claim.origin)
    }

    /// The same of another one of the job.
    pub(super) fn may_have_run(
        &self,
        claim: &Claim,
        at: Timestamp,
        origin: Origin,
    ) -> Option<&'static str> {
        // A trigger is known to the process alone that was given it.
        let twin = origin != Origin::Trigger && at <= self.call.unsure_until();
        let words = match at <= self.born() {
            true => Some(FORGOTTEN),
            false => twin.then_some(TWIN),
        };
        words.filter(|_| claim.on_crash == OnCrash::Skip)
    }

    /// A new occurrence of the schedule finds another one unfinished.
    fn busy(&mut self, claim: &Claim) -> ClaimAnswer {
        let scheduled = |one: &Waiting| one.origin == Origin::Schedule;
        let forbids = claim.concurrency == Concurrency::Forbid;
        let backlog = forbids && self.record.waiting.iter().any(scheduled);
        self.record.waiting.push(Waiting {
            // Behind what is being caught up with, it is as late as that.
            queued: backlog && self.record.waiting.len() < BACKLOG_LIMIT,
            ..claim.waiting(self.now())
        });
        self.apply_policy(claim);
        self.told_of(claim.due())
    }

    /// There are too many already, whatever the policy.
    fn refuse_to_queue(&mut self, claim: &Claim) -> ClaimAnswer {
        let words = format!("the queue is full ({} waiting)", self.record.waiting.len());
        self.never_started(claim.unstarted(), Outcome::Skipped, Cause::QueueFull, words);
        ClaimAnswer::Skipped(Cause::QueueFull)
    }

    /// A claim of a person who waits for it, here and now.
    pub(super) fn claim_here(&mut self, claim: &Claim) -> ClaimAnswer {
        if let Some(held) = self.record.open().and_then(Current::obstacle) {
            return ClaimAnswer::Held(held);
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        if self.now() > claim.start_by {
            return ClaimAnswer::TooLate;
        }
        self.open(&claim.waiting(self.now()), claim.shards);
        self.grant(claim)
    }
}
