//! What an earlier life of this replica left running on this host, found and ended before
//! anything new starts.
//!
//! Every process of a job carries `SOLOIST_RUN_ID` and `SOLOIST_REPLICA` in its environment,
//! and so does what it starts. A *leftover* of a replica carries its name and has no living
//! guardian above it: whoever watched over it is dead, and nobody holds its deadline. So is
//! whatever descends from a leftover, and what is left of its session or process group, even
//! where the environment was wiped ([`census`] says precisely who).
//!
//! A replica of the same name that is alive on this host is never touched: its guardian stands
//! above its jobs.
//!
//! Leftovers are killed at once where no grace is given. They run without a lease, and somebody
//! else may be running their job already: each moment of grace is one in which two copies live.
//!
//! ```text
//!            ┌── new ones found ──┐
//!            ▼                    │
//!   look ─▶ STOP all ─▶ look again ─▶ KILL all ─▶ verified gone ─▶ look again ─▶ nobody left
//! ```
//!
//! They are stopped before they are killed because a process that was found by its kin can't be
//! found any more once the kin is dead.
//!
//! Nothing here trusts a pid: see [`process`] for how a process is told from the one that got
//! its number after it. Nothing here prints or logs.

use std::io;
use std::time::Duration;

use crate::scheduler::lease::RunId;

mod census;
mod ending;
mod process;
#[cfg(test)]
mod tests;

use census::Whose;
use process::Process;

/// How long a sweep may take beside the grace: a kill that takes effect at all does so within
/// 10 s of it. Reading `/proc` can hang on a process that hangs in the kernel.
const SWEEP_LIMIT: Duration = Duration::from_secs(30);

/// A process that nobody watches over.
#[derive(Clone, Debug)]
pub(crate) struct Leftover {
    /// Its number, for people: it is never signalled by it.
    pub(crate) pid: u32,
    /// The attempt that it belongs to, as its environment or its kin's has it.
    pub(crate) run_id: String,
    /// The job of that attempt; empty where the environment doesn't say.
    pub(crate) job: String,
    /// The name of its program, cut by the kernel to 15 bytes.
    pub(crate) command: String,
    process: Process,
}

/// What a sweep did.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Those that are gone now.
    pub(crate) ended: Vec<Leftover>,
    /// Those that would not die, and why.
    pub(crate) survivors: Vec<(Leftover, String)>,
    /// Those that were left alone, as it can't be seen who is above them.
    pub(crate) undecided: Vec<Leftover>,
    /// What could not be looked at, and why.
    pub(crate) unseen: Option<String>,
}

/// Why nothing could be found out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SweepError {
    #[error("failed to look through /proc: {0}; mount it (`mount -t proc proc /proc`)")]
    NoProc(#[source] io::Error),
    #[error(
        "/proc shows the processes of another PID namespace; mount this one's \
         (`mount -t proc proc /proc`, or `unshare --mount-proc`)"
    )]
    OtherNamespace,
    #[error(
        "looking through /proc and ending what was found took longer than {0:?}; a process that \
         hangs in the kernel can cause that (state D in `ps`)"
    )]
    TooLong(Duration),
    #[error("the sweep itself failed: {0}")]
    Failed(String),
}

/// Ends the leftovers of a replica and makes sure that they are gone. With a grace they get
/// TERM first; with none they are killed at once. Those that survive KILL for 10 s are in the
/// report, and it is for the caller to say so loudly: they hang in the kernel.
pub(crate) async fn end_all(replica: &str, grace: Duration) -> Result<Report, SweepError> {
    sweep(Whose::Replica(replica.to_owned()), grace).await
}

/// Kills every process of an attempt, whoever is above it, and makes sure that they are gone.
pub(crate) async fn end_run(run_id: &RunId) -> Result<Report, SweepError> {
    sweep(Whose::Run(run_id.to_string()), Duration::ZERO).await
}

async fn sweep(whose: Whose, grace: Duration) -> Result<Report, SweepError> {
    let (done, swept) = tokio::sync::oneshot::channel();
    // Where the runtime panics for want of a thread, this says so.
    let thread = std::thread::Builder::new().name("sweep".to_owned());
    thread
        .spawn(move || done.send(ending::end(&whose, grace)))
        .map_err(|error| SweepError::Failed(error.to_string()))?;
    let limit = SWEEP_LIMIT + grace;
    match tokio::time::timeout(limit, swept).await {
        Ok(Ok(swept)) => swept,
        Ok(Err(_)) => Err(SweepError::Failed("its thread panicked".to_owned())),
        Err(_) => Err(SweepError::TooLong(limit)),
    }
}
