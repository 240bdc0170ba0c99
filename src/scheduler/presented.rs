//! What a replica says of itself, to others and to those who look on.
//!
//! Must never: change anything.

use std::sync::Arc;
use std::time::Duration;

use super::job::{Job, JobName};
use super::lease::Definition;
use super::policy::Tags;
use super::time::{BootTime, Timestamp};
use super::{Purpose, Scheduler, Settings};

impl Settings {
    /// The table, in short.
    pub(super) fn table(&self) -> Definition {
        Definition {
            digest: self.digest.clone(),
            revision: self.revision,
        }
    }
}

impl Scheduler {
    /// The store's time, as far as it is known.
    pub fn store_time(&self, now: BootTime) -> Option<Timestamp> {
        self.clock.reached(now)
    }

    /// How many attempts run here.
    pub fn running(&self) -> usize {
        self.held.running()
    }

    /// How many jobs the table has.
    pub fn jobs(&self) -> usize {
        self.table.len()
    }

    /// What this replica has, for jobs that ask for it.
    pub fn tags(&self) -> &Tags {
        &self.settings.tags
    }

    /// How many attempts it runs at once, at most.
    pub fn max_running(&self) -> Option<u32> {
        self.settings.max_running
    }

    /// It takes no more work for now: it is draining, full, or there for one run only.
    pub fn declines(&self) -> bool {
        self.draining || self.settings.purpose != Purpose::Table || self.room() == 0
    }

    /// The digest of its table; empty where it runs none.
    pub fn digest(&self) -> &str {
        match self.settings.purpose {
            Purpose::Table => &self.settings.digest,
            Purpose::Once(_) => "",
        }
    }

    /// The `revision` of its table.
    pub fn revision(&self) -> Option<u64> {
        self.settings.revision
    }

    /// How many signs of life it has given.
    pub fn beat(&self) -> u64 {
        self.drift.beats()
    }

    /// In how many jobs its table differs from the newest of those that live replicas have.
    pub fn drift(&self) -> usize {
        self.drift.distance()
    }

    /// Whether it leaves a job to others, as another definition is in force or a newer table lacks it.
    pub fn leaves(&self, job: &JobName) -> bool {
        self.drift.leaves(job)
    }

    /// Whether there is any such job.
    pub fn leaves_any(&self) -> bool {
        self.drift.leaves_any()
    }

    /// For how long others may take it for alive without hearing of it.
    pub fn alive_for(&self) -> Duration {
        self.watch.interval() * 3
    }

    /// No new work is taken.
    pub fn is_draining(&self) -> bool {
        self.draining
    }

    /// How many leases it holds: those of attempts that run, and of those whose end the store has
    /// not acknowledged.
    pub fn leases(&self) -> usize {
        self.held.len()
    }

    /// The jobs of its table, disabled ones too, by name.
    pub fn table(&self) -> Vec<Arc<Job>> {
        self.table.sorted()
    }

    /// The job of this name in its table, a disabled one too.
    pub fn job(&self, name: &JobName) -> Option<Arc<Job>> {
        self.table.entry(name).map(|entry| Arc::clone(&entry.job))
    }
}
