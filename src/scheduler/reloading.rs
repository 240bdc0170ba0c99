//! A new table in the place of the old one, while everything goes on.
//!
//! ```text
//!  same job, told the ledger the same ──▶ stays in the queue as it is
//!  new, or another schedule, tags, … ───▶ enrolled, and armed by what the ledger says
//!  not there any more ──────────────────▶ leaves the queue; what runs runs on, and a claim that
//!                                         is on its way is still started when it is granted
//! ```
//!
//! Whatever is armed anew is caught up with like after a start, so that nothing falls between the
//! two tables.
//!
//! Must never: stop an attempt, or wait for the store: enrolments that are on their way are
//! answered first, as their answers speak of the table that they were made from.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::job::{Job, JobName};
use super::lease::{Enrolment, Scope};
use super::policy::Tags;
use super::table::Table;
use super::time::BootTime;
use super::{Notice, Purpose, Scheduler};

/// What a reload brings.
#[derive(Clone, Debug)]
pub struct Reload {
    /// The new table.
    pub jobs: Vec<Arc<Job>>,
    /// Its digest, see [`super::Settings::digest`].
    pub digest: String,
    /// Its `revision`.
    pub revision: Option<u64>,
    /// What jobs can ask for by `run_on`, from now on.
    pub tags: Tags,
    /// How many attempts may run here at once, from now on.
    pub max_running: Option<u32>,
    /// How long running attempts may go on after a drain was asked for.
    pub shutdown_grace: Duration,
}

impl Scheduler {
    /// Takes a new table, as soon as the answers to what was enrolled from the old one are there;
    /// [`Notice::Reloaded`] says when. Of several that wait the last counts.
    pub fn reload(&mut self, reload: Reload) {
        if self.settings.purpose == Purpose::Table && !self.draining {
            self.reload = Some(reload);
        }
    }

    /// Others are to hear at once what is new about this replica.
    pub fn announce(&mut self, now: BootTime) {
        self.watch.look_now(Scope::Overdue, now);
    }

    /// Replaces the table when it is time to.
    pub(super) fn take_reload(&mut self, now: BootTime) {
        if self.registration.in_flight > 0 {
            return;
        }
        let Some(reload) = self.reload.take() else {
            return;
        };
        let Reload {
            jobs,
            digest,
            revision,
            tags,
            max_running,
            shutdown_grace,
        } = reload;
        self.settings.digest = digest;
        self.settings.revision = revision;
        self.settings.max_running = max_running;
        self.settings.shutdown_grace = shutdown_grace;
        let table = Table::new(jobs, &tags);
        self.settings.tags = tags;
        // Of these nothing is known yet, in whichever table.
        let waiting = std::mem::take(&mut self.registration.waiting);
        let (again, first): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|one| one.again);
        let first = first.into_iter().map(|one| one.job).collect();
        let claims = &self.claims;
        let removed = self.table.names_missing_in(&table);
        let enrolments = self
            .table
            .replace(table, &first, |job| claims.has_pending(job));
        self.keep_asking(again, &enrolments);
        self.change_own_table(&enrolments);
        self.forget(&removed);
        let (changed, jobs) = (enrolments.len(), self.table.len());
        self.registration.waiting.extend(enrolments);
        self.registration.retry_at = now;
        self.watch.of_ttl(self.table.shortest_ttl(), now);
        // Others see the new table, and what this replica takes by its new tags.
        self.announce(now);
        let removed = removed.len();
        self.report(Notice::Reloaded {
            jobs,
            changed,
            removed,
        });
    }

    /// Asks again what was to be asked again, of jobs that are not enrolled anyway.
    fn keep_asking(&mut self, again: Vec<Enrolment>, enrolled: &[Enrolment]) {
        let enrolled: HashSet<_> = enrolled.iter().map(|one| &one.job).collect();
        for before in again {
            let entry = self.table.entry(&before.job);
            if let Some(entry) = entry.filter(|_| !enrolled.contains(&before.job)) {
                self.registration.waiting.push(Enrolment {
                    again: true,
                    seen: before.seen,
                    ..Enrolment::of(&entry.job)
                });
            }
        }
    }

    /// Lets go of jobs that the table has no more.
    fn forget(&mut self, removed: &[JobName]) {
        let removed: HashSet<&JobName> = removed.iter().collect();
        let is_gone = |job: &JobName| removed.contains(job);
        self.deferred
            .retain(|claim| !is_gone(&claim.occurrence.job));
        self.unsure.retain(|job| !is_gone(job));
        self.claims.drop_waiting(is_gone);
        self.memory.forget(is_gone);
        self.upkeep.forget(is_gone);
    }
}
