//! Leases that this replica holds, from the grant to the acknowledged release.
//!
//! ```text
//!   granted ──▶ running ──────────────▶ ended ──▶ released (or superseded)
//!                  │  renewed each T/6    │ renewed until the release is acknowledged
//!                  └─▶ stopping ─────────▶┘
//!                       lease expiring or lost, drain
//! ```
//!
//! One lease has one owner in here; nothing else renews or releases it.
//!
//! Must never: trust a lease past `trust_until`, or drop one whose release is not acknowledged.

mod giving_up;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::claims::backoff;
use super::effect::{EndedHow, Ending, Notice, StopReason};
use super::job::{Job, OnCrash};
use super::lease::{
    AttemptDetail, BATCH_LIMIT, Claim, FencingToken, Grant, Origin, Outcome, Output, Release,
    ReleaseAnswer, Renewal, RenewalAnswer, RunId,
};
use super::margins::Margins;
use super::time::{BootTime, Timestamp};
use super::timers::Timers;

/// Calls that release leases and are under way at once. What ends meanwhile travels in the next
/// call, so that a busy replica's releases batch themselves.
const RELEASE_CALLS: usize = 2;

/// All leases that this replica holds.
#[derive(Debug, Default)]
pub(super) struct HeldLeases {
    leases: HashMap<RunId, Lease>,
    timers: Timers<RunId>,
    release_calls: usize,
}

/// What is to be done about leases now.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) renewals: Vec<Renewal>,
    pub(super) releases: Vec<Release>,
    pub(super) stops: Vec<Stop>,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.renewals.is_empty() && self.releases.is_empty() && self.stops.is_empty()
    }
}

#[derive(Debug)]
pub(super) struct Stop {
    pub(super) run_id: RunId,
    pub(super) reason: StopReason,
    pub(super) grace: Duration,
    pub(super) notice: Notice,
}

#[derive(Debug)]
struct Lease {
    job: Arc<Job>,
    claim: Claim,
    grant: Grant,
    margins: Margins,
    trust_until: BootTime,
    last_deadline: Timestamp,
    renew_at: BootTime,
    renewing: bool,
    stopping: Option<StopReason>,
    /// When a drain stops it.
    drain_at: Option<BootTime>,
    ended: Option<Ended>,
}

#[derive(Debug)]
struct Ended {
    ending: Ending,
    outcome: Outcome,
    release_at: BootTime,
    releasing: bool,
    failures: u32,
}

impl HeldLeases {
    /// Takes in a grant that was asked for at `sent`. False: too little is left of it to start
    /// anything under it.
    pub(super) fn granted(
        &mut self,
        job: Arc<Job>,
        claim: Claim,
        grant: Grant,
        sent: BootTime,
        now: BootTime,
    ) -> bool {
        let margins = Margins::of(claim.ttl);
        let run_id = claim.run_id;
        let lease = Lease {
            trust_until: margins.trust_until(sent, grant.remaining),
            last_deadline: grant.deadline,
            renew_at: sent + margins.renewal_interval(),
            renewing: false,
            stopping: None,
            drain_at: None,
            ended: None,
            job,
            claim,
            grant,
            margins,
        };
        let startable = now < lease.stop_at();
        self.timers.set(run_id, lease.next_wakeup());
        self.leases.insert(run_id, lease);
        startable
    }

    /// The tokens of our leases.
    pub(super) fn tokens(&self) -> impl Iterator<Item = FencingToken> {
        self.leases.values().map(|lease| lease.grant.token)
    }

    /// Gives back a lease under which nothing was started: another replica may.
    pub(super) fn never_started(&mut self, run_id: RunId, reason: &str, now: BootTime) {
        let detail = AttemptDetail::reason(format!("never started: {reason}"));
        let ending = Ending {
            how: EndedHow::Stopped,
            detail,
            output: Output::default(),
        };
        self.ended(run_id, ending, now);
        // Nothing ran, so another may run it even where it may run at most once; but nobody else
        // runs what a person asked for here.
        let Some(lease) = self.leases.get_mut(&run_id) else {
            return;
        };
        let outcome = match lease.claim.origin {
            Origin::Schedule => Outcome::HandedOver,
            Origin::Manual => Outcome::Cancelled,
        };
        if let Some(ended) = &mut lease.ended {
            ended.outcome = outcome;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.leases.len()
    }

    /// How many attempts run.
    pub(super) fn running(&self) -> usize {
        self.leases
            .values()
            .filter(|lease| lease.ended.is_none())
            .count()
    }

    /// Stops each attempt that still runs at `at`.
    pub(super) fn drain(&mut self, at: BootTime) {
        for (run_id, lease) in &mut self.leases {
            lease.drain_at = Some(at);
            self.timers.set(*run_id, lease.next_wakeup());
        }
    }

    /// Takes in the end of an attempt.
    pub(super) fn ended(&mut self, run_id: RunId, mut ending: Ending, now: BootTime) {
        let Some(lease) = self.leases.get_mut(&run_id) else {
            return;
        };
        let outcome = lease.outcome(ending.how);
        if let (EndedHow::Stopped, Some(reason)) = (ending.how, lease.stopping) {
            ending
                .detail
                .reason
                .get_or_insert_with(|| reason.as_str().to_owned());
        }
        let release = Ended {
            ending,
            outcome,
            release_at: now,
            releasing: false,
            failures: 0,
        };
        lease.ended = Some(release);
        self.timers.set(run_id, lease.next_wakeup());
    }

    /// What has come due.
    pub(super) fn due(&mut self, now: BootTime) -> Work {
        let mut work = Work::default();
        let mut put_off = Vec::new();
        while let Some(run_id) = self.timers.take_due(now) {
            let Some(lease) = self.leases.get_mut(&run_id) else {
                continue;
            };
            work.stops.extend(lease.stop_if_due(now));
            lease.give_up_if_over(now);
            if lease.renewal_due(now) {
                lease.renewing = true;
                work.renewals.push(lease.renewal());
            }
            if lease.release_due(now) {
                let call_free = self.release_calls < RELEASE_CALLS;
                match call_free && fits(&work.releases, lease) {
                    true => work.releases.extend(lease.begin_release()),
                    false => {
                        put_off.push(run_id);
                        continue;
                    }
                }
            }
            self.timers.set(run_id, lease.next_wakeup());
        }
        if !work.releases.is_empty() {
            self.release_calls += 1;
        }
        self.wait_for_release_call(put_off, now);
        work
    }

    /// Those that find no free call wait for one to come back; their renewals go on meanwhile.
    fn wait_for_release_call(&mut self, put_off: Vec<RunId>, now: BootTime) {
        let free = self.release_calls < RELEASE_CALLS;
        for run_id in put_off {
            let Some(lease) = self.leases.get(&run_id) else {
                continue;
            };
            let at = if free { now } else { lease.renewal_wakeup() };
            self.timers.set(run_id, at);
        }
    }

    /// Takes in the answer to a renewal, none when the call failed.
    pub(super) fn renewed(
        &mut self,
        renewal: &Renewal,
        answer: Option<RenewalAnswer>,
        sent: BootTime,
        now: BootTime,
    ) -> Option<Stop> {
        let lease = self.leases.get_mut(&renewal.run_id)?;
        lease.renewing = false;
        let stop = match answer {
            None => {
                lease.renew_at = now + lease.margins.renewal_retry();
                None
            }
            Some(RenewalAnswer::Renewed {
                deadline,
                remaining,
            }) => {
                let until = lease.margins.trust_until(sent, remaining);
                lease.trust_until = lease.trust_until.max(until);
                lease.last_deadline = deadline;
                lease.renew_at = sent + lease.margins.renewal_interval();
                None
            }
            Some(RenewalAnswer::Lost) => {
                lease.renew_at = FAR_FUTURE;
                lease.lost()
            }
        };
        self.timers.set(renewal.run_id, lease.next_wakeup());
        stop
    }

    /// Takes in the answers to releases, none where the call failed.
    pub(super) fn released(
        &mut self,
        runs: &[RunId],
        answers: Option<&[ReleaseAnswer]>,
        now: BootTime,
        dice: u8,
    ) -> Vec<Notice> {
        self.release_calls = self.release_calls.saturating_sub(1);
        let mut notices = Vec::new();
        for (index, run_id) in runs.iter().enumerate() {
            match answers.and_then(|answers| answers.get(index)) {
                Some(answer) => notices.extend(self.close(*run_id, *answer)),
                None => self.retry_release(*run_id, now, dice),
            }
        }
        self.wake_unreleased(now);
        notices
    }

    fn close(&mut self, run_id: RunId, answer: ReleaseAnswer) -> Option<Notice> {
        self.timers.clear(run_id);
        let lease = self.leases.remove(&run_id)?;
        let (occurrence, attempt, token) = (
            lease.claim.occurrence,
            lease.grant.attempt,
            lease.grant.token,
        );
        let ended = lease.ended?;
        Some(match answer {
            ReleaseAnswer::Superseded => Notice::Superseded {
                occurrence,
                attempt,
                token,
            },
            ReleaseAnswer::Released => Notice::Ended {
                occurrence,
                attempt,
                token,
                outcome: ended.outcome,
                detail: ended.ending.detail,
            },
        })
    }

    fn retry_release(&mut self, run_id: RunId, now: BootTime, dice: u8) {
        let Some(lease) = self.leases.get_mut(&run_id) else {
            return;
        };
        if let Some(ended) = &mut lease.ended {
            ended.releasing = false;
            ended.release_at = now + backoff(ended.failures, dice);
            ended.failures += 1;
        }
        self.timers.set(run_id, lease.next_wakeup());
    }

    /// A call came free: those that waited for one are due.
    fn wake_unreleased(&mut self, now: BootTime) {
        for (run_id, lease) in &self.leases {
            if lease.release_due(now) {
                self.timers.set(*run_id, now);
            }
        }
    }

    /// When something is due next.
    pub(super) fn next_wakeup(&self) -> Option<BootTime> {
        self.timers.next()
    }
}

impl Lease {
    /// When TERM has to be sent so that KILL comes in time.
    fn stop_at(&self) -> BootTime {
        self.trust_until - self.margins.stop_grace(self.job.kill_grace)
    }

    fn stop_if_due(&mut self, now: BootTime) -> Option<Stop> {
        if self.ended.is_some() {
            return None;
        }
        if now >= self.stop_at()
            && !matches!(self.stopping, Some(reason) if reason != StopReason::Draining)
        {
            let left = self.trust_until.saturating_since(now);
            return Some(self.stop(StopReason::LeaseExpiring, left.min(self.job.kill_grace)));
        }
        let drained = self.drain_at.is_some_and(|at| now >= at);
        (drained && self.stopping.is_none())
            .then(|| self.stop(StopReason::Draining, self.job.kill_grace))
    }

    /// Somebody else may be running it: no grace is left.
    fn lost(&mut self) -> Option<Stop> {
        if self.ended.is_some() || self.stopping == Some(StopReason::LeaseLost) {
            return None;
        }
        Some(self.stop(StopReason::LeaseLost, Duration::ZERO))
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

    fn renewal_due(&self, now: BootTime) -> bool {
        self.renewable() && now >= self.renew_at
    }

    /// A lease that can't be trusted any more is not renewed, as another replica may have it.
    /// Its renewal must not stay due either: after a freeze it would be due for ever.
    fn give_up_if_over(&mut self, now: BootTime) {
        if now >= self.trust_until {
            self.renew_at = FAR_FUTURE;
        }
    }

    fn release_due(&self, now: BootTime) -> bool {
        self.ended
            .as_ref()
            .is_some_and(|ended| !ended.releasing && now >= ended.release_at)
    }

    fn renewal(&self) -> Renewal {
        Renewal {
            occurrence: self.claim.occurrence.clone(),
            origin: self.claim.origin,
            run_id: self.claim.run_id,
            token: self.grant.token,
            attempt: self.grant.attempt,
            on_crash: self.claim.on_crash,
            ttl: self.claim.ttl,
            last_deadline: self.last_deadline,
        }
    }

    fn begin_release(&mut self) -> Option<Release> {
        let ended = self.ended.as_mut()?;
        ended.releasing = true;
        Some(Release {
            occurrence: self.claim.occurrence.clone(),
            origin: self.claim.origin,
            run_id: self.claim.run_id,
            token: self.grant.token,
            attempt: self.grant.attempt,
            on_crash: self.claim.on_crash,
            outcome: ended.outcome,
            detail: ended.ending.detail.clone(),
            output: ended.ending.output.clone(),
            retention: self.claim.retention,
        })
    }

    fn renewal_wakeup(&self) -> BootTime {
        if self.renewable() {
            self.renew_at
        } else {
            FAR_FUTURE
        }
    }

    fn next_wakeup(&self) -> BootTime {
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
                .min(self.drain_at.unwrap_or(FAR_FUTURE)),
            Some(StopReason::Draining) => renewal.min(self.stop_at()),
            Some(_) => renewal,
        }
    }
}

/// Whether the release of a lease can go along with others: the call has room, and none of
/// them is of the same job.
fn fits(releases: &[Release], lease: &Lease) -> bool {
    let job = &lease.claim.occurrence.job;
    let another = |release: &Release| release.occurrence.job != *job;
    releases.len() < BATCH_LIMIT && releases.iter().all(another)
}

/// Later than any boot lasts: nothing is due.
const FAR_FUTURE: BootTime = BootTime::since_boot(Duration::from_secs(u32::MAX as u64));
