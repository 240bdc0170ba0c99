//! One trace for each occurrence, over its attempts and replicas, by OTLP over HTTP.
//!
//! ```text
//!  occurrence: (namespace, job, scheduled_at) ── hashed ──▶ trace, root span
//!    ├── attempt 1, on whatever replica: run id ── hashed ──▶ span
//!    └── attempt 2
//! ```
//!
//! All replicas draw the same ids from the same names, so that spans of several make one trace without
//! a word between them. A span is made of the line that its end left in the ledger, by the replica
//! that wrote it: an attempt whose replica died is told by the one that took over, and the root by the
//! one that wrote the last word.
//!
//! Must never: hold up the loop. What can't be sent is dropped, and counted.

use std::sync::mpsc::{SyncSender, sync_channel};

mod exporter;
mod settings;
mod spans;

pub use self::exporter::Exporter;
pub(crate) use self::exporter::LAST_PATIENCE;
pub use self::settings::{Settings, Unusable};

use self::spans::{Span, spans_of};
use crate::driver::{Moment, Observer};
use crate::metrics::Metrics;
use crate::scheduler::lease::Written;
use crate::scheduler::{CallResult, Event, Notice};

/// Spans that may wait to be sent: as many as OpenTelemetry's own batches keep by default.
const WAITING: usize = 2048;

/// Makes spans of what a driver does.
#[derive(Debug)]
pub struct Tracer {
    namespace: String,
    spans: SyncSender<Span>,
    dropped: crate::metrics::Spans,
}

impl Tracer {
    /// Makes spans for a fleet, and whoever sends them.
    ///
    /// # Errors
    /// When nothing can be sent, for want of a thread or of certificates.
    pub fn start(
        settings: Settings,
        namespace: &str,
        metrics: &Metrics,
    ) -> Result<(Self, Exporter), Unusable> {
        let (sender, receiver) = sync_channel(WAITING);
        let [exported, dropped] = metrics.spans();
        let tracer = Self {
            namespace: namespace.to_owned(),
            spans: sender,
            dropped: dropped.clone(),
        };
        let exporter = Exporter::start(settings, receiver, exported, dropped)?;
        Ok((tracer, exporter))
    }

    fn told<T>(&self, result: &CallResult<T>) {
        let lines = result.iter().flat_map(|answered| &answered.lines);
        lines.for_each(|line| self.wrote(line));
    }

    fn wrote(&self, line: &Written) {
        for span in spans_of(&self.namespace, line) {
            if self.spans.try_send(span).is_err() {
                self.dropped.inc();
            }
        }
    }
}

impl Observer for Tracer {
    fn event(&mut self, event: &Event, _: Moment<'_>) {
        match event {
            Event::Registered { result, .. } => self.told(result),
            Event::Claimed { result, .. } => self.told(result),
            Event::Released { result, .. } => self.told(result),
            _ => {}
        }
    }

    fn notice(&mut self, _: &Notice, _: Moment<'_>) {}
}
