//! Fleets of real replicas while real faults strike the Redis under them: one server, a master
//! under Sentinels, a cluster, a quorum. Each scenario judges itself; at the end all are printed as a table.
//!
//! They mostly wait, so several run at a time, more than there are cores: hence a harness that may
//! be told so. It knows the arguments of the usual one.
//!
//! Must never: pass a scenario whose fault did nothing.

mod cluster;
mod connections;
mod data;
mod figures;
mod quorum;
mod report;
mod scene;
mod sentinel;
mod single;
mod table;

use libtest_mimic::{Arguments, Trial};

/// How many at a time. Each has three replicas, up to nine servers, and seven starts a second.
const AT_A_TIME: usize = 4;

/// A fault in a deployment.
struct Scenario {
    /// What is held: the test's name.
    law: &'static str,
    deployment: &'static str,
    /// In the words of the table.
    fault: &'static str,
    run: fn(&'static Scenario),
}

/// The longest first, and those of a quorum as far apart as can be: they take one after the other.
fn in_turn(all: &[&'static Scenario]) -> Vec<&'static Scenario> {
    let longest_first = all.iter().rev().copied();
    let (of_quorum, mut others): (Vec<_>, Vec<_>) =
        longest_first.partition(|scenario| quorum::is_of_quorum(scenario));
    let apart = others.len().div_ceil(of_quorum.len().max(1));
    for (turn, scenario) in of_quorum.into_iter().enumerate() {
        others.insert(turn * (apart + 1), scenario);
    }
    others
}

fn main() {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let all: Vec<&'static Scenario> = [
        single::ALL,
        data::ALL,
        connections::ALL,
        sentinel::ALL,
        cluster::ALL,
        quorum::ALL,
    ]
    .into_iter()
    .flatten()
    .collect();
    let trials = in_turn(&all).into_iter().map(|scenario| {
        Trial::test(scenario.law, move || {
            (scenario.run)(scenario);
            Ok(())
        })
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    report::print(&all);
    conclusion.exit();
}
