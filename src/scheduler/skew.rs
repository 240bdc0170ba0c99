//! How far this host's wall clock is from the store's. Nothing here goes by it; jobs do, which
//! look at the time, and so do people who compare logs.
//!
//! Must never: tell of each swing about the threshold.

use std::time::Duration;

use super::time::{BootTime, Timestamp};
use super::{Notice, Scheduler};

/// From here on people are told. An NTP client that works keeps a clock within a tenth of this.
const TOLD_FROM: Duration = Duration::from_secs(1);

/// Below this it is over.
const OVER_BELOW: Duration = Duration::from_millis(500);

/// What people were told of it.
#[derive(Debug, Default)]
pub(super) struct Skew {
    told: bool,
    /// By how much the wall clock was ahead when it was compared last, in milliseconds.
    ahead_ms: Option<i64>,
}

impl Skew {
    /// Takes in by how much the wall clock is ahead, give or take `doubt`; answers whether
    /// people are to be told.
    fn measured(&mut self, ahead_ms: i64, doubt: Duration) -> bool {
        self.ahead_ms = Some(ahead_ms);
        let by = Duration::from_millis(ahead_ms.unsigned_abs());
        let turns = match self.told {
            false => by >= TOLD_FROM + doubt,
            true => by < OVER_BELOW,
        };
        self.told ^= turns;
        turns
    }
}

impl Scheduler {
    /// Compares this host's wall clock with the store's.
    pub fn compare_wall(&mut self, wall: Timestamp, now: BootTime) {
        let Some(store) = self.clock.reached(now) else {
            return;
        };
        let ahead_ms = wall.as_millis() - store.as_millis();
        if self.skew.measured(ahead_ms, self.clock.round_trip()) {
            let over = !self.skew.told;
            self.report(Notice::ClockSkewed { ahead_ms, over });
        }
    }

    /// By how much this host's wall clock was ahead of the store's when they were compared last,
    /// in milliseconds; none before.
    pub fn clock_skew_ms(&self) -> Option<i64> {
        self.skew.ahead_ms
    }

    /// How long the store's last answer took.
    pub fn round_trip(&self) -> Duration {
        self.clock.round_trip()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_is_told_once_and_when_it_is_over() {
        let mut skew = Skew::default();
        let measured = [0, 999, -1000, 5000, 700, -600, 1200, 499, 999, 0, 1000];
        let told = measured.map(|ms| skew.measured(ms, Duration::ZERO));
        let turns: Vec<i64> = measured
            .into_iter()
            .zip(told)
            .filter(|one| one.1)
            .map(|one| one.0)
            .collect();
        assert_eq!(turns, [-1000, 499, 1000]);
    }

    #[test]
    fn what_may_be_the_way_to_the_store_is_no_skew() {
        let mut skew = Skew::default();
        assert!(!skew.measured(1400, Duration::from_millis(500)));
        assert!(skew.measured(1500, Duration::from_millis(500)));
    }
}
