//! What lies between now and then in a world's queue.

use soloist::scheduler::lease::{Caller, RunId};
use soloist::scheduler::time::BootTime;
use soloist::scheduler::{Effect, EndedHow, Event};
use soloist::store::ReplicaInfo;

/// What is on its way, and reaches a replica or the store later.
pub(crate) enum Happening {
    Deliver {
        replica: usize,
        life: u64,
        event: Box<Event>,
    },
    Arrive {
        replica: usize,
        life: u64,
        effect: Box<Effect>,
        caller: Box<Caller>,
        info: Box<ReplicaInfo>,
        sent: BootTime,
    },
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
