//! What came of a fault, counted from what the jobs wrote down and what the ledger says.
//!
//! Must never: believe a replica about its own runs: jobs write for themselves, and whether two of
//! them were alive at once the kernel says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use test_support::account::{
    self, Occurrence, SECOND, Stretch, attempts, has_twins, instant_s, more_than_once, occurrence,
    out_of_order,
};
use test_support::fleet::Fleet;
use test_support::probe::Run;

use crate::table::{at_most_once, jobs};

/// What is in a line of the table.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Starts beside a living attempt of the same job.
    pub(crate) overlaps: Vec<Run>,
    /// What was started more than once, and must not be.
    pub(crate) skip_twice: Vec<Occurrence>,
    /// What was started again as its next attempt, as `on_crash = "rerun"` has it.
    pub(crate) rerun: Vec<Occurrence>,
    /// What was started again as if it had never been: the grant was forgotten.
    pub(crate) forgotten: Vec<Occurrence>,
    /// What was due, never started, and has no line.
    pub(crate) lost: Vec<Occurrence>,
    /// The same of what was due before a new ledger began: only where the old one was lost.
    pub(crate) before_the_ledger: Vec<Occurrence>,
    /// Runs with a token that is no higher than one before.
    pub(crate) tokens_out_of_order: Vec<Run>,
    /// From the fault to the first start of an occurrence that fell due after it.
    pub(crate) first: Duration,
    /// The same, when all jobs had theirs.
    pub(crate) last: Duration,
}

/// What is looked at, in nanoseconds since the epoch.
pub(crate) struct Reach {
    pub(crate) struck: i128,
    pub(crate) lifted: i128,
    pub(crate) until: i128,
}

impl Figures {
    /// What came of a fault. Where the ledger went with it, what was due before it struck can't be
    /// judged any more.
    pub(crate) fn of(fleet: &Fleet, reach: &Reach, ledger_kept: bool) -> Self {
        let runs = fleet.runs();
        let (skip_twice, others): (Vec<Occurrence>, Vec<Occurrence>) = more_than_once(&runs)
            .into_iter()
            .partition(|(job, _)| at_most_once(job));
        let attempts = attempts(&runs);
        let (forgotten, rerun) = others
            .into_iter()
            .partition(|occurrence| has_twins(&attempts[occurrence]));
        let (lost, before_the_ledger) = unaccounted(fleet, reach, ledger_kept)
            .into_iter()
            .partition(|(_, at)| ledger_kept || i128::from(*at) * SECOND > reach.lifted);
        let (first, last) = recovery(&runs, reach.struck).expect("all jobs started again");
        Self {
            overlaps: runs.iter().filter(|run| run.beside).cloned().collect(),
            skip_twice,
            rerun,
            forgotten,
            lost,
            before_the_ledger,
            tokens_out_of_order: out_of_order(&runs),
            first,
            last,
        }
    }
}

/// What was due, and neither started nor has a line so far.
pub(crate) fn unaccounted(fleet: &Fleet, reach: &Reach, ledger_kept: bool) -> Vec<Occurrence> {
    let lines = fleet.json(&["history", "-n", "100000", "--json"]);
    let lines = lines.as_array().expect("lines");
    let from = (!ledger_kept).then_some(reach.struck);
    lost(&fleet.runs(), lines, from, reach.until)
}

/// Due instants after the first one of which something is known, or after `from`.
fn lost(runs: &[Run], lines: &[Value], from: Option<i128>, until: i128) -> Vec<Occurrence> {
    let started: BTreeSet<Occurrence> = runs.iter().map(occurrence).collect();
    let told: Vec<Stretch> = lines.iter().map(Stretch::of).collect();
    let mut due = Vec::new();
    for (job, period) in jobs() {
        let mut known = started.iter().filter(|(started, _)| *started == job);
        let first = known.next().expect("each job ran before the fault").1;
        let from = from.map_or(first, |from| seconds(from) + 1);
        let instants = (from..=seconds(until)).filter(|at| at % period == 0);
        due.extend(instants.map(|at| (job.clone(), at)));
    }
    account::lost(due, runs, &told)
}

/// When the first job started an occurrence that fell due after the fault, and when the last of
/// all jobs did.
pub(crate) fn recovery(runs: &[Run], struck: i128) -> Option<(Duration, Duration)> {
    let mut starts: BTreeMap<&str, i128> = BTreeMap::new();
    for run in runs {
        if i128::from(instant_s(&run.scheduled_at)) * SECOND > struck {
            starts.entry(&run.job).or_insert(run.started_ns);
        }
    }
    let since = |at: &i128| Duration::from_nanos(u64::try_from(at - struck).unwrap_or(0));
    let all = starts.len() == jobs().count();
    let (first, last) = (starts.values().min()?, starts.values().max()?);
    all.then(|| (since(first), since(last)))
}

fn seconds(ns: i128) -> i64 {
    i64::try_from(ns / SECOND).expect("a near date")
}
