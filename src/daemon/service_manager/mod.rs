//! Tells the service manager how this replica is, by the protocol of sd_notify(3).
//!
//! ```text
//!  health ──▶ news ──▶ READY, RELOADING, STOPPING, STATUS ──┐
//!  Ping, answered by the driver's loop ──▶ WATCHDOG ────────┼──▶ $NOTIFY_SOCKET
//!                                └─ while draining ──▶ EXTEND_TIMEOUT_USEC
//! ```
//!
//! Must never: hold up the replica, whatever the other side does; or say that all is well by a
//! clock alone: it is the loop that says so.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{error, warn};

mod news;
mod socket;
#[cfg(test)]
mod tests;

use self::news::{Line, Told};
use self::socket::Socket;
use super::{answers, stopping};
use crate::config::Config;
use crate::driver::Request;
use crate::health::Health;
use crate::scheduler::time::format_duration;

/// The least time between two lines of status that nothing else goes with: attempts may begin and
/// end all the time.
const STATUS_INTERVAL: Duration = Duration::from_secs(1);

/// While it drains: the time that is asked for, again and again, so that a loop that hangs is not
/// waited for much longer.
const EXTENSION: Duration = Duration::from_secs(15);
const EXTENSION_INTERVAL: Duration = Duration::from_secs(5);

/// How long the end of the process waits for what is still to be told.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// What the service manager is told from.
struct Sources {
    health: watch::Receiver<Health>,
    config: watch::Receiver<Arc<Config>>,
    requests: mpsc::Sender<Request>,
}

/// Who started this process and listens, if anybody does: told until the end of this replica.
pub(super) struct ServiceManager(Option<Telling>);

struct Telling {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl ServiceManager {
    /// Begins to tell the one that this process was told of.
    pub(super) fn of_environment(
        health: &watch::Sender<Health>,
        config: &watch::Sender<Arc<Config>>,
        requests: &mpsc::Sender<Request>,
    ) -> Self {
        let sources = Sources {
            health: health.subscribe(),
            config: config.subscribe(),
            requests: requests.clone(),
        };
        let name = std::env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Self(None);
        };
        match Socket::named(&name) {
            Ok(socket) => {
                let watchdog = watchdog(|name| std::env::var(name).ok());
                Self(Some(begin(socket, watchdog, sources)))
            }
            Err(cause) => {
                warn!(
                    "the service manager can't be told anything: NOTIFY_SOCKET is {}: {cause}",
                    name.display()
                );
                Self(None)
            }
        }
    }

    /// Tells what is still to be told.
    pub(super) async fn end(self) {
        if let Some(telling) = self.0 {
            let _ = telling.end.send(());
            let _ = tokio::time::timeout(LAST_WORDS, telling.task).await;
        }
    }
}

fn begin(socket: Socket, watchdog: Option<Duration>, sources: Sources) -> Telling {
    let socket = Arc::new(socket);
    if let Some(within) = watchdog {
        let requests = sources.requests.clone();
        tokio::spawn(feed_watchdog(Arc::clone(&socket), within, requests));
    }
    let (end, ended) = oneshot::channel();
    let task = tokio::spawn(tell(socket, sources, ended));
    Telling { end, task }
}

/// Within which time the service manager wants to hear of this process, if it does.
fn watchdog(variable: impl Fn(&str) -> Option<String>) -> Option<Duration> {
    let is_meant = match variable("WATCHDOG_PID") {
        Some(pid) => pid == std::process::id().to_string(),
        None => true,
    };
    let within = variable("WATCHDOG_USEC")?.parse().ok()?;
    (is_meant && within > 0).then(|| Duration::from_micros(within))
}

/// Tells of each change, until the end.
async fn tell(socket: Arc<Socket>, sources: Sources, mut ended: oneshot::Receiver<()>) {
    let mut health = sources.health.clone();
    let mut told = Told::default();
    let resting = tokio::time::sleep(Duration::ZERO);
    tokio::pin!(resting);
    let mut rests = false;
    let mut is_last = false;
    loop {
        let now = health.borrow_and_update().clone();
        let news = told.news(&now, !rests || is_last);
        let drains = news.iter().any(|message| message.contains(&Line::Stopping));
        if news.iter().flatten().any(Line::is_status) {
            resting.set(tokio::time::sleep(STATUS_INTERVAL));
            rests = true;
        }
        for message in &news {
            socket.tell(message).await;
        }
        if drains {
            let limit = stopping::longest(&sources.config.borrow());
            let requests = sources.requests.clone();
            tokio::spawn(ask_for_time(Arc::clone(&socket), limit, requests));
        }
        if is_last {
            return;
        }
        tokio::select! {
            changed = health.changed() => is_last = changed.is_err(),
            () = &mut resting, if rests => rests = false,
            _ = &mut ended => is_last = true,
        }
    }
}

/// Asks for the time that a drain takes, for as long as the loop that drains turns.
async fn ask_for_time(socket: Arc<Socket>, limit: Duration, requests: mpsc::Sender<Request>) {
    let mut left = limit;
    while !left.is_zero() {
        socket
            .tell(&[Line::ExtendTimeout(left.min(EXTENSION))])
            .await;
        tokio::time::sleep(EXTENSION_INTERVAL).await;
        left = left.saturating_sub(EXTENSION_INTERVAL);
        if !answers(&requests, EXTENSION_INTERVAL).await {
            return;
        }
    }
}

/// Says twice within each `within` that the driver's loop turns, when it does.
async fn feed_watchdog(socket: Arc<Socket>, within: Duration, requests: mpsc::Sender<Request>) {
    let every = within / 2;
    let mut beat = tokio::time::interval(every);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while !requests.is_closed() {
        beat.tick().await;
        if answers(&requests, every).await {
            socket.tell(&[Line::Watchdog]).await;
        } else if !requests.is_closed() {
            error!(
                "the scheduler's loop has not answered for {}: the service manager is not \
                 told that all is well, and starts this replica anew if that goes on",
                format_duration(every)
            );
        }
    }
}
