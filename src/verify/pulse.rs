//! How the store answers while all goes on: round trips, outages, clocks; and how late this host
//! wakes those who wait.
//!
//! Must never: ask what a replica may not, or take a slow answer for none.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::checker::Hurt;
use crate::clock::Clock;
use crate::store::{Store, StoreError};

/// From one question to the next.
const BEAT: Duration = Duration::from_millis(100);
/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(1);
/// A host that wakes those who wait later than this hurts its replicas.
const STALL: Duration = Duration::from_millis(300);

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) round_trips: Vec<Duration>,
    /// Times without an answer, and times in which this host stood still.
    pub(super) hurts: Vec<Hurt>,
    /// How long the store was away, all in all.
    pub(super) away: Duration,
    /// Since when the store does not answer, and why.
    pub(super) silent: Option<(Duration, StoreError)>,
    /// How late this host woke somebody, at most.
    pub(super) latest: Duration,
}

/// Somebody who asks the store all the time. Dropped, it stops.
pub(super) struct Pulse {
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::JoinHandle<()>,
}

impl Pulse {
    pub(super) fn of(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let task = tokio::spawn(beat(store, clock, Arc::clone(&seen)));
        Self { seen, task }
    }

    pub(super) fn seen(&self) -> Seen {
        lock(&self.seen).clone()
    }

    /// For how long the store has not answered.
    pub(super) fn silent_for(&self, now: Duration) -> Option<(Duration, StoreError)> {
        let silent = lock(&self.seen).silent.clone();
        silent.map(|(since, error)| (now.saturating_sub(since), error))
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn beat(store: Arc<dyn Store>, clock: Arc<dyn Clock>, seen: Arc<Mutex<Seen>>) {
    let now = || clock.boot().as_duration();
    loop {
        let rested = now();
        tokio::time::sleep(BEAT).await;
        let asked = now();
        // One small reading; of a table that nobody has.
        let answer = tokio::time::timeout(PATIENCE, store.table("")).await;
        let answer = answer.unwrap_or_else(|_| {
            Err(StoreError::Unreachable {
                place: store.place(),
                cause: format!("no answer within {PATIENCE:?}"),
            })
        });
        lock(&seen).note(rested, asked, now(), answer.map(|_| ()));
    }
}

impl Seen {
    /// Takes in an answer; all moments are since the host's boot.
    fn note(
        &mut self,
        rested: Duration,
        asked: Duration,
        now: Duration,
        answer: Result<(), StoreError>,
    ) {
        let late = asked.saturating_sub(rested + BEAT);
        self.latest = self.latest.max(late);
        if late > STALL {
            self.hurt(rested, asked);
        }
        match answer {
            Ok(()) => {
                self.round_trips.push(now.saturating_sub(asked));
                if let Some((since, _)) = self.silent.take() {
                    self.away += now.saturating_sub(since);
                    self.hurt(since, now);
                }
            }
            Err(error) => {
                let since = self.silent.take().map_or(asked, |(since, _)| since);
                self.silent = Some((since, error));
            }
        }
    }

    fn hurt(&mut self, from: Duration, to: Duration) {
        let replica = None;
        self.hurts.push(Hurt { replica, from, to });
    }

    /// The round trip that so many of a hundred were not slower than.
    pub(super) fn percentile(&self, of_hundred: usize) -> Duration {
        let mut sorted = self.round_trips.clone();
        sorted.sort();
        let at = (sorted.len() * of_hundred).div_ceil(100);
        sorted
            .get(at.saturating_sub(1))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn away() -> Result<(), StoreError> {
        Err(StoreError::Unreachable {
            place: "there".to_owned(),
            cause: "gone".to_owned(),
        })
    }

    #[test]
    fn an_outage_lasts_from_the_first_question_without_an_answer_to_the_next_answer() {
        let mut seen = Seen::default();
        seen.note(ms(0), ms(100), ms(101), Ok(()));
        seen.note(ms(101), ms(201), ms(1201), away());
        seen.note(ms(1201), ms(1301), ms(1302), away());
        assert!(seen.silent.is_some());
        seen.note(ms(1302), ms(1402), ms(1403), Ok(()));
        assert!(seen.silent.is_none());
        assert_eq!(seen.away, ms(1403 - 201));
        assert_eq!(seen.hurts.len(), 1);
        assert_eq!((seen.hurts[0].from, seen.hurts[0].to), (ms(201), ms(1403)));
    }

    #[test]
    fn a_host_that_stood_still_has_hurt_all() {
        let mut seen = Seen::default();
        seen.note(ms(0), ms(150), ms(151), Ok(()));
        assert_eq!((seen.latest, seen.hurts.len()), (ms(50), 0));
        seen.note(ms(151), ms(1151), ms(1152), Ok(()));
        assert_eq!((seen.latest, seen.hurts.len()), (ms(900), 1));
        assert_eq!(seen.hurts[0].replica, None);
    }

    #[test]
    fn percentiles_are_of_what_was_measured() {
        let mut seen = Seen::default();
        assert_eq!(seen.percentile(50), Duration::ZERO);
        for millis in (1..=100).rev() {
            seen.round_trips.push(ms(millis));
        }
        assert_eq!((seen.percentile(50), seen.percentile(99)), (ms(50), ms(99)));
    }
}
