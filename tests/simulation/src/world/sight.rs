//! What can be seen of a world.

use soloist::scheduler::lease::RunId;
use soloist::store::memory::Glance;
use soloist::store::{AttemptRecord, Snapshot};

use super::{Run, World};

impl World {
    /// Whether it runs.
    pub fn is_alive(&self, number: usize) -> bool {
        self.replicas[number].dispatcher.is_some()
    }

    /// Whether it was asked to stop.
    pub fn is_draining(&self, number: usize) -> bool {
        let dispatcher = self.replicas[number].dispatcher.as_ref();
        dispatcher.is_some_and(|one| one.scheduler().is_draining())
    }

    /// What runs now.
    pub fn runs_alive(&self) -> impl Iterator<Item = (RunId, &Run)> {
        self.alive.iter().map(|id| (*id, &self.runs[id]))
    }

    /// Whether another replica than this takes anything that it is given.
    pub fn has_room_beside(&self, number: usize) -> bool {
        let mut all = self.replicas.iter().enumerate();
        all.any(|(other, one)| other != number && one.max_running.is_none())
    }

    /// How jobs stand at the store.
    pub fn glance(&self) -> Glance {
        self.store.glance(&Glance::default())
    }

    /// How many notices of all replicas have this in them.
    pub fn notices_with(&self, part: &str) -> usize {
        let notices = self.replicas.iter().flat_map(|one| &one.notices);
        notices.filter(|notice| notice.contains(part)).count()
    }

    /// The ledger, newest first.
    pub fn history(&self) -> Vec<AttemptRecord> {
        self.store.history()
    }

    /// What the ledger holds beside it.
    pub fn snapshot(&self) -> Snapshot {
        self.store.snapshot()
    }

    /// Who runs something now.
    pub fn holder(&self) -> Option<usize> {
        self.alive.first().map(|id| self.runs[id].replica)
    }
}
