//! Health, metrics and the API over HTTP.
//!
//! ```text
//!  connections ─▶ answer ─▶ access: who is it, and may they? ─▶ routes ─▶ probes: health, pulse
//!   (limits)        │                    ▲                        │        metrics
//!                   │                 tokens (a file)             └─▶ api ─▶ ledger ─▶ store
//!                   └─ problem: every error, in one form
//! ```
//!
//! What a replica serves is what the store and its own table say: any replica gives the same
//! answers, and an order is done by whichever it concerns. JSON is that of `--json` (`views`).
//!
//! Must never: decide anything about jobs; wait without a limit; show a secret; or answer a change
//! without an operator's token.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{info, warn};

mod access;
mod answer;
mod api;
mod connections;
mod fresh;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod ledger;
mod patient;
mod probes;
mod problem;
mod query;
mod routes;
mod tokens;

#[cfg(test)]
mod tests;

pub(crate) use self::answer::is_answering;
pub(crate) use self::connections::LAST_ANSWERS;
pub(crate) use self::tokens::TokenFileError;

use self::access::Gate;
use self::connections::Limits;
use self::ledger::Ledger;
use self::probes::Pulse;
use self::tokens::Tokens;
use crate::clock::Clock;
use crate::config::Config;
use crate::driver::Request;
use crate::health::Health;
use crate::store::Store;

/// The page of metrics and what HTTP calls its format, by the `Accept` of whoever asks.
pub(crate) type Metrics = Arc<dyn Fn(Option<&str>) -> (&'static str, String) + Send + Sync>;

/// What a server tells of, and whom it asks.
pub(crate) struct Parts {
    /// This replica's name.
    pub(crate) replica: String,
    /// The table in force.
    pub(crate) config: watch::Receiver<Arc<Config>>,
    /// How the replica is; of the tokens the server itself says so.
    pub(crate) health: watch::Sender<Health>,
    /// Where the driver, or what comes before it, is asked for a sign of life.
    pub(crate) requests: mpsc::Sender<Request>,
    pub(crate) store: Arc<dyn Store>,
    /// By it answers age.
    pub(crate) clock: Arc<dyn Clock>,
    /// None where there are none: then there is no such page.
    pub(crate) metrics: Option<Metrics>,
}

/// Why nothing can be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The file with the tokens can't be used.
    #[error("{0}")]
    Tokens(#[from] TokenFileError),
    /// Nothing can listen there. The replica doesn't start: probes and scrapers that reach another
    /// process, or nobody, would be worse, and nothing runs yet that would suffer.
    #[error(
        "failed to listen on {address}: {cause}; free the port, or name another by `listen` or `--listen`"
    )]
    Taken {
        address: SocketAddr,
        cause: io::Error,
    },
}

/// All that an answer is made from.
struct App {
    replica: String,
    config: watch::Receiver<Arc<Config>>,
    health: watch::Receiver<Health>,
    pulse: Pulse,
    ledger: Ledger,
    metrics: Option<Metrics>,
    gate: Gate,
    clock: Arc<dyn Clock>,
}

/// A server at work; one that is to listen nowhere has nothing to do.
pub(crate) struct Server(Option<(watch::Sender<bool>, JoinHandle<()>)>);

impl Server {
    /// Lets answers that are on their way be sent, for a moment, and closes everything.
    pub(crate) async fn stop(self) {
        if let Some((stop, task)) = self.0 {
            stop.send_replace(true);
            // It panicked, which was said.
            let _ = task.await;
        }
    }
}

/// Whether a replica would take a file with tokens.
pub(crate) fn check_tokens(file: &Path) -> Result<(), TokenFileError> {
    Tokens::read(file).map(|_| ())
}

/// Listens where the table says, if it says so, and serves from then on. Must be called on a
/// runtime.
pub(crate) async fn serve(parts: Parts) -> Result<Server, Failure> {
    let (listen, file) = {
        let config = parts.config.borrow();
        let scheduler = &config.scheduler;
        (scheduler.listen, scheduler.api_tokens.clone())
    };
    let Some(address) = listen else {
        return Ok(Server(None));
    };
    let tokens = file.as_deref().map(Tokens::read).transpose()?;
    let has_tokens = tokens.is_some();
    let taken = |cause| Failure::Taken { address, cause };
    let listener = TcpListener::bind(address).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    info!(%address, "serving health and API over HTTP");
    if !has_tokens && !address.ip().is_loopback() {
        warn!(
            %address,
            "other hosts can reach this address, and no tokens are set: they get health alone; \
             name a file with tokens by `api_tokens` for the rest"
        );
    }
    let tokens = watch::Sender::new(Arc::new(tokens.unwrap_or_default()));
    let gate = Gate::new(address, tokens.subscribe());
    let keeper = tokens::Keeper {
        tokens,
        file,
        config: parts.config.clone(),
        health: parts.health.clone(),
        clock: Arc::clone(&parts.clock),
    };
    tokio::spawn(keeper.run());
    let app = Arc::new(App::new(parts, gate));
    let (stop, stopped) = watch::channel(false);
    let serving = connections::accept(listener, app, Limits::default(), stopped);
    Ok(Server(Some((stop, tokio::spawn(serving)))))
}

impl App {
    fn new(parts: Parts, gate: Gate) -> Self {
        Self {
            replica: parts.replica,
            config: parts.config,
            health: parts.health.subscribe(),
            pulse: Pulse::new(parts.requests, Arc::clone(&parts.clock)),
            ledger: Ledger::new(parts.store, Arc::clone(&parts.clock)),
            metrics: parts.metrics,
            gate,
            clock: parts.clock,
        }
    }

    /// The table in force.
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.borrow())
    }
}
