//! Jobs that nobody starts, as the newest table of those who take work lacks them: what replicas
//! with an older table do about that (`scheduler::drift`), as a reader of the store sees it.
//!
//! Must never: call a job withdrawn by a table of which it isn't known what it says.

use std::collections::BTreeSet;

use super::{ReplicaState, Snapshot};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::Definition;
use crate::scheduler::time::Timestamp;

/// What the newest table lacks of those that other live replicas have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal<'s> {
    /// The names of those who have that table and take work.
    pub by: Vec<&'s str>,
    jobs: BTreeSet<&'s JobName>,
}

impl Withdrawal<'_> {
    /// Whether a job is among it.
    pub fn has(&self, job: &JobName) -> bool {
        self.jobs.contains(job)
    }
}

impl Snapshot {
    /// What is withdrawn at that time.
    pub fn withdrawal(&self, now: Timestamp) -> Withdrawal<'_> {
        let alive = self.replicas.iter().filter(|one| one.is_alive(now));
        let alive: Vec<&ReplicaState> = alive.collect();
        let working = alive.iter().filter(|one| !one.info.draining);
        let tables = working.clone().map(|one| one.table());
        let newest = tables.filter(Definition::is_said).reduce(|one, other| {
            match self.lineage.is_newer(&other, &one) {
                true => other,
                false => one,
            }
        });
        let known = newest.and_then(|newest| Some((self.tables.get(&newest.digest)?, newest)));
        let Some((kept, newest)) = known else {
            return Withdrawal::default();
        };
        let older = alive.iter().map(|one| one.table());
        let older = older.filter(|one| self.lineage.is_newer(&newest, one));
        let older: BTreeSet<String> = older.map(|one| one.digest).collect();
        let tables = older.iter().filter_map(|digest| self.tables.get(digest));
        let jobs = tables.flat_map(|table| table.keys());
        let has_it = working.filter(|one| one.info.digest == newest.digest);
        Withdrawal {
            by: has_it.map(|one| one.replica.name.as_str()).collect(),
            jobs: jobs.filter(|job| !kept.contains_key(*job)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::lease::JobDigests;

    const NOW: Timestamp = Timestamp::from_second(1000);

    fn replica(name: &str, digest: &str) -> ReplicaState {
        let table = Definition {
            digest: digest.to_owned(),
            revision: None,
        };
        ReplicaState::with_table(name, &table, NOW)
    }

    fn name(text: &str) -> JobName {
        JobName::new(text).unwrap()
    }

    /// The tables of that name, seen in this order, and who has which.
    fn snapshot(tables: &[(&str, &[&str])], replicas: &[(&str, &str)]) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for (digest, jobs) in tables {
            let jobs: JobDigests = jobs.iter().map(|job| (name(job), "1".to_owned())).collect();
            snapshot.tables.insert((*digest).to_owned(), jobs);
            let digest = (*digest).to_owned();
            let revision = None;
            snapshot.lineage.note(&Definition { digest, revision }, "");
        }
        let replicas = replicas.iter().map(|(name, digest)| replica(name, digest));
        snapshot.replicas = replicas.collect();
        snapshot
    }

    const OLD: (&str, &[&str]) = ("old", &["gone", "same"]);
    const NEW: (&str, &[&str]) = ("new", &["added", "same"]);

    #[test]
    fn what_the_newest_table_lacks_and_live_replicas_have_is_withdrawn() {
        let fleet = [("a", "new"), ("b", "old"), ("c", "old")];
        let shown = snapshot(&[OLD, NEW], &fleet);
        let withdrawal = shown.withdrawal(NOW);
        let of = |job: &str| withdrawal.has(&name(job));
        assert_eq!(["gone", "same", "added"].map(of), [true, false, false]);
        assert_eq!(withdrawal.by, ["a"]);
        // The table that was seen last is the newest; what an older one lacks is not withdrawn.
        let shown = snapshot(&[NEW, OLD], &fleet);
        let withdrawal = shown.withdrawal(NOW);
        let of = |job: &str| withdrawal.has(&name(job));
        assert_eq!(["gone", "same", "added"].map(of), [false, false, true]);
        assert_eq!(withdrawal.by, ["b", "c"]);
    }

    #[test]
    fn who_is_gone_or_draining_or_says_nothing_withdraws_nothing() {
        let changes: [fn(&mut Snapshot); 4] = [
            |shown| shown.replicas[0].seen_at = Timestamp::from_second(9),
            |shown| shown.replicas[0].info.draining = true,
            |shown| shown.replicas[0].info.digest.clear(),
            |shown| _ = shown.tables.remove("new"),
        ];
        for (index, change) in changes.iter().enumerate() {
            let mut shown = snapshot(&[OLD, NEW], &[("a", "new"), ("b", "old")]);
            assert!(shown.withdrawal(NOW).has(&name("gone")));
            change(&mut shown);
            assert!(!shown.withdrawal(NOW).has(&name("gone")), "{index}");
        }
    }

    #[test]
    fn what_an_older_table_lacks_is_not_withdrawn_though_the_newer_ones_are_draining() {
        let mut shown = snapshot(&[OLD, NEW], &[("a", "new"), ("b", "old")]);
        shown.replicas[0].info.draining = true;
        assert!(!shown.withdrawal(NOW).has(&name("added")));
    }

    #[test]
    fn what_no_live_replica_has_is_not_withdrawn_but_gone() {
        let mut shown = snapshot(&[OLD, NEW], &[("a", "new"), ("b", "old")]);
        shown.replicas[1].seen_at = Timestamp::from_second(9);
        assert!(!shown.withdrawal(NOW).has(&name("gone")));
    }
}
