//! In what two tables differ.

use crate::scheduler::job::JobName;
use crate::scheduler::lease::JobDigests;

/// In what a table of this replica's differs from another one, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Both have them, and say different things.
    pub changed: Vec<JobName>,
    /// The other one lacks them.
    pub only_here: Vec<JobName>,
    /// This one lacks them.
    pub only_there: Vec<JobName>,
}

impl Difference {
    /// What `here` says and `there` says otherwise. What somebody says nothing of doesn't differ.
    pub fn between(here: &JobDigests, there: &JobDigests) -> Self {
        let lacking = |one: &JobDigests, other: &JobDigests| {
            let names = one.keys().filter(|name| !other.contains_key(*name));
            names.cloned().collect()
        };
        let changed = here.iter().filter(|(name, digest)| {
            let other = there.get(*name);
            other.is_some_and(|other| other != *digest && !other.is_empty() && !digest.is_empty())
        });
        Self {
            changed: changed.map(|(name, _)| name.clone()).collect(),
            only_here: lacking(here, there),
            only_there: lacking(there, here),
        }
    }

    /// How many jobs differ.
    pub fn len(&self) -> usize {
        self.changed.len() + self.only_here.len() + self.only_there.len()
    }

    /// None does.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tables_differ_in_what_one_lacks_and_in_what_they_say_of_the_same_job() {
        let table = |jobs: &[(&str, &str)]| -> JobDigests {
            let job =
                |(name, digest): &(&str, &str)| (JobName::new(name).unwrap(), (*digest).to_owned());
            jobs.iter().map(job).collect()
        };
        let here = table(&[("a", "1"), ("b", "1"), ("c", "1"), ("unsaid", "")]);
        let there = table(&[("b", "1"), ("c", "2"), ("d", "1"), ("unsaid", "1")]);
        let difference = Difference::between(&here, &there);
        let names = |names: &[JobName]| names.iter().map(JobName::to_string).collect::<Vec<_>>();
        assert_eq!(names(&difference.changed), ["c"]);
        assert_eq!(names(&difference.only_here), ["a"]);
        assert_eq!(names(&difference.only_there), ["d"]);
        assert_eq!(difference.len(), 3);
        assert!(Difference::between(&here, &here).is_empty());
    }
}
