//! Claims on their way: sent, sent again when no answer came, and settled by an answer.
//!
//! A claim without an answer is *in doubt*: the store may have granted it. It is sent again
//! with the same identity until there is an answer, so that a lost reply costs nothing and
//! doubles nothing. When a newer occurrence of the job falls due meanwhile, the older claim is
//! only asked for what became of it: granted before, or not.
//!
//! Must never: forget a claim that may have been granted.

use std::collections::HashMap;
use std::time::Duration;

use super::job::JobName;
use super::lease::{BATCH_LIMIT, Claim, Late, Occurrence, Origin, RunId};
use super::time::BootTime;
use super::timers::Timers;

/// Claims of one job that wait for an answer. Over this the oldest is given up: a store that
/// was away for so long has let its lease run out.
const PENDING_PER_JOB: usize = 64;

/// The first wait before a claim is sent again, and the longest.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(1);

/// The first wait after a claim that came too early; it doubles up to half a second.
const FIRST_EARLY_RETRY: Duration = Duration::from_millis(1);

/// All claims without an answer.
#[derive(Debug, Default)]
pub(super) struct Claims {
    pending: HashMap<RunId, Pending>,
    by_job: HashMap<JobName, Vec<RunId>>,
    /// Those not in flight.
    ready: Timers<RunId>,
    in_flight: usize,
}

#[derive(Debug)]
struct Pending {
    claim: Claim,
    failures: u32,
    in_flight: bool,
    /// It may have been granted, under a lease that has run out by then. None where the last
    /// answer said no.
    doubt_until: Option<BootTime>,
    /// It was not granted before that. None where it was not sent yet.
    asked_since: Option<BootTime>,
}

/// Since when a claim may have been granted that is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// When it was sent first after it was last known not to be granted.
    pub(super) since: BootTime,
    /// When it was sent the last time.
    pub(super) sent: BootTime,
}

impl Claims {
    /// Takes a claim to be sent at `at`. Older claims to the job's schedule are from now on
    /// only asked for what became of them.
    pub(super) fn add(&mut self, claim: Claim, at: BootTime) {
        let siblings = self.by_job.entry(claim.occurrence.job.clone()).or_default();
        let most = PENDING_PER_JOB.max(2 * claim.shards as usize);
        if claim.origin == Origin::Schedule && claim.watched.is_none() {
            for id in siblings.iter() {
                supersede(&mut self.pending, &mut self.ready, *id, &claim, at);
            }
        }
        siblings.push(claim.run_id);
        let surplus = (siblings.len() > most).then(|| siblings[0]);
        self.ready.set(claim.run_id, at);
        let pending = Pending {
            claim,
            failures: 0,
            in_flight: false,
            doubt_until: None,
            asked_since: None,
        };
        self.pending.insert(pending.claim.run_id, pending);
        if let Some(oldest) = surplus {
            self.settle(oldest);
        }
    }

    /// Whether every claim was answered.
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether an answer about this shard of an occurrence is awaited.
    pub(super) fn is_pending(&self, occurrence: &Occurrence, shard: u32) -> bool {
        let ids = self.by_job.get(&occurrence.job).into_iter().flatten();
        ids.filter_map(|id| self.pending.get(id))
            .any(|one| one.claim.occurrence == *occurrence && one.claim.shard == shard)
    }

    /// Whether an answer about any occurrence of a job is awaited.
    pub(super) fn has_pending(&self, job: &JobName) -> bool {
        self.by_job.contains_key(job)
    }

    /// How many claims may become attempts.
    pub(super) fn startable(&self) -> usize {
        let startable = |one: &&Pending| !one.claim.no_room && !one.claim.unplaced;
        self.pending.values().filter(startable).count()
    }

    /// Takes a batch of claims that are ready to be sent.
    pub(super) fn take_ready(&mut self, now: BootTime) -> Option<Vec<Claim>> {
        let mut batch = Vec::new();
        while batch.len() < BATCH_LIMIT {
            let Some(id) = self.ready.take_due(now) else {
                break;
            };
            let Some(pending) = self.pending.get_mut(&id) else {
                continue;
            };
            pending.in_flight = true;
            pending.asked_since.get_or_insert(now);
            self.in_flight += 1;
            batch.push(pending.claim.clone());
        }
        (!batch.is_empty()).then_some(batch)
    }

    /// Takes back what was in flight: answered or not, it is no longer on its way.
    pub(super) fn landed(&mut self, id: RunId) {
        if let Some(pending) = self
            .pending
            .get_mut(&id)
            .filter(|pending| pending.in_flight)
        {
            pending.in_flight = false;
            self.in_flight -= 1;
        }
    }

    /// Forgets a claim that was granted; answers since when it may have been.
    pub(super) fn granted(&mut self, id: RunId, sent: BootTime) -> Asked {
        let since = self.pending.get(&id).and_then(|one| one.asked_since);
        self.settle(id);
        Asked {
            // Of one that was given up meanwhile nobody knows any more.
            since: since.unwrap_or_default(),
            sent,
        }
    }

    /// Notes that a claim which was sent at `sent` was answered, and had not been granted.
    pub(super) fn not_granted(&mut self, id: RunId, sent: BootTime) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.asked_since = Some(sent);
        }
    }

    /// Sends a claim again at `at`.
    pub(super) fn postpone(&mut self, id: RunId, at: BootTime) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.doubt_until = None;
            self.ready.set(id, at);
        }
    }

    /// Notes that a claim which was sent at `sent` had no answer.
    pub(super) fn unanswered(&mut self, id: RunId, sent: BootTime) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.doubt_until = Some(sent + pending.claim.ttl);
            pending.claim.late.get_or_insert(Late::Away);
        }
    }

    /// The same of a question that could not be granted; what was sent before it could.
    pub(super) fn unanswered_question(&mut self, id: RunId, sent: BootTime) {
        if let Some(pending) = self.pending.get_mut(&id) {
            let until = sent + pending.claim.ttl;
            pending.doubt_until.get_or_insert(until);
        }
    }

    /// Whether a claim may still have a lease at the store.
    pub(super) fn is_in_doubt(&self, id: RunId, now: BootTime) -> bool {
        let pending = self.pending.get(&id);
        pending.is_some_and(|one| one.doubt_until.is_some_and(|until| now < until))
    }

    /// Sends a claim again that came too early by `wait`. Where it comes too early again, the
    /// store's time stands still, and it asks more and more seldom.
    pub(super) fn early(&mut self, id: RunId, now: BootTime, wait: Duration) {
        if let Some(pending) = self.pending.get_mut(&id) {
            let patience = FIRST_EARLY_RETRY * (1 << pending.failures.min(9));
            pending.failures += 1;
            self.ready.set(id, now + wait.max(patience));
        }
    }

    /// Sends a claim again after a wait that doubles each time; `dice` spreads the replicas.
    pub(super) fn retry(&mut self, id: RunId, now: BootTime, dice: u8) {
        if let Some(pending) = self.pending.get_mut(&id) {
            let wait = backoff(pending.failures, dice);
            pending.failures += 1;
            self.ready.set(id, now + wait);
        }
    }

    /// Forgets a claim: it was answered.
    pub(super) fn settle(&mut self, id: RunId) {
        self.landed(id);
        self.ready.clear(id);
        let Some(pending) = self.pending.remove(&id) else {
            return;
        };
        let job = pending.claim.occurrence.job;
        if let Some(siblings) = self.by_job.get_mut(&job) {
            siblings.retain(|sibling| *sibling != id);
            if siblings.is_empty() {
                self.by_job.remove(&job);
            }
        }
    }

    /// Forgets what surely has no lease, of some jobs.
    pub(super) fn drop_waiting(&mut self, of: impl Fn(&JobName) -> bool) {
        let waiting: Vec<_> = self
            .pending
            .iter()
            .filter(|(_, one)| !one.in_flight && one.doubt_until.is_none())
            .filter(|(_, one)| of(&one.claim.occurrence.job))
            .map(|(id, _)| *id)
            .collect();
        waiting.into_iter().for_each(|id| self.settle(id));
    }

    /// When the next one is ready to be sent.
    pub(super) fn next_wakeup(&self) -> Option<BootTime> {
        self.ready.next()
    }
}

/// Lets an older claim only ask what became of it: the store answers either with the grant it
/// made before, or that there is nothing to be had. The newer one settles it with itself.
fn supersede(
    pending: &mut HashMap<RunId, Pending>,
    ready: &mut Timers<RunId>,
    id: RunId,
    newer: &Claim,
    at: BootTime,
) {
    let Some(older) = pending.get_mut(&id) else {
        return;
    };
    let scheduled = older.claim.origin == Origin::Schedule && older.claim.watched.is_none();
    // One that only asks already keeps its back-off: else each newer occurrence would send all
    // older ones at once, while the store is away or nothing is granted.
    let asks = older.claim.claim_by == Claim::ONLY_ASKS;
    if scheduled && !asks && older.claim.occurrence.scheduled_at < newer.occurrence.scheduled_at {
        older.claim.claim_by = Claim::ONLY_ASKS;
        if !older.in_flight {
            ready.set(id, at);
        }
    }
}

/// The wait before the next sending: doubled each time, and cut by up to a half by `dice`.
pub(super) fn backoff(failures: u32, dice: u8) -> Duration {
    let full = FIRST_RETRY
        .saturating_mul(1 << failures.min(10))
        .min(LONGEST_RETRY);
    full - full / 2 * u32::from(dice) / u32::from(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::time::Timestamp;
    use uuid::Uuid;

    fn claim(job: &str, second: i64, id: u128) -> Claim {
        let occurrence = Occurrence {
            job: JobName::new(job).unwrap(),
            scheduled_at: Timestamp::from_second(second),
        };
        Claim::new(occurrence, RunId::new(Uuid::from_u128(id)))
    }

    #[test]
    fn a_newer_occurrence_leaves_the_older_claim_only_to_ask_what_became_of_it() {
        let mut claims = Claims::default();
        let now = BootTime::default();
        claims.add(claim("a", 1, 1), now);
        let sent = claims.take_ready(now).unwrap();
        claims.landed(sent[0].run_id);
        claims.retry(sent[0].run_id, now, 0);
        claims.add(claim("a", 2, 2), now);
        let batch = claims.take_ready(now).unwrap();
        assert_eq!(batch.len(), 2, "both in one batch, the older first");
        assert_eq!(batch[0].run_id, sent[0].run_id);
        assert_eq!(batch[0].claim_by, Claim::ONLY_ASKS);
        assert_eq!(batch[1].claim_by, Timestamp::from_second(62));
    }

    #[test]
    fn claims_of_one_instant_travel_in_batches() {
        let mut claims = Claims::default();
        let now = BootTime::default();
        for n in 0..300 {
            claims.add(claim(&format!("job{n}"), 1, n), now);
        }
        let sizes: Vec<_> = std::iter::from_fn(|| claims.take_ready(now))
            .map(|b| b.len())
            .collect();
        assert_eq!(sizes, [128, 128, 44]);
        assert_eq!(claims.in_flight, 300);
    }

    #[test]
    fn waits_grow_to_a_limit_and_are_spread() {
        assert_eq!(backoff(0, 0), Duration::from_millis(50));
        assert_eq!(backoff(30, 0), Duration::from_secs(1));
        assert_eq!(backoff(30, 255), Duration::from_millis(500));
    }
}
