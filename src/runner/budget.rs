//! How much of what a job writes goes to the log: formatting lines is what costs, and a job that
//! writes without end must not be held up by it, nor fill a disk.

use std::time::Duration;

use crate::scheduler::time::BootTime;

/// Bytes of one stream that go to the log each second, in the long run.
pub(super) const LOG_RATE: u64 = 512 * 1024;

/// Bytes that may go at once when nothing went for a while.
const BURST: u64 = 2 * LOG_RATE;

/// What a line costs beside its bytes: time, fields and all.
const LINE_COST: u64 = 128;

/// What may still go to the log; a token bucket.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    filled_at: BootTime,
    /// Bytes that did not go to the log, and that nobody has told of yet.
    unlogged: u64,
}

impl Budget {
    /// A full one.
    pub(super) fn new(now: BootTime) -> Self {
        Self {
            left: BURST,
            filled_at: now,
            unlogged: 0,
        }
    }

    /// Lets time pass. Once half of a burst is there again after a time without, gives how many
    /// bytes were left out.
    pub(super) fn refill(&mut self, now: BootTime) -> Option<u64> {
        let passed = now.saturating_since(self.filled_at);
        // No less than a millisecond's worth, or nothing would ever add up.
        if passed >= Duration::from_millis(1) {
            let earned = u64::try_from(passed.as_millis())
                .unwrap_or(u64::MAX)
                .saturating_mul(LOG_RATE)
                / 1000;
            self.left = self.left.saturating_add(earned).min(BURST);
            self.filled_at = now;
        }
        (self.unlogged > 0 && self.left >= BURST / 2).then(|| std::mem::take(&mut self.unlogged))
    }

    /// Whether anything may be logged at the moment.
    pub(super) fn is_spent(&self) -> bool {
        self.unlogged > 0 || self.left < LINE_COST
    }

    /// Pays for a line of so many bytes, or counts it as left out.
    pub(super) fn pays_for(&mut self, bytes: usize) -> bool {
        let cost = bytes as u64 + LINE_COST;
        let pays = self.unlogged == 0 && self.left >= cost;
        match pays {
            true => self.left -= cost,
            false => self.leave_out(bytes),
        }
        pays
    }

    /// Counts what is not even cut into lines.
    pub(super) fn leave_out(&mut self, bytes: usize) {
        self.unlogged += bytes as u64;
    }

    /// How many bytes were left out and not told of.
    pub(super) fn unlogged(&self) -> u64 {
        self.unlogged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> BootTime {
        BootTime::since_boot(Duration::from_millis(millis))
    }

    #[test]
    fn a_job_that_writes_little_is_logged_whole() {
        let mut budget = Budget::new(at(0));
        for second in 0..100 {
            assert_eq!(budget.refill(at(second * 1000)), None);
            assert!((0..1000).all(|_| budget.pays_for(100)));
        }
    }

    #[test]
    fn a_flood_is_logged_at_the_rate_and_the_rest_is_counted() {
        let mut budget = Budget::new(at(0));
        let (mut logged, mut told) = (0, 0);
        for milli in 0..10_000 {
            told += budget.refill(at(milli)).unwrap_or(0);
            for _ in 0..100 {
                match budget.is_spent() {
                    true => budget.leave_out(1000),
                    false => logged += u64::from(budget.pays_for(1000)) * 1000,
                }
            }
        }
        assert_eq!(logged + told + budget.unlogged(), 10_000 * 100 * 1000);
        assert!(logged <= BURST + 10 * LOG_RATE, "{logged}");
        assert!(logged >= 8 * LOG_RATE, "{logged}");
    }

    #[test]
    fn empty_lines_cost_too() {
        let mut budget = Budget::new(at(0));
        let logged = (0..100_000).filter(|_| budget.pays_for(0)).count();
        assert_eq!(logged as u64, BURST / LINE_COST);
    }
}
