//! In which jobs the tables of live replicas differ, how far the newest has come, and who leaves
//! which job to others.
//!
//! Must never: call a table different of which it isn't known what it says.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use utoipa::ToSchema;

use super::ConditionStatus;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Definition, JobDigests};
use crate::scheduler::time::Timestamp;
use crate::scheduler::{Mixture, few};
use crate::store::{ReplicaState, Snapshot, Withdrawal};

/// A replica's table.
#[derive(Serialize, ToSchema)]
pub(crate) struct TableStatus {
    pub(crate) digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<u64>,
    /// Jobs of which another definition is in force, or that the newest table lacks: this replica
    /// starts nothing of them.
    pub(crate) outdated_jobs: Vec<String>,
    /// Those of them that the newest table lacks.
    #[serde(skip)]
    pub(crate) withdrawn_jobs: Vec<String>,
}

/// A job of which live replicas have different definitions.
#[derive(Serialize, ToSchema)]
pub(crate) struct DriftStatus {
    pub(crate) job: String,
    /// The digest of the definition in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_force: Option<String>,
    /// The digest that each live replica has, by name; null where its table lacks the job.
    pub(crate) replicas: BTreeMap<String, Option<String>>,
}

/// How far the newest of the tables of live replicas has come.
#[derive(Serialize, ToSchema)]
pub(crate) struct RolloutStatus {
    pub(crate) digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revision: Option<u64>,
    /// How many live replicas have it.
    pub(crate) replicas: usize,
    /// How many live replicas have a table.
    pub(crate) of: usize,
}

impl TableStatus {
    /// None where a replica says nothing of its table.
    pub(super) fn of(
        state: &ReplicaState,
        snapshot: &Snapshot,
        withdrawal: &Withdrawal<'_>,
    ) -> Option<Self> {
        let Definition { digest, revision } = state.table();
        let jobs = snapshot.tables.get(&digest);
        let is_outdated = |(job, own): &(&JobName, &String)| {
            let in_force = in_force(job, snapshot);
            withdrawal.has(job) || in_force.is_some_and(|in_force| in_force != own.as_str())
        };
        let outdated = jobs.into_iter().flatten().filter(is_outdated);
        let outdated = outdated.map(|(job, _)| job);
        let withdrawn = outdated.clone().filter(|job| withdrawal.has(job));
        (!digest.is_empty()).then_some(Self {
            digest,
            revision,
            outdated_jobs: outdated.map(ToString::to_string).collect(),
            withdrawn_jobs: withdrawn.map(ToString::to_string).collect(),
        })
    }
}

/// The digest of the definition of a job that is in force.
fn in_force<'s>(job: &JobName, snapshot: &'s Snapshot) -> Option<&'s str> {
    let place = snapshot.jobs.binary_search_by(|state| state.job.cmp(job));
    let force = snapshot.jobs[place.ok()?].force.as_ref()?;
    Some(&force.digest)
}

/// The jobs in which the tables of live replicas differ, by name.
pub(super) fn drift(snapshot: &Snapshot, now: Timestamp) -> Vec<DriftStatus> {
    let alive = snapshot.replicas.iter().filter(|one| one.is_alive(now));
    let known: Vec<(&str, &JobDigests)> = alive
        .filter_map(|one| {
            let table = snapshot.tables.get(&one.info.digest)?;
            Some((one.replica.name.as_str(), table))
        })
        .collect();
    let jobs: BTreeSet<&JobName> = known.iter().flat_map(|(_, table)| table.keys()).collect();
    let differs = |job: &&JobName| {
        let mut said = known.iter().map(|(_, table)| table.get(*job));
        let first = said.next();
        said.any(|one| Some(one) != first)
    };
    let differing = jobs.into_iter().filter(differs);
    differing
        .map(|job| DriftStatus {
            job: job.to_string(),
            in_force: in_force(job, snapshot).map(str::to_owned),
            replicas: known
                .iter()
                .map(|(name, table)| ((*name).to_owned(), table.get(job).cloned()))
                .collect(),
        })
        .collect()
}

/// The tables of live replicas, with their names.
fn tables(snapshot: &Snapshot, now: Timestamp) -> Vec<(&str, Definition)> {
    let alive = snapshot.replicas.iter().filter(|one| one.is_alive(now));
    let tables = alive.map(|one| {
        let table = snapshot.lineage.as_known(&one.table());
        (one.replica.name.as_str(), table)
    });
    tables.filter(|(_, table)| table.is_said()).collect()
}

/// The newest of the tables of live replicas, with the greatest of its revisions. None where all
/// say nothing of theirs.
pub(super) fn newest_table(snapshot: &Snapshot, now: Timestamp) -> Option<Definition> {
    let tables = tables(snapshot, now).into_iter().map(|(_, table)| table);
    tables.reduce(|one, other| {
        let same = one.digest == other.digest;
        match same && other.revision > one.revision || snapshot.lineage.is_newer(&other, &one) {
            true => other,
            false => one,
        }
    })
}

/// How far the newest table has come, while not all live replicas have it.
pub(super) fn rollout(snapshot: &Snapshot, now: Timestamp) -> Option<RolloutStatus> {
    let newest = newest_table(snapshot, now)?;
    let tables = tables(snapshot, now);
    let have_it = tables.iter().filter(|(_, one)| one.digest == newest.digest);
    let (replicas, of) = (have_it.count(), tables.len());
    (replicas < of).then_some(RolloutStatus {
        digest: newest.digest,
        revision: newest.revision,
        replicas,
        of,
    })
}

/// What of the tables of live replicas is not as a roll-out leaves it.
pub(super) fn conditions(snapshot: &Snapshot, now: Timestamp) -> Vec<ConditionStatus> {
    let tables = tables(snapshot, now);
    let mut conditions = Vec::new();
    let mut mixture = Mixture::default();
    let mut revisions: BTreeMap<u64, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for (name, table) in &tables {
        mixture.note(name, table);
        if let Some(revision) = table.revision {
            let digests = revisions.entry(revision).or_default();
            digests.entry(&table.digest).or_default().insert(name);
        }
    }
    if mixture.is_mixed() {
        conditions.push(ConditionStatus {
            kind: "revision_mixed",
            text: mixture.to_string(),
        });
    }
    let twice = revisions.iter().filter(|(_, digests)| digests.len() > 1);
    conditions.extend(twice.map(|(revision, digests)| {
        let whose: Vec<String> = digests.values().map(few).collect();
        let whose = whose.join(" and of ");
        ConditionStatus {
            kind: "revision_twice",
            text: format!(
                "revision {revision} twice, in different tables of {whose}: was it forgotten to \
                 raise it?"
            ),
        }
    }));
    conditions
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_second(1000);
    const LONG_AGO: Timestamp = Timestamp::from_second(9);

    fn replica(name: &str, digest: &str, seen_at: Timestamp) -> ReplicaState {
        let table = Definition {
            digest: digest.to_owned(),
            revision: None,
        };
        ReplicaState::with_table(name, &table, seen_at)
    }

    #[test]
    fn what_live_replicas_have_differently_is_told_by_job() {
        let now = NOW;
        let table = |jobs: &[(&str, &str)]| -> JobDigests {
            let job =
                |(name, digest): &(&str, &str)| (JobName::new(name).unwrap(), (*digest).to_owned());
            jobs.iter().map(job).collect()
        };
        let tables = [
            ("one", table(&[("a", "1"), ("b", "1"), ("c", "1")])),
            ("two", table(&[("a", "1"), ("b", "2")])),
            ("old", table(&[("a", "0")])),
        ];
        let snapshot = Snapshot {
            tables: tables
                .map(|(digest, jobs)| (digest.to_owned(), jobs))
                .into(),
            replicas: vec![
                replica("r0", "one", now),
                replica("r1", "two", now),
                replica("r2", "unknown", now),
                replica("gone", "old", LONG_AGO),
            ],
            ..Snapshot::default()
        };
        let told = drift(&snapshot, now);
        let told: Vec<_> = told
            .iter()
            .map(|one| {
                (
                    one.job.as_str(),
                    one.replicas["r0"].as_deref(),
                    one.replicas["r1"].as_deref(),
                )
            })
            .collect();
        assert_eq!(told, [("b", Some("1"), Some("2")), ("c", Some("1"), None)]);
    }

    fn with(name: &str, digest: &str, revision: Option<u64>) -> ReplicaState {
        let mut replica = replica(name, digest, NOW);
        replica.info.revision = revision;
        replica
    }

    /// A snapshot in which these tables were seen first in this order.
    fn seen(digests: &[&str], replicas: Vec<ReplicaState>) -> Snapshot {
        let mut snapshot = Snapshot {
            replicas,
            ..Snapshot::default()
        };
        for digest in digests {
            let digest = (*digest).to_owned();
            let one = Definition {
                digest,
                revision: None,
            };
            snapshot.lineage.note(&one, "");
        }
        snapshot
    }

    #[test]
    fn a_roll_out_is_of_the_newest_table_and_the_dead_are_not_counted() {
        let replicas = vec![
            replica("a", "old", LONG_AGO),
            replica("b", "newer", LONG_AGO),
            replica("c", "new", NOW),
            replica("d", "old", NOW),
            replica("e", "old", NOW),
            replica("f", "", NOW),
        ];
        let mut snapshot = seen(&["old", "new", "newer"], replicas);
        let told = rollout(&snapshot, NOW).unwrap();
        assert_eq!(
            (told.digest.as_str(), told.replicas, told.of),
            ("new", 1, 3)
        );
        snapshot.replicas.push(with("g", "old", Some(5)));
        snapshot.replicas.push(with("h", "old", Some(4)));
        let told = rollout(&snapshot, NOW).unwrap();
        assert_eq!((told.digest.as_str(), told.revision), ("old", Some(5)));
        assert_eq!((told.replicas, told.of), (4, 5));
        snapshot.replicas.remove(2);
        assert!(rollout(&snapshot, NOW).is_none());
        snapshot.replicas.retain(|one| one.info.digest.is_empty());
        assert!(newest_table(&snapshot, NOW).is_none());
    }

    fn kinds(replicas: Vec<ReplicaState>) -> Vec<&'static str> {
        let told = conditions(&seen(&[], replicas), NOW);
        told.iter().map(|one| one.kind).collect()
    }

    #[test]
    fn a_revision_in_some_tables_only_or_twice_is_told_and_a_roll_out_is_not() {
        let (old, new) = (with("a", "old", None), with("b", "new", None));
        assert_eq!(
            kinds(vec![old.clone(), new, replica("c", "", NOW)]),
            [""; 0]
        );
        let (six, seven) = (with("a", "old", Some(6)), with("b", "new", Some(7)));
        assert_eq!(kinds(vec![six, seven.clone()]), [""; 0]);
        assert_eq!(kinds(vec![old, seven.clone()]), ["revision_mixed"]);
        let other = with("c", "other", Some(7));
        assert_eq!(
            kinds(vec![seven.clone(), other.clone()]),
            ["revision_twice"]
        );
        let gone = ReplicaState {
            seen_at: LONG_AGO,
            ..other
        };
        assert_eq!(kinds(vec![seven.clone(), gone, seven]), [""; 0]);
    }
}
