//! What a fleet did, counted from what its jobs wrote down and from the lines of the ledger.
//!
//! Must never: believe a replica about its own runs: jobs write for themselves, and whether two of
//! them were alive at once the kernel says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::probe::Run;

/// In nanoseconds.
pub const SECOND: i128 = 1_000_000_000;

/// A job and one of its instants, in whole seconds since the epoch.
pub type Occurrence = (String, i64);

/// What a run is of.
#[must_use]
pub fn occurrence(run: &Run) -> Occurrence {
    (run.job.clone(), instant_s(&run.scheduled_at))
}

/// An RFC 3339 instant in whole seconds since the epoch.
///
/// # Panics
///
/// When it is none.
#[must_use]
pub fn instant_s(text: &str) -> i64 {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    instant.as_second()
}

/// Which attempts were started of each occurrence, in the order of their starts.
#[must_use]
pub fn attempts(runs: &[Run]) -> BTreeMap<Occurrence, Vec<u32>> {
    let mut attempts: BTreeMap<Occurrence, Vec<u32>> = BTreeMap::new();
    for run in runs {
        let of_one = attempts.entry(occurrence(run)).or_default();
        of_one.push(run.attempt);
    }
    attempts
}

/// What was started more than once.
#[must_use]
pub fn more_than_once(runs: &[Run]) -> Vec<Occurrence> {
    let mut attempts = attempts(runs);
    attempts.retain(|_, of_one| of_one.len() > 1);
    attempts.into_keys().collect()
}

/// Whether one attempt was started twice.
#[must_use]
pub fn has_twins(attempts: &[u32]) -> bool {
    let different: BTreeSet<&u32> = attempts.iter().collect();
    different.len() < attempts.len()
}

/// Of runs in the order of their starts, those with a token that is no higher than one before of the
/// same job.
#[must_use]
pub fn out_of_order(runs: &[Run]) -> Vec<Run> {
    let mut highest: BTreeMap<&str, u64> = BTreeMap::new();
    let mut found = Vec::new();
    for run in runs {
        let before = highest.entry(&run.job).or_insert(0);
        if *before >= run.token {
            found.push(run.clone());
        }
        *before = run.token.max(*before);
    }
    found
}

/// What a line of the ledger stands for: what is due of a job after one instant and up to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The job.
    pub job: String,
    /// In seconds since the epoch; not included.
    pub since: i64,
    /// Included.
    pub through: i64,
}

impl Stretch {
    /// What this line stands for.
    ///
    /// # Panics
    ///
    /// When it is no line.
    #[must_use]
    pub fn of(line: &Value) -> Self {
        let through = instant_s(line["scheduled_at"].as_str().expect("an instant"));
        Self {
            job: line["job"].as_str().expect("a job").to_owned(),
            since: line["since"].as_str().map_or(through - 1, instant_s),
            through,
        }
    }

    fn has(&self, (job, at): &Occurrence) -> bool {
        self.job == *job && self.since < *at && *at <= self.through
    }
}

/// Of what was due, what was never started and stands in no line.
#[must_use]
pub fn lost(
    due: impl IntoIterator<Item = Occurrence>,
    runs: &[Run],
    told: &[Stretch],
) -> Vec<Occurrence> {
    let started: BTreeSet<Occurrence> = runs.iter().map(occurrence).collect();
    let is_told = |occurrence: &Occurrence| told.iter().any(|line| line.has(occurrence));
    due.into_iter()
        .filter(|occurrence| !started.contains(occurrence) && !is_told(occurrence))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(second: u32, attempt: u32, token: u64) -> Run {
        Run {
            job: "job".to_owned(),
            scheduled_at: format!("1970-01-01T00:00:{second:02}Z"),
            attempt,
            token,
            replica: "a".to_owned(),
            started_ns: i128::from(second) * SECOND,
            ended_ns: None,
            beside: false,
        }
    }

    #[test]
    fn a_token_below_any_one_before_is_out_of_order() {
        let tokens = |runs: &[Run]| -> Vec<u64> {
            let found = out_of_order(runs);
            found.iter().map(|run| run.token).collect()
        };
        let runs = [run(1, 1, 5), run(2, 1, 9), run(3, 1, 7), run(4, 1, 8)];
        assert_eq!(tokens(&runs[..2]), [0; 0]);
        assert_eq!(tokens(&runs), [7, 8], "8 is above 7, but below 9");
        assert_eq!(tokens(&[run(1, 1, 5), run(2, 1, 5)]), [5]);
    }

    #[test]
    fn what_has_neither_a_run_nor_a_line_is_lost() {
        let due = (1..=6).map(|at| ("job".to_owned(), at));
        let line = |text: &str| Stretch::of(&serde_json::from_str(text).unwrap());
        let told = [
            line(r#"{"job": "job", "scheduled_at": "1970-01-01T00:00:02Z"}"#),
            line(
                r#"{"job": "job", "scheduled_at": "1970-01-01T00:00:05Z",
                    "since": "1970-01-01T00:00:03Z"}"#,
            ),
            line(r#"{"job": "other", "scheduled_at": "1970-01-01T00:00:06Z"}"#),
        ];
        let found = lost(due, &[run(1, 1, 1)], &told);
        assert_eq!(found, [("job".to_owned(), 3), ("job".to_owned(), 6)]);
    }

    #[test]
    fn one_attempt_twice_is_told_from_two_attempts() {
        let runs = [run(1, 1, 1), run(1, 2, 2), run(2, 1, 3)];
        assert_eq!(more_than_once(&runs), [("job".to_owned(), 1)]);
        assert!(!has_twins(&attempts(&runs)[&("job".to_owned(), 1)]));
        assert!(has_twins(&[1, 2, 1]));
    }
}
