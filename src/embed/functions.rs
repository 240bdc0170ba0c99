//! Attempts as functions of this program: a task each.
//!
//! Must never: wait for a function.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::watch;

use super::attempt::{self, Function, Setting};
use super::context::LeaseInUse;
use super::course::Limits;
use crate::clock::Clock;
use crate::driver::{Attempts, OnEnd};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{AttemptDetail, Output, RunId};
use crate::scheduler::{Attempt, EndedHow, Ending, Guard, StopReason};

/// Runs the functions of jobs.
pub(super) struct Functions {
    functions: HashMap<JobName, Function>,
    replica: Arc<str>,
    clock: Arc<dyn Clock>,
    running: HashMap<RunId, Running>,
}

struct Running {
    lease: Arc<LeaseInUse>,
    limits: watch::Sender<Limits>,
}

impl Functions {
    pub(super) fn new(
        functions: HashMap<JobName, Function>,
        replica: &str,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            functions,
            replica: replica.into(),
            clock,
            running: HashMap::new(),
        }
    }

    fn stop_at_latest(&self, running: &Running, reason: StopReason, grace: Duration) {
        // At once, and not by way of the task that watches: the runtime may have no thread for it.
        running.lease.cancel(reason.into());
        let at = self.clock.boot() + grace;
        running.limits.send_modify(|limits| {
            limits.kill_at = Some(limits.kill_at.map_or(at, |before| before.min(at)));
        });
    }
}

impl Attempts for Functions {
    fn start(&mut self, attempt: Attempt, on_end: OnEnd) {
        let run_id = attempt.run_id;
        let Some(function) = self.functions.get(&attempt.job.name).cloned() else {
            // Each job of the table came with one.
            on_end(failed("no function of this program has the job's name"));
            return;
        };
        let lease = Arc::new(LeaseInUse::new(Arc::clone(&self.clock), attempt.guard));
        let limits = watch::Sender::new(Limits {
            guard: attempt.guard,
            kill_at: None,
        });
        let setting = Setting {
            attempt,
            replica: Arc::clone(&self.replica),
            lease: Arc::clone(&lease),
            limits: limits.subscribe(),
            clock: Arc::clone(&self.clock),
        };
        self.running.insert(run_id, Running { lease, limits });
        tokio::spawn(async move {
            // An attempt whose end is never told would keep its lease for ever.
            let run = attempt::run(function, setting);
            let ended = AssertUnwindSafe(run).catch_unwind().await;
            on_end(ended.unwrap_or_else(|_| failed("whoever watched over it failed")));
        });
    }

    fn stop(&mut self, run_id: RunId, reason: StopReason, grace: Duration) {
        if let Some(running) = self.running.get(&run_id) {
            self.stop_at_latest(running, reason, grace);
        }
    }

    fn guard(&mut self, run_id: RunId, guard: Guard) {
        if let Some(running) = self.running.get(&run_id) {
            running.lease.trust(guard);
            running.limits.send_modify(|limits| limits.guard = guard);
        }
    }

    fn forget(&mut self, run_id: RunId) {
        self.running.remove(&run_id);
    }

    fn kill_all(&mut self) {
        for running in self.running.values() {
            self.stop_at_latest(running, StopReason::Draining, Duration::ZERO);
        }
    }
}

fn failed(reason: &str) -> Ending {
    Ending {
        how: EndedHow::Failed,
        detail: AttemptDetail::reason(reason),
        output: Output::default(),
    }
}
