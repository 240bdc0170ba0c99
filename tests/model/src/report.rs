//! Runs scenarios, and says what came of them as lines of a table and as traces.
//!
//! Must never: print a verdict that was not found.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::locks;
use crate::protocol::setup::{OnCrash, Setup};
use crate::protocol::{self, LAWS, sight_names};
use crate::scenarios::{Scenario, Subject, Verdict};
use crate::search::{Found, search};

/// The head of the table.
pub const HEAD: &str = "\
| scenario | what | bound | states | depth | verdict | seconds |
|---|---|---|---:|---:|---|---:|";

/// What came of a scenario.
#[derive(Clone, Debug)]
pub struct Report {
    /// Of which.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Its bound, in words.
    pub bound: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Whether that had to come of it.
    pub as_expected: bool,
    /// Different states.
    pub states: usize,
    /// Of the search, in steps.
    pub depth: usize,
    /// The steps to the breach, where there is one.
    pub steps: Option<usize>,
    /// The trace to it, in words.
    pub trace: Vec<String>,
    /// What never came about.
    pub unseen: Vec<&'static str>,
    /// How long the search took.
    pub took: Duration,
}

/// Runs a scenario.
pub fn run(scenario: &Scenario) -> Report {
    match &scenario.subject {
        Subject::Protocol(model) => {
            let found = search(model, LAWS, &sight_names(model));
            let trace = found
                .breach
                .as_ref()
                .map(|path| protocol::trace(model, path));
            report(scenario, bound(&model.setup), &found, trace)
        }
        Subject::Lock(model) => {
            let found = search(model, locks::LAW, &[locks::SIGHT]);
            let trace = found.breach.as_ref().map(|path| locks::trace(model, path));
            let bound = format!("{} clients, {} ticks", locks::CLIENTS, model.ticks);
            report(scenario, bound, &found, trace)
        }
    }
}

fn report<M: stateright::Model>(
    scenario: &Scenario,
    bound: String,
    found: &Found<M>,
    trace: Option<Vec<String>>,
) -> Report {
    let verdict = match found.breach {
        Some(_) => Verdict::Falls,
        None => Verdict::Holds,
    };
    let idle = verdict == Verdict::Holds && !found.unseen.is_empty();
    Report {
        name: scenario.name,
        title: scenario.title,
        bound,
        verdict,
        as_expected: verdict == scenario.expected && !idle,
        states: found.states,
        depth: found.depth,
        steps: found.steps(),
        trace: trace.unwrap_or_default(),
        unseen: found.unseen.clone(),
        took: found.took,
    }
}

/// Runs scenarios, `at_once` at a time. The reports are in their order.
pub fn run_all(scenarios: &[Scenario], at_once: usize) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(scenario) = scenarios.get(at) else {
                return;
            };
            let report = run(scenario);
            let mut reports = reports.lock().unwrap_or_else(PoisonError::into_inner);
            reports.push((at, report));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(work);
        }
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.sort_by_key(|(at, _)| *at);
    reports.into_iter().map(|(_, report)| report).collect()
}

impl Report {
    /// Its line of the table.
    pub fn line(&self) -> String {
        let seconds = self.took.as_secs_f32();
        format!("{} {seconds:.1} |", self.line_without_time())
    }

    /// The same without what differs from run to run.
    pub fn line_without_time(&self) -> String {
        let verdict = match (self.verdict, self.steps) {
            (Verdict::Falls, Some(steps)) => format!("falls after {steps} steps"),
            _ => "holds".to_owned(),
        };
        let odd = match (self.as_expected, self.unseen.as_slice()) {
            (true, _) => String::new(),
            (false, []) => " **(not as expected)**".to_owned(),
            (false, unseen) => format!(" **(never seen: {})**", unseen.join(", ")),
        };
        let Self {
            name,
            title,
            bound,
            states,
            depth,
            ..
        } = self;
        format!("| {name} | {title} | {bound} | {states} | {depth} | {verdict}{odd} |")
    }

    /// Its trace, with what it is about.
    pub fn story(&self) -> String {
        let steps = self.steps.unwrap_or_default();
        let lines = self.trace.join("\n");
        format!("{}: {}, {steps} steps\n{lines}\n", self.name, self.title)
    }
}

/// The bound of a scenario in words.
fn bound(setup: &Setup) -> String {
    let budget = &setup.budget;
    let counted = [
        (budget.losses, "lost or late"),
        (budget.copies, "doubled"),
        (budget.crashes, "crash"),
        (budget.wipes, "loss of data"),
        (budget.jumps, "step of the clock"),
        (budget.freezes, "freeze"),
        (budget.pauses, "pause"),
    ];
    let faults = counted.iter().filter(|(count, _)| *count > 0);
    let faults: Vec<String> = faults
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let policy = match setup.on_crash {
        OnCrash::Skip => "skip",
        OnCrash::Rerun => "rerun",
    };
    let (replicas, occurrences, ticks) = (setup.replicas, setup.occurrences, setup.ticks);
    let size = format!("{replicas} replicas, {occurrences} occ., {ticks} ticks, {policy}");
    match faults.as_slice() {
        [] => size,
        faults => format!("{size}; {}", faults.join(", ")),
    }
}
