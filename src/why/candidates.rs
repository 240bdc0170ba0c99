//! Who could start something of a job now, and what keeps all of them from it.
//!
//! Must never: name a replica that surely would not.

use serde::Serialize;

use super::View;
use super::account::rfc3339;
use super::suspension::{Suspension, suspension};
use crate::scheduler::job::Job;
use crate::scheduler::policy::{Tags, matches};
use crate::scheduler::time::Timestamp;
use crate::store::ReplicaState;

/// Who could start something, or why nobody can.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "who", rename_all = "snake_case")]
pub enum Candidates {
    /// These replicas.
    Replicas {
        /// Their names.
        names: Vec<String>,
    },
    /// Those of these replicas whose tables have the job, with tags that it asks for: no table is
    /// here that says so.
    Unsure {
        /// Their names.
        names: Vec<String>,
    },
    /// Nobody who has this table, in which the job is not.
    NotInTable {
        /// The replicas that are alive, whatever table they have.
        names: Vec<String>,
    },
    /// Nobody: the newest table lacks the job, and replicas with an older one leave it.
    Withdrawn {
        /// Those who have that table.
        by: Vec<String>,
    },
    /// Nobody: the job is disabled.
    Disabled {
        /// Since when; none where only this table has it so.
        #[serde(serialize_with = "rfc3339")]
        since: Option<Timestamp>,
    },
    /// Nobody: the store grants nothing yet.
    Grace {
        /// Until then.
        #[serde(serialize_with = "rfc3339")]
        until: Timestamp,
    },
    /// Nobody: no replica is alive.
    NoReplica,
    /// Nobody: no replica that is alive has the tags of `run_on`.
    NoneWithTags {
        /// What the job asks for, as jobs.toml spells it.
        run_on: String,
        /// Those that are alive.
        names: Vec<String>,
    },
    /// Nobody: all that could are full or draining.
    AllDecline {
        /// Those that are full.
        full: Vec<String>,
        /// Those that are draining.
        draining: Vec<String>,
    },
}

impl Candidates {
    /// Nobody would take it, and that does not pass by itself.
    fn is_bleak(&self) -> bool {
        match self {
            Candidates::NotInTable { .. }
            | Candidates::Withdrawn { .. }
            | Candidates::NoReplica
            | Candidates::NoneWithTags { .. } => true,
            // A suspension has words of its own.
            Candidates::Disabled { .. }
            | Candidates::Replicas { .. }
            | Candidates::Unsure { .. }
            | Candidates::Grace { .. }
            | Candidates::AllDecline { .. } => false,
        }
    }
}

/// What is to be expected of an occurrence that is still to come, where that is nothing.
pub(super) fn outlook(view: &View<'_>) -> Option<Candidates> {
    Some(candidates(view)).filter(Candidates::is_bleak)
}

/// Who could start something of the job now.
pub(super) fn candidates(view: &View<'_>) -> Candidates {
    if let Some(Suspension::Disabled { since }) = disabled(view) {
        return Candidates::Disabled { since };
    }
    let replicas = view.snapshot.replicas.iter();
    let alive: Vec<_> = replicas.filter(|state| state.is_alive(view.now)).collect();
    let entry = view.entry();
    let withdrawal = view.snapshot.withdrawal(view.now);
    if withdrawal.has(view.job) {
        let by = withdrawal.by.iter();
        return Candidates::Withdrawn {
            by: by.map(ToString::to_string).collect(),
        };
    }
    if view.table.is_some() && entry.is_none() && !alive.is_empty() {
        return Candidates::NotInTable {
            names: names(&alive),
        };
    }
    if !view.snapshot.grace.is_zero() {
        return Candidates::Grace {
            until: view.now + view.snapshot.grace,
        };
    }
    if alive.is_empty() {
        return Candidates::NoReplica;
    }
    let wanted = entry.map(|job: &Job| &job.run_on);
    let able = |state: &&ReplicaState| wanted.is_none_or(|tags| matches(tags, &state.info.tags));
    let (able, others): (Vec<_>, Vec<_>) = alive.into_iter().partition(able);
    if able.is_empty() {
        return Candidates::NoneWithTags {
            run_on: wanted.map(tags).unwrap_or_default(),
            names: names(&others),
        };
    }
    let (draining, rest): (Vec<_>, Vec<_>) =
        able.into_iter().partition(|state| state.info.draining);
    let (full, free): (Vec<_>, Vec<_>) = rest.into_iter().partition(|state| state.info.declines);
    match (free.is_empty(), entry) {
        (false, Some(_)) => Candidates::Replicas {
            names: names(&free),
        },
        (false, None) => Candidates::Unsure {
            names: names(&free),
        },
        (true, _) => Candidates::AllDecline {
            full: names(&full),
            draining: names(&draining),
        },
    }
}

/// What is disabled is so for everybody, also while it is paused.
fn disabled(view: &View<'_>) -> Option<Suspension> {
    let since = view.state().and_then(|state| state.disabled);
    match since {
        Some(_) => Some(Suspension::Disabled { since }),
        None => suspension(view).filter(|one| matches!(one, Suspension::Disabled { .. })),
    }
}

fn names(replicas: &[&ReplicaState]) -> Vec<String> {
    let names = replicas.iter().map(|state| state.replica.name.clone());
    names.collect()
}

/// Tags as jobs.toml spells them.
pub(super) fn tags(tags: &Tags) -> String {
    let pairs = tags
        .iter()
        .map(|(name, value)| format!("{name} = \"{value}\""));
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}
