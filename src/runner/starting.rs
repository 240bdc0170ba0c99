//! From the order to start an attempt to its first process.
//!
//! Everything that could fail for want of descriptors is done before the spawn, so that once
//! a job runs it is watched, and can be stopped. That is why there is a timer even where there
//! is no timeout: the grace of a stop must not depend on what is left by then.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;
use tokio::task::JoinError;

use super::ending::{Exit, SpawnError, SpawnErrorKind};
use super::leader::Leader;
use super::output::{OutputReader, Writers};
use super::spawn::{explain, program_name, spawn};
use super::{KILL_LIMIT, OutputMode, Shared};
use crate::clock::BootTimer;
use crate::scheduler::Attempt;
use crate::scheduler::time::BootTime;

/// A job that runs, and what it takes to watch it.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) leader: Leader,
    pub(super) output: OutputReader,
    pub(super) timer: BootTimer,
}

/// Orders to end, by an instant.
pub(super) type Orders = watch::Receiver<Option<BootTime>>;

/// The next order, or nothing for ever: once nobody is left to give one, the attempt runs on.
/// Cancel safe.
pub(super) async fn next_order(orders: &mut Orders) -> BootTime {
    loop {
        if orders.changed().await.is_err() {
            return std::future::pending().await;
        }
        if let Some(kill_at) = *orders.borrow_and_update() {
            return kill_at;
        }
    }
}

/// Starts the process, when it is its turn. An order to stop that comes before then is obeyed
/// by not starting it; one that comes during the spawn is left standing in `orders`.
pub(super) async fn start(
    attempt: &Attempt,
    output: OutputMode,
    shared: &Arc<Shared>,
    orders: &mut Orders,
) -> Result<Started, Exit> {
    let turn = tokio::select! {
        biased;
        _ = next_order(orders) => return Err(Exit::Withdrawn),
        // Never closed.
        turn = Arc::clone(&shared.spawns).acquire_owned() => turn,
    };
    let program = program_name(&attempt.job.command.program);
    let (mut timer, (output, writers)) = prepare(attempt, output, shared.environment.replica())
        .map_err(|error| Exit::NotStarted(explain(&error, program, program)))?;
    let given_up = Arc::new(AtomicBool::new(false));
    let spawning = {
        let (attempt, shared) = (attempt.clone(), Arc::clone(shared));
        let given_up = Arc::clone(&given_up);
        // Off the event loop: an executable on a file system that hangs would hang it too.
        tokio::task::spawn_blocking(move || {
            let _turn = turn;
            spawn(&attempt, &shared.environment, writers, &given_up)
        })
    };
    let leader = tokio::select! {
        biased;
        spawned = spawning => spawned.unwrap_or_else(|error| Err(thread_failed(program, &error)))?,
        () = given_up_on(orders, &mut timer) => {
            given_up.store(true, Ordering::Release);
            warn_of_a_hanging_start(attempt, shared.environment.replica());
            return Err(Exit::Withdrawn);
        }
    };
    Ok(Started {
        leader,
        output,
        timer,
    })
}

fn thread_failed(program: &str, error: &JoinError) -> Exit {
    let why = format!("the thread that was to start it failed: {error}");
    Exit::NotStarted(SpawnError::new(SpawnErrorKind::Other, program, why))
}

fn warn_of_a_hanging_start(attempt: &Attempt, replica: &str) {
    tracing::error!(
        job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
        attempt = attempt.number, token = attempt.token.get(), replica,
        "the start of a job hangs in the kernel: if it ever comes about, the job is killed at once"
    );
}

fn prepare(
    attempt: &Attempt,
    output: OutputMode,
    replica: &Arc<str>,
) -> io::Result<(BootTimer, (OutputReader, Option<Writers>))> {
    Ok((
        BootTimer::new()?,
        OutputReader::open(attempt, output, replica)?,
    ))
}

/// Completes when an order to end has been standing for so long that a process would have been
/// given up on. Before that the spawn is waited for: an attempt that may come to run must not
/// be told to have ended.
async fn given_up_on(orders: &mut Orders, timer: &mut BootTimer) {
    let mut give_up_at = None;
    loop {
        tokio::select! {
            biased;
            kill_at = next_order(orders) => give_up_at = Some(kill_at + KILL_LIMIT),
            () = timer.sleep_until(give_up_at) => return,
        }
    }
}
