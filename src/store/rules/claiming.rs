//! Claims: whose an occurrence is, and what becomes of one that can't be anybody's now.

use super::record::{Current, Decision, Record, Slot, State, Waiting};
use super::step::{Step, Unstarted};
use super::{Call, is_of_before};
use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{
    AttemptDetail, Cause, Claim, ClaimAnswer, Grant, LATE_AFTER, Late, Origin, Outcome,
};
use crate::scheduler::time::Timestamp;

const NEXT_FORGOTTEN: &str =
    "the store was restarted later and can't tell whether the next attempt ran";

impl Call<'_> {
    /// See [`super::super::Store::claim`].
    pub(in crate::store) fn claim(
        &mut self,
        record: Option<&Record>,
        claim: &Claim,
    ) -> Decision<ClaimAnswer> {
        let mut step = Step::begin(self, record);
        step.tell_people(&claim.occurrence.job, claim.run_id, claim.telling.as_ref());
        let answer = step.claim(claim);
        if answer == ClaimAnswer::Finished {
            step.recall_news();
        }
        step.decide(answer)
    }
}

impl Claim {
    /// Who sends it could not start anything: it is for what needs no room, a skip or a
    /// replacement, and for writing down what came of an attempt.
    pub(super) fn grants_nothing(&self) -> bool {
        self.no_room || self.unplaced
    }

    pub(super) fn due(&self) -> Timestamp {
        self.occurrence.scheduled_at
    }

    fn shard_index(&self) -> usize {
        self.shard as usize
    }

    /// The occurrence as one that waits.
    pub(super) fn waiting(&self, now: Timestamp) -> Waiting {
        Waiting {
            scheduled_at: self.due(),
            origin: self.origin,
            by: None,
            since: now,
            start_by: Some(self.start_by),
            queued: true,
            late: self.late,
        }
    }

    pub(super) fn unstarted(&self) -> Unstarted<'static> {
        Unstarted {
            run_id: self.run_id,
            scheduled_at: self.due(),
            waiting: None,
        }
    }
}

impl Step<'_, '_> {
    fn claim(&mut self, claim: &Claim) -> ClaimAnswer {
        if let Some(answer) = self.replay(claim) {
            return answer;
        }
        if self.call.expired() {
            return ClaimAnswer::RequestExpired;
        }
        if let Some(in_force) = self.newer_than(claim) {
            return ClaimAnswer::Outdated { in_force };
        }
        let now = self.now();
        // What was taken up before was due, by a clock that may have stepped back since.
        if self.current_at(claim.due()).is_some() {
            return self.claim_shard(claim);
        }
        let mut waiting = self.record.waiting.iter();
        let waiting = waiting.find(|one| one.scheduled_at == claim.due());
        if claim.due() > now
            && !mutant!(GrantsEarly)
            && !waiting.is_some_and(|one| is_of_before(one.since, now))
        {
            let wait = claim.due().saturating_since(now);
            return ClaimAnswer::Early { wait };
        }
        if waiting.is_some() {
            return self.claim_waiting(claim);
        }
        match claim.origin {
            Origin::Schedule if self.known && claim.due() <= self.record.settled_until => {
                ClaimAnswer::Finished
            }
            Origin::Schedule => self.claim_new(claim),
            Origin::RunOnce => self.claim_here(claim),
            Origin::Trigger | Origin::After => ClaimAnswer::Finished,
        }
    }

    fn current_at(&self, due: Timestamp) -> Option<&Current> {
        let current = self.record.current.as_ref();
        current.filter(|current| current.scheduled_at == due)
    }

    /// The same request once more: the same answer, with what is left by now.
    fn replay(&self, claim: &Claim) -> Option<ClaimAnswer> {
        let current = self.current_at(claim.due())?;
        if mutant!(ForgetsWhoAsked) {
            return None;
        }
        let slot = current
            .slots
            .iter()
            .find(|slot| slot.run_id == claim.run_id)?;
        if slot.state != State::Running {
            return Some(ClaimAnswer::Finished);
        }
        Some(ClaimAnswer::Granted(Grant {
            token: slot.token,
            attempt: slot.attempt,
            failures: slot.failures,
            shards: count(&current.slots),
            deadline: slot.deadline,
            remaining: slot.deadline.saturating_since(self.now()),
            replayed: true,
        }))
    }

    pub(super) fn in_grace(&self) -> Option<ClaimAnswer> {
        let wait = self.call.grace();
        (!wait.is_zero()).then_some(ClaimAnswer::Grace { wait })
    }

    /// A claim to a shard of the current occurrence.
    fn claim_shard(&mut self, claim: &Claim) -> ClaimAnswer {
        let shard = claim.shard_index();
        let Some(current) = self.record.current.clone() else {
            return ClaimAnswer::Finished;
        };
        let Some(slot) = current.slots.get(shard) else {
            return ClaimAnswer::Finished;
        };
        let now = self.now();
        match slot.state {
            State::Ended(_) => return ClaimAnswer::Finished,
            State::Again(_) if !slot.is_free(now) => {
                let wait = slot.deadline.saturating_since(now);
                return ClaimAnswer::Early { wait };
            }
            State::Running if claim.watched != Some(slot.sighting()) => {
                return match current.held(shard) {
                    Some(held) => ClaimAnswer::Held(held),
                    None => ClaimAnswer::Finished,
                };
            }
            State::Idle | State::Again(_) | State::Running => {}
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        if slot.state == State::Idle
            && let Some(words) = self.forgotten(claim)
        {
            let detail = AttemptDetail::policy(Cause::Unknown, words);
            self.end(shard, Outcome::Missed, detail);
            return ClaimAnswer::TooLate;
        }
        if matches!(slot.state, State::Again(_)) && self.next_may_have_run(slot) {
            let detail = AttemptDetail::policy(Cause::Unknown, NEXT_FORGOTTEN);
            self.end(shard, Outcome::Lost, detail);
            return ClaimAnswer::Closed;
        }
        self.attempt_again(claim, &current, shard)
    }

    /// The attempt after one that ended before the ledger was taken up again may have been granted,
    /// and may run once only.
    fn next_may_have_run(&self, slot: &Slot) -> bool {
        slot.on_crash == OnCrash::Skip && slot.since <= self.born()
    }

    /// A shard that was granted before, or not yet, and that nobody has now.
    fn attempt_again(&mut self, claim: &Claim, current: &Current, shard: usize) -> ClaimAnswer {
        let slot = &current.slots[shard];
        let lost = slot.state == State::Running;
        let exhausted = slot.attempt >= claim.max_attempts && !mutant!(AttemptsUnbounded);
        let told = current.stop.as_ref().filter(|_| lost);
        let (cause, fate) = match (told, slot.on_crash) {
            (Some(order), _) => (Some(order.why.cause()), order.fate()),
            (None, OnCrash::Skip) if lost && !mutant!(SkipRunsAgain) => {
                let fate = "not run again, as on_crash = \"skip\" says".to_owned();
                (Some(Cause::OnCrash), fate)
            }
            _ if exhausted => {
                let fate = "not run again: max_attempts is used up".to_owned();
                (Some(Cause::MaxAttempts), fate)
            }
            _ => (None, "run again as the next attempt".to_owned()),
        };
        let words = format!("its holder was not heard of until the lease ran out; {fate}");
        let detail = match cause {
            Some(cause) if lost => AttemptDetail::policy(cause, words),
            Some(cause) => AttemptDetail::policy(cause, fate),
            None => AttemptDetail {
                next_attempt_at: Some(self.now()),
                ..AttemptDetail::reason(words)
            },
        };
        if cause.is_some() {
            self.end(shard, Outcome::Lost, detail);
            return ClaimAnswer::Closed;
        }
        if claim.grants_nothing() {
            return ClaimAnswer::NoRoom;
        }
        if lost {
            self.line(shard, Outcome::Lost, detail);
        }
        self.grant(claim)
    }

    pub(super) fn grant(&mut self, claim: &Claim) -> ClaimAnswer {
        let call = &mut *self.call;
        let token = call.draw_token(self.record.token);
        let (now, grace_until) = (call.now, call.group.grace_until);
        let deadline = now + claim.ttl;
        self.record.token = token;
        let holder = call.caller.replica.clone();
        let Some(current) = self.record.current.as_mut() else {
            return ClaimAnswer::Finished;
        };
        let shards = count(&current.slots);
        let Some(slot) = current.slots.get_mut(claim.shard_index()) else {
            return ClaimAnswer::Finished;
        };
        slot.late = lateness(claim, slot, grace_until, now);
        slot.state = State::Running;
        slot.attempt += 1;
        slot.run_id = claim.run_id;
        slot.token = token;
        slot.holder = holder;
        slot.deadline = deadline;
        slot.ttl = claim.ttl;
        slot.on_crash = claim.on_crash;
        slot.since = now;
        let grant = Grant {
            token,
            attempt: slot.attempt,
            failures: slot.failures,
            shards,
            deadline,
            remaining: claim.ttl,
            replayed: false,
        };
        ClaimAnswer::Granted(grant)
    }
}

/// Why an attempt begins late that is granted now, if it does. `slot` is how its shard stood before.
fn lateness(claim: &Claim, slot: &Slot, grace_until: Timestamp, now: Timestamp) -> Option<Late> {
    let (free_since, waited_for) = match slot.state {
        State::Idle => (claim.due(), slot.late),
        State::Again(_) => (slot.deadline, None),
        // A takeover is told by the line of the attempt before it.
        State::Running | State::Ended(_) => return None,
    };
    if now.saturating_since(free_since) <= LATE_AFTER {
        return None;
    }
    let grace = Late::Grace { until: grace_until };
    let grace = Some(grace).filter(|_| grace_until > free_since);
    // Of both the one that held it last; where that isn't known, the window may have come after.
    let held = waited_for.into_iter().chain(grace);
    let held = held.max_by_key(|late| late.until());
    let is_recent = |until| now.saturating_since(until) <= LATE_AFTER;
    let explained = held.filter(|late| late.until().is_some_and(is_recent));
    explained.or(claim.late).or(held)
}

fn count(slots: &[Slot]) -> u32 {
    u32::try_from(slots.len()).unwrap_or(u32::MAX)
}
