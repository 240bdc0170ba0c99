//! A table beside the ledger: what a replica that starts with it would find new, gone, changed
//! or suspended, and what it would leave to others, because they have a newer table.
//!
//! Must never: take a job for another. That one was renamed is a guess, and told as one: a renamed
//! job is a new one.

use std::fmt::Write as _;

use crate::config;
use crate::scheduler::few;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{Definition, Force};
use crate::scheduler::schedule::told_apart;
use crate::scheduler::time::Timestamp;
use crate::store::{JobState, ReplicaState, Snapshot};

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
        /// Live replicas that have it, in a table that is older than this one.
        held_by: Vec<String>,
    },
    /// Another definition is in force, and a newer one.
    Outdated {
        in_force: Definition,
        why: Why,
        /// Live replicas that have it; where there are none, this table's takes its place.
        held_by: Vec<String>,
    },
    /// Live replicas have a newer table, which lacks it.
    Withdrawn { by: Vec<String> },
    /// Another definition is in force, with the same schedule.
    Redefined { in_force: Definition },
    /// Another schedule is in force.
    Rescheduled { from: String, to: String },
    /// It is enabled from now on, or disabled.
    Switched { enabled: bool },
    /// Nothing of its schedule runs.
    Paused { since: Timestamp, by: String },
}

/// Why a definition is older than the one in force.
#[derive(Debug, PartialEq, Eq)]
enum Why {
    /// Its table has a lesser `revision`.
    Revision(u64),
    /// The ledger saw it before the other one.
    Superseded,
    /// Its table has no `revision`, and that of the other one has.
    NoRevision,
}

/// A table, as it is held against the ledger.
pub(super) struct Offered<'t> {
    pub(super) jobs: &'t [Job],
    /// All of it in short.
    pub(super) table: Definition,
}

/// What the ledger shows, at its time.
#[derive(Clone, Copy)]
pub(super) struct Shown<'s> {
    pub(super) snapshot: &'s Snapshot,
    pub(super) now: Timestamp,
}

impl Comparison {
    pub(super) fn of(offered: &Offered<'_>, shown: Shown<'_>) -> Self {
        let (jobs, snapshot) = (offered.jobs, shown.snapshot);
        let state_of = |job: &Job| snapshot.jobs.iter().find(|state| state.job == job.name);
        let has = |state: &&JobState| jobs.iter().any(|job| job.name == state.job);
        let new: Vec<&Job> = jobs.iter().filter(|job| state_of(job).is_none()).collect();
        let gone: Vec<&JobState> = snapshot.jobs.iter().filter(|one| !has(one)).collect();
        let renamed = renamed(&new, &gone);
        let mut findings = Vec::new();
        let has_a_say = |job: &&&Job| shown.withdrawn(job, &offered.table).is_none();
        for job in new.iter().filter(has_a_say) {
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
                    held_by: shown.would_leave(&state.job, &offered.table),
                },
            });
        }
        for job in jobs {
            let mut whats = state_of(job).map_or_else(Vec::new, |state| shown.changes(job, state));
            whats.extend(shown.withdrawn(job, &offered.table));
            findings.extend(whats.into_iter().map(|what| Finding {
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

    /// Whether replicas with this table would leave some of its jobs to others.
    pub(super) fn is_outdated(&self) -> bool {
        self.findings.iter().any(|one| one.what.is_left_to_others())
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
        if self.is_outdated() {
            text.push_str("! this table is outdated: jobs are left to replicas with a newer one; a greater `revision` makes this one the newest\n");
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

impl Shown<'_> {
    fn changes(self, job: &Job, state: &JobState) -> Vec<What> {
        let mut changes = taking_effect(job, state);
        if let Some(outdated) = self.outdated(job, state) {
            match outdated.is_left_to_others() {
                true => changes.clear(),
                false => changes.retain(|what| !matches!(what, What::Redefined { .. })),
            }
            changes.insert(0, outdated);
        }
        if let Some(paused) = &state.paused {
            let (since, by) = (paused.since, paused.by.clone());
            changes.push(What::Paused { since, by });
        }
        changes
    }

    fn outdated(self, job: &Job, state: &JobState) -> Option<What> {
        let force = state.force.as_ref()?;
        let is_other = force.digest != job.definition.digest;
        if !is_other || force.is_older_than(&job.definition) {
            return None;
        }
        let held_by = self.replicas(|replica| {
            let jobs = self.snapshot.tables.get(&replica.info.digest);
            jobs.and_then(|jobs| jobs.get(&job.name)) == Some(&force.digest)
        });
        Some(What::Outdated {
            in_force: force.definition(),
            why: why(&job.definition, force),
            held_by,
        })
    }

    fn withdrawn(self, job: &Job, table: &Definition) -> Option<What> {
        let by = self.replicas(|replica| {
            let theirs = replica.table();
            let jobs = self.snapshot.tables.get(&theirs.digest);
            jobs.is_some_and(|jobs| !jobs.contains_key(&job.name))
                && self.snapshot.lineage.is_newer(&theirs, table)
        });
        (!by.is_empty()).then_some(What::Withdrawn { by })
    }

    /// Who starts a job now, and would start nothing of it beside a replica with a table that
    /// lacks it.
    fn would_leave(self, job: &JobName, table: &Definition) -> Vec<String> {
        self.replicas(|replica| {
            let theirs = replica.table();
            let jobs = self.snapshot.tables.get(&theirs.digest);
            jobs.is_some_and(|jobs| jobs.contains_key(job))
                && self.snapshot.lineage.is_newer(table, &theirs)
        })
    }

    /// The names of those that start jobs and are like that.
    fn replicas(self, like: impl Fn(&ReplicaState) -> bool) -> Vec<String> {
        let replicas = self.snapshot.replicas.iter();
        let working = replicas.filter(|one| one.is_alive(self.now) && !one.info.draining);
        let found = working.filter(|one| like(one));
        found.map(|one| one.replica.name.clone()).collect()
    }
}

fn why(offered: &Definition, force: &Force) -> Why {
    match (offered.revision, force.definition().revision) {
        (Some(own), Some(in_force)) if own < in_force => Why::Revision(own),
        _ if force.known.find(&offered.digest).is_some() => Why::Superseded,
        _ => Why::NoRevision,
    }
}

/// What becomes of a job when this table's definition comes into force.
fn taking_effect(job: &Job, state: &JobState) -> Vec<What> {
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
    let force = state.force.as_ref();
    let other = force.filter(|force| force.digest != job.definition.digest);
    if let (Some(force), true) = (other, changes.is_empty()) {
        let in_force = force.definition();
        changes.push(What::Redefined { in_force });
    }
    changes
}

impl What {
    /// Whether replicas with this table would start nothing of the job.
    fn is_left_to_others(&self) -> bool {
        match self {
            What::Outdated { held_by, .. } => !held_by.is_empty(),
            What::Withdrawn { .. } => true,
            _ => false,
        }
    }

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
                held_by,
            } => gone(*last_ran, *waiting, renamed_to.as_ref(), held_by),
            What::Outdated {
                in_force,
                why,
                held_by,
            } => {
                let why = why.in_words();
                match held_by.is_empty() {
                    true => format!(
                        "older than the definition in force, {in_force}: {why}; no live replica has that one, so that this one takes its place"
                    ),
                    false => format!(
                        "outdated: {} would go on with {in_force}, and replicas with this table leave it to them: {why}",
                        held_by.join(", ")
                    ),
                }
            }
            What::Withdrawn { by } => format!(
                "outdated: {} would go on with a newer table, which lacks it, and replicas with this one leave it",
                by.join(", ")
            ),
            What::Redefined { in_force } => format!(
                "runs otherwise than what is in force, {in_force}: another definition with the same schedule"
            ),
            What::Rescheduled { from, to } => {
                let [from, to] = told_apart(from, to);
                format!(
                    "another schedule: the ledger has `{from}`, this table `{to}`; what both have is still run, what only the ledger's has and nobody claimed is recorded as missed"
                )
            }
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

fn gone(
    last_ran: Option<Timestamp>,
    waiting: usize,
    renamed_to: Option<&JobName>,
    held_by: &[String],
) -> String {
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
    let held = match held_by {
        [] => String::new(),
        names => format!(
            "; live replicas have it ({}), and would run it no more",
            few(names)
        ),
    };
    format!("not in this table, {ran}{waits}{held}{now}")
}

impl Why {
    fn in_words(&self) -> String {
        match self {
            Why::Revision(own) => format!("its `revision`, {own}, is less"),
            Why::Superseded => "the ledger saw this one before it".to_owned(),
            Why::NoRevision => "it has a `revision`, and this table has none".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
