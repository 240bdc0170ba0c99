//! Runs attempts of jobs: has a keeper made for each, reads its output, passes orders on, and
//! tells of its end, once.
//!
//! ```text
//!   Runner ── start ──▶ execution (a task each) ◀─ wire ─▶ keeper ── fork ──▶ job
//!     │                     │        ▲                        ▲                │
//!     └─ guard: the guardian│        └──── stdout, stderr ────┼────────────────┘
//!        is there, always ──┼─────────────────────────────────┘ forked by the guardian
//!                           ▼
//!                      Ending is told
//! ```
//!
//! One task owns an attempt (`execution`). Orders reach it through a [`RunningAttempt`], which
//! never blocks; its end is told to a closure of the caller's. How a job is ended, and that
//! nothing of it is left, is the keeper's to see to: [`crate::guardian`].

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Semaphore;

use crate::guardian;
use crate::guardian::wire::Deadline;
use crate::scheduler::lease::{AttemptDetail, Output};
use crate::scheduler::{Attempt, EndedHow, Ending, Guard};

mod budget;
mod descriptors;
mod ending;
mod environment;
mod execution;
mod guard;
mod http_call;
mod keeper;
mod launch;
#[cfg_attr(
    not(feature = "daemon"),
    expect(dead_code, reason = "the sweep at the start is the command line's")
)]
pub(crate) mod leftovers;
mod lines;
mod orders;
mod output;

use environment::Environment;
use guard::Guardian;
use orders::OrderSender;

/// The log target of what jobs write, line by line, at level info.
pub const OUTPUT_LOG_TARGET: &str = "soloist::output";

/// How many jobs are being started at the same time. A few would keep the processors busy; the
/// rest are for starts that hang on a slow file system.
const START_CONCURRENCY: usize = 32;

/// What becomes of a job's stdout and stderr. Its stdin is `/dev/null`, but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OutputMode {
    /// Read, logged line by line, and its ends kept.
    #[default]
    Capture,
    /// Straight to where this process writes: the terminal, for `run-once`. Nothing is kept.
    /// The job is in a session of its own: Ctrl-C reaches this process alone.
    Inherit,
    /// The same, and it reads what this process would: for `lock`.
    InheritAll,
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
    /// One permit for each of [`START_CONCURRENCY`].
    starts: Arc<Semaphore>,
    guardian: Arc<Guardian>,
    /// Where attempts get cgroups, if anywhere.
    cgroups: Option<PathBuf>,
    /// The soft limit of open files that this process was started with.
    open_files: Option<u64>,
}

impl Runner {
    /// A runner of the replica of this name. Of this process's environment as it is now, jobs
    /// get what describes the host and its user, then their own. Descriptors that this process
    /// inherited are kept from them.
    ///
    /// This process's program is executed again as the guardian, so its `main` has to begin
    /// with [`crate::guardian::run_if_guardian`].
    ///
    /// # Panics
    /// In a guardian, if `main` did not.
    pub fn new(replica: String) -> Self {
        // Also the right program when the file was replaced since, or removed.
        Self::guarded_by("/proc/self/exe".into(), replica, std::env::vars_os())
    }

    /// A runner of what is no job: it gets the whole of this process's environment, and of what
    /// jobs are told its token and run id.
    pub fn of_commands(name: String) -> Self {
        let environment = Environment::whole(name, std::env::vars_os());
        Self::in_surroundings("/proc/self/exe".into(), environment)
    }

    /// As [`Runner::new`], with `program` executed as the guardian, and these variables instead
    /// of the process's own.
    pub fn guarded_by(
        program: PathBuf,
        replica: String,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self::in_surroundings(program, Environment::passing_on(replica, variables))
    }

    fn in_surroundings(program: PathBuf, environment: Environment) -> Self {
        descriptors::keep_from_children();
        let open_files = descriptors::raise_limit();
        // Before the guardian is there, which is to be where this process is.
        let cgroups = guardian::prepare_cgroups();
        Self {
            shared: Arc::new(Shared {
                environment,
                starts: Arc::new(Semaphore::new(START_CONCURRENCY)),
                guardian: Guardian::new(program),
                cgroups,
                open_files,
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
        let (orders, received) = orders::channel(deadline(attempt.guard));
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            let run = execution::run(attempt, output, shared, received);
            // An attempt whose end is never told would keep its lease for ever. Unwinding has
            // closed its keeper's socket, which kills what ran.
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

fn deadline(guard: Guard) -> Deadline {
    Deadline::new(guard.stop_at, guard.kill_at)
}

/// Gives orders to a running attempt; they never block, and are in vain once it has ended.
/// Dropping it changes nothing: the attempt runs on.
#[derive(Clone, Debug)]
pub struct RunningAttempt {
    orders: OrderSender,
}

impl RunningAttempt {
    /// Has it ended: TERM now, KILL after `grace`, counted from this call. A further stop can
    /// shorten the grace, never lengthen it. With a grace of zero it is killed without TERM.
    pub fn stop(&self, grace: Duration) {
        self.orders.stop(grace);
    }

    /// Kills it at once.
    pub fn kill_now(&self) {
        self.stop(Duration::ZERO);
    }

    /// Passes a signal on to its first process, by its number; before that is the program that it
    /// is to be, it waits for that.
    pub fn pass_on(&self, signal: i32) {
        self.orders.signal(signal);
    }

    /// Its lease was renewed: it may run until then.
    pub fn guard(&self, guard: Guard) {
        self.orders.extend(deadline(guard));
    }
}
