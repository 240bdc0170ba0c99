//! What a job's table entry says about occurrences that are late, find the job busy, or fail.
//!
//! Must never: decide. Deciding is done where the whole fleet can see it: by the store's rules
//! and by what a claim carries.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lease::Occurrence;
use super::spread::Spread;

/// What becomes of occurrences that nobody could claim in time, because all replicas or the
/// store were away. Each that doesn't run is recorded as missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CatchUp {
    /// The newest of them still runs.
    #[default]
    Latest,
    /// Each runs, in order, at most the newest so many.
    All {
        /// `catch_up_limit`.
        limit: u32,
    },
    /// None runs: what was not claimed within 1 s of its instant is missed.
    None,
}

/// What becomes of an occurrence that finds its job busy, on whatever replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// It is skipped.
    #[default]
    Forbid,
    /// It waits for its turn; when so many wait already, it is skipped.
    Queue {
        /// `queue_limit`.
        limit: u32,
    },
    /// It takes the place of the running one, which is ended first.
    Replace,
}

/// How often a failed occurrence is tried again, and after how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retry {
    /// How many failures are followed by another attempt; 0: none.
    pub max: u32,
    /// The wait after the first failure.
    pub backoff: Duration,
    /// What the wait is multiplied by after each further one; 1 or more.
    pub factor: f64,
    /// The longest wait.
    pub max_backoff: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max: 0,
            backoff: Duration::from_secs(1),
            factor: 2.0,
            max_backoff: Duration::from_secs(300),
        }
    }
}

impl Retry {
    /// So many retries, with the waits that hold by default.
    pub fn times(max: u32) -> Self {
        Self {
            max,
            ..Self::default()
        }
    }

    /// The wait before the next attempt after so many failures (from 1), none where they were
    /// too many. Of the full wait the last quarter is cut by chance, so that what failed together
    /// doesn't come back together; the chance is drawn from the occurrence, so that every replica
    /// comes to the same wait.
    pub fn wait(&self, occurrence: &Occurrence, shard: u32, failures: u32) -> Option<Duration> {
        if failures == 0 || failures > self.max {
            return None;
        }
        let exponent = i32::try_from(failures - 1).unwrap_or(i32::MAX);
        let longest = self.max_backoff.as_secs_f64();
        let full = self.backoff.as_secs_f64() * self.factor.powi(exponent);
        // An overflow is infinite and cut like any other.
        let full = if full < longest { full } else { longest };
        let part = Spread::of("retry", occurrence)
            .and(u64::from(shard))
            .and(u64::from(failures))
            .fraction();
        Some(Duration::from_secs_f64(full * (1.0 - part / 4.0)))
    }
}

/// What a replica says of itself, and what a job asks of a replica: names with values.
pub type Tags = BTreeMap<String, String>;

/// Tags as people write them: `gpu=yes,zone=eu`.
pub fn list(tags: &Tags) -> String {
    let tags = tags.iter().map(|(name, value)| format!("{name}={value}"));
    tags.collect::<Vec<_>>().join(",")
}

/// Whether a replica with `tags` has all that a job asks for.
pub fn matches(wanted: &Tags, tags: &Tags) -> bool {
    wanted
        .iter()
        .all(|(name, value)| tags.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::job::JobName;
    use crate::scheduler::time::Timestamp;

    fn occurrence(second: i64) -> Occurrence {
        Occurrence {
            job: JobName::new("close-expired-orders").unwrap(),
            scheduled_at: Timestamp::from_second(second),
        }
    }

    #[test]
    fn waits_double_up_to_the_longest_and_lose_a_quarter_at_most() {
        let retry = Retry {
            max: 100,
            ..Retry::default()
        };
        for second in 0..200 {
            for (failures, full) in [(1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (100, 300)] {
                let wait = retry.wait(&occurrence(second), 0, failures).unwrap();
                let full = Duration::from_secs(full);
                assert!(wait <= full && wait >= full * 3 / 4, "{failures}: {wait:?}");
            }
        }
    }

    #[test]
    fn a_wait_is_the_same_everywhere_and_differs_between_occurrences() {
        let retry = Retry {
            max: 3,
            ..Retry::default()
        };
        let wait = |second| retry.wait(&occurrence(second), 0, 1).unwrap();
        assert_eq!(wait(7), wait(7));
        let different: std::collections::BTreeSet<_> = (0..100).map(wait).collect();
        assert!(different.len() > 90, "{}", different.len());
    }

    #[test]
    fn after_max_failures_there_is_no_further_attempt() {
        let retry = Retry {
            max: 2,
            ..Retry::default()
        };
        let waits = |failures| retry.wait(&occurrence(1), 0, failures).is_some();
        assert_eq!([1, 2, 3].map(waits), [true, true, false]);
        assert_eq!(Retry::default().wait(&occurrence(1), 0, 1), None);
    }

    #[test]
    fn a_replica_matches_that_has_all_that_is_wanted() {
        let tags = |pairs: &[(&str, &str)]| -> Tags {
            let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
            pairs.iter().map(own).collect()
        };
        let replica = tags(&[("zone", "a"), ("gpu", "yes")]);
        assert!(matches(&tags(&[]), &replica));
        assert!(matches(&tags(&[("zone", "a")]), &replica));
        assert!(!matches(&tags(&[("zone", "b")]), &replica));
        assert!(!matches(&tags(&[("zone", "a"), ("ssd", "yes")]), &replica));
    }
}
