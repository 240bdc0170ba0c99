//! What lies between now and then in a world's queue.

use soloist::driver::Call;
use soloist::scheduler::lease::RunId;
use soloist::scheduler::{EndedHow, Event};
use soloist::store::StoreEvent;
use tokio::sync::broadcast::error::RecvError;

/// What is on its way, and reaches a replica or the store later.
pub(crate) enum Happening {
    Deliver {
        replica: usize,
        life: u64,
        event: Box<Event>,
    },
    /// The store's news reaches a replica, or that some were missed does.
    News {
        replica: usize,
        life: u64,
        news: Result<StoreEvent, RecvError>,
    },
    /// A call reaches the store.
    Arrive(Sent),
    EndOfRun {
        run: RunId,
        replica: usize,
        life: u64,
        how: EndedHow,
    },
    /// The guardian looks whether an attempt has passed its guard.
    GuardDue {
        run: RunId,
    },
    Wake {
        replica: usize,
        life: u64,
    },
}

/// A call on its way to the store. It may get there more than once.
#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) replica: usize,
    pub(crate) life: u64,
    pub(crate) call: Call,
    /// Whoever sent it waits for the answer. Nobody does of a copy, or of what comes too late.
    pub(crate) awaited: bool,
}

/// Two happenings never come apart by what they are: the queue goes by instant and sequence.
impl PartialEq for Happening {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Happening {}
impl PartialOrd for Happening {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Happening {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
