//! One lease that this replica holds: until when it is trusted, when it is renewed, when its
//! attempt has to be stopped, and what the store is told at its end.
//!
//! Must never: know of another lease, or of a call to the store that several share.

use std::sync::Arc;
use std::time::Duration;

use crate::scheduler::claims::{Asked, backoff};
use crate::scheduler::effect::{EndedHow, Ending, Guard, Notice, StopReason};
use crate::scheduler::job::{Job, OnCrash};
use crate::scheduler::lease::{
    AttemptDetail, Claim, Grant, Origin, Outcome, Output, Release, Renewal, RenewalAnswer, RunId,
    StopFor,
};
use crate::scheduler::margins::Margins;
use crate::scheduler::time::{BootTime, Timestamp};

/// Later than any boot lasts: nothing is due.
const FAR_FUTURE: BootTime = BootTime::since_boot(Duration::from_secs(u32::MAX as u64));

/// A lease, and the attempt that runs under it.
#[derive(Debug)]
pub(super) struct Lease {
    job: Arc<Job>,
    pub(super) claim: Claim,
    pub(super) grant: Grant,
    margins: Margins,
    pub(super) trust_until: BootTime,
    /// When the guard before the present one was to end the attempt. That the present one was
    /// there in time can't be known here.
    earlier_stop_at: BootTime,
    last_deadline: Timestamp,
    renew_at: BootTime,
    renewing: bool,
    /// There is something to hear that the renewal on its way may have come too early for.
    renew_again: bool,
    stopping: Option<StopReason>,
    /// When people are told that it takes long.
    warn_at: Option<BootTime>,
    /// When a drain stops it.
    pub(super) drain_at: Option<BootTime>,
    pub(super) ended: Option<Ended>,
}

/// The end of an attempt, until the store has acknowledged it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) outcome: Outcome,
    /// After how long another attempt is to follow a failure.
    pub(super) retry_after: Option<Duration>,
    release_at: BootTime,
    pub(super) releasing: bool,
    pub(super) failures: u32,
}

/// An attempt that has to end, and what people are told of it.
#[derive(Debug)]
pub(in crate::scheduler) struct Stop {
    pub(in crate::scheduler) run_id: RunId,
    pub(in crate::scheduler) reason: StopReason,
    pub(in crate::scheduler) grace: Duration,
    pub(in crate::scheduler) notice: Notice,
}

/// What the answer to a renewal means for the attempt.
#[derive(Debug)]
pub(in crate::scheduler) enum AfterRenewal {
    /// It may run for longer.
    Guard(Guard),
    /// It has to end.
    Stop(Box<Stop>),
}

impl Lease {
    /// One that was granted, and that was not known to be until now.
    pub(super) fn granted(
        job: Arc<Job>,
        claim: Claim,
        grant: Grant,
        asked: Asked,
        now: BootTime,
    ) -> Self {
        let margins = Margins::of(claim.ttl);
        let sent = match mutant!(TrustsTheAnswer) {
            true => now,
            false => asked.sent,
        };
        let trust_until = margins.trust_until(sent, grant.remaining);
        // What is left of a grant whose answer was lost is told by the store's clock, which may
        // have been set back since. It can't be more than if it was granted when first asked for.
        let trust_until = match grant.replayed {
            true => trust_until.min(margins.trust_until(asked.since, claim.ttl)),
            false => trust_until,
        };
        Self {
            trust_until,
            earlier_stop_at: trust_until - margins.stop_grace(job.kill_grace),
            last_deadline: grant.deadline,
            // Of one that is told again much may be over.
            renew_at: match grant.replayed {
                true => now,
                false => sent + margins.renewal_interval(),
            },
            renewing: false,
            renew_again: false,
            stopping: None,
            warn_at: job.warn_after.map(|after| now + after),
            drain_at: None,
            ended: None,
            job,
            claim,
            grant,
            margins,
        }
    }

    /// Takes in the answer to a renewal, none when the call failed.
    pub(super) fn renewal_came_back(
        &mut self,
        answer: Option<RenewalAnswer>,
        sent: BootTime,
        now: BootTime,
    ) -> Option<AfterRenewal> {
        self.renewing = false;
        match answer {
            None => {
                self.renew_at = now + self.margins.renewal_retry();
                None
            }
            Some(RenewalAnswer::Renewed {
                deadline,
                remaining,
                stop,
            }) => {
                self.last_deadline = deadline;
                self.renew_at = match std::mem::take(&mut self.renew_again) {
                    true => now,
                    false => sent + self.margins.renewal_interval(),
                };
                let until = self.margins.trust_until(sent, remaining);
                let guard = self.trust(until);
                let asked = stop.and_then(|order| self.asked_to_stop(order.why));
                // The lease lasts for as long as the attempt takes to end.
                asked
                    .map(|stop| AfterRenewal::Stop(Box::new(stop)))
                    .or(guard.map(AfterRenewal::Guard))
            }
            Some(RenewalAnswer::Lost) => {
                self.renew_at = FAR_FUTURE;
                self.lost().map(|stop| AfterRenewal::Stop(Box::new(stop)))
            }
        }
    }

    /// Trusts the lease until then, and says what that means for an attempt that may go on.
    fn trust(&mut self, until: BootTime) -> Option<Guard> {
        if until <= self.trust_until {
            return None;
        }
        self.earlier_stop_at = self.stop_at();
        self.trust_until = until;
        let may_go_on = !matches!(
            self.stopping,
            Some(StopReason::LeaseExpiring | StopReason::LeaseLost)
        );
        (may_go_on && self.ended.is_none()).then(|| self.guard())
    }

    /// Until when its attempt may run as things stand.
    pub(super) fn guard(&self) -> Guard {
        Guard {
            stop_at: self.stop_at(),
            kill_at: self.trust_until,
        }
    }

    /// Takes in the end of its attempt, which is released from now on. One that was stopped
    /// although nobody here asked for it was ended by its guard, while this replica stood
    /// still and could not renew the lease.
    pub(super) fn end(&mut self, mut ending: Ending, now: BootTime) -> Option<Notice> {
        let unasked = ending.how == EndedHow::Stopped && self.stopping.is_none();
        let guarded = unasked && now >= self.earlier_stop_at;
        // People are told of it as if it had been asked for here: who was faster is chance.
        let told = guarded.then(|| self.stop(StopReason::LeaseExpiring, Duration::ZERO).notice);
        let outcome = self.outcome(ending.how);
        if let (EndedHow::Stopped, Some(reason)) = (ending.how, self.stopping) {
            let reason = || reason.as_str().to_owned();
            ending.detail.reason.get_or_insert_with(reason);
        }
        self.release_from(ending, outcome, now);
        told
    }

    /// Nothing was started under it.
    pub(super) fn end_unstarted(&mut self, reason: &str, now: BootTime) {
        let ending = Ending {
            how: EndedHow::NotStarted,
            detail: AttemptDetail::reason(format!("never started: {reason}")),
            output: Output::default(),
        };
        let outcome = self.outcome(ending.how);
        self.release_from(ending, outcome, now);
    }

    fn release_from(&mut self, ending: Ending, outcome: Outcome, now: BootTime) {
        self.ended = Some(Ended {
            ending,
            outcome,
            retry_after: self.retry_after(outcome),
            release_at: now,
            releasing: false,
            failures: 0,
        });
    }

    /// After how long another attempt is to follow. Nobody tries again what a person runs here
    /// and sees fail, nor what was told to end, though its timeout came before that.
    fn retry_after(&self, outcome: Outcome) -> Option<Duration> {
        let Claim {
            occurrence, shard, ..
        } = &self.claim;
        let told_to_end = matches!(
            self.stopping,
            Some(StopReason::Replaced | StopReason::Killed)
        );
        let may = outcome.is_failure()
            && !told_to_end
            && self.claim.origin != Origin::RunOnce
            && self.grant.attempt < self.claim.max_attempts;
        let failures = self.grant.failures + 1;
        let wait = || self.job.retry.wait(occurrence, *shard, failures);
        may.then(wait).flatten()
    }

    /// The store did not answer to its release.
    pub(super) fn release_failed(&mut self, now: BootTime, dice: u8) {
        if let Some(ended) = &mut self.ended {
            ended.releasing = false;
            ended.release_at = now + backoff(ended.failures, dice);
            ended.failures += 1;
        }
    }

    /// When TERM has to be sent so that KILL comes in time.
    fn stop_at(&self) -> BootTime {
        self.trust_until - self.margins.stop_grace(self.job.kill_grace)
    }

    pub(super) fn stop_if_due(&mut self, now: BootTime) -> Option<Stop> {
        if self.ended.is_some() {
            return None;
        }
        if now >= self.stop_at()
            && !matches!(
                self.stopping,
                Some(StopReason::LeaseExpiring | StopReason::LeaseLost)
            )
        {
            let left = self.trust_until.saturating_since(now);
            return Some(self.stop(StopReason::LeaseExpiring, left.min(self.job.kill_grace)));
        }
        let drained = self.drain_at.is_some_and(|at| now >= at);
        (drained && self.stopping.is_none())
            .then(|| self.stop(StopReason::Draining, self.job.kill_grace))
    }

    /// Says once that the attempt takes longer than `warn_after`.
    pub(super) fn warn_if_due(&mut self, now: BootTime) -> Option<Notice> {
        if self.ended.is_some() || self.stopping.is_some() {
            return None;
        }
        self.warn_at.take_if(|at| now >= *at)?;
        Some(Notice::Slow {
            occurrence: self.claim.occurrence.clone(),
            attempt: self.grant.attempt,
            token: self.grant.token,
            run_id: self.claim.run_id,
            warn_after: self.job.warn_after.unwrap_or_default(),
        })
    }

    /// Somebody else may be running it: no grace is left.
    fn lost(&mut self) -> Option<Stop> {
        if self.ended.is_some() || self.stopping == Some(StopReason::LeaseLost) {
            return None;
        }
        Some(self.stop(StopReason::LeaseLost, Duration::ZERO))
    }

    /// Somebody, or a newer occurrence, wants it ended. A drain is no reason to let it go on.
    fn asked_to_stop(&mut self, why: StopFor) -> Option<Stop> {
        let stopping = !matches!(self.stopping, None | Some(StopReason::Draining));
        if self.ended.is_some() || stopping {
            return None;
        }
        let reason = match why {
            StopFor::Replaced => StopReason::Replaced,
            StopFor::Killed => StopReason::Killed,
        };
        Some(self.stop(reason, self.job.kill_grace))
    }

    /// Renews as soon as possible: there may be something to hear.
    pub(super) fn renew_now(&mut self, now: BootTime) {
        self.renew_again |= self.renewing;
        if self.renewable() && self.ended.is_none() {
            self.renew_at = self.renew_at.min(now);
        }
    }

    fn stop(&mut self, reason: StopReason, grace: Duration) -> Stop {
        self.stopping = Some(reason);
        let notice = Notice::Stopping {
            occurrence: self.claim.occurrence.clone(),
            attempt: self.grant.attempt,
            token: self.grant.token,
            reason,
        };
        Stop {
            run_id: self.claim.run_id,
            reason,
            grace,
            notice,
        }
    }

    /// How the attempt's end is written down. One that was stopped on the way counts as cut
    /// short, whatever code it ended with: it may have stopped in the middle of its work.
    fn outcome(&self, how: EndedHow) -> Outcome {
        match (how, self.claim.on_crash, self.stopping) {
            (EndedHow::Succeeded, ..) => Outcome::Succeeded,
            (EndedHow::Failed, ..) => Outcome::Failed,
            (EndedHow::TimedOut, ..) => Outcome::TimedOut,
            // Another replica may, also where the job may run at most once; but nobody else runs
            // what a person asked for here.
            (EndedHow::NotStarted, ..) if self.claim.origin == Origin::RunOnce => {
                Outcome::Cancelled
            }
            (EndedHow::NotStarted, ..) => Outcome::HandedOver,
            (EndedHow::Stopped, _, Some(StopReason::Replaced | StopReason::Killed)) => {
                Outcome::Cancelled
            }
            (EndedHow::Stopped, OnCrash::Rerun, _) => Outcome::HandedOver,
            (EndedHow::Stopped, OnCrash::Skip, Some(StopReason::Draining) | None) => {
                Outcome::Cancelled
            }
            (EndedHow::Stopped, OnCrash::Skip, Some(_)) => Outcome::Lost,
        }
    }

    fn renewable(&self) -> bool {
        !self.renewing
            && self.stopping != Some(StopReason::LeaseLost)
            && self.renew_at < self.trust_until
    }

    pub(super) fn renew_if_due(&mut self, now: BootTime) -> Option<Renewal> {
        let due = self.renewable() && now >= self.renew_at;
        due.then(|| {
            self.renewing = true;
            self.renewal()
        })
    }

    /// A lease that can't be trusted any more is not renewed, as another replica may have it.
    /// Its renewal must not stay due either: after a freeze it would be due for ever.
    pub(super) fn give_up_if_over(&mut self, now: BootTime) {
        if now >= self.trust_until {
            self.renew_at = FAR_FUTURE;
        }
    }

    pub(super) fn release_due(&self, now: BootTime) -> bool {
        self.ended
            .as_ref()
            .is_some_and(|ended| !ended.releasing && now >= ended.release_at)
    }

    fn renewal(&self) -> Renewal {
        Renewal {
            last_deadline: self.last_deadline,
            ..Renewal::of(&self.claim, &self.grant)
        }
    }

    pub(super) fn begin_release(&mut self) -> Option<Release> {
        let ended = self.ended.as_mut()?;
        ended.releasing = true;
        Some(Release {
            retry_after: ended.retry_after,
            detail: ended.ending.detail.clone(),
            output: ended.ending.output.clone(),
            ..Release::of(&self.claim, &self.grant, ended.outcome)
        })
    }

    pub(super) fn renewal_wakeup(&self) -> BootTime {
        if self.renewable() {
            self.renew_at
        } else {
            FAR_FUTURE
        }
    }

    pub(super) fn next_wakeup(&self) -> BootTime {
        let renewal = self.renewal_wakeup();
        if let Some(ended) = &self.ended {
            return if ended.releasing {
                renewal
            } else {
                renewal.min(ended.release_at)
            };
        }
        match self.stopping {
            None => renewal
                .min(self.stop_at())
                .min(self.warn_at.unwrap_or(FAR_FUTURE))
                .min(self.drain_at.unwrap_or(FAR_FUTURE)),
            Some(StopReason::LeaseExpiring | StopReason::LeaseLost) => renewal,
            Some(_) => renewal.min(self.stop_at()),
        }
    }
}
