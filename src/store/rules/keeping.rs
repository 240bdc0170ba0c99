//! Leases that are held: renewed, re-asserted after a loss of data, released.

use std::time::Duration;

use super::Call;
use super::due::FORGOTTEN;
use super::enrolling::nobody;
use super::record::{Current, Decision, News, Record, State, Waiting};
use super::step::Step;
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::lease::{
    AttemptDetail, Cause, FencingToken, Late, Occurrence, Origin, Outcome, Release, ReleaseAnswer,
    Renewal, RenewalAnswer, RunId, StopOrder,
};
use crate::scheduler::time::Timestamp;

/// What names a lease, and what is needed to write its record anew.
struct Lease<'l> {
    occurrence: &'l Occurrence,
    origin: Origin,
    shard: usize,
    shards: u32,
    run_id: RunId,
    token: FencingToken,
    attempt: u32,
    failures: u32,
    on_crash: OnCrash,
}

impl Call<'_> {
    /// See [`super::super::Store::renew`].
    pub(in crate::store) fn renew(
        &mut self,
        record: Option<&Record>,
        renewal: &Renewal,
    ) -> Decision<RenewalAnswer> {
        let mut step = Step::begin(self, record);
        let answer = step.renew(renewal);
        step.decide(answer)
    }

    /// See [`super::super::Store::release`].
    pub(in crate::store) fn release(
        &mut self,
        record: Option<&Record>,
        release: &Release,
    ) -> Decision<ReleaseAnswer> {
        let mut step = Step::begin(self, record);
        step.tell_people(
            &release.occurrence.job,
            release.run_id,
            release.telling.as_ref(),
        );
        let answer = step.release(release);
        step.decide(answer)
    }
}

impl Step<'_, '_> {
    fn renew(&mut self, renewal: &Renewal) -> RenewalAnswer {
        let lease = Lease {
            occurrence: &renewal.occurrence,
            origin: renewal.origin,
            shard: renewal.shard as usize,
            shards: renewal.shards,
            run_id: renewal.run_id,
            token: renewal.token,
            attempt: renewal.attempt,
            failures: renewal.failures,
            on_crash: renewal.on_crash,
        };
        if self.state_of(&lease) != Some(State::Running) && !self.reassert(&lease) {
            return RenewalAnswer::Lost;
        }
        let now = self.now();
        let group = &mut self.call.group;
        group.token = group.token.max(renewal.token);
        let current = self.record.current.as_mut();
        let stop = current.as_ref().and_then(|current| current.stop.clone());
        let Some(slot) = current.and_then(|current| current.slots.get_mut(lease.shard)) else {
            return RenewalAnswer::Lost;
        };
        let last = slot.deadline.max(renewal.last_deadline);
        slot.deadline = (now + renewal.ttl).max(last + Duration::from_millis(1));
        if mutant!(DeadlineStands) {
            slot.deadline = now + renewal.ttl;
        }
        slot.ttl = renewal.ttl;
        RenewalAnswer::Renewed {
            deadline: slot.deadline,
            remaining: renewal.ttl,
            stop,
        }
    }

    /// How the shard of a lease stands, where it is still that lease's.
    fn state_of(&self, lease: &Lease<'_>) -> Option<State> {
        let current = self.record.current.as_ref()?;
        let slot = current.slots.get(lease.shard)?;
        let same = current.scheduled_at == lease.occurrence.scheduled_at
            && slot.run_id == lease.run_id
            && slot.token == lease.token;
        same.then_some(slot.state)
    }

    /// The same, whoever's it is.
    fn state_of_shard(&self, lease: &Lease<'_>) -> Option<State> {
        let current = self.record.current.as_ref()?;
        let same = current.scheduled_at == lease.occurrence.scheduled_at;
        let slot = current.slots.get(lease.shard).filter(|_| same)?;
        Some(slot.state)
    }

    /// Inside a grace window a holder may write a record anew that the store lost, or that it
    /// has only in an older form.
    fn reassert(&mut self, lease: &Lease<'_>) -> bool {
        if self.call.grace().is_zero() {
            return false;
        }
        let due = lease.occurrence.scheduled_at;
        let current = self.record.current.as_ref();
        let same = current.filter(|current| current.scheduled_at == due);
        let slot = same.and_then(|current| current.slots.get(lease.shard));
        // An occurrence ends once: by the first end that is told, be it of an attempt that another
        // one had followed.
        let over = slot.is_some_and(|slot| matches!(slot.state, State::Ended(_)));
        let newer = match slot {
            Some(slot) => slot.token >= lease.token,
            None => self.record.token >= lease.token,
        };
        if over || newer {
            return false;
        }
        if same.is_none() {
            if !self.known {
                // What was due before is not this ledger's to settle.
                self.record.settled_until = due.min(self.record.settled_until);
                self.lose_until(self.born());
            }
            let anew = Waiting {
                scheduled_at: due,
                origin: lease.origin,
                by: None,
                since: self.now(),
                start_by: None,
                queued: true,
                late: None,
            };
            self.open(&anew, lease.shards);
        }
        if lease.origin == Origin::Schedule {
            self.settle_forgotten(&lease.occurrence.job, due);
            self.settle(due);
        }
        self.record.waiting.retain(|one| one.scheduled_at != due);
        self.record.token = self.record.token.max(lease.token);
        let (now, holder) = (self.now(), self.call.caller.replica.clone());
        let current = self.record.current.as_mut();
        let Some(slot) = current.and_then(|current| current.slots.get_mut(lease.shard)) else {
            return false;
        };
        slot.state = State::Running;
        slot.attempt = lease.attempt;
        slot.failures = lease.failures;
        slot.run_id = lease.run_id;
        slot.token = lease.token;
        slot.holder = holder;
        slot.deadline = now;
        slot.on_crash = lease.on_crash;
        slot.since = now;
        slot.late = Some(Late::Reasserted);
        true
    }

    /// What was due before the occurrence that comes back was settled when that was granted.
    fn settle_forgotten(&mut self, job: &JobName, due: Timestamp) {
        let before = due - Duration::from_millis(1);
        if self.suspensions().is_empty() && self.leaves_something(job, before) {
            let (outcome, cause) = (Outcome::Missed, Cause::Unknown);
            self.pass_over(nobody(), before, outcome, cause, FORGOTTEN);
        }
    }

    fn release(&mut self, release: &Release) -> ReleaseAnswer {
        let lease = Lease {
            occurrence: &release.occurrence,
            origin: release.origin,
            shard: release.shard as usize,
            shards: release.shards,
            run_id: release.run_id,
            token: release.token,
            attempt: release.attempt,
            failures: release.failures,
            on_crash: release.on_crash,
        };
        let state = match mutant!(ReleaseByAnyone) {
            true => self.state_of_shard(&lease),
            false => self.state_of(&lease),
        };
        match state {
            Some(State::Running) => {}
            Some(State::Again(outcome) | State::Ended(outcome)) => {
                if outcome != self.written_as(release) {
                    return ReleaseAnswer::Superseded;
                }
                self.released_before(release);
                if mutant!(LineTwice) {
                    self.line(lease.shard, outcome, release.detail.clone());
                }
                return ReleaseAnswer::Released;
            }
            Some(State::Idle) | None if self.reassert(&lease) => {}
            Some(State::Idle) | None => return ReleaseAnswer::Superseded,
        }
        let group = &mut self.call.group;
        group.token = group.token.max(release.token);
        self.close(release, lease.shard);
        if !matches!(state, Some(State::Running)) {
            self.doubt_what_follows(lease.shard);
        }
        if mutant!(ForgetsWhatRan) {
            self.record.current = None;
            self.record.settled_until = release.occurrence.scheduled_at - Duration::from_millis(1);
        }
        if mutant!(ForgetsWhoWaits) {
            self.record.waiting.clear();
        }
        ReleaseAnswer::Released
    }

    /// A release that writes its lease anew may have been heard before the loss too, where its
    /// answer was lost: then the next attempt may have run.
    fn doubt_what_follows(&mut self, shard: usize) {
        let born = self.born();
        let current = self.record.current.as_mut();
        let slot = current.and_then(|current| current.slots.get_mut(shard));
        if let Some(slot) = slot.filter(|slot| matches!(slot.state, State::Again(_))) {
            slot.since = slot.since.min(born);
        }
    }

    /// The release was heard before; whether the occurrence is over, and what people are to be
    /// told of it, may not have been heard in return.
    fn released_before(&mut self, release: &Release) {
        let over = self.record.current.as_ref().and_then(Current::outcome);
        if let Some(outcome) = over.filter(|_| release.origin != Origin::RunOnce) {
            let at = release.occurrence.scheduled_at;
            self.close_again(at, outcome, release.attempt, &release.detail);
        }
    }

    /// The order to end the current occurrence, if there is one.
    fn order_to_stop(&self) -> Option<&StopOrder> {
        let current = self.record.current.as_ref();
        current.and_then(|current| current.stop.as_ref())
    }

    /// The outcome that a release is written down with: nothing is handed over that was told to
    /// end.
    fn written_as(&self, release: &Release) -> Outcome {
        match release.outcome {
            Outcome::HandedOver if self.order_to_stop().is_some() => Outcome::Cancelled,
            other => other,
        }
    }

    /// Writes down how an attempt ended, and whether another one follows.
    fn close(&mut self, release: &Release, shard: usize) {
        let now = self.now();
        let stop = self.order_to_stop();
        let cut = self.written_as(release) == Outcome::Cancelled;
        if let Some(order) = stop.filter(|_| cut) {
            let (cause, fate) = order.detail();
            let detail = AttemptDetail {
                cause: Some(cause),
                reason: Some(fate),
                ..release.detail.clone()
            };
            return self.end(shard, Outcome::Cancelled, detail);
        }
        let again = match release.outcome {
            Outcome::HandedOver => Some(now),
            _ => release
                .retry_after
                .filter(|_| stop.is_none())
                .map(|wait| now + wait),
        };
        let Some(at) = again else {
            return self.end(shard, release.outcome, release.detail.clone());
        };
        let detail = AttemptDetail {
            next_attempt_at: Some(at),
            ..release.detail.clone()
        };
        self.line(shard, release.outcome, detail);
        if let Some(current) = &mut self.record.current {
            current.slots[shard].failures = release.failures;
        }
        self.set_state(shard, State::Again(release.outcome), at);
        self.tell(News::Opening);
    }
}
