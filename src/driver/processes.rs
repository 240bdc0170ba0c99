//! Attempts as processes of this host, by the runner.
//!
//! Must never: do what the runner does.

use std::collections::HashMap;
use std::time::Duration;

use super::attempts::{Attempts, OnEnd};
use crate::runner::{OutputMode, Runner, RunningAttempt};
use crate::scheduler::lease::RunId;
use crate::scheduler::{Attempt, Guard, StopReason};

/// Runs each attempt as a process with all that it forks.
#[derive(Debug)]
pub struct Processes {
    runner: Runner,
    output: OutputMode,
    attempts: HashMap<RunId, RunningAttempt>,
}

impl Processes {
    /// Those of the replica of this name. What they write is kept, or goes where this process
    /// writes.
    pub fn new(replica: String, output: OutputMode) -> Self {
        Self {
            runner: Runner::new(replica),
            output,
            attempts: HashMap::new(),
        }
    }
}

impl Attempts for Processes {
    fn start(&mut self, attempt: Attempt, on_end: OnEnd) {
        let run_id = attempt.run_id;
        let running = self.runner.start(attempt, self.output, on_end);
        self.attempts.insert(run_id, running);
    }

    fn stop(&mut self, run_id: RunId, _: StopReason, grace: Duration) {
        if let Some(attempt) = self.attempts.get(&run_id) {
            attempt.stop(grace);
        }
    }

    fn guard(&mut self, run_id: RunId, guard: Guard) {
        if let Some(attempt) = self.attempts.get(&run_id) {
            attempt.guard(guard);
        }
    }

    fn forget(&mut self, run_id: RunId) {
        self.attempts.remove(&run_id);
    }

    fn kill_all(&mut self) {
        self.attempts.values().for_each(RunningAttempt::kill_now);
    }
}
