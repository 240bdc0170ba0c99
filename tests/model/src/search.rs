//! Searches a model to the end of its bound, breadth first and on one thread, so that the same
//! states are counted each time and a counterexample is a shortest one.
//!
//! Must never: call a search finished that was cut.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Path};

/// The states on a way, each with the action that follows.
pub type Trace<M> = Vec<(<M as Model>::State, Option<<M as Model>::Action>)>;

/// What a search has found.
pub struct Found<M: Model> {
    /// Different states.
    pub states: usize,
    /// The longest of the shortest ways to a state, in steps.
    pub depth: usize,
    /// How long it took.
    pub took: Duration,
    /// A shortest way to a state that breaks a law.
    pub breach: Option<Trace<M>>,
    /// What never came about.
    pub unseen: Vec<&'static str>,
}

impl<M: Model> Found<M> {
    /// The steps to the breach.
    pub fn steps(&self) -> Option<usize> {
        self.breach.as_ref().map(|trace| trace.len() - 1)
    }
}

/// Searches all states of a model. `laws` is the property that has to hold, `sights` are those
/// that have to come about.
pub fn search<M>(model: &M, laws: &'static str, sights: &[&'static str]) -> Found<M>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + PartialEq + std::hash::Hash + Send + Sync,
    M::Action: Clone + PartialEq,
{
    let began = Instant::now();
    let checker = model
        .clone()
        .checker()
        .finish_when(HasDiscoveries::AllOf(BTreeSet::from([laws])))
        .spawn_bfs()
        .join();
    let breach = checker
        .discovery(laws)
        .map(|path| shortest(model, laws, path));
    let found = checker.discoveries();
    let unseen = sights.iter().filter(|name| !found.contains_key(*name));
    Found {
        states: checker.unique_state_count(),
        depth: checker.max_depth() - 1,
        took: began.elapsed(),
        breach,
        unseen: unseen.copied().collect(),
    }
}

/// The checker goes on for a while after the first breach, and keeps the last one: asks for shorter
/// ones until there is none.
fn shortest<M>(model: &M, laws: &'static str, mut path: Path<M::State, M::Action>) -> Trace<M>
where
    M: Model + Clone + Send + Sync + 'static,
    M::State: Clone + PartialEq + std::hash::Hash + Send + Sync,
    M::Action: Clone + PartialEq,
{
    loop {
        let trace = path.into_vec();
        // A state after so many steps is at this depth plus one, and looked at below it alone.
        let checker = model
            .clone()
            .checker()
            .target_max_depth(trace.len())
            .finish_when(HasDiscoveries::AllOf(BTreeSet::from([laws])))
            .spawn_bfs()
            .join();
        match checker.discovery(laws) {
            Some(shorter) => path = shorter,
            None => return trace,
        }
    }
}
