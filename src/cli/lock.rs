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
use crate::runner::{OutputMode, Runner};
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::{FencingToken, LeaseName, RunId};
use crate::scheduler::margins::Margins;
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::{Attempt, EndedHow, Ending, Guard};

/// Told to the command: which names it has, its own and those of each `lock` above.
const NAMES_VARIABLE: &str = "SOLOIST_LOCK";

/// The same with who holds each and by which token, as `HOLDER:TOKEN:NAME`: a `lock` below that wants
/// one of them is let in again.
const HOLDERS_VARIABLE: &str = "SOLOIST_LOCK_HOLDERS";

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
    let above = Held::above();
    let held = tokio::select! {
        held = acquire(leases, args, &above) => held.map_err(|error| not_acquired(&error, args))?,
        _ = requests.recv() => {
            return Err(complain(Exit::Failed, "stopped while it waited for its lease", None));
        }
    };
    let command = Command {
        margins: Margins::of(args.ttl),
        on_lost: args.on_lost,
        kill_grace: args.kill_grace,
        told: above.and(&held).told(),
        held,
    };
    command.run(&args.command, name, requests).await
}

/// What is acquired: the names that a `lock` above has already, by its holders, and the others.
async fn acquire(
    leases: &Leases,
    args: &LockArgs,
    above: &Held,
) -> Result<Vec<Lease>, AcquireError> {
    let mut by_holder: Vec<(Option<Above>, Vec<&LeaseName>)> = Vec::new();
    for name in &args.names {
        let holder = above.0.get(name).copied();
        match by_holder.iter_mut().find(|(known, _)| *known == holder) {
            Some((_, names)) => names.push(name),
            None => by_holder.push((holder, vec![name])),
        }
    }
    // Those that are let in at once before those that may have to wait.
    by_holder.sort_by_key(|(holder, _)| holder.is_none());
    let begun = SystemClock.boot();
    let mut held = Vec::new();
    let left = || {
        let waited = SystemClock.boot().saturating_since(begun);
        args.wait.map(|wait| wait.saturating_sub(waited))
    };
    for (above, names) in by_holder {
        let asked = asked(leases, &names, args);
        if let Some(above) = above {
            let lease = within(asked.clone().held_by(&above.holder), left()).await?;
            if lease.token() == above.token {
                held.push(lease);
                continue;
            }
            // It is held no more, or in another store: nobody is to be let in by it.
            lease.release().await;
        }
        held.push(within(asked, left()).await?);
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
        AcquireError::Busy(_) | AcquireError::TimedOut(_) | AcquireError::Grace { .. } => {
            complain(conflict, &format!("not run: {error}"), None)
        }
        other => complain(Exit::Failed, &format!("not run: {other}"), None),
    }
}

/// Names that are held, with who holds them.
#[derive(Default)]
struct Held(BTreeMap<LeaseName, Above>);

/// Who holds a name, and by which token.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Above {
    holder: Holder,
    token: FencingToken,
}

impl Held {
    /// By each `lock` that this one runs below.
    fn above() -> Self {
        let text = std::env::var(HOLDERS_VARIABLE).unwrap_or_default();
        let one = |word: &str| {
            let (holder, rest) = word.split_once(':')?;
            let (token, name) = rest.split_once(':')?;
            let above = Above {
                holder: Holder::parse(holder)?,
                token: FencingToken::new(token.parse().ok()?),
            };
            Some((LeaseName::new(name).ok()?, above))
        };
        Self(text.split_whitespace().filter_map(one).collect())
    }

    fn and(mut self, leases: &[Lease]) -> Self {
        for lease in leases {
            let names = lease.names().iter().cloned();
            let above = Above {
                holder: lease.holder(),
                token: lease.token(),
            };
            self.0.extend(names.map(|name| (name, above)));
        }
        self
    }

    /// What the command is told.
    fn told(&self) -> BTreeMap<String, String> {
        let names: Vec<&str> = self.0.keys().map(LeaseName::as_str).collect();
        let held = self.0.iter();
        let holders: Vec<String> = held
            .map(|(name, above)| format!("{}:{}:{name}", above.holder.as_text(), above.token))
            .collect();
        [
            (NAMES_VARIABLE.to_owned(), names.join(" ")),
            (HOLDERS_VARIABLE.to_owned(), holders.join(" ")),
        ]
        .into()
    }
}

/// A command and what it runs under.
struct Command {
    held: Vec<Lease>,
    told: BTreeMap<String, String>,
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
                        // The store says that it is somebody else's. Where it could not be
                        // renewed in time, the guardian has ended the command by now.
                        lost = true;
                        running.kill_now();
                    }
                },
                request = requests.recv() => {
                    stops += 1;
                    let now = matches!(request, Some(Request::Abort)) || stops > 1;
                    running.stop(if now { Duration::ZERO } else { self.kill_grace });
                }
            }
        };
        // The guardian, too, ends it when its lease is not renewed in time.
        let was_ended = matches!(&ending, Ok(ending) if ending.how == EndedHow::Stopped);
        let is_held = self.held.iter().all(|lease| lease.check().is_ok());
        let still_held = is_held && !lost && (stops > 0 || !was_ended);
        // All at once, and what is lost without waiting: `close` sees to both.
        drop(self.held);
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
        job.command.env = self.told.clone();
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
        _ if !still_held => Exit::Failed,
        (Some(code), _) => Exit::OfJob(code),
        (None, EndedHow::Succeeded) => Exit::Done,
        (None, _) => {
            let reason = detail.reason.as_deref().unwrap_or("it could not be run");
            complain(Exit::OfJob(126), reason, None)
        }
    }
}
