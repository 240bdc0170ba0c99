//! A replica at work: puts together what a driver needs and what looks on at it.
//!
//! ```text
//!  signals ──┬─ drain, abort ──────────────▶ requests ─▶ driver ─▶ observers: health, …
//!            └─ SIGHUP ─▶ ┌──────────┐          ▲                        │
//!  files changed ───────▶ │ reloader │─ table ──┘                        ▼
//!                         └──────────┘                        probes, service manager
//! ```
//!
//! Must never: decide anything about jobs.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, oneshot, watch};
use tracing::info;

mod files;
mod health;
mod leftovers;
mod reaper;
mod service_manager;
pub(crate) mod signals;
mod start;
mod stopping;
mod table;
#[cfg(feature = "otlp")]
mod traces;

pub(crate) use self::table::ReadTable;

use self::service_manager::ServiceManager;
use self::signals::Hangup;
use self::table::Reloader;
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::driver::{Driver, Finished, Processes, Request, entropy};
use crate::health::Health;
use crate::http;
use crate::metrics::{Format, Metrics};
use crate::notify;
use crate::runner::OutputMode;
use crate::scheduler::job::Job;
use crate::scheduler::lease::Replica;
use crate::scheduler::policy;
use crate::scheduler::{Purpose, Settings};
use crate::store::{Store, StoreError};

/// Requests that may wait for the driver's next turn.
const REQUESTS: usize = 16;

/// What a replica starts from.
pub(crate) struct Daemon {
    pub(crate) replica: Replica,
    pub(crate) config: Config,
    /// Reads the table again.
    pub(crate) read: ReadTable,
    pub(crate) store: Arc<dyn Store>,
    /// A store that isn't there is not waited for.
    pub(crate) require_store: bool,
}

/// Why a replica could not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("failed to listen for signals: {0}")]
    Deaf(io::Error),
    #[error("{0}")]
    Store(StoreError),
    #[error("{0}")]
    Http(http::Failure),
    #[error("failed to set the timers: {0}")]
    Timers(io::Error),
}

/// How a replica ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was told to before the store was there.
    BeforeItBegan,
    /// Its driver ended.
    Finished(Finished),
}

impl Daemon {
    /// Runs until a signal ends it. Must be called on a runtime.
    pub(crate) async fn run(self) -> Result<Ended, Failure> {
        let (sender, mut requests) = mpsc::channel(REQUESTS);
        let asked = Arc::new(Notify::new());
        let hangup = Hangup::Reload(Arc::clone(&asked));
        signals::listen(hangup, sender.clone()).map_err(Failure::Deaf)?;
        reaper::start(reaper::is_guardian).map_err(Failure::Deaf)?;
        let (config, store, require_store) = (self.config, self.store, self.require_store);
        let settings = settings_of(&config, self.replica, &store.place());
        let health = watch::Sender::new(beginning(&config, &settings));
        let metrics = Metrics::new(health.subscribe(), Arc::new(SystemClock));
        let jobs = config.jobs.clone();
        let namespace = config.scheduler.namespace.clone();
        let sources = config.sources.paths();
        let config = watch::Sender::new(Arc::new(config));
        let notifying = notifying(&config, &store, &settings.replica);
        // Before the store is waited for: probes are answered, and the service manager is told.
        let page = page_of(metrics.clone(), Arc::clone(&notifying.counts));
        let parts = http_parts(
            &config,
            &health,
            sender.clone(),
            &store,
            &settings.replica,
            page,
        );
        let server = http::serve(parts).await.map_err(Failure::Http)?;
        let manager = ServiceManager::of_environment(&health, &config, &sender);
        let started = Arc::clone(&config.borrow());
        let reloader = Reloader {
            read: self.read,
            sources,
            started,
            config,
            health: health.clone(),
            requests: sender.clone(),
            asked,
        };
        tokio::spawn(reloader.run());

        let name = settings.replica.name.as_str();
        let prepared = start::prepare(name, &*store, require_store, &health, &mut requests);
        let Some(newer) = prepared.await.map_err(Failure::Store)? else {
            return Ok(Ended::BeforeItBegan);
        };
        tokio::spawn(metrics.clone().keep_up(Arc::clone(&store)));
        let (teller, notifications) = notify::start(notifying);
        let driver = driver_of(settings, jobs, store)
            .map_err(Failure::Timers)?
            .observed_by(Box::new(health::Keeper(health)))
            .observed_by(Box::new(teller))
            .told_before(newer);
        let finished = looked_on(driver, &metrics, &namespace, requests).await;
        if finished == Finished::Drained {
            notifications.finish(stopping::LAST_NOTIFICATIONS).await;
        }
        server.stop().await;
        manager.end().await;
        Ok(Ended::Finished(finished))
    }
}

/// One whose attempts are processes of this host.
fn driver_of(settings: Settings, jobs: Vec<Job>, store: Arc<dyn Store>) -> io::Result<Driver> {
    let processes = Processes::new(settings.replica.name.clone(), OutputMode::Capture);
    let (processes, clock) = (Box::new(processes), Arc::new(SystemClock));
    Driver::new(settings, jobs, store, processes, clock, entropy())
}

/// Runs a driver while it is counted, and traced, what it does.
async fn looked_on(
    driver: Driver,
    metrics: &Metrics,
    namespace: &str,
    requests: mpsc::Receiver<Request>,
) -> Finished {
    let driver = driver.observed_by(Box::new(metrics.watcher()));
    #[cfg(feature = "otlp")]
    let (driver, exporter) = traces::observe(driver, namespace, metrics);
    #[cfg(not(feature = "otlp"))]
    let _ = namespace;
    let finished = driver.run(requests).await;
    #[cfg(feature = "otlp")]
    traces::finish(exporter).await;
    finished
}

/// The page of metrics, as it is served.
fn page_of(metrics: Metrics, notifications: Arc<notify::Counts>) -> http::Metrics {
    Arc::new(move |accept| {
        for (channel, result, count) in notifications.all() {
            metrics.notified(channel.as_str(), result, count);
        }
        let format = Format::accepted(accept);
        (format.content_type(), metrics.render(format))
    })
}

fn http_parts(
    config: &watch::Sender<Arc<Config>>,
    health: &watch::Sender<Health>,
    requests: mpsc::Sender<Request>,
    store: &Arc<dyn Store>,
    replica: &Replica,
    metrics: http::Metrics,
) -> http::Parts {
    http::Parts {
        replica: replica.name.clone(),
        config: config.subscribe(),
        health: health.clone(),
        requests,
        store: Arc::clone(store),
        clock: Arc::new(SystemClock),
        metrics: Some(metrics),
    }
}

fn notifying(
    config: &watch::Sender<Arc<Config>>,
    store: &Arc<dyn Store>,
    replica: &Replica,
) -> notify::Setting {
    notify::Setting {
        config: config.subscribe(),
        store: Arc::clone(store),
        clock: Arc::new(SystemClock),
        replica: replica.name.clone(),
        counts: Arc::default(),
    }
}

fn beginning(config: &Config, settings: &Settings) -> Health {
    let enabled = config.jobs.iter().filter(|job| job.enabled).count();
    Health::starting(settings.digest.clone(), enabled, SystemClock.wall())
}

fn settings_of(config: &Config, replica: Replica, store: &str) -> Settings {
    let scheduler = &config.scheduler;
    let digest = config.digest();
    let tags = policy::list(&scheduler.tags);
    let tags = (!tags.is_empty()).then_some(tags.as_str());
    info!(replica = %replica, id = %replica.id, store, namespace = %scheduler.namespace, tags,
        digest, revision = scheduler.revision, version = env!("CARGO_PKG_VERSION"), "starting");
    Settings {
        replica,
        shutdown_grace: scheduler.shutdown_grace,
        purpose: Purpose::Table,
        tags: scheduler.tags.clone(),
        max_running: scheduler.max_running,
        digest,
        revision: scheduler.revision,
    }
}

/// Whether whoever hears requests answers in time.
async fn answers(requests: &mpsc::Sender<Request>, within: Duration) -> bool {
    let ping = async {
        let (answer, answered) = oneshot::channel();
        requests.send(Request::Ping(answer)).await.is_ok() && answered.await.is_ok()
    };
    tokio::time::timeout(within, ping).await.unwrap_or(false)
}
