//! Runs one attempt of a job: starts its process, reads its output, ends it when it has to
//! end, and tells of its end, once.
//!
//! ```text
//!            timeout or stop              kill_at
//!  Running ──────────────────▶ Ending ──────────────▶ Killed
//!     │                  TERM, CONT to     KILL to      │ nobody left, or given up on
//!     │ the leader ends    the group       the group    ▼
//!     └──────────────▶ KILL to the group ───────────▶ drain the output ──▶ Ending is told
//! ```
//!
//! One task owns an attempt and makes all of its transitions (`execution`). Orders reach it
//! through a [`RunningAttempt`], which never blocks; its end is told to a closure of the
//! caller's. Deadlines are counted on the boot clock, suspended time included.
//!
//! The unit that is ended is the *process group*: the job's first process leads it, and what
//! a job leaves behind in it is ended with the job, as systemd's `KillMode=control-group`
//! does, except that after an exit of the job's own accord the rest gets no TERM first.
//! A job that is told to end has its grace for the whole group: a shell that dies of TERM at
//! once does not take a child's time to clean up away.
//!
//! What this does not do: a process that left the group (setsid(2)) lives on, and so does
//! everything if this process is killed or frozen. Both need somebody outside the daemon.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::{Semaphore, watch};

use crate::clock::{Clock, SystemClock};
use crate::scheduler::lease::{AttemptDetail, Output};
use crate::scheduler::time::BootTime;
use crate::scheduler::{Attempt, EndedHow, Ending};

mod descriptors;
mod ending;
mod environment;
mod execution;
mod group;
mod leader;
#[cfg_attr(
    not(feature = "daemon"),
    expect(dead_code, reason = "the sweep at the start is the command line's")
)]
pub(crate) mod leftovers;
mod lines;
mod output;
mod program;
mod spawn;
mod starting;
#[cfg(test)]
mod tests;

use environment::Environment;

/// The log target of what jobs write, line by line, at level info.
pub const OUTPUT_LOG_TARGET: &str = "soloist::output";

/// How many jobs are being spawned at the same time, each on a thread that waits for it. A few
/// would keep the processors busy; the rest are for spawns that hang on a slow file system.
const SPAWN_CONCURRENCY: usize = 32;

/// How long to wait for killed processes to be gone. A process that can be killed is gone
/// within microseconds; one that hangs in the kernel may hang for ever.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What becomes of a job's stdout and stderr. Its stdin is `/dev/null` either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutputMode {
    /// Read, logged line by line, and its ends kept.
    #[default]
    Capture,
    /// Straight to where this process writes: the terminal, for `run-once`. Nothing is kept.
    /// The job is not in the terminal's foreground group: Ctrl-C reaches this process alone,
    /// and under `stty tostop` writing would stop the job (SIGTTOU).
    Inherit,
}

/// Starts attempts. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runner {
    shared: Arc<Shared>,
}

/// What all attempts of a runner have in common.
#[derive(Debug)]
struct Shared {
    environment: Environment,
    /// One permit for each of [`SPAWN_CONCURRENCY`].
    spawns: Arc<Semaphore>,
}

impl Runner {
    /// A runner of the replica of this name. Jobs get this process's environment as it is now,
    /// but for what is about this process itself, then their own. Descriptors that this process
    /// inherited are kept from them.
    pub fn new(replica: String) -> Self {
        Self::with_environment(replica, std::env::vars_os())
    }

    /// As [`Runner::new`], from these variables instead of the process's own.
    pub fn with_environment(
        replica: String,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        descriptors::keep_from_children();
        Self {
            shared: Arc::new(Shared {
                environment: Environment::passing_on(replica, variables),
                spawns: Arc::new(Semaphore::new(SPAWN_CONCURRENCY)),
            }),
        }
    }

    /// Starts an attempt, without waiting for it to have started: that it couldn't be is an
    /// [`Ending`] as well. `on_end` is called once, when nothing of it runs any more, on the
    /// task that watched it, so it must not block.
    ///
    /// Must be called on a tokio runtime with I/O enabled. If that runtime is shut down, what
    /// runs is killed and `on_end` is not called.
    pub fn start(
        &self,
        attempt: Attempt,
        output: OutputMode,
        on_end: impl FnOnce(Ending) + Send + 'static,
    ) -> RunningAttempt {
        let (orders, received) = watch::channel(None);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let run = execution::run(attempt, output, shared, received);
            // An attempt whose end is never told would keep its lease for ever. Unwinding has
            // killed its group.
            let ended = AssertUnwindSafe(run).catch_unwind().await;
            on_end(ended.unwrap_or_else(|_| runner_failed()));
        });
        RunningAttempt { orders }
    }
}

fn runner_failed() -> Ending {
    Ending {
        how: EndedHow::Failed,
        detail: AttemptDetail::reason("killed, as the runner itself failed: its log says how"),
        output: Output::default(),
    }
}

/// Gives orders to a running attempt; they never block, and are in vain once it has ended.
/// Dropping it changes nothing: the attempt runs on.
#[derive(Clone, Debug)]
pub struct RunningAttempt {
    /// By when it must be dead; none while it may run.
    orders: watch::Sender<Option<BootTime>>,
}

impl RunningAttempt {
    /// Has it ended: TERM now, KILL after `grace`, counted from this call. A further stop can
    /// shorten the grace, never lengthen it. With a grace of zero it is killed without TERM.
    pub fn stop(&self, grace: Duration) {
        let kill_at = SystemClock.boot() + grace;
        self.orders.send_modify(|standing| {
            *standing = Some(standing.map_or(kill_at, |first| first.min(kill_at)));
        });
    }

    /// Kills it at once.
    pub fn kill_now(&self) {
        self.stop(Duration::ZERO);
    }
}
