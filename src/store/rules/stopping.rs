//! Orders to end what runs, and what is told of them.

use super::record::{News, State};
use super::step::Step;
use crate::scheduler::lease::{AttemptDetail, Cause, Outcome, StopFor, StopOrder};

impl Step<'_, '_> {
    /// Tells the holders of the current occurrence to end it; what only waits to be tried again
    /// is cancelled at once.
    pub(super) fn stop(&mut self, order: StopOrder) -> u32 {
        let Some(current) = self.record.current.as_mut() else {
            return 0;
        };
        let mut running = 0;
        let mut idle = Vec::new();
        for (shard, slot) in current.slots.iter().enumerate() {
            match slot.state {
                State::Running => running += 1,
                State::Idle | State::Again(_) => idle.push(shard),
                State::Ended(_) => {}
            }
        }
        // The first order stands: the holder may be at it already.
        let order = current.stop.get_or_insert(order).clone();
        for shard in idle {
            let detail = AttemptDetail::policy(order.why.cause(), order.fate());
            self.end(shard, Outcome::Cancelled, detail);
        }
        if running > 0 {
            self.tell(News::Stop);
        }
        running
    }
}

impl StopFor {
    pub(super) fn cause(self) -> Cause {
        match self {
            StopFor::Replaced => Cause::Replaced,
            StopFor::Killed => Cause::Killed,
        }
    }
}

impl StopOrder {
    /// What it did, in words.
    pub(super) fn fate(&self) -> String {
        match self.why {
            StopFor::Replaced => format!("{} took its place", self.by),
            StopFor::Killed => format!("killed by {} at {}", self.by, self.at),
        }
    }

    /// What the ledger says of an attempt that ended by it.
    pub(super) fn detail(&self) -> (Cause, String) {
        (self.why.cause(), self.fate())
    }
}
