//! What signals ask of a replica.
//!
//! | | daemon | what a person started |
//! |---|---|---|
//! | SIGTERM, SIGINT (as PID 1 SIGQUIT) | the first drains, the second ends at once | the same |
//! | SIGHUP | reads the table again | the terminal is gone: as SIGTERM |
//!
//! Must never: let SIGHUP kill, as nobody would be left to renew the leases of what runs.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use futures_util::StreamExt;
use rustix::process::getpid;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook_tokio::Signals;
use tokio::sync::{Notify, mpsc};
use tracing::info;

use crate::driver::Request;

/// What SIGHUP means to a command.
#[derive(Clone, Debug)]
pub(crate) enum Hangup {
    /// To a daemon: read the table again.
    Reload(Arc<Notify>),
    /// To what a person started: the terminal is gone, so end as by SIGTERM.
    End,
}

/// SIGHUP came before anybody listened.
static EARLY: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on SIGHUP kills no more; for a daemon, as the first thing that it does. One that comes
/// before [`listen`] is heard then.
pub(crate) fn survive_hangup() -> io::Result<()> {
    signal_hook::flag::register(SIGHUP, Arc::clone(&EARLY)).map(drop)
}

/// Has signals send requests from now on.
pub(crate) fn listen(hangup: Hangup, sender: mpsc::Sender<Request>) -> io::Result<()> {
    let mut watched = vec![SIGTERM, SIGINT];
    if matches!(hangup, Hangup::Reload(_)) || !ignores_hangup() {
        watched.push(SIGHUP);
    }
    // To PID 1 the kernel passes on nothing that it doesn't listen to, and images of other
    // programs ask for this one at `docker stop` (STOPSIGNAL).
    if getpid().is_init() {
        watched.push(SIGQUIT);
    }
    let mut signals = Signals::new(watched)?;
    if let Hangup::Reload(reload) = &hangup
        && EARLY.swap(false, Ordering::Relaxed)
    {
        reload.notify_one();
    }
    tokio::spawn(async move {
        let mut requests = [Request::Drain, Request::Abort].into_iter();
        while let Some(signal) = signals.next().await {
            if let (SIGHUP, Hangup::Reload(reload)) = (signal, &hangup) {
                info!(signal, "signal received: the table is read again");
                reload.notify_one();
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
    Ok(())
}

/// Whether SIGHUP was ignored when this process started, as `nohup` has it.
pub(crate) fn ignores_hangup() -> bool {
    ignores(SIGHUP)
}

/// Whether this process ignores a signal, as whoever started it may have left it. What can't be told
/// counts as not ignored.
pub(crate) fn ignores(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
