//! `soloist lock`: any command under a lease, as flock(1) across hosts.
//!
//! ```text
//!  this process: the lease ─ renewed ─▶ guardian: the command, until the lease allows no more
//! ```
//!
//! Must never: let the command run for longer than the lease is trusted. That is the guardian's to
//! see to, also when this process is killed or stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::args::{Global, LockArgs, OnLost};
use super::settings::Settings;
use super::{Exit, complain, now, run, store};
use crate::clock::{Clock as _, SystemClock};
use crate::daemon::signals::{self, Hangup};
use crate::driver::Request;
use crate::guardian;
use crate::leases::{AcquireError, Acquisition, Holder, Lease, Leases};
use crate::runner::{OutputMode, Runner, RunningAttempt};
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::{FencingToken, LeaseName, RunId};
use crate::scheduler::margins::Margins;
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::{Attempt, EndedHow, Ending, Guard};

/// Told to the command: which names it has, and who holds them. A `lock` below it that wants one of
/// them is let in again.
const NAMES_VARIABLE: &str = "SOLOIST_LOCK";
const HOLDER_VARIABLE: &str = "SOLOIST_LOCK_HOLDER";

/// What a shell adds to the number of the signal that ended a command.
const SIGNALED: i32 = 128;

/// What the command's attempt is called where the runner tells of it.
const ATTEMPT_NAME: &str = "lock";

/// Runs a command under a lease, and ends as it did.
pub(super) fn run(global: &Global, args: &LockArgs) -> Result<Exit, Exit> {
    let (scheduler, _) = Settings::load_for_store(global)?;
    // Before anybody waits for anything.
    find(&args.command)?;
    let runtime = store::runtime()?;
    let exit = runtime.block_on(async {
        let (sender, requests) = mpsc::channel(2);
        signals::listen(Hangup::End, sender).map_err(|cause| {
            let message = format!("failed to listen for signals: {cause}");
            complain(Exit::Failed, &message, None)
        })?;
        let leases = store::open_leases(&scheduler)?;
        let name = format!("{}:{}", run::name_of_host(), std::process::id());
        let leases = Leases::of(leases, Arc::new(SystemClock), &name).await;
        let leases = leases.map_err(|error| store::refused(&error))?;
        let exit = lock(&leases, args, name, requests).await;
        leases.close().await;
        exit
    });
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Whether there is such a program: 127 and 126 where not, as shells, env(1) and timeout(1) have it.
fn find(command: &[String]) -> Result<(), Exit> {
    let program = command.first().map_or("", String::as_str);
    let path = std::env::var_os("PATH").unwrap_or_default();
    guardian::find_program(program, &path).map_err(|error| {
        let code = match error.is_not_found() {
            true => 127,
            false => 126,
        };
        complain(Exit::OfJob(code), &error.to_string(), None)
    })
}

async fn lock(
    leases: &Leases,
    args: &LockArgs,
    name: String,
    mut requests: mpsc::Receiver<Request>,
) -> Result<Exit, Exit> {
    let held = tokio::select! {
        held = acquire(leases, args) => held.map_err(|error| not_acquired(&error, args))?,
        _ = requests.recv() => {
            return Err(complain(Exit::Failed, "stopped while it waited for its lease", None));
        }
    };
    let command = Command {
        margins: Margins::of(args.ttl),
        on_lost: args.on_lost,
        kill_grace: args.kill_grace,
        held,
    };
    command.run(&args.command, name, requests).await
}

/// What is acquired: the names that a `lock` above has already, and the others.
async fn acquire(leases: &Leases, args: &LockArgs) -> Result<Vec<Lease>, AcquireError> {
    let outer = Outer::of_environment();
    let (again, new): (Vec<&LeaseName>, Vec<&LeaseName>) =
        args.names.iter().partition(|name| outer.has(name));
    let begun = SystemClock.boot();
    let left = || {
        let waited = SystemClock.boot().saturating_since(begun);
        args.wait.map(|wait| wait.saturating_sub(waited))
    };
    let mut held = Vec::new();
    if let (false, Some(holder)) = (again.is_empty(), outer.holder) {
        let asked = asked(leases, &again, args).held_by(&holder);
        held.push(within(asked, left()).await?);
    }
    if !new.is_empty() {
        held.push(within(asked(leases, &new, args), left()).await?);
    }
    Ok(held)
}

fn asked(leases: &Leases, names: &[&LeaseName], args: &LockArgs) -> Acquisition {
    let asked = leases
        .all(names.iter().map(|name| name.as_str()))
        .ttl(args.ttl);
    match args.shared {
        true => asked.shared(),
        false => asked,
    }
}

async fn within(asked: Acquisition, wait: Option<Duration>) -> Result<Lease, AcquireError> {
    match wait {
        None => asked.acquire().await,
        Some(Duration::ZERO) => asked.try_acquire().await,
        Some(wait) => asked.acquire_within(wait).await,
    }
}

fn not_acquired(error: &AcquireError, args: &LockArgs) -> Exit {
    let conflict = Exit::OfJob(args.conflict_exit_code);
    match error {
        AcquireError::Store(error) => store::refused(error),
        AcquireError::Busy(_) | AcquireError::TimedOut | AcquireError::Grace { .. } => {
            complain(conflict, &format!("not run: {error}"), None)
        }
        other => complain(Exit::Failed, &format!("not run: {other}"), None),
    }
}

/// A `lock` that this one runs below.
struct Outer {
    names: Vec<LeaseName>,
    holder: Option<Holder>,
}

impl Outer {
    fn of_environment() -> Self {
        let variable = |name| std::env::var(name).ok();
        let names = variable(NAMES_VARIABLE).unwrap_or_default();
        let names = names.split_whitespace();
        Self {
            names: names.filter_map(|name| LeaseName::new(name).ok()).collect(),
            holder: variable(HOLDER_VARIABLE).and_then(|text| Holder::parse(&text)),
        }
    }

    fn has(&self, name: &LeaseName) -> bool {
        self.holder.is_some() && self.names.contains(name)
    }
}

/// A command and what it runs under.
struct Command {
    held: Vec<Lease>,
    margins: Margins,
    on_lost: OnLost,
    kill_grace: Duration,
}

impl Command {
    async fn run(
        mut self,
        argv: &[String],
        name: String,
        mut requests: mpsc::Receiver<Request>,
    ) -> Result<Exit, Exit> {
        let Some(guard) = self.guard() else {
            return Err(complain(
                Exit::Failed,
                "not run: its lease was lost at once",
                None,
            ));
        };
        let (told, mut ended) = oneshot::channel();
        let on_end = move |ending| {
            // Whoever waits for it lives as long as the runtime.
            let _ = told.send(ending);
        };
        let attempt = self.attempt(argv, guard)?;
        let running = Runner::of_commands(name).start(attempt, OutputMode::InheritAll, on_end);
        let mut lost = false;
        let mut stops = 0;
        let ending = loop {
            tokio::select! {
                ending = &mut ended => break ending,
                () = changed(&mut self.held), if !lost => match self.guard() {
                    Some(guard) => running.guard(guard),
                    None => {
                        lost = true;
                        self.stop_lost(&running);
                    }
                },
                request = requests.recv() => {
                    stops += 1;
                    let now = matches!(request, Some(Request::Abort)) || stops > 1;
                    running.stop(if now { Duration::ZERO } else { self.kill_grace });
                }
            }
        };
        let still_held = self.held.iter().all(|lease| lease.check().is_ok());
        for lease in self.held {
            lease.release().await;
        }
        ending
            .map(|ending| exit_of(&ending, still_held))
            .map_err(|_| {
                complain(
                    Exit::Failed,
                    "what watched the command has ended, and the command with it",
                    None,
                )
            })
    }

    /// Until when the command may run; none where a lease is lost.
    fn guard(&self) -> Option<Guard> {
        let trusted: Option<Vec<_>> = self.held.iter().map(Lease::trusted_until).collect();
        let kill_at = trusted?.into_iter().min()?;
        let grace = match self.on_lost {
            OnLost::Term => self.margins.stop_grace(self.kill_grace),
            OnLost::Kill => Duration::ZERO,
        };
        Some(Guard {
            stop_at: kill_at - grace,
            kill_at,
        })
    }

    /// It is somebody else's by now, or soon.
    fn stop_lost(&self, running: &RunningAttempt) {
        tracing::error!("the lease was lost: the command is stopped");
        let grace = self.margins.kill_margin().min(self.kill_grace);
        running.stop(match self.on_lost {
            OnLost::Term => grace,
            OnLost::Kill => Duration::ZERO,
        });
    }

    fn attempt(&self, argv: &[String], guard: Guard) -> Result<Attempt, Exit> {
        let broken = |error: String| complain(Exit::Failed, &error, None);
        let name = JobName::new(ATTEMPT_NAME).map_err(|error| broken(error.to_string()))?;
        let schedule = Schedule::parse(
            "@manual",
            ATTEMPT_NAME,
            TimeZone::UTC,
            DstGap::default(),
            DstFold::default(),
        );
        let schedule = schedule.map_err(|error| broken(error.message))?;
        let mut job = Job::new(name, schedule, Program::Command(argv.to_vec()));
        job.kill_grace = self.kill_grace;
        job.command.env = self.told();
        Ok(Attempt {
            job: Arc::new(job),
            scheduled_at: now(),
            shard: 0,
            shards: 1,
            run_id: RunId::new(Uuid::new_v4()),
            number: 1,
            token: self.token(),
            guard,
        })
    }

    /// That of the newest grant.
    fn token(&self) -> FencingToken {
        let tokens = self.held.iter().map(Lease::token);
        tokens.max().unwrap_or_default()
    }

    /// What the command is told, for a `lock` below it.
    fn told(&self) -> BTreeMap<String, String> {
        let names = self.held.iter().flat_map(Lease::names);
        let names: Vec<&str> = names.map(LeaseName::as_str).collect();
        let holder = self.held.last().map(|lease| lease.holder().as_text());
        [
            (NAMES_VARIABLE.to_owned(), names.join(" ")),
            (HOLDER_VARIABLE.to_owned(), holder.unwrap_or_default()),
        ]
        .into()
    }
}

/// Completes when any of them was renewed, or lost.
async fn changed(held: &mut [Lease]) {
    let each = held.iter_mut().map(|lease| Box::pin(lease.changed()));
    futures_util::future::select_all(each).await;
}

/// The command's own code; 128 and the number of the signal that ended it, as shells have it. A
/// command that went on to its end without its lease has failed, whatever it says.
fn exit_of(ending: &Ending, still_held: bool) -> Exit {
    let detail = &ending.detail;
    let code = match (detail.exit_code, detail.signal) {
        (Some(code), _) => Some(code),
        (None, Some(signal)) => Some(SIGNALED + signal),
        (None, None) => None,
    };
    let code = code.and_then(|code| u8::try_from(code).ok());
    if !still_held {
        complain(
            Exit::Failed,
            "the lease was lost while the command ran",
            None,
        );
    }
    match (code, ending.how) {
        (Some(0) | None, _) if !still_held => Exit::Failed,
        (Some(code), _) => Exit::OfJob(code),
        (None, EndedHow::Succeeded) => Exit::Done,
        (None, _) => {
            let reason = detail.reason.as_deref().unwrap_or("it could not be run");
            complain(Exit::OfJob(126), reason, None)
        }
    }
}
