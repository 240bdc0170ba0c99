//! The guardian of each replica: it stands outside the daemon, goes on while that is frozen, and
//! ends each attempt by the guard that it was told last. And the laws of every guard.

use std::time::Duration;

use soloist::scheduler::lease::{Claim, ClaimAnswer, RenewalAnswer, RunId};
use soloist::scheduler::{EndedHow, Event, Guard};

use super::World;
use super::runs::{Guarded, Run};
use crate::happening::Happening;

/// How late the guardian may be on the processor, in microseconds.
const LATEST_US: u64 = 3_000;

impl World {
    /// The guardian is told until when an attempt may run. It may have sent TERM already.
    pub(super) fn guard(&mut self, run_id: RunId, guard: Guard) {
        let number = self.runs[&run_id].replica;
        let told = self.by_the_worlds_time(number, guard);
        self.check_guard(run_id, told);
        let late = Duration::from_micros(self.chance.below(LATEST_US));
        let run = self.runs.get_mut(&run_id).expect("it was started");
        if !run.guard.ending {
            run.guard = told;
            self.push(told.stop_at + late, Happening::GuardDue { run: run_id });
        }
    }

    /// Sends TERM to an attempt that has passed its guard, and KILL at the guard's end.
    pub(super) fn guard_due(&mut self, run_id: RunId) {
        let now = self.now;
        let heeds_term = self.chance.percent(50);
        let run = self.runs.get_mut(&run_id).expect("it was started");
        if run.ended.is_some() || run.guard.ending || now < run.guard.stop_at {
            return;
        }
        run.guard.ending = true;
        let (replica, life) = (run.replica, run.life);
        let grace = run.guard.kill_at.saturating_sub(now);
        let after = match heeds_term {
            true => Duration::from_millis(self.chance.below(grace.as_millis() as u64 + 1)),
            false => grace,
        };
        let end = Happening::EndOfRun {
            run: run_id,
            replica,
            life,
            how: EndedHow::Stopped,
        };
        self.push(now + after.min(grace), end);
    }

    /// A guard that a replica told by its own boot clock.
    pub(super) fn by_the_worlds_time(&self, number: usize, guard: Guard) -> Guarded {
        let host = &self.replicas[number].host;
        let Guard { stop_at, kill_at } = guard;
        Guarded {
            stop_at: host.world_time(stop_at),
            kill_at: host.world_time(kill_at),
            ending: false,
        }
    }

    /// No guard ends after the lease that it comes from, less what KILL takes, and none is
    /// shorter than the one before: an attempt is never asked to end for its lease being renewed.
    fn check_guard(&self, run_id: RunId, told: Guarded) {
        let run = &self.runs[&run_id];
        let kept_back = (run.ttl / 10).min(Duration::from_secs(1));
        let deadline = self.deadlines[&run_id];
        assert!(
            told.kill_at + kept_back <= deadline,
            "{told:?} outlasts the lease until {deadline:?}\n{run:#?}\n{self:?}"
        );
        assert!(told.stop_at <= told.kill_at, "{told:?}");
        assert!(
            run.guard.stop_at <= told.stop_at && run.guard.kill_at <= told.kill_at,
            "{told:?} after {:?}\n{self:?}",
            run.guard
        );
    }

    /// Notes until when the store keeps leases for their holders, as it says so.
    pub(super) fn note_leases(&mut self, event: &Event) {
        match event {
            Event::Claimed {
                claims,
                result: Ok(told),
                ..
            } => {
                for (claim, answer) in claims.iter().zip(&told.answer) {
                    if let ClaimAnswer::Granted(grant) = answer {
                        // Where it is heard again, its sender has its answer, or gave up.
                        if !self.deadlines.contains_key(&claim.run_id) {
                            self.check_grant(claim);
                        }
                        self.note_lease(claim.run_id, grant.remaining);
                    }
                }
            }
            Event::Renewed {
                renewals,
                result: Ok(told),
                ..
            } => {
                for (renewal, answer) in renewals.iter().zip(&told.answer) {
                    if let RenewalAnswer::Renewed { remaining, .. } = answer {
                        self.note_lease(renewal.run_id, *remaining);
                    }
                }
            }
            _ => {}
        }
    }

    /// The store's clock has milliseconds. What it says of a lease to a copy of an older request, when it
    /// has lost data or its clock was set, takes nothing from what the holder was told.
    fn note_lease(&mut self, run_id: RunId, remaining: Duration) {
        let now = u64::try_from(self.now.as_millis()).expect("a short simulation");
        let until = Duration::from_millis(now) + remaining;
        let known = self.deadlines.entry(run_id).or_default();
        *known = (*known).max(until);
    }

    /// Nobody is granted a job while an earlier attempt of it runs whose guard is yet to end,
    /// but for another shard of the same occurrence.
    fn check_grant(&self, claim: &Claim) {
        let job = claim.occurrence.job.as_str();
        let due = claim.occurrence.scheduled_at;
        let sibling = |run: &Run| run.scheduled_at == due && run.shard != claim.shard;
        let alive = self.alive.iter().filter(|id| **id != claim.run_id);
        let runs = alive.map(|id| &self.runs[id]);
        let mut others = runs.filter(|run| run.job == job && !sibling(run));
        let guarded = others.find(|run| run.guard.kill_at > self.now);
        assert!(
            guarded.is_none(),
            "granted to another before its guard ended: {guarded:#?}\n{self:?}"
        );
    }
}
