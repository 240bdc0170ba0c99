//! What `soloist run` does before anything else: ends what an earlier life of this replica left
//! running on this host, and says so.
//!
//! Nothing of it keeps the daemon from starting. A process that can't be killed hangs in the
//! kernel, where it writes nothing; a daemon that waited for it would let every other job wait.

use std::time::Duration;

use tracing::{debug, error, warn};

use crate::runner::leftovers::{self, Report};

/// Leftovers run without a lease, and their job may run elsewhere by now: no grace.
const GRACE: Duration = Duration::ZERO;

/// Ends the leftovers of the replica of this name.
pub(super) async fn end(replica: &str) {
    match leftovers::end_all(replica, GRACE).await {
        Ok(report) => tell(replica, &report),
        Err(cause) => warn!(
            %replica,
            "what an earlier life of this replica left running, if anything, runs on: {cause}"
        ),
    }
}

fn tell(replica: &str, report: &Report) {
    if let Some(cause) = &report.unseen {
        warn!(%replica, "{cause}");
    }
    for leftover in &report.ended {
        warn!(
            %replica,
            job = %leftover.job,
            run_id = %leftover.run_id,
            pid = leftover.pid,
            command = %leftover.command,
            "killed a process that an earlier life of this replica left running"
        );
    }
    for leftover in &report.undecided {
        warn!(
            %replica,
            job = %leftover.job,
            run_id = %leftover.run_id,
            pid = leftover.pid,
            command = %leftover.command,
            "left a process alone that may be left over: it can't be seen who is above it; \
             let this user see all processes (`hidepid` of /proc), or kill it by hand"
        );
    }
    for (leftover, cause) in &report.survivors {
        error!(
            %replica,
            job = %leftover.job,
            run_id = %leftover.run_id,
            pid = leftover.pid,
            command = %leftover.command,
            "a process that an earlier life of this replica left running can't be ended, and its \
             job may run beside it: {cause}; a file system that doesn't answer can cause that, \
             and a restart of the host ends it"
        );
    }
    if report.ended.is_empty() && report.survivors.is_empty() && report.undecided.is_empty() {
        debug!(
            %replica,
            "no earlier life of this replica left anything running"
        );
    }
}
