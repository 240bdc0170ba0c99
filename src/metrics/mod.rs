//! What a replica counts, for Prometheus: all it hears of while it looks on at the driver, and how
//! each job stands.
//!
//! ```text
//!  driver ── events, notices ──▶ Watcher ──▶ counters ◀── render ── GET /metrics
//!  store ◀── how jobs stand, at most once a minute and only while somebody scrapes ──┘
//! ```
//!
//! Figures go by the ledger's lines: whoever wrote one counts it, so that a sum over replicas counts
//! each end once. They are for people; a call whose answer was lost is not counted, and the ledger is
//! what can be relied on.
//!
//! Must never: wait within the driver's loop, or have more series than [`JOBS_SHOWN`] jobs make.

use std::fmt;
use std::sync::{Arc, Mutex};

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use tokio::sync::{Notify, watch};

mod accept;
mod classic;
mod encoding;
mod health;
mod jobs;
mod process;
mod replica;
mod standing;
mod watcher;

pub use self::jobs::JOBS_SHOWN;
pub use self::watcher::Watcher;

use self::health::HealthSeries;
use self::jobs::Jobs;
use self::process::Process;
use self::replica::Replica;
use crate::clock::Clock;
use crate::health::Health;

/// What `/metrics` may be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0, with units; for those who ask for it.
    OpenMetrics,
    /// The older text format, which everybody reads.
    Text,
}

impl Format {
    /// As HTTP names it.
    pub const fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// Counts spans.
#[cfg(feature = "otlp")]
pub type Spans = prometheus_client::metrics::counter::Counter;

/// What a replica counts. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Registry>,
    jobs: Arc<Jobs>,
    replica: Arc<Replica>,
    /// Somebody looked, and may want to know how jobs stand by now.
    asked: Arc<Notify>,
    /// What the last rendering was long, as a guess at the next.
    length: Arc<Mutex<usize>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Of a replica that has counted nothing yet.
    pub fn new(health: watch::Receiver<Health>, clock: Arc<dyn Clock>) -> Self {
        let mut registry = Registry::default();
        let process = Process::started(clock.wall());
        let own = registry.sub_registry_with_prefix("soloist");
        let replica = Arc::new(Replica::registered(own));
        let jobs = Arc::new(Jobs::new(clock, Arc::clone(&replica)));
        own.register_collector(Box::new(HealthSeries(health)));
        own.register_collector(Box::new(Arc::clone(&jobs)));
        registry.register_collector(Box::new(process));
        Self {
            registry: Arc::new(registry),
            jobs,
            replica,
            asked: Arc::new(Notify::new()),
            length: Arc::new(Mutex::new(0)),
        }
    }

    /// Who counts, by looking on at a driver.
    pub fn watcher(&self) -> Watcher {
        Watcher::new(
            Arc::clone(&self.jobs),
            Arc::clone(&self.replica),
            Arc::clone(&self.asked),
        )
    }

    /// Spans that were exported, and that were dropped.
    #[cfg(feature = "otlp")]
    pub fn spans(&self) -> [Spans; 2] {
        let of = |result| [("result", result)];
        ["exported", "dropped"].map(|result| self.replica.spans.get_or_create_owned(&of(result)))
    }

    /// How many notifications of a channel were delivered, failed or were dropped so far.
    pub fn notified(&self, channel: &'static str, result: &'static str, count: u64) {
        self.replica.notified(channel, result, count);
    }

    /// All of it as text.
    pub fn render(&self, format: Format) -> String {
        self.asked.notify_one();
        let mut length = self.length.lock().unwrap_or_else(|bad| bad.into_inner());
        let mut text = String::with_capacity(*length + *length / 8);
        // Writing to a string can't fail.
        let _ = text::encode(&mut text, &self.registry);
        *length = text.len();
        match format {
            Format::OpenMetrics => text,
            Format::Text => classic::from_openmetrics(&text),
        }
    }
}

#[cfg(test)]
mod tests;
