//! `soloist run`: the daemon.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use rustix::process::getpid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook_tokio::Signals;
use tokio::sync::mpsc;
use tracing::{error, info, warn};
use uuid::Uuid;

use super::args::{Global, RunArgs};
use super::settings::{Settings, checked_name};
use super::{Exit, complain, leftovers, reaper, settings, store, tags};
use crate::clock::SystemClock;
use crate::config::{Config, SchedulerConfig, Strictness};
use crate::driver::{Driver, Finished, Request};
use crate::scheduler::lease::Replica;
use crate::scheduler::{self, Entropy, Purpose, draw_replica_id};
use crate::store::{Store, StoreError};

/// The first wait for a store that isn't there, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Runs the daemon until a signal ends it.
pub(super) fn run(global: &Global, args: &RunArgs) -> Result<Exit, Exit> {
    refuse_what_is_to_come(args)?;
    let mut config = Settings::load(global, Strictness::Start)?.config;
    settings::show(&config.warnings);
    config.scheduler.tags = tags::over(config.scheduler.tags, &args.tag)?;
    end_on_panic();
    let runtime = store::runtime()?;
    let exit = runtime.block_on(daemon(config, args));
    // What is left are calls to a store that is gone, or jobs that were told to die.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Flags that have no effect yet are never silently ignored.
fn refuse_what_is_to_come(args: &RunArgs) -> Result<(), Exit> {
    let refuse = |what: &str, hint: &str| {
        let message = format!("{what} is not supported yet");
        Err(complain(Exit::Usage, &message, Some(hint)))
    };
    match args.listen.as_deref() {
        None | Some("" | "off") => Ok(()),
        Some(_) => refuse(
            "an address for `--listen` or SOLOIST_LISTEN",
            "today nothing listens: leave it out, or say `off`, and ask `soloist status`",
        ),
    }
}

async fn daemon(config: Config, args: &RunArgs) -> Result<Exit, Exit> {
    let mut requests = requests(Hangup::Reload)?;
    reaper::start(reaper::is_guardian).map_err(deaf)?;
    let store = store::open(&config.scheduler)?;
    let replica = replica(&config.scheduler, args.replica.as_deref())?;
    let listed = tags::list(&config.scheduler.tags);
    let listed = (!listed.is_empty()).then_some(listed.as_str());
    let digest = config.digest();
    info!(replica = %replica, id = %replica.id, store = %store.place(),
        namespace = %config.scheduler.namespace, tags = listed, digest,
        version = env!("CARGO_PKG_VERSION"), "starting");
    let prepare = async {
        // Before the store is waited for: they run on as long as it takes.
        leftovers::end(&replica.name).await;
        wait_until_ready(&*store, args.require_store).await
    };
    tokio::select! {
        ready = prepare => ready?,
        _ = requests.recv() => {
            info!("stopped before the store was there");
            return Ok(Exit::Done);
        }
    }
    let settings = scheduler::Settings {
        replica,
        shutdown_grace: config.scheduler.shutdown_grace,
        purpose: Purpose::Table,
        tags: config.scheduler.tags,
        max_running: config.scheduler.max_running,
        digest,
    };
    let driver = Driver::new(
        settings,
        config.jobs,
        store,
        Arc::new(SystemClock),
        entropy(),
    );
    match driver.run(requests).await {
        Ok(Finished::Drained) => {
            info!("stopped: nothing runs here any more");
            Ok(Exit::Done)
        }
        Ok(Finished::Aborted) => {
            warn!("stopped at once: leases that were held run out by themselves");
            Ok(Exit::Failed)
        }
        Err(cause) => {
            error!("failed to set the timers: {cause}");
            Ok(Exit::Failed)
        }
    }
}

/// Makes sure that the store is there, however long that takes.
async fn wait_until_ready(store: &dyn Store, required: bool) -> Result<(), Exit> {
    let mut wait = FIRST_WAIT;
    loop {
        let cause = match store.ready().await {
            Ok(()) => return Ok(()),
            // One that another version keeps may be this one's once a fleet is updated.
            Err(cause @ (StoreError::Unreachable { .. } | StoreError::OtherVersion { .. }))
                if !required =>
            {
                cause
            }
            Err(cause) => {
                error!("{cause}");
                return Err(store::exit_of(&cause));
            }
        };
        warn!("{cause}; trying again in {wait:?}");
        tokio::time::sleep(spread(wait)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Between half of it and all of it, so that a fleet doesn't come back as one.
fn spread(wait: Duration) -> Duration {
    let dice = u32::from(Uuid::new_v4().as_bytes()[0]);
    wait / 2 + wait / 2 * dice / 255
}

/// What SIGHUP means to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hangup {
    /// To a daemon: read the table again.
    Reload,
    /// To what a person started: the terminal is gone, so end as by SIGTERM.
    End,
}

/// The first SIGTERM or SIGINT drains, the second ends at once; to PID 1 SIGQUIT is the same.
/// SIGHUP never kills: nobody would be left to renew the leases of what runs.
pub(super) fn requests(hangup: Hangup) -> Result<mpsc::Receiver<Request>, Exit> {
    let mut watched = vec![SIGTERM, SIGINT];
    if hangup == Hangup::Reload || !ignores_hangup() {
        watched.push(SIGHUP);
    }
    // To PID 1 the kernel passes on nothing that it doesn't listen to, and images of other
    // programs ask for this one at `docker stop` (STOPSIGNAL).
    if getpid().is_init() {
        watched.push(SIGQUIT);
    }
    let mut signals = Signals::new(watched).map_err(deaf)?;
    let (sender, requests) = mpsc::channel(2);
    tokio::spawn(async move {
        let mut requests = [Request::Drain, Request::Abort].into_iter();
        while let Some(signal) = signals.next().await {
            if signal == SIGHUP && hangup == Hangup::Reload {
                warn!(
                    signal,
                    "reload is not supported yet: the table stays as it was read at the start; \
                    restart to change it"
                );
                continue;
            }
            let Some(request) = requests.next() else {
                break;
            };
            info!(signal, ?request, "signal received");
            if sender.send(request).await.is_err() {
                return;
            }
        }
        // Kept open: a closed channel would read as a request.
        std::future::pending::<()>().await;
    });
    Ok(requests)
}

fn deaf(cause: io::Error) -> Exit {
    let message = format!("failed to listen for signals: {cause}");
    complain(Exit::Failed, &message, None)
}

/// Whether SIGHUP was ignored when this process started, as `nohup` has it. What can't be told
/// counts as not ignored.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

/// Who this process is: random, with a name for people.
pub(super) fn replica(config: &SchedulerConfig, flag: Option<&str>) -> Result<Replica, Exit> {
    let id = draw_replica_id(Uuid::new_v4().into_bytes());
    let name = match (flag.filter(|name| !name.is_empty()), &config.replica) {
        (Some(flag), _) => checked_name("--replica", "SOLOIST_REPLICA", flag)?,
        (None, Some(name)) => name.clone(),
        (None, None) => name_of_host(),
    };
    Ok(Replica { id, name })
}

/// This host, as a replica may be called.
pub(super) fn name_of_host() -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    match scheduler::job::check_name(&host) {
        Ok(()) => host,
        Err(_) => "replica".to_owned(),
    }
}

/// The system's random numbers.
pub(super) fn entropy() -> Entropy {
    Box::new(|| {
        // The version and variant bits of a UUID aren't random; they are left out.
        let id = Uuid::new_v4().into_bytes();
        [
            id[0], id[1], id[2], id[3], id[4], id[5], id[7], id[9], id[10], id[11],
        ]
    })
}

/// A task that panics would leave its attempt or its claim without an end, and the daemon would
/// look alive. Dead, it is taken over from.
fn end_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::abort();
    }));
}
