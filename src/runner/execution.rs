//! The task that owns one attempt in the daemon, from its start to its end.
//!
//! The keeper decides when the job is stopped and killed; this task passes orders on to it,
//! reads the job's output, and hears of the end. It never waits for the job to read, write or
//! react.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::{Sleep, sleep, timeout};

use super::ending::judge;
use super::keeper::{Keeper, unheard};
use super::launch::{cgroup, launch, program_name};
use super::orders::{Change, Orders};
use super::output::OutputReader;
use super::{OutputMode, Shared, leftovers};
use crate::guardian::wire::{End, Order, Report, Used};
use crate::guardian::{self, Exit, KILL_LIMIT, SpawnError};
use crate::scheduler::lease::Output;
use crate::scheduler::{Attempt, Ending};

/// How long to read on after the job is gone if somebody who got hold of its output otherwise
/// has it open. What the job itself wrote is in the pipe by then, and read within this.
const DRAIN_LIMIT: Duration = Duration::from_millis(250);

/// How often to look whether killed processes are gone.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// How long after the last instant for a KILL a keeper must have told of the end.
const SILENCE_LIMIT: Duration = KILL_LIMIT.saturating_add(Duration::from_secs(2));

/// How long a start may keep others waiting: one that takes longer hangs, as on the program of a
/// dead NFS server.
const TURN_LIMIT: Duration = Duration::from_millis(500);

/// Runs one attempt to its end.
pub(super) async fn run(
    attempt: Attempt,
    output: OutputMode,
    shared: Arc<Shared>,
    mut orders: Orders,
) -> Ending {
    let (end, output) = match start(&attempt, output, &shared, &mut orders).await {
        Ok(execution) => execution.run_to_end().await,
        Err(exit) => (ended(exit), Output::default()),
    };
    let mut ending = judge(&end, &attempt.job.command.success_codes);
    ending.output = output;
    if !end.left_behind.is_empty() {
        tracing::error!(
            job = %attempt.job.name, scheduled_at = %attempt.scheduled_at,
            attempt = attempt.number, token = attempt.token.get(),
            replica = &**shared.environment.replica(), processes = ?end.left_behind,
            "processes of a job survived KILL for {KILL_LIMIT:?}: they hang in the kernel and may yet do \
             something, or they run on as another user (a setuid program), whom this daemon may not \
             signal; without root, a delegated cgroup ends those too"
        );
    }
    ending
}

fn ended(exit: Exit) -> End {
    End {
        exit,
        cut_short: None,
        used: Used::default(),
        left_behind: Vec::new(),
    }
}

/// Has a keeper made, when it is the attempt's turn, and launches the job. An order to stop
/// that comes before the launch is obeyed by not launching.
async fn start<'a>(
    attempt: &'a Attempt,
    mode: OutputMode,
    shared: &'a Arc<Shared>,
    orders: &mut Orders,
) -> Result<Execution<'a>, Exit> {
    let program = program_name(&attempt.job.command.program);
    let getting_ready = async {
        // Never closed.
        let turn = Arc::clone(&shared.starts).acquire_owned().await.ok();
        let (output, streams) = OutputReader::open(attempt, mode, shared.environment.replica())
            .map_err(|error| Exit::NotStarted(SpawnError::explain(&error, program, program)))?;
        let keeper = Keeper::ask_for(&shared.guardian, &streams, program).await?;
        Ok((turn, output, keeper))
    };
    let (turn, output, mut keeper) = tokio::select! {
        biased;
        () = orders.stopped() => return Err(Exit::Withdrawn),
        ready = getting_ready => ready?,
    };
    let silence = attempt.job.timeout.map(|timeout| {
        let grace = attempt.job.kill_grace;
        Box::pin(sleep(
            timeout.saturating_add(grace).saturating_add(SILENCE_LIMIT),
        ))
    });
    let launch = launch(attempt, shared, orders.deadline());
    keeper
        .launch(&launch)
        .await
        .map_err(|error| unheard(&error, program))?;
    Ok(Execution {
        attempt,
        shared,
        keeper,
        output,
        orders: orders.clone(),
        turn: turn.map(Turn::begin),
        silence,
    })
}

struct Execution<'a> {
    attempt: &'a Attempt,
    shared: &'a Shared,
    keeper: Keeper,
    output: OutputReader,
    orders: Orders,
    turn: Option<Turn>,
    /// Passes when the keeper should have told of the end, once it has to.
    silence: Option<Pin<Box<Sleep>>>,
}

/// Kept until the job has started, so that a few starts at a time keep the processors busy; but
/// not for longer than [`TURN_LIMIT`].
#[derive(Debug)]
struct Turn {
    /// Its end is told by dropping it.
    _ends: oneshot::Sender<()>,
}

impl Turn {
    fn begin(permit: OwnedSemaphorePermit) -> Self {
        let (_ends, ended) = oneshot::channel();
        tokio::spawn(async move {
            let _permit = permit;
            let _ = timeout(TURN_LIMIT, ended).await;
        });
        Self { _ends }
    }
}

/// Something that the task waited for.
enum Event {
    Reported(Option<Report>),
    Ordered(Change),
    OutputRead,
    SilentForTooLong,
}

impl Execution<'_> {
    async fn run_to_end(mut self) -> (End, Output) {
        let end = loop {
            match self.next().await {
                Event::Reported(Some(Report::Ended(end))) => break end,
                Event::Reported(Some(Report::Started)) => self.turn = None,
                Event::Reported(Some(Report::Ready)) | Event::OutputRead => {}
                Event::Reported(None) => break self.keeper_is_gone("its keeper was killed").await,
                Event::SilentForTooLong => {
                    break self.keeper_is_gone("its keeper does not answer").await;
                }
                Event::Ordered(change) => self.pass_on(change),
            }
        };
        self.drain().await;
        (end, self.output.finish())
    }

    async fn next(&mut self) -> Event {
        let silence = async {
            match &mut self.silence {
                Some(silence) => silence.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            report = self.keeper.report() => Event::Reported(report),
            change = self.orders.changed() => Event::Ordered(change),
            () = silence => Event::SilentForTooLong,
            // Last: a job that floods it always has some.
            () = self.output.read() => Event::OutputRead,
        }
    }

    fn pass_on(&mut self, change: Change) {
        match change {
            Change::Extend(deadline) => self.keeper.order(Order::Extend(deadline)),
            Change::Signal(number) => self.keeper.order(Order::Signal { number }),
            Change::Stop { kill_at, grace } => {
                let kill_at = kill_at.as_duration();
                self.keeper.order(Order::Stop { kill_at });
                // Never later than at the stop before: a grace is never lengthened.
                self.silence = Some(Box::pin(sleep(grace + SILENCE_LIMIT)));
            }
        }
    }

    /// Without a keeper nobody says when nothing is left. What there is, the guardian kills;
    /// what can be found by the id in its environment is ended here, and waited for.
    async fn keeper_is_gone(&self, cause: &str) -> End {
        let Attempt {
            job,
            run_id,
            scheduled_at,
            ..
        } = self.attempt;
        tracing::error!(
            job = %job.name, %scheduled_at, attempt = self.attempt.number,
            token = self.attempt.token.get(), replica = &**self.shared.environment.replica(),
            "{cause}: killing what it kept"
        );
        let unknown = ended(Exit::Unknown {
            cause: format!("{cause}, and the job with it"),
        });
        self.end_cgroup().await;
        match leftovers::end_run(run_id).await {
            Ok(report) => End {
                left_behind: report.survivors.iter().map(|(left, _)| left.pid).collect(),
                ..unknown
            },
            Err(error) => {
                tracing::error!(job = %job.name, %run_id, "processes of a job may run on: {error}");
                unknown
            }
        }
    }

    /// Whoever has hidden from everything else is still in there.
    async fn end_cgroup(&self) {
        let Some((base, name)) = cgroup(self.attempt, self.shared) else {
            return;
        };
        let ended = async {
            while !guardian::end_cgroup(&base, &name) {
                sleep(LOOK_INTERVAL).await;
            }
        };
        // What hangs in the kernel is found, and told, by the sweep that follows.
        let _ = timeout(KILL_LIMIT, ended).await;
    }

    /// Reads what is left to read.
    async fn drain(&mut self) {
        let to_the_end = async {
            while !self.output.has_ended() {
                self.output.read().await;
            }
        };
        let _ = timeout(DRAIN_LIMIT, to_the_end).await;
    }
}
