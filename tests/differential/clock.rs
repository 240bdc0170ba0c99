//! A clock that stands still wherever a sequence set it.

use std::sync::atomic::{AtomicI64, Ordering};

use soloist::clock::Clock;
use soloist::scheduler::time::{BootTime, Timestamp};

#[derive(Debug, Default)]
pub(crate) struct TestClock(AtomicI64);

impl TestClock {
    pub(crate) fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn boot(&self) -> BootTime {
        unreachable!("a store has no boot clock")
    }
}
