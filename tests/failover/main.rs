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
const AT_A_TIME: usize = 5;

/// A fault in a deployment.
struct Scenario {
    /// What is held: the test's name.
    law: &'static str,
    deployment: &'static str,
    /// In the words of the table.
    fault: &'static str,
    run: fn(&'static Scenario),
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
    // The longest first.
    let trials = all.iter().rev().map(|scenario| {
        let scenario: &'static Scenario = scenario;
        let trial = Trial::test(scenario.law, move || {
            (scenario.run)(scenario);
            Ok(())
        });
        // Each step of a quorum is a question to five servers: beside four other scenarios two cores
        // are too slow for leases of three seconds.
        let alone = quorum::ALL
            .iter()
            .any(|other| std::ptr::eq(other, scenario));
        trial.with_ignored_flag(alone)
    });
    let conclusion = libtest_mimic::run(&arguments, trials.collect());
    report::print(&all);
    conclusion.exit();
}
