//! What a self-test has come to, in a word.
//!
//! Must never: call held what was not seen.

use serde::Serialize;

use super::checker::Findings;
use super::evidence::Run;
use super::plan::JobPlan;
use super::stage::{Played, SETTLING};
use super::verdict::occurrences;
use crate::scheduler::time::short_duration;

/// Of so many occurrences one may be missed; where more are, little was tried.
const MISSED_AT_MOST: usize = 3;
/// What came of it, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// All that is promised held.
    Held,
    /// Something did not.
    Violated,
    /// It was cut short before it could tell.
    Interrupted,
    /// The store went away and stayed away.
    StoreLost,
    /// The store lost what it had acknowledged.
    StoreForgot,
    /// Something was late, and may yet come to its end.
    Unsettled,
    /// Too little ran, or could be written down, to say anything.
    NothingSeen,
}

/// The word, and why where it does not say it.
pub(super) fn outcome(
    findings: &Findings,
    jobs: &[JobPlan],
    played: &Played,
    runs: &[Run],
) -> (Outcome, Option<String>) {
    if !findings.violations.is_empty() {
        return (Outcome::Violated, None);
    }
    if let Some(error) = &played.lost_store {
        return (Outcome::StoreLost, Some(error.to_string()));
    }
    if played.interrupted {
        return (Outcome::Interrupted, None);
    }
    if let Some(forgot) = played.ledger.as_ref().and_then(|ledger| ledger.forgot) {
        let because = match forgot {
            Some(born) => format!("its ledger began anew at {born}, without what was due before"),
            None => "its ledger is gone".to_owned(),
        };
        return (Outcome::StoreForgot, Some(because));
    }
    if findings.unwritten > 0 {
        let because = format!(
            "jobs of {} occurrences could not write down what they did: is there room in the temporary directory (TMPDIR)?",
            findings.unwritten
        );
        return (Outcome::NothingSeen, Some(because));
    }
    let idle = jobs
        .iter()
        .find(|job| !runs.iter().any(|run| run.job == job.name));
    if let Some(job) = idle {
        let because = format!("the job {} never ran", job.name);
        return (Outcome::NothingSeen, Some(because));
    }
    if !findings.open.is_empty() {
        let because = format!(
            "{} occurrences were still open {} after the last one fell due",
            findings.open.len(),
            short_duration(SETTLING)
        );
        return (Outcome::Unsettled, Some(because));
    }
    if played.faults.values().sum::<usize>() == 0 {
        return (Outcome::NothingSeen, Some("nothing was hurt".to_owned()));
    }
    let fates = played.ledger.as_ref().map(occurrences).unwrap_or_default();
    if fates.missed * MISSED_AT_MOST > fates.due {
        let because = format!(
            "{} of {} occurrences were missed: the store or this host was away for too long",
            fates.missed, fates.due
        );
        return (Outcome::NothingSeen, Some(because));
    }
    (Outcome::Held, None)
}
