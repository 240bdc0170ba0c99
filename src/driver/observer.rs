//! Who looks on at a driver's work: metrics, notifications, whoever waits for an end.
//!
//! Must never: wait, or change what is decided.

use crate::scheduler::time::{BootTime, Timestamp};
use crate::scheduler::{Event, Notice, Scheduler};

/// When something was observed.
#[derive(Clone, Copy)]
pub struct Moment<'s> {
    /// By this host's boot clock.
    pub boot: BootTime,
    /// What decides, as it stands.
    pub scheduler: &'s Scheduler,
}

impl Moment<'_> {
    /// By the store's clock, as far as that is known.
    pub fn store(&self) -> Option<Timestamp> {
        self.scheduler.store_time(self.boot)
    }
}

/// Looks on at a driver's work. It is called from within the loop, in order, and must come back at
/// once.
pub trait Observer: Send {
    /// The scheduler is about to be told of an event: an answer of the store, the end of an
    /// attempt, news.
    fn event(&mut self, event: &Event, moment: Moment<'_>) {
        let _ = (event, moment);
    }

    /// People are told of something.
    fn notice(&mut self, notice: &Notice, moment: Moment<'_>);

    /// All that followed from the last events is done, and the loop is about to wait, or to end.
    fn settled(&mut self, moment: Moment<'_>) {
        let _ = moment;
    }
}

impl<F: FnMut(&Notice) + Send> Observer for F {
    fn notice(&mut self, notice: &Notice, _: Moment<'_>) {
        self(notice);
    }
}
