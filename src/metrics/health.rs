//! What probes are told, as series: ready, draining, and how table and tokens came to be.
//!
//! Must never: say other than [`Health`] does.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use tokio::sync::watch;

use super::encoding::{Named, truth};
use crate::health::{Health, Phase};

static READY: Named = Named::new(
    "ready",
    "Whether this replica claims what falls due and reaches the store, as readyz says.",
);
static DRAINING: Named = Named::new("draining", "Whether this replica takes nothing new.");
static JOBS: Named = Named::new("jobs", "Jobs of the table that are not disabled.");
static RELOADS: Named = Named::new(
    "config_reloads",
    "Times the table was read again since the start, and taken or refused.",
);
static SUCCESSFUL: Named = Named::new(
    "config_last_reload_successful",
    "Whether the newest table was taken; 0 while a refused one lies there.",
);
static TAKEN_AT: Named = Named::seconds(
    "config_last_reload_success_timestamp",
    "When the table in force was read, in seconds since the Unix epoch.",
);
static TOKENS: Named = Named::new(
    "api_tokens_last_read_successful",
    "Whether the file with the API's tokens, if there is one, could be read the last time; 0 while older ones stay in force.",
);

/// Health as series.
#[derive(Debug)]
pub(super) struct HealthSeries(pub(super) watch::Receiver<Health>);

impl Collector for HealthSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let health = self.0.borrow().clone();
        let encoder = &mut encoder;
        READY.only(encoder, truth(health.unready().is_none()))?;
        DRAINING.only(encoder, truth(health.phase == Phase::Draining))?;
        JOBS.only(encoder, health.table.jobs as f64)?;
        let mut reloads = RELOADS.counter(encoder)?;
        reloads.count([("result", "taken")], health.table.reloads.taken)?;
        reloads.count([("result", "refused")], health.table.reloads.refused)?;
        SUCCESSFUL.only(encoder, truth(health.table.refused.is_none()))?;
        TAKEN_AT.only(encoder, health.table.since.as_millis() as f64 / 1e3)?;
        TOKENS.only(encoder, truth(health.tokens_refused.is_none()))
    }
}
