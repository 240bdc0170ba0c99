//! A replica, as it was heard of last.
//!
//! Must never: show one as alive that was not heard of lately.

use std::time::Duration;

use serde::Serialize;
use utoipa::ToSchema;

use super::drift::{TableStatus, newest_table};
use crate::scheduler::lease::Definition;
use crate::scheduler::policy::Tags;
use crate::scheduler::time::{Timestamp, to_seconds};
use crate::store::{ReplicaState, Snapshot};

#[derive(Serialize, ToSchema)]
pub(crate) struct ReplicaStatus {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) jobs: u32,
    pub(crate) running: u32,
    pub(crate) draining: bool,
    /// How far its host's wall clock is ahead of the store's.
    pub(crate) clock_skew_seconds: f64,
    /// How long the store's last answer to it took: the skew is known to about this.
    pub(crate) store_round_trip_seconds: f64,
    pub(crate) seen_seconds_ago: f64,
    /// It was heard of lately.
    pub(crate) alive: bool,
    #[serde(skip_serializing_if = "Tags::is_empty")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    pub(crate) tags: Tags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_running: Option<u32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    pub(crate) config_digest: String,
    /// Its table is not the newest that a live replica has.
    pub(crate) config_differs: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table: Option<TableStatus>,
    /// Why it goes on with an older table than its file holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) table_refused: Option<String>,
}

/// The replicas that were heard of.
pub(crate) fn replicas(snapshot: &Snapshot, now: Timestamp) -> Vec<ReplicaStatus> {
    let newest = newest_table(snapshot, now);
    let withdrawal = snapshot.withdrawal(now);
    let replicas = snapshot.replicas.iter();
    replicas
        .map(|replica| ReplicaStatus {
            table: TableStatus::of(replica, snapshot, &withdrawal),
            ..ReplicaStatus::of(replica, now, newest.as_ref())
        })
        .collect()
}

impl ReplicaStatus {
    fn of(state: &ReplicaState, now: Timestamp, newest: Option<&Definition>) -> Self {
        let info = &state.info;
        let alive = state.is_alive(now);
        Self {
            name: state.replica.name.clone(),
            id: state.replica.id.to_string(),
            host: info.host.clone(),
            pid: info.pid,
            version: info.version.clone(),
            jobs: info.jobs,
            running: info.running,
            draining: info.draining,
            #[expect(clippy::cast_precision_loss, reason = "exact below 285,000 years")]
            clock_skew_seconds: info.skew_ms as f64 / 1000.0,
            store_round_trip_seconds: to_seconds(Duration::from_millis(info.round_trip_ms)),
            seen_seconds_ago: to_seconds(now.saturating_since(state.seen_at)),
            alive,
            tags: info.tags.clone(),
            max_running: info.max_running,
            config_digest: info.digest.clone(),
            config_differs: alive
                && !info.digest.is_empty()
                && newest.is_some_and(|newest| info.digest != newest.digest),
            table: None,
            table_refused: info.table_refused.clone().filter(|_| alive),
        }
    }
}
