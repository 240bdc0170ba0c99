//! What tables say of a job, in short, and which of two that differ is the newer one.
//!
//! The greater `revision` is newer, and any is newer than none; of equal ones, or none, the one that
//! the ledger saw first later. So a table that comes back is never taken for a new one, whoever
//! restarts with it: neither one that was there before, nor one of the time before `revision`.
//!
//! Must never: hold what may be a secret; a digest is made without any.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::scheduler::job::JobName;

/// How many definitions of one thing are remembered. One that is forgotten and comes back counts
/// as new; until then there were so many newer ones.
const REMEMBERED: usize = 8;

/// How much of a digest people are shown: enough to tell a few apart.
const SHOWN: usize = 8;

/// All that a table says of a job, or of all of its jobs, in short.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The same for those that mean the same; empty from whoever has no say in what runs.
    #[serde(rename = "d")]
    pub digest: String,
    /// The `revision` of the table.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
}

impl Definition {
    /// It says something.
    pub fn is_said(&self) -> bool {
        !self.digest.is_empty()
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digest: String = self.digest.chars().take(SHOWN).collect();
        match self.revision {
            Some(revision) => write!(f, "{digest} (revision {revision})"),
            None => f.write_str(&digest),
        }
    }
}

/// A table, as others are told of it: the digest of each of its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishedTable {
    /// All of it in short.
    pub table: Definition,
    /// Its jobs.
    pub jobs: JobDigests,
}

/// What a table says of each of its jobs, in short.
pub type JobDigests = BTreeMap<JobName, String>;

/// Definitions of one thing in the order in which the ledger saw them first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Lineage(Vec<Definition>);

impl Lineage {
    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one in. Of its revisions the greatest is kept. Where there are too many the one goes
    /// that was seen first and isn't `kept`.
    pub fn note(&mut self, one: &Definition, kept: &str) {
        match self.0.iter_mut().find(|known| known.digest == one.digest) {
            Some(known) => known.revision = known.revision.max(one.revision),
            None => self.0.push(one.clone()),
        }
        if self.0.len() > REMEMBERED {
            let first = self.0.iter().position(|other| other.digest != kept);
            first.map(|first| self.0.remove(first));
        }
    }

    /// What is known of a digest.
    pub fn find(&self, digest: &str) -> Option<&Definition> {
        self.0.iter().find(|one| one.digest == digest)
    }

    /// One with the greatest revision that was seen of it: a table from which `revision` is taken,
    /// and nothing else, means what it meant.
    pub fn as_known(&self, one: &Definition) -> Definition {
        Definition {
            digest: one.digest.clone(),
            revision: self.rank(one).0,
        }
    }

    /// Whether `one` is newer than `other`. One that isn't known counts as seen just now.
    pub fn is_newer(&self, one: &Definition, other: &Definition) -> bool {
        one.digest != other.digest && self.rank(one) >= self.rank(other)
    }

    /// By what definitions are ordered: none counts less than any revision.
    fn rank(&self, one: &Definition) -> (Option<u64>, usize) {
        let seen = self.0.iter().position(|known| known.digest == one.digest);
        let known = seen.and_then(|seen| self.0[seen].revision);
        (one.revision.max(known), seen.unwrap_or(self.0.len()))
    }
}

/// Which definition of a job is in force, and which others the ledger knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Force {
    /// The one in force.
    #[serde(rename = "d")]
    pub digest: String,
    /// All of them, in order.
    #[serde(rename = "l")]
    pub known: Lineage,
}

impl Force {
    /// The one in force, with its revision.
    pub fn definition(&self) -> Definition {
        let known = self.known.find(&self.digest).cloned();
        known.unwrap_or_else(|| Definition {
            digest: self.digest.clone(),
            revision: None,
        })
    }

    /// Puts one into force.
    pub fn put(&mut self, one: &Definition) {
        self.digest.clone_from(&one.digest);
        self.known.note(one, &one.digest);
    }

    /// Whether one is newer than that in force.
    pub fn is_older_than(&self, one: &Definition) -> bool {
        self.known.is_newer(one, &self.definition())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(digest: &str, revision: Option<u64>) -> Definition {
        let digest = digest.to_owned();
        Definition { digest, revision }
    }

    fn seen(all: &[Definition]) -> Lineage {
        let mut lineage = Lineage::default();
        all.iter().for_each(|one| lineage.note(one, ""));
        lineage
    }

    #[test]
    fn of_two_revisions_the_greater_is_newer_whichever_was_seen_first() {
        let (one, two) = (definition("a", Some(1)), definition("b", Some(2)));
        for lineage in [
            seen(&[one.clone(), two.clone()]),
            seen(&[two.clone(), one.clone()]),
        ] {
            assert!(lineage.is_newer(&two, &one));
            assert!(!lineage.is_newer(&one, &two));
        }
    }

    #[test]
    fn a_revision_is_newer_than_none_whichever_was_seen_first() {
        let (none, five) = (definition("a", None), definition("b", Some(5)));
        for lineage in [
            seen(&[none.clone(), five.clone()]),
            seen(&[five.clone(), none.clone()]),
            seen(std::slice::from_ref(&five)),
            seen(std::slice::from_ref(&none)),
            seen(&[]),
        ] {
            assert!(lineage.is_newer(&five, &none), "{lineage:?}");
            assert!(!lineage.is_newer(&none, &five), "{lineage:?}");
        }
    }

    #[test]
    fn of_equal_revisions_or_none_the_one_seen_first_later_is_newer() {
        for revision in [None, Some(3)] {
            let (first, later) = (definition("a", revision), definition("b", revision));
            let lineage = seen(&[first.clone(), later.clone(), first.clone()]);
            assert!(lineage.is_newer(&later, &first), "{revision:?}");
            assert!(!lineage.is_newer(&first, &later), "{revision:?}");
            assert!(lineage.is_newer(&definition("c", revision), &later));
        }
    }

    #[test]
    fn a_revision_that_rises_leaves_it_to_the_first_sight_among_equal_ones() {
        let (first, later) = (definition("a", Some(7)), definition("b", Some(7)));
        let lineage = seen(&[first.clone(), definition("b", Some(5)), later.clone()]);
        assert!(lineage.is_newer(&later, &first));
        assert!(!lineage.is_newer(&first, &later));
    }

    #[test]
    fn of_several_one_is_the_newest_also_where_not_all_have_a_revision() {
        let all = [
            definition("x", Some(5)),
            definition("y", None),
            definition("z", Some(3)),
        ];
        for seed in 0..6 {
            let mut order = all.to_vec();
            order.rotate_left(seed % 3);
            if seed >= 3 {
                order.reverse();
            }
            let lineage = seen(&order);
            let newest = |one: &&Definition| {
                let others = all.iter().filter(|other| other != one);
                others.into_iter().all(|other| lineage.is_newer(one, other))
            };
            assert_eq!(all.iter().filter(newest).count(), 1, "{lineage:?}");
            assert!(lineage.is_newer(&all[0], &all[2]), "{lineage:?}");
        }
    }

    #[test]
    fn what_comes_back_with_a_greater_revision_is_newer_than_what_came_between() {
        let mut lineage = seen(&[definition("a", Some(1)), definition("b", Some(2))]);
        let back = definition("a", Some(3));
        assert!(lineage.is_newer(&back, &definition("b", Some(2))));
        lineage.note(&back, "");
        assert!(!lineage.is_newer(&definition("b", Some(2)), &back));
    }

    #[test]
    fn what_had_a_revision_has_it_still_where_the_table_says_none_any_more() {
        let lineage = seen(&[definition("a", Some(6)), definition("b", None)]);
        let without = definition("a", None);
        assert_eq!(lineage.as_known(&without), definition("a", Some(6)));
        assert_eq!(
            lineage.as_known(&definition("c", None)),
            definition("c", None)
        );
        assert!(lineage.is_newer(&without, &definition("b", Some(5))));
    }

    #[test]
    fn nothing_is_newer_than_what_means_the_same() {
        let lineage = seen(&[definition("a", Some(1))]);
        assert!(!lineage.is_newer(&definition("a", Some(2)), &definition("a", Some(1))));
    }

    #[test]
    fn of_the_revisions_of_what_means_the_same_the_greatest_counts() {
        let lineage = seen(&[definition("a", Some(3)), definition("a", Some(1))]);
        assert_eq!(lineage.find("a").and_then(|one| one.revision), Some(3));
        let force = Force {
            digest: "a".to_owned(),
            known: lineage,
        };
        assert!(!force.is_older_than(&definition("b", Some(2))));
    }

    #[test]
    fn those_seen_first_are_forgotten_but_never_the_one_in_force() {
        let mut force = Force::default();
        force.put(&definition("kept", None));
        let mut lineage = force.known.clone();
        for number in 0..20 {
            lineage.note(&definition(&number.to_string(), None), "kept");
        }
        assert!(lineage.find("kept").is_some() && lineage.find("19").is_some());
        assert!(lineage.find("0").is_none());
        assert_eq!(lineage.0.len(), REMEMBERED);
    }
}
