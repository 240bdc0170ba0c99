//! What replicas count, held against what really happened to them: real processes, a real Redis,
//! and Prometheus' own tools to read the pages.
//!
//! Each scenario says which series it moved; at the end everything that alerts, dashboard and
//! manual name must have been moved by one.
//!
//! Must never: pass a page that Prometheus would complain about.

mod deployed;
mod page;
mod promtool;
mod replica;
mod scenarios;
mod served;
mod standing;

use libtest_mimic::{Arguments, Trial};

/// They mostly wait.
const AT_A_TIME: usize = 8;

type Law = (&'static str, fn());

const LAWS: [&[Law]; 4] = [scenarios::ALL, served::ALL, standing::ALL, deployed::ALL];

fn main() {
    soloist::guardian::run_if_guardian();
    if let Some(name) = replica::asked_for() {
        return replica::run(&name);
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(AT_A_TIME);
    let trials = LAWS.into_iter().flatten().map(|(law, hold)| {
        Trial::test(*law, move || {
            hold();
            Ok(())
        })
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
