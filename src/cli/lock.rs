//! `soloist lock`: any command under a lease, as flock(1) across hosts.
//!
//! ```text
//!  this process: the lease ─ renewed ─▶ guardian: the command, until the lease allows no more
//!     ├─ signals: what it is told        ├─ witness, telling: what people are told
//!     └─ held: what those above have     └─ list: who has what, with no command at all
//! ```
//!
//! Must never: let the command run for longer than the lease is trusted. That is the guardian's to
//! see to, also when this process is killed or stands still.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::args::{Global, LockArgs};
use super::settings::{Settings, passed_on};
use super::{Exit, complain, run, store};
use crate::clock::{Clock as _, SystemClock};
use crate::config::SchedulerConfig;
use crate::guardian;
use crate::leases::{AcquireError, Acquisition, Lease, Leases};
use crate::scheduler::lease::{FencingToken, LeaseName};
use crate::store::StoreError;

mod command;
mod held;
mod list;
mod signals;
mod telling;
mod witness;

use command::Command;
use held::Held;
use signals::{Asked, Signals};
use telling::Teller;
use witness::Witness;

/// How long after a call that failed the store is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// Runs a command under a lease, and ends as it did.
pub(super) fn run(global: &Global, args: &LockArgs) -> Result<Exit, Exit> {
    let scheduler = Settings::load_for_leases(global)?;
    refuse_memory(&scheduler)?;
    if args.list {
        return list::run(&scheduler, args);
    }
    // Before anybody waits for anything.
    find(&args.command)?;
    let passed_on = passed_on(global, &scheduler);
    let runtime = store::runtime()?;
    let exit = runtime.block_on(lock(&scheduler, args, passed_on));
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// What each process has for itself keeps nobody out.
fn refuse_memory(scheduler: &SchedulerConfig) -> Result<(), Exit> {
    let url = scheduler.store.as_deref().unwrap_or_default();
    if !url.starts_with("memory:") {
        return Ok(());
    }
    let message =
        "a lease in `memory:` keeps nobody out: each process has a store of its own there";
    let hint = "name a store that is shared: `--store redis://HOST:PORT`, or on one host `--store sqlite:PATH`";
    Err(complain(Exit::Usage, message, Some(hint)))
}

/// Whether there is such a program: 127 and 126 where not, as shells, env(1) and timeout(1) have it.
fn find(command: &[String]) -> Result<(), Exit> {
    let program = command.first().map_or("", String::as_str);
    if program.is_empty() {
        let hint = "the first word after `--` is the program";
        return Err(complain(Exit::Usage, "the command is empty", Some(hint)));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    guardian::find_program(program, &path).map_err(|error| {
        let (code, hint) = match error.is_not_found() {
            true if program.contains(char::is_whitespace) => (
                127,
                Some("for a whole line take a shell: `-- sh -c 'LINE'`"),
            ),
            // Of a path, the error itself says so.
            true if program.contains('/') => (127, None),
            true => (127, Some("install it, or name it by its full path")),
            false => (126, None),
        };
        complain(Exit::OfJob(code), &error.to_string(), hint)
    })
}

async fn lock(
    scheduler: &SchedulerConfig,
    args: &LockArgs,
    passed_on: BTreeMap<String, String>,
) -> Result<Exit, Exit> {
    let signals = Signals::listen().map_err(|cause| {
        let message = format!("failed to listen for signals: {cause}");
        complain(Exit::Failed, &message, None)
    })?;
    let opened = store::open_leases(scheduler)?;
    let place = format!("namespace `{}` at {}", scheduler.namespace, opened.place());
    let (witness, seen) = Witness::of(opened);
    let teller = Teller::new(seen, &args.names, place, args.quiet);
    if scheduler.store.is_none() {
        teller.say(&format!(
            "no store is named, so this excludes nobody on other hosts ({}); name one that they share by `--store` or SOLOIST_STORE",
            teller.place()
        ));
    }
    let name = format!("{}:{}", run::name_of_host(), std::process::id());
    let mut surroundings = Surroundings {
        args,
        signals,
        teller,
    };
    let opened = Leases::of(witness, Arc::new(SystemClock), &name);
    let opened = surroundings.unless_stopped(opened).await?;
    let leases = opened.map_err(|error| store::refused(&error))?;
    let exit = under_lease(&leases, passed_on, name, &mut surroundings).await;
    leases.close().await;
    exit
}

async fn under_lease(
    leases: &Leases,
    mut told: BTreeMap<String, String>,
    name: String,
    surroundings: &mut Surroundings<'_>,
) -> Result<Exit, Exit> {
    let above = Held::above();
    let args = surroundings.args;
    let acquired = surroundings.unless_stopped(acquire(leases, args, &above));
    let held = acquired.await?;
    let held = held.map_err(|error| not_acquired(&error, args, surroundings.teller.place()))?;
    surroundings.teller.granted();
    told.extend(above.and(&held).told());
    let command = Command {
        held,
        told,
        args,
        leases,
    };
    let Surroundings {
        signals, teller, ..
    } = surroundings;
    command.run(name, signals, teller).await
}

/// What goes on beside whatever is waited for.
struct Surroundings<'a> {
    args: &'a LockArgs,
    signals: Signals,
    teller: Teller,
}

impl Surroundings<'_> {
    /// Waits for something, tells what for, and gives up when it is told to stop.
    async fn unless_stopped<T>(&mut self, awaited: impl Future<Output = T>) -> Result<T, Exit> {
        tokio::pin!(awaited);
        loop {
            tokio::select! {
                done = &mut awaited => return Ok(done),
                asked = self.signals.next() => match asked {
                    Asked::Stop(signal) => {
                        if !self.args.quiet {
                            let message = "not run: stopped while it waited for its lease";
                            complain(Exit::Failed, message, None);
                        }
                        return Err(Exit::BySignal(signal));
                    }
                    // There is no command yet that could want it.
                    Asked::PassOn(_) => {}
                    Asked::Suspend => {
                        self.teller.say("not stopped, as its place in line would be lost; Ctrl-C ends the waiting");
                    }
                },
                never = self.teller.while_waiting() => match never {},
            }
        }
    }
}

/// What is acquired: the names that a `lock` above has already, by its holders, and the others.
async fn acquire(
    leases: &Leases,
    args: &LockArgs,
    above: &Held,
) -> Result<Vec<Lease>, AcquireError> {
    let begun = SystemClock.boot();
    let left = || {
        let waited = SystemClock.boot().saturating_since(begun);
        args.patience().map(|wait| wait.saturating_sub(waited))
    };
    let (mut held, mut rest) = (Vec::new(), Vec::new());
    // Those that are let in at once before those that may have to wait.
    for name in &args.names {
        match let_in_again(leases, name, args, above, &left).await? {
            Some(lease) => held.push(lease),
            None => rest.push(name),
        }
    }
    if !rest.is_empty() {
        held.push(within(asked(leases, &rest, args), left()).await?);
    }
    Ok(held)
}

/// What a `lock` above has in this store and namespace is had again at once.
async fn let_in_again(
    leases: &Leases,
    name: &LeaseName,
    args: &LockArgs,
    above: &Held,
    left: &impl Fn() -> Option<Duration>,
) -> Result<Option<Lease>, AcquireError> {
    for above in above.holders_of(name) {
        let asked = asked(leases, &[name], args).held_by(&above.holder);
        loop {
            let error = match asked.clone().try_acquire().await {
                Ok(lease) if lease.token() == above.token => return Ok(Some(lease)),
                Ok(lease) => match is_held_by(leases, name, above.token).await {
                    // It was only shared above; to have it alone takes a token of its own.
                    Ok(true) => return Ok(Some(lease)),
                    Ok(false) => {
                        // That one holds it no more, or elsewhere: nobody is to be let in by it.
                        lease.release().await;
                        break;
                    }
                    Err(error) => {
                        lease.release().await;
                        AcquireError::Store(error)
                    }
                },
                Err(AcquireError::Busy(_)) => break,
                Err(error) => error,
            };
            // Not asked as one who waits: where that one holds it elsewhere, it would wait for itself.
            let pause = match &error {
                AcquireError::Grace { wait } => *wait,
                AcquireError::Store(StoreError::Unreachable { .. }) => AGAIN,
                _ => return Err(error),
            };
            if left().is_some_and(|left| left < pause) {
                return Err(error);
            }
            tokio::time::sleep(pause).await;
        }
    }
    Ok(None)
}

/// Whether somebody has a name by a token.
async fn is_held_by(
    leases: &Leases,
    name: &LeaseName,
    token: FencingToken,
) -> Result<bool, StoreError> {
    let states = leases.names().await?;
    let held = states.iter().filter(|state| state.name == *name);
    let mut held = held.flat_map(|state| &state.held);
    Ok(held.any(|held| held.sighting.token == token))
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

fn not_acquired(error: &AcquireError, args: &LockArgs, place: &str) -> Exit {
    let conflict = Exit::OfJob(args.conflict_exit_code);
    let message = format!("not run: {error}, in {place}");
    match error {
        AcquireError::Store(error) => store::refused(error),
        AcquireError::Names(_) => {
            let hint = "take one name that stands for all of them";
            complain(Exit::Usage, &format!("not run: {error}"), Some(hint))
        }
        AcquireError::Busy(_)
        | AcquireError::TimedOut(_)
        | AcquireError::Grace { .. }
        | AcquireError::Full { .. }
        | AcquireError::Upgrade { .. } => match args.quiet {
            true => conflict,
            false => complain(conflict, &message, None),
        },
        _ => complain(Exit::Failed, &message, None),
    }
}
