//! The table while the daemon runs: read again at SIGHUP and, with `watch = true`, when its files
//! change; and handed to the driver, or refused.
//!
//! Must never: let go of a table that works for one that doesn't.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tracing::{error, info, warn};

use super::answers;
use super::files::{self, Files};
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Config, Report};
use crate::driver::Request;
use crate::health::{Health, Refusal};
use crate::scheduler::Reload;

/// Reads the table anew, with what flags and environment say over it.
pub(crate) type ReadTable = Arc<dyn Fn() -> Result<Config, config::Error> + Send + Sync>;

/// The longest that the driver may take to accept a table before it is said that it hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest that reading a table may take.
const READING: Duration = Duration::from_secs(30);

/// Whoever reads the table again.
pub(super) struct Reloader {
    pub(super) read: ReadTable,
    /// What the table was read from last, or would have been.
    pub(super) sources: Vec<PathBuf>,
    /// The table of the start, by which some things go until the end.
    pub(super) started: Arc<Config>,
    pub(super) config: watch::Sender<Arc<Config>>,
    pub(super) health: watch::Sender<Health>,
    pub(super) requests: mpsc::Sender<Request>,
    /// Somebody asked for it.
    pub(super) asked: Arc<Notify>,
}

impl Reloader {
    /// Reads the table whenever it is time to, for as long as there is a driver to take it.
    pub(super) async fn run(mut self) {
        let mut files = self.watched().await;
        loop {
            tokio::select! {
                () = self.asked.notified() => {}
                () = Files::changed(&mut files) => info!("files of the table changed: it is read again"),
            }
            let began = SystemClock.monotonic();
            self.health.send_modify(|health| {
                health.table.reloading = true;
                health.table.reload_began = Some(began);
            });
            // From before they are read: what changes meanwhile is no part of what was read.
            let sources = self.all_sources();
            let content = files::content(&sources).await;
            let carried_on = self.reload().await;
            self.health
                .send_modify(|health| health.table.reloading = false);
            if !carried_on {
                return;
            }
            // They may be others now.
            files = self.watched().await;
            if files.is_some() && files::content(&sources).await != content {
                info!("files of the table changed while it was read: it is read again");
                self.asked.notify_one();
            }
        }
    }

    /// The files that it is read from, and that of the API's tokens, which is read with it.
    fn all_sources(&self) -> Vec<PathBuf> {
        let tokens = self.config.borrow().scheduler.api_tokens.clone();
        self.sources.iter().cloned().chain(tokens).collect()
    }

    /// The files, where they are to be watched.
    async fn watched(&self) -> Option<Files> {
        if !self.config.borrow().scheduler.watch {
            return None;
        }
        match Files::watch(&self.all_sources()).await {
            Ok(files) => Some(files),
            Err(cause) => {
                warn!(
                    "the files of the table can't be watched: {cause}; after a change send SIGHUP"
                );
                None
            }
        }
    }

    /// Reads the table and hands it over, until it is in use; false when nobody takes it any more.
    async fn reload(&mut self) -> bool {
        let read = Arc::clone(&self.read);
        // Files, and services that know users, may be slow. What hangs keeps its thread.
        let read = tokio::task::spawn_blocking(move || read());
        let Ok(read) = tokio::time::timeout(READING, read).await else {
            let cause = format!(
                "it could not be read within {READING:?}: a file system or a pipe that doesn't answer"
            );
            return self.hand_over(self.refuse(cause)).await;
        };
        let request = match read {
            Ok(Ok(config)) => {
                self.sources = config.sources.paths();
                self.taken(config)
            }
            Ok(Err(config::Error(report, sources))) => {
                // What it names that is wrong may be mended anywhere.
                self.sources = sources.paths();
                self.refused(&report)
            }
            // It panicked, which ends the process, or the runtime is ending.
            Err(_) => return false,
        };
        self.hand_over(request).await
    }

    /// Hands a table over, or says that there is none; false when nobody listens any more.
    async fn hand_over(&self, request: Request) -> bool {
        let handed_over = async {
            let sent = self.requests.send(request).await;
            // Requests are heard in turn: once this is answered, that was.
            sent.is_ok() && answers(&self.requests, PATIENCE).await
        };
        let taken = tokio::time::timeout(PATIENCE, handed_over).await;
        if !taken.unwrap_or(false) && !self.requests.is_closed() {
            error!("the table was read, and the scheduler has not taken it for {PATIENCE:?}");
        }
        !self.requests.is_closed()
    }

    fn taken(&self, config: Config) -> Request {
        tell_of(&config.warnings);
        let changes = self.config.borrow().diff(&config);
        let (gone, before) = (changes.removed.len(), self.config.borrow().jobs.len());
        match gone > 1 && 2 * gone > before {
            true => {
                warn!(
                    "the table was read again, and {gone} of its {before} jobs are gone: {changes}"
                );
            }
            false => info!("the table was read again: {changes}"),
        }
        for key in self.started.diff(&config).at_restart {
            warn!(
                "`{key}` in [scheduler] is another one than at the start: that takes effect at the next one"
            );
        }
        let reload = Reload {
            jobs: config.jobs.iter().cloned().map(Arc::new).collect(),
            digest: config.digest(),
            revision: config.scheduler.revision,
            tags: config.scheduler.tags.clone(),
            max_running: config.scheduler.max_running,
            shutdown_grace: config.scheduler.shutdown_grace,
        };
        let now = SystemClock.wall();
        self.health.send_modify(|health| {
            health.table.refused = None;
            health.table.since = now;
            health.table.reloads.taken += 1;
        });
        self.config.send_replace(Arc::new(config));
        Request::Reload(Box::new(reload))
    }

    fn refused(&self, report: &Report) -> Request {
        tell_of(report);
        self.refuse(report.summary())
    }

    fn refuse(&self, cause: String) -> Request {
        error!("the table was refused, and the one before stays: {cause}");
        let refusal = Refusal {
            at: SystemClock.wall(),
            cause: cause.clone(),
        };
        self.health.send_modify(|health| {
            health.table.refused = Some(refusal);
            health.table.reloads.refused += 1;
        });
        Request::TableRefused { cause }
    }
}

/// Says what is wrong with a table, a log line for each thing.
fn tell_of(report: &Report) {
    for (severity, line) in report.lines() {
        match severity {
            config::Severity::Error => error!("{line}"),
            config::Severity::Warning => warn!("{line}"),
        }
    }
}
