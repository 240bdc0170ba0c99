//! A table beside the ledger: what a replica that starts with it would find new, gone, changed
//! or suspended.
//!
//! Must never: take a job for another. That one was renamed is a guess, and told as one: a renamed
//! job is a new one.

use std::fmt::Write as _;

use crate::config;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::time::Timestamp;
use crate::store::{JobState, Snapshot};

/// What differs, by the job's name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    /// How many jobs the table has.
    jobs: usize,
    findings: Vec<Finding>,
}

#[derive(Debug, PartialEq, Eq)]
struct Finding {
    job: JobName,
    what: What,
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    /// The ledger doesn't know it, but perhaps by this other name.
    New { renamed_from: Option<JobName> },
    /// The table doesn't have it, but perhaps under this other name.
    Gone {
        last_ran: Option<Timestamp>,
        waiting: usize,
        renamed_to: Option<JobName>,
    },
    /// Another schedule is in force.
    Rescheduled { from: String, to: String },
    /// It is enabled from now on, or disabled.
    Switched { enabled: bool },
    /// Nothing of its schedule runs.
    Paused { since: Timestamp, by: String },
}

impl Comparison {
    pub(super) fn of(jobs: &[Job], snapshot: &Snapshot) -> Self {
        let state_of = |job: &Job| snapshot.jobs.iter().find(|state| state.job == job.name);
        let has = |state: &&JobState| jobs.iter().any(|job| job.name == state.job);
        let new: Vec<&Job> = jobs.iter().filter(|job| state_of(job).is_none()).collect();
        let gone: Vec<&JobState> = snapshot.jobs.iter().filter(|one| !has(one)).collect();
        let renamed = renamed(&new, &gone);
        let mut findings = Vec::new();
        for job in &new {
            let pair = renamed.iter().find(|(_, to)| *to == job.name);
            let renamed_from = pair.map(|(from, _)| from.clone());
            findings.push(Finding {
                job: job.name.clone(),
                what: What::New { renamed_from },
            });
        }
        for state in &gone {
            let pair = renamed.iter().find(|(from, _)| *from == state.job);
            findings.push(Finding {
                job: state.job.clone(),
                what: What::Gone {
                    last_ran: last_ran(state),
                    waiting: state.waiting.len(),
                    renamed_to: pair.map(|(_, to)| to.clone()),
                },
            });
        }
        for job in jobs {
            let changes = state_of(job).map_or_else(Vec::new, |state| changes(job, state));
            findings.extend(changes.into_iter().map(|what| Finding {
                job: job.name.clone(),
                what,
            }));
        }
        findings.sort_by(|one, other| one.job.cmp(&other.job));
        Self {
            jobs: jobs.len(),
            findings,
        }
    }

    pub(super) fn render(&self, place: &str) -> String {
        if self.findings.is_empty() {
            let jobs = match self.jobs {
                1 => "the job as it is".to_owned(),
                more => format!("all {more} jobs as they are"),
            };
            return format!("the ledger at {place} knows {jobs}\n");
        }
        let mut text = format!("beside the ledger at {place}:\n");
        for Finding { job, what } in &self.findings {
            // Writing to a string can't fail.
            let _ = writeln!(text, "  {job}: {}", what.in_words());
        }
        text
    }
}

/// Pairs of a job that is gone and one that is new with the same schedule, the names that are
/// most alike where there are several. `@manual` is no sign of anything.
fn renamed(new: &[&Job], gone: &[&JobState]) -> Vec<(JobName, JobName)> {
    let mut left: Vec<&Job> = new.to_vec();
    left.retain(|job| !job.schedule.is_manual());
    let mut pairs = Vec::new();
    for state in gone {
        let same = |job: &&&Job| job.schedule.identity() == state.schedule;
        let alike: Vec<&str> = left
            .iter()
            .filter(same)
            .map(|job| job.name.as_str())
            .collect();
        let near = config::nearest(state.job.as_str(), alike.iter().copied());
        let Some(name) = near.or(alike.first().copied()) else {
            continue;
        };
        let Some(place) = left.iter().position(|job| job.name.as_str() == name) else {
            continue;
        };
        pairs.push((state.job.clone(), left.remove(place).name.clone()));
    }
    pairs
}

fn last_ran(state: &JobState) -> Option<Timestamp> {
    let started = state.attempts.iter().filter(|one| one.attempt > 0);
    started.map(|one| one.since).max()
}

fn changes(job: &Job, state: &JobState) -> Vec<What> {
    let mut changes = Vec::new();
    let to = job.schedule.identity();
    if !state.schedule.is_empty() && state.schedule != to {
        let from = state.schedule.clone();
        changes.push(What::Rescheduled { from, to });
    }
    if job.enabled == state.disabled.is_some() {
        let enabled = job.enabled;
        changes.push(What::Switched { enabled });
    }
    if let Some(paused) = &state.paused {
        let (since, by) = (paused.since, paused.by.clone());
        changes.push(What::Paused { since, by });
    }
    changes
}

impl What {
    fn in_words(&self) -> String {
        match self {
            What::New { renamed_from } => {
                let was = renamed_from.as_ref().map(|name| {
                    format!(
                        "; if it was `{name}`, which has this schedule: a renamed job is a new one"
                    )
                });
                let was = was.unwrap_or_default();
                format!(
                    "new to the ledger; it never runs its past, what is due from its first start on{was}"
                )
            }
            What::Gone {
                last_ran,
                waiting,
                renamed_to,
            } => {
                let ran = match last_ran {
                    Some(at) => format!("it last ran at {at}"),
                    None => "it never ran".to_owned(),
                };
                let waits = match waiting {
                    0 => "",
                    _ => ", and what waits for its turn is not run",
                };
                let now = match renamed_to {
                    Some(name) => format!("; if it is `{name}` now: a renamed job is a new one"),
                    None => String::new(),
                };
                format!("not in this table, {ran}{waits}{now}")
            }
            What::Rescheduled { from, to } => format!(
                "another schedule: `{to}`, and the ledger has `{from}`; what both have is still run, what the former alone had and nobody claimed is recorded as missed"
            ),
            What::Switched { enabled: true } => {
                "enabled again: what fell due meanwhile stays skipped".to_owned()
            }
            What::Switched { enabled: false } => {
                "disabled: what falls due from now on is skipped".to_owned()
            }
            What::Paused { since, by } => format!(
                "paused since {since} by {by}: what falls due is skipped until `soloist resume`"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
