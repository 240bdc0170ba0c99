//! What came of many storms, as it is printed.
//!
//! Must never: leave a count out because it is small.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use soloist::scheduler::lease::Outcome;

use crate::storm::Passed;
use crate::world::{Arrow, Phase};

/// Sums over storms.
#[derive(Default)]
pub struct Report {
    /// Storms that were passed through.
    pub storms: u64,
    /// How long they were for those in them.
    pub simulated: Duration,
    /// Things that came to pass.
    pub events: u64,
    /// Attempts that were started.
    pub attempts: u64,
    /// Those that succeeded.
    pub completed: u64,
    /// How often things happened.
    pub tally: BTreeMap<&'static str, u64>,
    /// How often each step of an occurrence was taken.
    pub arrows: HashMap<Arrow, u64>,
}

impl Report {
    /// Takes in one storm.
    pub fn add(&mut self, passed: Passed) {
        self.storms += 1;
        self.simulated += passed.simulated;
        self.events += passed.witness.events;
        self.attempts += passed.attempts;
        self.completed += passed.completed;
        for (what, count) in passed.witness.tally {
            *self.tally.entry(what).or_default() += count;
        }
        for (arrow, count) in passed.witness.arrows {
            *self.arrows.entry(arrow).or_default() += count;
        }
    }

    /// Takes in the sums of others.
    pub fn merge(&mut self, other: Self) {
        self.storms += other.storms;
        self.simulated += other.simulated;
        self.events += other.events;
        self.attempts += other.attempts;
        self.completed += other.completed;
        for (what, count) in other.tally {
            *self.tally.entry(what).or_default() += count;
        }
        for (arrow, count) in other.arrows {
            *self.arrows.entry(arrow).or_default() += count;
        }
    }
}

/// The steps of an occurrence that the protocol has (`ARCHITECTURE.md`). What else is seen is a step of
/// a ledger that has lost data, and takes back what it is told.
const STEPS: [(Phase, Phase); 22] = [
    (Phase::Due, Phase::Waiting),
    (Phase::Due, Phase::Idle),
    (Phase::Due, Phase::Running),
    (Phase::Waiting, Phase::Idle),
    (Phase::Waiting, Phase::Running),
    (Phase::Waiting, Phase::Settled),
    (Phase::Idle, Phase::Running),
    (Phase::Idle, Phase::Ended(Outcome::Missed)),
    (Phase::Idle, Phase::Ended(Outcome::Cancelled)),
    // Taken over.
    (Phase::Running, Phase::Running),
    (Phase::Running, Phase::Again),
    (Phase::Running, Phase::Ended(Outcome::Succeeded)),
    (Phase::Running, Phase::Ended(Outcome::Failed)),
    (Phase::Running, Phase::Ended(Outcome::TimedOut)),
    (Phase::Running, Phase::Ended(Outcome::Cancelled)),
    (Phase::Running, Phase::Ended(Outcome::Lost)),
    (Phase::Again, Phase::Running),
    (Phase::Again, Phase::Ended(Outcome::Cancelled)),
    (Phase::Again, Phase::Ended(Outcome::Lost)),
    // Taken back.
    (Phase::Due, Phase::Again),
    (Phase::Due, Phase::Ended(Outcome::Succeeded)),
    (Phase::Settled, Phase::Running),
];

/// What has to have happened in storms that are said to have been tried.
const FAULTS: [&str; 33] = [
    "all replicas killed",
    "call of a replica that is cut off",
    "call to a store that is down",
    "daemon frozen",
    "failed over to a copy that lacks something",
    "holder killed in a fleet that is well",
    "host suspended",
    "host's wall clock set",
    "killed before it claims",
    "killed before it looks",
    "killed before it registers",
    "killed before it releases",
    "killed before it renews",
    "killed before it signs off",
    "killed before it starts what it was granted",
    "killed before it stops an attempt",
    "killed before it tells of a renewed lease",
    "killed by a person",
    "network spoiled",
    "news missed",
    "order given again",
    "paused",
    "replica killed",
    "replica told to end at once",
    "replica told to stop",
    "reply lost",
    "request late, or twice",
    "request lost",
    "store restarted from an older state",
    "store restarted with its data",
    "store restarted without its data",
    "store's clock set back",
    "table read again",
];

impl Report {
    /// What did not happen, of what has to.
    pub fn lacks(&self) -> Vec<String> {
        let faults = FAULTS
            .iter()
            .filter(|fault| !self.tally.contains_key(**fault));
        let faults = faults.map(|fault| (*fault).to_owned());
        let taken = |from, to| {
            let mut arrows = self.arrows.keys();
            arrows.any(|arrow| (arrow.from, arrow.to) == (from, to))
        };
        let steps = STEPS.iter().filter(|(from, to)| !taken(*from, *to));
        let steps = steps.map(|(from, to)| format!("{from:?} to {to:?}"));
        faults.chain(steps).collect()
    }
}

/// Seconds of a year of 365 days.
const YEAR_S: f64 = 31_536_000.0;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let years = self.simulated.as_secs_f64() / YEAR_S;
        writeln!(
            f,
            "{} storms, {years:.2} years, {} events, {} attempts, {} completed\n",
            self.storms, self.events, self.attempts, self.completed
        )?;
        writeln!(f, "| this did happen | times |\n|---|---|")?;
        for (what, count) in &self.tally {
            writeln!(f, "| {what} | {count} |")?;
        }
        writeln!(
            f,
            "\n| an occurrence was | and by | it was | times |\n|---|---|---|---|"
        )?;
        let mut arrows: Vec<_> = self.arrows.iter().collect();
        arrows.sort_by_key(|(arrow, _)| format!("{arrow:?}"));
        for (Arrow { from, by, to }, count) in arrows {
            writeln!(f, "| {from:?} | {by} | {to:?} | {count} |")?;
        }
        Ok(())
    }
}
