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
mod lease;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub(super) use self::lease::{AfterRenewal, Stop};

use self::lease::Lease;
use super::claims::Asked;
use super::effect::{Ending, Guard, Notice};
use super::job::Job;
use super::lease::{
    BATCH_LIMIT, Claim, FencingToken, Grant, Output, Release, ReleaseAnswer, Renewal,
    RenewalAnswer, RunId,
};
use super::time::BootTime;
use super::timers::Timers;

/// Calls that release leases and are under way at once. What ends meanwhile travels in the next
/// call, so that a busy replica's releases batch themselves.
const RELEASE_CALLS: usize = 2;

/// From one call that releases leases to the next, at least: what ends within it travels
/// together. The first after a pause goes at once, so that only a burst is held up.
const RELEASE_INTERVAL: Duration = Duration::from_millis(50);

/// All leases that this replica holds.
#[derive(Debug, Default)]
pub(super) struct HeldLeases {
    leases: HashMap<RunId, Lease>,
    timers: Timers<RunId>,
    release_calls: usize,
    /// Before that no further call releases leases.
    next_release_at: BootTime,
}

/// What is to be done about leases now.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) renewals: Vec<Renewal>,
    pub(super) releases: Vec<Release>,
    pub(super) stops: Vec<Stop>,
    pub(super) slow: Vec<Notice>,
}

/// A lease that was given back, what is told of it, and what its attempt printed.
#[derive(Debug)]
pub(super) struct Returned {
    pub(super) run_id: RunId,
    pub(super) notice: Notice,
    pub(super) output: Output,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.renewals.is_empty()
            && self.releases.is_empty()
            && self.stops.is_empty()
            && self.slow.is_empty()
    }
}

impl HeldLeases {
    /// Takes in a grant, and says until when an attempt may run
    /// under it. None: too little is left of it to start anything.
    pub(super) fn granted(
        &mut self,
        job: Arc<Job>,
        claim: Claim,
        grant: Grant,
        asked: Asked,
        now: BootTime,
    ) -> Option<Guard> {
        let run_id = claim.run_id;
        let lease = Lease::granted(job, claim, grant, asked, now);
        let guard = lease.guard();
        self.timers.set(run_id, lease.next_wakeup());
        self.leases.insert(run_id, lease);
        (now < guard.stop_at).then_some(guard)
    }

    /// The tokens of our leases.
    pub(super) fn tokens(&self) -> impl Iterator<Item = FencingToken> {
        self.leases.values().map(|lease| lease.grant.token)
    }

    /// Gives back a lease under which nothing was started: another replica may.
    pub(super) fn never_started(&mut self, run_id: RunId, reason: &str, now: BootTime) {
        if let Some(lease) = self.leases.get_mut(&run_id) {
            lease.end_unstarted(reason, now);
            self.timers.set(run_id, lease.next_wakeup());
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

    /// Somebody asked for the end of attempts: the store says whether they are these.
    pub(super) fn renew_now(&mut self, now: BootTime) {
        for (run_id, lease) in &mut self.leases {
            lease.renew_now(now);
            self.timers.set(*run_id, lease.next_wakeup());
        }
    }

    /// Takes in the end of an attempt.
    pub(super) fn ended(&mut self, run_id: RunId, ending: Ending, now: BootTime) -> Option<Notice> {
        let lease = self.leases.get_mut(&run_id)?;
        let told = lease.end(ending, now);
        self.timers.set(run_id, lease.next_wakeup());
        told
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
            // Not of one that a replica which stood still has to stop now.
            work.slow.extend(lease.warn_if_due(now));
            lease.give_up_if_over(now);
            work.renewals.extend(lease.renew_if_due(now));
            if lease.release_due(now) {
                let call_free = self.release_calls < RELEASE_CALLS && now >= self.next_release_at;
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
            // A full call is no reason to wait: the next one is filling up already.
            if work.releases.len() < BATCH_LIMIT {
                self.next_release_at = now + RELEASE_INTERVAL;
            }
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
            let renewal_at = lease.renewal_wakeup();
            let at = match free {
                true => renewal_at.min(self.next_release_at.max(now)),
                false => renewal_at,
            };
            self.timers.set(run_id, at);
        }
    }

    /// Takes in the answer to a renewal, none when the call failed.
    pub(super) fn renewed(
        &mut self,
        renewal: &Renewal,
        answer: Option<&RenewalAnswer>,
        sent: BootTime,
        now: BootTime,
    ) -> Option<AfterRenewal> {
        let lease = self.leases.get_mut(&renewal.run_id)?;
        let after = lease.renewal_came_back(answer.cloned(), sent, now);
        self.timers.set(renewal.run_id, lease.next_wakeup());
        after
    }

    /// Takes in the answers to releases, none where the call failed.
    pub(super) fn released(
        &mut self,
        runs: &[RunId],
        answers: Option<&[ReleaseAnswer]>,
        now: BootTime,
        dice: u8,
    ) -> Vec<Returned> {
        self.release_calls = self.release_calls.saturating_sub(1);
        let mut returned = Vec::new();
        for (index, run_id) in runs.iter().enumerate() {
            match answers.and_then(|answers| answers.get(index)) {
                Some(answer) => returned.extend(self.close(*run_id, *answer)),
                None => self.retry_release(*run_id, now, dice),
            }
        }
        self.wake_unreleased(now);
        returned
    }

    fn close(&mut self, run_id: RunId, answer: ReleaseAnswer) -> Option<Returned> {
        self.timers.clear(run_id);
        let lease = self.leases.remove(&run_id)?;
        let (occurrence, attempt, token) = (
            lease.claim.occurrence,
            lease.grant.attempt,
            lease.grant.token,
        );
        let ended = lease.ended?;
        let notice = match answer {
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
                retry_after: ended.retry_after,
                detail: ended.ending.detail,
            },
        };
        Some(Returned {
            run_id,
            notice,
            output: ended.ending.output,
        })
    }

    fn retry_release(&mut self, run_id: RunId, now: BootTime, dice: u8) {
        let Some(lease) = self.leases.get_mut(&run_id) else {
            return;
        };
        lease.release_failed(now, dice);
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

/// Whether the release of a lease can go along with others: the call has room, and none of
/// them is of the same job.
fn fits(releases: &[Release], lease: &Lease) -> bool {
    let job = &lease.claim.occurrence.job;
    let shard = lease.claim.shard;
    let another = |release: &Release| release.occurrence.job != *job || release.shard != shard;
    releases.len() < BATCH_LIMIT && releases.iter().all(another)
}
