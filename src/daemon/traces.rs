//! Traces of a replica, where its environment names a collector.
//!
//! Must never: keep a replica from starting, or from ending.

use tracing::{info, warn};

use crate::driver::Driver;
use crate::metrics::Metrics;
use crate::traces::{Exporter, Settings, Tracer};

/// Lets a tracer look on, if traces are wanted.
pub(super) fn observe(
    driver: Driver,
    namespace: &str,
    metrics: &Metrics,
) -> (Driver, Option<Exporter>) {
    let settings = Settings::read(|name| std::env::var(name).ok());
    let started = match settings {
        Ok(None) => return (driver, None),
        Ok(Some(settings)) => Tracer::start(settings, namespace, metrics),
        Err(cause) => Err(cause),
    };
    match started {
        Ok((tracer, exporter)) => {
            info!("occurrences are traced");
            (driver.observed_by(Box::new(tracer)), Some(exporter))
        }
        Err(cause) => {
            warn!("nothing is traced: {cause}");
            (driver, None)
        }
    }
}

/// Lets the last spans go.
pub(super) async fn finish(exporter: Option<Exporter>) {
    if let Some(exporter) = exporter {
        // It can only have panicked, which ends the process.
        let _ = tokio::task::spawn_blocking(|| exporter.finish()).await;
    }
}
