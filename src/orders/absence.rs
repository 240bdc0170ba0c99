//! Whether somebody is there who would start what was asked for: it is never lost, but it may wait
//! for long.
//!
//! Must never: say that nobody has a job while a replica lives of whose table that isn't known.

use crate::scheduler::few;
use crate::scheduler::job::JobName;
use crate::scheduler::policy::{self, Tags, matches};
use crate::scheduler::time::Timestamp;
use crate::store::{ReplicaState, Snapshot};

/// Why no replica would start an occurrence of a job now, if none would. `run_on` are the tags
/// that it asks for, as far as known.
pub(crate) fn absence(
    now: Timestamp,
    snapshot: &Snapshot,
    job: &JobName,
    run_on: &Tags,
) -> Option<String> {
    let alive = snapshot.replicas.iter().filter(|one| one.is_alive(now));
    let alive: Vec<&ReplicaState> = alive.collect();
    let may_have = |one: &&&ReplicaState| {
        let table = snapshot.tables.get(&one.info.digest);
        table.is_none_or(|jobs| jobs.contains_key(job))
    };
    let having: Vec<_> = alive.iter().filter(may_have).collect();
    let fitting = having.iter().filter(|one| matches(run_on, &one.info.tags));
    let withdrawal = snapshot.withdrawal(now);
    if withdrawal.has(job) {
        let by = few(&withdrawal.by);
        return Some(format!(
            "waits for a replica: the newer table of {by} lacks `{job}`, and none with an older one starts anything of it"
        ));
    }
    let why = match (alive.len(), having.len(), fitting.clone().count()) {
        (0, ..) => "none is alive".to_owned(),
        (_, 0, _) => format!("none that is alive has `{job}` in its table"),
        (.., 0) => format!("none that is alive has {}", policy::list(run_on)),
        _ if fitting.clone().all(|one| one.info.declines) => "all are full or draining".to_owned(),
        _ => return None,
    };
    Some(format!("waits for a replica: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::lease::Definition;

    /// A replica that lives until 1 s.
    fn replica(digest: &str) -> ReplicaState {
        let table = Definition {
            digest: digest.to_owned(),
            revision: None,
        };
        ReplicaState::with_table("web-1", &table, Timestamp::from_second(0))
    }

    #[test]
    fn a_job_that_no_live_replica_has_waits_for_one_that_has_it() {
        let name = |name| JobName::new(name).unwrap();
        let job = name("report");
        let mut snapshot = Snapshot {
            replicas: vec![replica("a"), replica("a")],
            tables: [
                ("a".to_owned(), [(name("sweep"), "x".to_owned())].into()),
                ("b".to_owned(), [(job.clone(), "y".to_owned())].into()),
            ]
            .into(),
            ..Snapshot::default()
        };
        let told = |snapshot: &Snapshot, second| {
            absence(Timestamp::from_second(second), snapshot, &job, &Tags::new())
        };
        let none = "waits for a replica: none that is alive has `report` in its table";
        assert_eq!(told(&snapshot, 0).as_deref(), Some(none));
        let gone = "waits for a replica: none is alive";
        assert_eq!(told(&snapshot, 2).as_deref(), Some(gone));
        // One that has it; one of which it isn't known, and one that says nothing of its table.
        for digest in ["b", "c", ""] {
            snapshot.replicas[1] = replica(digest);
            assert_eq!(told(&snapshot, 0), None, "{digest:?}");
        }
    }

    #[test]
    fn a_job_that_a_newer_table_lacks_waits_though_others_have_it() {
        let job = JobName::new("report").unwrap();
        let mut snapshot = Snapshot {
            replicas: vec![replica("old"), replica("new")],
            tables: [
                ("old".to_owned(), [(job.clone(), "x".to_owned())].into()),
                ("new".to_owned(), [].into()),
            ]
            .into(),
            ..Snapshot::default()
        };
        snapshot.replicas[1].replica.name = "web-2".to_owned();
        for digest in ["old", "new"] {
            let digest = digest.to_owned();
            let revision = None;
            snapshot.lineage.note(&Definition { digest, revision }, "");
        }
        let told =
            |snapshot: &Snapshot| absence(Timestamp::from_second(0), snapshot, &job, &Tags::new());
        let lacks = "waits for a replica: the newer table of web-2 lacks `report`, and none with an older one starts anything of it";
        assert_eq!(told(&snapshot).as_deref(), Some(lacks));
        snapshot.replicas.pop();
        assert_eq!(told(&snapshot), None);
    }
}
