//! The cron table and what of it is due: jobs in the order of their next occurrence.
//!
//! Must never: look at jobs that are not due. Cost goes with what falls due, not with the size
//! of the table.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use super::job::{Job, JobName};
use super::time::Timestamp;

/// The jobs, and a queue of those that are armed.
#[derive(Debug, Default)]
pub(super) struct Table {
    jobs: HashMap<JobName, Arc<Job>>,
    due: BTreeMap<Timestamp, Vec<JobName>>,
    /// The shortest and the longest lease of any job. Every call to the store asks for them.
    ttls: Option<(Duration, Duration)>,
}

/// A job whose instant has come.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) job: Arc<Job>,
    /// The newest of its instants that have come.
    pub(super) scheduled_at: Timestamp,
    /// The oldest of them, when there is more than one: this replica fell behind.
    pub(super) passed_over: Option<Timestamp>,
}

impl Table {
    /// A table of jobs, none of them armed. Disabled ones are left out.
    pub(super) fn new(jobs: impl IntoIterator<Item = Arc<Job>>) -> Self {
        let enabled = jobs.into_iter().filter(|job| job.enabled);
        let jobs: HashMap<_, _> = enabled.map(|job| (job.name.clone(), job)).collect();
        let ttls = || jobs.values().map(|job| job.lease_ttl);
        Self {
            ttls: ttls().min().zip(ttls().max()),
            jobs,
            due: BTreeMap::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn get(&self, name: &JobName) -> Option<&Arc<Job>> {
        self.jobs.get(name)
    }

    /// All names, in order.
    pub(super) fn names(&self) -> Vec<JobName> {
        let mut names: Vec<_> = self.jobs.keys().cloned().collect();
        names.sort();
        names
    }

    /// The longest lease of any job.
    pub(super) fn longest_ttl(&self) -> Option<Duration> {
        self.ttls.map(|(_, longest)| longest)
    }

    /// The shortest lease of any job.
    pub(super) fn shortest_ttl(&self) -> Option<Duration> {
        self.ttls.map(|(shortest, _)| shortest)
    }

    /// Puts a job into the queue with its first occurrence after `after`.
    pub(super) fn arm(&mut self, name: &JobName, after: Timestamp) {
        let next = self
            .jobs
            .get(name)
            .and_then(|job| job.schedule.next_after(after));
        if let Some(next) = next {
            self.due.entry(next).or_default().push(name.clone());
        }
    }

    /// The next instant at which anything is due.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.due.keys().next().copied()
    }

    /// Takes what has come due by `now` and arms it for its next occurrence.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut taken = Vec::new();
        while let Some(entry) = self.due.first_entry().filter(|entry| *entry.key() <= now) {
            let (first, names) = entry.remove_entry();
            for name in names {
                let Some(job) = self.jobs.get(&name).cloned() else {
                    continue;
                };
                let newest = newest_due(&job, first, now);
                self.arm(&name, newest);
                let passed_over = (newest > first).then_some(first);
                taken.push(Due {
                    job,
                    scheduled_at: newest,
                    passed_over,
                });
            }
        }
        taken
    }
}

/// The newest occurrence of a job that has come by `now`, knowing that `first` has.
fn newest_due(job: &Job, first: Timestamp, now: Timestamp) -> Timestamp {
    let following = job.schedule.next_after(first).filter(|next| *next <= now);
    if following.is_none() {
        return first;
    }
    let just_after = now + Duration::from_millis(1);
    job.schedule
        .last_before(just_after)
        .unwrap_or(first)
        .max(first)
}
