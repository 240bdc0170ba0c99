//! What came of many storms, as it is printed.
//!
//! Must never: leave a count out because it is small.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use crate::storm::Passed;
use crate::world::Arrow;

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
