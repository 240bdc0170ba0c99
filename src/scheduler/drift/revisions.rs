//! Whether `revision` is used the same way in all tables.
//!
//! Must never: tell of a roll-out that goes as it should.

use std::collections::BTreeSet;
use std::fmt;

use super::few;
use crate::scheduler::lease::Definition;
use crate::scheduler::{Notice, Scheduler};

/// How live replicas that take work use `revision`.
#[derive(Debug, Default)]
pub(super) struct Revisions {
    seen: Mixture,
    /// People were told of a mixture, and it lasts.
    is_told: bool,
}

/// Who has a table with a `revision`, and who one without; by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mixture {
    /// With one.
    with: BTreeSet<String>,
    /// Without.
    without: BTreeSet<String>,
}

impl Mixture {
    /// Takes one in; a table that says nothing is none.
    pub fn note(&mut self, name: &str, table: &Definition) {
        if table.is_said() {
            let side = match table.revision {
                Some(_) => &mut self.with,
                None => &mut self.without,
            };
            side.insert(name.to_owned());
        }
    }

    /// There are both.
    pub fn is_mixed(&self) -> bool {
        !self.with.is_empty() && !self.without.is_empty()
    }
}

impl fmt::Display for Mixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [with, without] = [&self.with, &self.without].map(few);
        write!(
            f,
            "some tables have a `revision` ({with}) and some have none ({without}), which makes \
             these the older ones, whatever they say: put one into all of them; to do without, stop \
             all replicas that have one before others start"
        )
    }
}

impl Revisions {
    /// A look begins.
    pub(super) fn forget(&mut self) {
        self.seen = Mixture::default();
    }

    pub(super) fn note(&mut self, name: &str, table: &Definition) {
        self.seen.note(name, table);
    }

    /// The mixture, where it is new.
    fn take_new(&mut self) -> Option<Mixture> {
        let is_mixed = self.seen.is_mixed();
        let was_told = std::mem::replace(&mut self.is_told, is_mixed);
        (is_mixed && !was_told).then(|| self.seen.clone())
    }
}

impl Scheduler {
    /// Tells people, once, that some tables have a `revision` and some have none.
    pub(super) fn tell_of_mixed_revisions(&mut self) {
        let drift = &mut self.drift;
        let own = drift.lineage.as_known(&drift.own);
        drift.revisions.note(&self.settings.replica.name, &own);
        if let Some(mixture) = drift.revisions.take_new() {
            self.report(Notice::RevisionsMixed(mixture));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(revisions: &mut Revisions, tables: &[(&str, &str, Option<u64>)]) -> Option<String> {
        revisions.forget();
        for (name, digest, revision) in tables {
            let digest = (*digest).to_owned();
            let revision = *revision;
            revisions.note(name, &Definition { digest, revision });
        }
        revisions.take_new().map(|mixture| mixture.to_string())
    }

    #[test]
    fn tables_with_and_without_a_revision_are_told_once_and_again_when_they_were_over() {
        let mut revisions = Revisions::default();
        let alike = [("a", "1", Some(1)), ("b", "2", Some(2)), ("once", "", None)];
        let none = [("a", "1", None), ("b", "2", None)];
        let mixed = [("a", "1", Some(1)), ("b", "2", None), ("c", "3", None)];
        for well in [&alike[..], &none[..], &[]] {
            assert_eq!(look(&mut revisions, well), None);
            let told = look(&mut revisions, &mixed).unwrap();
            assert!(
                told.contains("a `revision` (a) and some have none (b, c)"),
                "{told}"
            );
            assert_eq!(look(&mut revisions, &mixed), None);
            assert_eq!(look(&mut revisions, &mixed[..2]), None);
        }
    }
}
