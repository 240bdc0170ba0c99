//! The lock that everybody writes, beside the leases, for the same jobs: `SET key owner NX PX ttl`
//! before the job, `DEL key` after it. Its replicas are tasks of this process; some of their
//! holders pause for longer than the lock lasts, some die.
//!
//! Once with clocks that agree, once with clocks that are apart. Replicas of soloist are not
//! given such clocks: they go by the store's.
//!
//! Must never: be kinder or harder to this lock than the field is: pauses and deaths come about as
//! often as to the replicas beside it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::dice::Dice;
use super::evidence::Run;
use super::plan::{JobPlan, Setup};
use crate::clock::Clock;
use crate::scheduler::time::Timestamp;
use crate::store::{PlainLock, StoreError};

/// How far the clock of a replica is off, at most, in the fleet whose clocks don't agree.
pub(super) const SKEW: Duration = Duration::from_millis(500);

/// A holder pauses once in so many runs of a job that outlasts the lock, or dies; short ones are
/// hit less often, as there is less of them to hit.
const ONE_LONG_IN: u64 = 6;
const ONE_SHORT_IN: u64 = 60;

/// What the lock is kept in.
#[derive(Clone, Copy)]
pub(super) enum Keeper<'s> {
    /// The server that is tested.
    Server(PlainLock<'s>),
    /// This process, where the store has no such lock: the same arithmetic in memory.
    Memory(&'s Memory),
}

/// Locks in memory: who has each, and until when.
#[derive(Default)]
pub(super) struct Memory(Mutex<BTreeMap<String, Duration>>);

/// What came of a fleet.
#[derive(Debug, Default)]
pub(super) struct Ran {
    pub(super) runs: Vec<Run>,
    /// Why the lock could not be tried.
    pub(super) refused: Option<StoreError>,
}

/// A fleet that uses the plain lock.
pub(super) struct PlainFleet<'s> {
    pub(super) name: &'static str,
    pub(super) keeper: Keeper<'s>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) skew: Duration,
}

impl Keeper<'_> {
    async fn take(
        self,
        key: &str,
        owner: &str,
        ttl: Duration,
        now: Duration,
    ) -> Result<bool, StoreError> {
        match self {
            Keeper::Server(lock) => lock.take(key, owner, ttl).await,
            Keeper::Memory(memory) => Ok(memory.take(key, ttl, now)),
        }
    }

    async fn drop(self, key: &str) -> Result<(), StoreError> {
        match self {
            Keeper::Server(lock) => lock.drop(key).await,
            Keeper::Memory(memory) => {
                memory.lock().remove(key);
                Ok(())
            }
        }
    }
}

impl Memory {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Duration>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &str, ttl: Duration, now: Duration) -> bool {
        let mut locks = self.lock();
        if locks.get(key).is_some_and(|until| now < *until) {
            return false;
        }
        locks.insert(key.to_owned(), now + ttl);
        true
    }
}

/// The keys of the locks of a fleet.
pub(super) fn keys<'p>(fleet: &'p str, jobs: &'p [JobPlan]) -> impl Iterator<Item = String> + 'p {
    jobs.iter().map(move |job| format!("{fleet}:{}", job.name))
}

/// What one replica does with one job.
struct Hand<'p> {
    replica: usize,
    job: &'p JobPlan,
    key: String,
    ttl: Duration,
    dice: Dice,
    /// How far its clock is ahead, in milliseconds.
    ahead_ms: i64,
}

impl PlainFleet<'_> {
    /// Runs until it is dropped, or the lock is refused.
    pub(super) async fn run(&self, setup: &Setup, ran: &Mutex<Ran>) {
        let mut dice = Dice::new(setup.seed ^ 0x5e7_0000);
        let jobs = setup.jobs();
        let keys: Vec<String> = keys(self.name, &jobs).collect();
        let mut hands = Vec::new();
        for replica in 0..usize::try_from(setup.replicas).unwrap_or_default() {
            // Spread over all that they may be apart, so that a seed can't make them agree.
            let apart = self.skew.as_millis() * 2;
            let others = u128::from(setup.replicas - 1).max(1);
            let ahead = apart * replica as u128 / others;
            let ahead_ms = i64::try_from(ahead).unwrap_or_default()
                - i64::try_from(self.skew.as_millis()).unwrap_or_default();
            for (job, key) in jobs.iter().zip(&keys) {
                hands.push(Hand {
                    replica,
                    job,
                    key: key.clone(),
                    ttl: setup.lease_ttl(),
                    dice: Dice::new(dice.below(u64::MAX)),
                    ahead_ms,
                });
            }
        }
        let all = hands.into_iter().map(|hand| self.work(hand, ran));
        futures_util::future::join_all(all).await;
    }

    async fn work(&self, mut hand: Hand<'_>, ran: &Mutex<Ran>) {
        let every_ms = i64::from(hand.job.every_seconds) * 1000;
        let own_now = |hand: &Hand<'_>| self.clock.wall().as_millis() + hand.ahead_ms;
        let mut next_ms = (own_now(&hand) / every_ms + 1) * every_ms;
        loop {
            while own_now(&hand) < next_ms {
                let left = u64::try_from(next_ms - own_now(&hand)).unwrap_or_default();
                tokio::time::sleep(Duration::from_millis(left)).await;
            }
            let occurrence = Timestamp::from_millis(next_ms);
            if let Err(error) = self.fire(&mut hand, occurrence, ran).await
                && let StoreError::Refused { .. } = error
            {
                lock(ran).refused = Some(error);
                return;
            }
            // What fell due while it was busy it never sees, like a plain timer.
            next_ms = next_ms.max((own_now(&hand) / every_ms) * every_ms) + every_ms;
        }
    }

    /// One occurrence, as one replica sees it.
    async fn fire(
        &self,
        hand: &mut Hand<'_>,
        occurrence: Timestamp,
        ran: &Mutex<Ran>,
    ) -> Result<(), StoreError> {
        let now = || self.clock.boot().as_duration();
        let owner = format!("plain-{}", hand.replica + 1);
        if !self.keeper.take(&hand.key, &owner, hand.ttl, now()).await? {
            return Ok(());
        }
        let began = now();
        let index = {
            let mut ran = lock(ran);
            ran.runs.push(Run {
                job: hand.job.name.to_owned(),
                scheduled_at: occurrence,
                attempt: 1,
                token: 0,
                replica: owner,
                started: began,
                last: began,
                ended: false,
                met: false,
            });
            ran.runs.len() - 1
        };
        let one_in = match hand.job.lasts > hand.ttl {
            true => ONE_LONG_IN,
            false => ONE_SHORT_IN,
        };
        if hand.dice.once_in(one_in) {
            // It dies half way: nobody gives the lock back, and nobody runs the rest.
            tokio::time::sleep(hand.job.lasts / 2).await;
            lock(ran).runs[index].last = now();
            return Ok(());
        }
        let pause = match hand.dice.once_in(one_in) {
            true => hand.ttl * 3 / 2,
            false => Duration::ZERO,
        };
        tokio::time::sleep(hand.job.lasts + pause).await;
        {
            let run = &mut lock(ran).runs[index];
            (run.last, run.ended) = (now(), true);
        }
        self.keeper.drop(&hand.key).await
    }
}

pub(super) fn lock(ran: &Mutex<Ran>) -> std::sync::MutexGuard<'_, Ran> {
    ran.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::checker::judge_plain;
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn a_lock_in_memory_is_free_again_when_its_time_is_over() {
        let memory = Memory::default();
        let (ttl, at) = (Duration::from_secs(1), Duration::from_secs);
        assert!(memory.take("a", ttl, at(5)));
        assert!(!memory.take("a", ttl, Duration::from_millis(5999)));
        assert!(memory.take("a", ttl, at(6)));
        assert!(memory.take("b", ttl, at(6)));
    }

    #[tokio::test]
    async fn clocks_that_are_apart_run_short_jobs_twice_under_a_plain_lock() {
        let setup = Setup {
            duration: Duration::from_secs(6),
            replicas: 3,
            seed: 1,
            has_links: false,
        };
        let memory = Memory::default();
        let fleet = PlainFleet {
            name: "skewed",
            keeper: Keeper::Memory(&memory),
            clock: Arc::new(SystemClock),
            skew: SKEW,
        };
        let ran = Mutex::new(Ran::default());
        // A second or two do, where the machine gives one.
        let patience = Duration::from_secs(30);
        let found = async {
            while judge_plain(&setup.jobs(), &lock(&ran).runs).ran_twice == 0 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::select! {
            () = found => {}
            () = fleet.run(&setup, &ran) => panic!("the lock is refused"),
            () = tokio::time::sleep(patience) => {
                panic!("{:?}", judge_plain(&setup.jobs(), &lock(&ran).runs))
            }
        }
    }
}
