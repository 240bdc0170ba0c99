//! `/healthz`, `/readyz` and `/metrics`: what orchestrators and scrapers ask.
//!
//! Must never: ask the store. A replica is not restarted because the store is away, and a probe
//! answers at once.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};
use utoipa::ToSchema;

use super::answer::{Asked, json};
use super::fresh::Fresh;
use super::problem::{Kind, Problem};
use crate::clock::Clock;
use crate::driver::Request;
use crate::health::{Health, Phase, Refusal};

/// How long the driver's loop may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a sign of life lasts: any number of probes ask the loop four times a second at most.
const BEAT_LASTS: Duration = Duration::from_millis(250);

/// The driver's signs of life.
pub(super) struct Pulse {
    requests: mpsc::Sender<Request>,
    beat: Fresh<bool>,
}

impl Pulse {
    pub(super) fn new(requests: mpsc::Sender<Request>, clock: Arc<dyn Clock>) -> Self {
        Self {
            requests,
            beat: Fresh::new(clock, BEAT_LASTS),
        }
    }

    /// Whether the loop turns.
    pub(super) async fn beats(&self) -> bool {
        let ping = async {
            let (sender, answer) = oneshot::channel();
            self.requests.send(Request::Ping(sender)).await.is_ok() && answer.await.is_ok()
        };
        let ping = async { tokio::time::timeout(PATIENCE, ping).await == Ok(true) };
        let beat = tokio::time::timeout(PATIENCE, self.beat.get(ping)).await;
        beat.unwrap_or(false)
    }
}

/// The process lives.
#[derive(Serialize, ToSchema)]
struct Alive {
    /// `ok`.
    status: &'static str,
}

/// Whether a replica is to be counted on, and how it is.
#[derive(Serialize, ToSchema)]
pub(super) struct Readiness {
    /// `ready` or `not_ready`.
    status: &'static str,
    #[serde(flatten)]
    detail: Option<Detail>,
}

/// How a replica is, for those who may read.
#[derive(Serialize, ToSchema)]
struct Detail {
    /// The replica's name.
    replica: String,
    /// Its software.
    version: &'static str,
    /// `starting`, `ready` or `draining`.
    phase: &'static str,
    /// Why the store doesn't answer, while it doesn't.
    #[serde(skip_serializing_if = "Option::is_none")]
    store_away: Option<String>,
    /// How many attempts run here.
    running: usize,
    table: Table,
    /// The file with the API's tokens could not be read anew, and those from before stay in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens_refused: Option<Refused>,
}

/// The table that a replica goes by.
#[derive(Serialize, ToSchema)]
struct Table {
    /// Its digest, as in `config_digest` of replicas.
    digest: String,
    /// How many of its jobs are enabled.
    jobs: usize,
    /// Since when the replica goes by it.
    since: String,
    /// It is reading another one.
    reloading: bool,
    /// A newer one was refused, and this one stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<Refused>,
    /// How many were read since the start and taken, and refused.
    reloads_taken: u64,
    reloads_refused: u64,
}

/// A table, or a file of tokens, that was refused.
#[derive(Serialize, ToSchema)]
struct Refused {
    /// When.
    at: String,
    /// What is wrong with it first of all, with its place.
    cause: String,
}

impl Refused {
    fn of(refusal: &Refusal) -> Self {
        Self {
            at: refusal.at.to_string(),
            cause: refusal.cause.clone(),
        }
    }
}

impl Detail {
    fn of(replica: &str, health: &Health) -> Self {
        let table = &health.table;
        Self {
            replica: replica.to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            phase: match health.phase {
                Phase::Starting => "starting",
                Phase::Ready => "ready",
                Phase::Draining => "draining",
            },
            store_away: health.store_away.clone(),
            running: health.running,
            table: Table {
                digest: table.digest.clone(),
                jobs: table.jobs,
                since: table.since.to_string(),
                reloading: table.reloading,
                refused: table.refused.as_ref().map(Refused::of),
                reloads_taken: table.reloads.taken,
                reloads_refused: table.reloads.refused,
            },
            tokens_refused: health.tokens_refused.as_ref().map(Refused::of),
        }
    }
}

/// Whether the process lives: its scheduler answers. For liveness probes; it takes no token.
#[utoipa::path(get, path = "/healthz", tag = "probes", security(()), responses(
    (status = 200, description = "It lives", body = Alive),
    (status = 503, description = "Its scheduler doesn't answer: restart it", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn healthz(Extension(asked): Extension<Asked>) -> Result<Response, Problem> {
    if asked.app.pulse.beats().await {
        return Ok(json(StatusCode::OK, &Alive { status: "ok" }));
    }
    let detail = format!(
        "the scheduler's loop has not answered for {PATIENCE:?}; restart this replica: others take over what it held"
    );
    Err(Problem::new(Kind::Stuck, detail))
}

/// Whether the replica takes work: the store is there, the table is loaded, and it doesn't drain.
/// For readiness probes; it takes no token. Who may read is told how the replica is, too.
#[utoipa::path(get, path = "/readyz", tag = "probes", security(()), responses(
    (status = 200, description = "It is ready", body = Readiness),
    (status = 503, description = "It is not, and `detail` says why", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn readyz(Extension(asked): Extension<Asked>) -> Result<Response, Problem> {
    let app = &asked.app;
    let health = app.health.borrow().clone();
    let detail = asked
        .visitor
        .reads
        .then(|| Detail::of(&app.replica, &health));
    let Some(reason) = health.unready() else {
        let readiness = Readiness {
            status: "ready",
            detail,
        };
        return Ok(json(StatusCode::OK, &readiness));
    };
    let more = serde_json::to_value(&detail).ok();
    let more = more.and_then(|more| more.as_object().cloned());
    Err(Problem::new(Kind::NotReady, reason).with(more.unwrap_or_default()))
}

/// The metrics: OpenMetrics 1.0 for those who accept it, else Prometheus' text format.
#[utoipa::path(get, path = "/metrics", tag = "probes", responses(
    (status = 200, description = "The metrics", content(
        (String = "text/plain"),
        (String = "application/openmetrics-text"),
    )),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "This replica has none", body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn metrics(
    Extension(asked): Extension<Asked>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some(metrics) = &asked.app.metrics else {
        return Err(Problem::new(Kind::NotFound, "this replica has no metrics"));
    };
    // A list may be spread over several lines.
    let lines = headers.get_all(ACCEPT).iter();
    let lines: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    let accept = (!lines.is_empty()).then(|| lines.join(","));
    let (format, page) = metrics(accept.as_deref());
    Ok(([(CONTENT_TYPE, format)], page).into_response())
}
