//! Claims: new ones, those of others, and those that were sent before.

use std::time::Duration;

use soloist::scheduler::job::{JobName, OnCrash};
use soloist::scheduler::lease::{BATCH_LIMIT, Claim, Late, Occurrence, Origin, RunId};
use soloist::scheduler::policy::Concurrency;
use soloist::scheduler::time::Timestamp;

use super::Drawing;
use crate::steps::Call;

/// Seconds, as durations of a claim are drawn.
fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

impl Drawing {
    pub(super) fn claim(&mut self, of: usize) -> Call {
        let count = self.batch();
        if self.chance.one_in(12)
            && let Some(claims) = self.again(of, count)
        {
            return Call::Claim(claims);
        }
        let mut claims: Vec<Claim> = Vec::new();
        for _ in 0..count {
            let claim = self.one_claim(of);
            self.put(&mut claims, claim, |one| (&one.occurrence.job, one.shard));
        }
        Call::Claim(claims)
    }

    /// How many requests a batch has: mostly few; in a crowd as many as may be, or one too many.
    pub(super) fn batch(&mut self) -> usize {
        let crowd = self.jobs.len() > BATCH_LIMIT;
        match self.chance.below(20) {
            0 => 0,
            1..10 => 1,
            10..12 if crowd => BATCH_LIMIT,
            12 if crowd => BATCH_LIMIT + 1,
            13..16 if crowd => 60,
            _ => 1 + self.chance.index(4),
        }
    }

    /// Adds a request to a batch, unless there is one of its job and shard; some are there twice
    /// all the same.
    pub(super) fn put<T>(
        &mut self,
        batch: &mut Vec<T>,
        one: T,
        of: impl Fn(&T) -> (&JobName, u32),
    ) {
        let twice = batch.iter().any(|other| of(other) == of(&one));
        if !twice || self.chance.one_in(30) {
            batch.push(one);
        }
    }

    /// Claims that were sent before, in any order.
    fn again(&mut self, of: usize, count: usize) -> Option<Vec<Claim>> {
        let sent = &self.memories[of].claims;
        let mut claims: Vec<Claim> = Vec::new();
        for _ in 0..count {
            let one = self.chance.recent(sent)?.clone();
            let is_of = |other: &Claim| other.occurrence.job == one.occurrence.job;
            if !claims.iter().any(is_of) {
                claims.push(one);
            }
        }
        Some(claims)
    }

    fn one_claim(&mut self, of: usize) -> Claim {
        let job = self.job();
        let due = self.about_now();
        let mut claim = self.claim_to(job, due);
        match self.chance.below(12) {
            0..5 => self.take_over(of, &mut claim),
            5..7 => self.take_opening(of, &mut claim),
            7 => {
                let sent = self.chance.recent(&self.memories[of].claims).cloned();
                if let Some(sent) = sent {
                    claim.occurrence = sent.occurrence;
                    claim.run_id = match self.chance.one_in(4) {
                        true => sent.run_id,
                        false => claim.run_id,
                    };
                }
            }
            _ => {}
        }
        if self.chance.one_in(3) {
            claim.definition = self.digest(&claim.occurrence.job);
        }
        claim
    }

    fn claim_to(&mut self, job: JobName, scheduled_at: Timestamp) -> Claim {
        let run_id = RunId::new(self.chance.uuid());
        let retention = self.retention(&job);
        let dependents = self.dependents(&job, 3);
        let telling = self.telling();
        let shards = match job.as_str().len() % 3 {
            0 => 1 + self.chance.below(4) as u32,
            _ => 1,
        };
        let start_by = scheduled_at + seconds([0, 2, 20, 3600][self.chance.index(4)]);
        let occurrence = Occurrence { job, scheduled_at };
        let mut claim = Claim::new(occurrence, run_id);
        // Some ask for a shard that there is not.
        claim.shard = self.chance.below(u64::from(shards) + 1) as u32 % (shards + 1);
        if claim.shard == shards && !self.chance.one_in(8) {
            claim.shard = 0;
        }
        claim.shards = shards;
        claim.retention = retention;
        claim.dependents = dependents;
        claim.telling = telling;
        claim.start_by = start_by;
        self.set_times(&mut claim);
        self.set_policies(&mut claim);
        claim
    }

    fn set_times(&mut self, claim: &mut Claim) {
        let due = claim.occurrence.scheduled_at;
        let before = |count| due - seconds(count);
        claim.claim_by = match self.chance.below(20) {
            0 => Claim::ONLY_ASKS,
            1 => due,
            _ => claim.start_by,
        };
        claim.ttl = Duration::from_millis(1 + self.chance.below(10_000));
        let chance = &mut self.chance;
        claim.missed_until = chance.some(4, |chance| before(1 + chance.below(10)));
        claim.follows = chance.some(4, |chance| before(1 + chance.below(10)));
        let backlog = chance.below(3) * chance.below(2);
        claim.backlog = (1..=backlog).rev().map(before).collect();
        let until = self.now;
        claim.late = self.chance.some(3, |chance| match chance.below(6) {
            0 => Late::Turn { behind: due, until },
            1 => Late::After { until },
            2 => Late::Grace { until },
            3 => Late::Room,
            4 => Late::Away,
            _ => Late::Reasserted,
        });
    }

    fn set_policies(&mut self, claim: &mut Claim) {
        let chance = &mut self.chance;
        claim.max_attempts = 1 + chance.below(4) as u32;
        claim.on_crash = match chance.one_in(4) {
            true => OnCrash::Skip,
            false => OnCrash::Rerun,
        };
        claim.concurrency = match chance.below(4) {
            0..2 => Concurrency::Forbid,
            2 => Concurrency::Queue {
                limit: chance.below(4) as u32,
            },
            _ => Concurrency::Replace,
        };
        claim.origin = match chance.below(16) {
            0..3 => Origin::RunOnce,
            3 => Origin::Trigger,
            4 => Origin::After,
            _ => Origin::Schedule,
        };
        claim.unplaced = chance.one_in(16);
        claim.no_room = chance.one_in(16);
        claim.no_room_before = chance.one_in(16);
    }

    /// Asks for a lease that was seen; now and then by a look that was not exact.
    fn take_over(&mut self, of: usize, claim: &mut Claim) {
        let Some(seen) = self.chance.recent(&self.memories[of].seen).cloned() else {
            return;
        };
        claim.occurrence.job = seen.job;
        claim.occurrence.scheduled_at = seen.scheduled_at;
        claim.shard = seen.shard;
        claim.shards = claim.shards.max(seen.shard + 1);
        let mut sighting = seen.sighting;
        if self.chance.one_in(12) {
            sighting.deadline = sighting.deadline + Duration::from_millis(1);
        }
        claim.watched = Some(sighting);
        claim.retention = self.retention(&claim.occurrence.job.clone());
        claim.dependents = self.dependents(&claim.occurrence.job.clone(), 2);
    }

    fn take_opening(&mut self, of: usize, claim: &mut Claim) {
        let Some(opening) = self.chance.recent(&self.memories[of].openings).cloned() else {
            return;
        };
        claim.occurrence = opening.occurrence;
        claim.origin = opening.origin;
        claim.shard = opening.shard;
        claim.shards = opening
            .shards
            .unwrap_or(claim.shards)
            .max(opening.shard + 1);
        claim.retention = self.retention(&claim.occurrence.job.clone());
        claim.dependents = self.dependents(&claim.occurrence.job.clone(), 2);
        claim.start_by = self.now + seconds(60);
        claim.claim_by = claim.start_by;
    }
}
