//! How long a step takes at present, and how long others are waited for accordingly.
//!
//! A pause that is right for a quiet network is none at all for hosts that have too much to do:
//! whoever waits too short a time for an answer, or is left in peace for less time than a step
//! takes, bids again and again, and so do all the others, and no step comes to its end.
//!
//! Must never: let what is safe depend on it. It is for speed alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use super::super::back_off::BackOff;

/// What is waited at least: much longer than a step takes where nothing is wrong.
const SHORTEST: Duration = Duration::from_millis(30);
/// How long one server may keep all others waiting: a part of the shortest time that a call may
/// take, for each of a minority.
const LONGEST_ALONE: Duration = Duration::from_millis(250);
/// The longest peace that a server gives (`lua/read.lua`).
const LONGEST_PEACE: Duration = Duration::from_secs(1);

/// What the pauses of whoever was outbid begin with. To ask again costs little, and whoever's turn
/// it is keeps all others waiting until it asks.
const FIRST_PAUSE: Duration = Duration::from_millis(2);

/// What is remembered of a step goes by an eighth with each one after it that was quicker.
const FORGOTTEN: u64 = 8;

/// When a step began, or had its first promise.
pub(super) struct Began(Instant);

impl Began {
    pub(super) fn now() -> Self {
        Self(Instant::now())
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// How long the slowest of the last steps took, from its promise to its end.
#[derive(Debug, Default)]
pub(super) struct Pace {
    us: AtomicU64,
}

impl Pace {
    /// A step was taken, or was in vain.
    pub(super) fn took(&self, began: &Began) {
        self.note(began.elapsed());
    }

    /// A server has answered, for the first time since: a step takes two such answers at least.
    pub(super) fn answered(&self, asked: &Began) {
        self.note(asked.elapsed() * 2);
    }

    fn note(&self, time: Duration) {
        let time_us = u64::try_from(time.min(LONGEST_PEACE / 2).as_micros()).unwrap_or(u64::MAX);
        let slower = |us: u64| Some((us - us / FORGOTTEN).max(time_us));
        // It always answers.
        let _ = self
            .us
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, slower);
    }

    fn step(&self) -> Duration {
        Duration::from_micros(self.us.load(Ordering::Relaxed))
    }

    /// How long the server that is asked alone has to answer. A step is two such answers.
    pub(super) fn alone(&self) -> Duration {
        self.step().clamp(SHORTEST, LONGEST_ALONE)
    }

    /// How long whoever has a promise is to be left in peace.
    pub(super) fn peace(&self) -> Duration {
        (self.step() * 2).clamp(SHORTEST, LONGEST_PEACE)
    }

    /// How long whoever was outbid waits until it asks again: less than its turn is kept for it.
    pub(super) fn back_off(&self) -> BackOff {
        let pause = FIRST_PAUSE.max(self.step() / 4);
        BackOff::new(pause, pause * 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_with_the_slowest_step_and_shrink_with_quicker_ones() {
        let pace = Pace::default();
        assert_eq!((pace.alone(), pace.peace()), (SHORTEST, SHORTEST));
        pace.note(Duration::from_millis(200));
        pace.note(Duration::from_millis(1));
        let (alone, peace) = (pace.alone(), pace.peace());
        assert_eq!(alone, Duration::from_millis(175));
        assert_eq!(peace, Duration::from_millis(350));
        for _ in 0..100 {
            pace.note(Duration::from_millis(1));
        }
        assert_eq!((pace.alone(), pace.peace()), (SHORTEST, SHORTEST));
    }

    #[test]
    fn waits_are_bounded() {
        let pace = Pace::default();
        pace.note(Duration::from_secs(3600));
        assert_eq!(pace.alone(), LONGEST_ALONE);
        assert_eq!(pace.peace(), LONGEST_PEACE);
    }
}
