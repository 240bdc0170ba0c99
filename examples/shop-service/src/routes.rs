//! What the service answers. Who may trigger and pause jobs is for the service to say: this one
//! listens on loopback alone, and asks nobody who they are.
//!
//! Must never: answer from a job's own words what the ledger knows better.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use close_expired_orders::shop::{Placing, ShopError};
use serde::Deserialize;
use serde_json::{Value, json};
use soloist::{EndedAttempt, Handle, JobStatus};
use tokio::sync::watch;

use crate::front::Front;

/// What all routes have.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) front: Front,
    /// Of the scheduler: cheap to clone, and keeps nothing at work.
    pub(crate) jobs: Handle,
    /// How the scheduler is, in words.
    pub(crate) health: watch::Receiver<String>,
}

pub(crate) fn of(service: Service) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/stock", get(stock))
        .route("/orders", post(place))
        .route("/orders/{order}/pay", post(pay))
        .route("/jobs", get(status))
        .route("/jobs/{job}/history", get(history))
        .route("/jobs/{job}/trigger", post(trigger))
        .route("/jobs/{job}/pause", post(pause))
        .route("/jobs/{job}/resume", post(resume))
        .with_state(service)
}

/// Whether this instance can sell. It can without the store of the leases: then nothing new is
/// closed for a while, which is said, and no reason to send customers away.
async fn healthz(State(service): State<Service>) -> Result<Json<Value>, Refusal> {
    service.front.ask(|shop| shop.stock()).await?;
    let jobs = service.health.borrow().clone();
    Ok(Json(json!({ "database": "ok", "jobs": jobs })))
}

async fn stock(State(service): State<Service>) -> Json<BTreeMap<String, i64>> {
    Json(service.front.shelves())
}

#[derive(Deserialize)]
struct Wish {
    quantity: i64,
}

async fn place(
    State(service): State<Service>,
    Json(wish): Json<Wish>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    if wish.quantity < 1 {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "order one at least"));
    }
    let placing = Placing {
        quantity: wish.quantity,
        paid: false,
        placed_ago: Duration::ZERO,
    };
    let placed = service.front.ask(move |shop| shop.place_order(&placing));
    match placed.await? {
        Some(order) => Ok((StatusCode::CREATED, Json(json!({ "order": order })))),
        None => Err(Refusal::new(StatusCode::CONFLICT, "sold out")),
    }
}

async fn pay(
    State(service): State<Service>,
    Path(order): Path<i64>,
) -> Result<StatusCode, Refusal> {
    match service.front.ask(move |shop| shop.pay(order)).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Refusal::new(
            StatusCode::CONFLICT,
            "no such order is unpaid",
        )),
    }
}

async fn status(State(service): State<Service>) -> Result<Json<Value>, Refusal> {
    let status = service.jobs.status().await?;
    let job = |job: &JobStatus| {
        let last = job.last.as_ref().map(|last| {
            json!({
                "scheduled_at": last.scheduled_at.to_string(),
                "attempt": last.attempt,
                "replica": last.replica,
                "state": match last.state {
                    soloist::State::Running { .. } => "running",
                    soloist::State::Again { .. } => "again",
                    soloist::State::Ended(outcome) => outcome.as_str(),
                    _ => "waiting",
                },
            })
        });
        let paused = job.paused.as_ref().map(|pause| pause.since.to_string());
        let next = job.next.as_ref().map(ToString::to_string);
        json!({ "job": job.name, "next": next, "paused": paused, "last": last })
    };
    let jobs: Vec<Value> = status.jobs.iter().map(job).collect();
    Ok(Json(json!({ "now": status.now.to_string(), "jobs": jobs })))
}

#[derive(Deserialize)]
struct Page {
    limit: Option<usize>,
}

async fn history(
    State(service): State<Service>,
    Path(job): Path<String>,
    Query(page): Query<Page>,
) -> Result<Json<Value>, Refusal> {
    let limit = page.limit.unwrap_or(20).min(1000);
    let lines = service.jobs.history(Some(&job), limit).await?;
    let line = |line: &EndedAttempt| {
        json!({
            "scheduled_at": line.scheduled_at.to_string(),
            "attempt": line.attempt,
            "token": line.fencing_token,
            "replica": line.replica,
            "started_at": line.started_at.to_string(),
            "ended_at": line.ended_at.to_string(),
            "outcome": line.outcome.as_str(),
            "reason": line.reason,
            "next_attempt_at": line.next_attempt_at.as_ref().map(ToString::to_string),
            // A line may stand for all that was due in a stretch of time, such as a pause.
            "since": line.since.as_ref().map(ToString::to_string),
            "occurrences": line.occurrences,
        })
    };
    Ok(Json(lines.iter().map(line).collect()))
}

async fn trigger(
    State(service): State<Service>,
    Path(job): Path<String>,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    // Some instance runs it, not this one rather than another.
    let at = service.jobs.by("the web service").trigger(&job).await?;
    Ok((
        StatusCode::ACCEPTED,
        Json(json!({ "scheduled_at": at.to_string() })),
    ))
}

async fn pause(
    State(service): State<Service>,
    Path(job): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let since = service.jobs.by("the web service").pause(&job).await?;
    Ok(Json(json!({ "paused": since.to_string() })))
}

async fn resume(
    State(service): State<Service>,
    Path(job): Path<String>,
) -> Result<Json<Value>, Refusal> {
    let was_paused = service.jobs.by("the web service").resume(&job).await?;
    Ok(Json(json!({ "was_paused": was_paused })))
}

/// What can't be answered, and why.
struct Refusal(StatusCode, String);

impl Refusal {
    fn new(status: StatusCode, why: &str) -> Self {
        Self(status, why.to_owned())
    }
}

impl From<ShopError> for Refusal {
    fn from(error: ShopError) -> Self {
        Self(StatusCode::SERVICE_UNAVAILABLE, error.with_causes())
    }
}

impl From<soloist::Error> for Refusal {
    fn from(error: soloist::Error) -> Self {
        let status = match &error {
            soloist::Error::UnknownJob { .. } => StatusCode::NOT_FOUND,
            soloist::Error::Disabled { .. } | soloist::Error::Full { .. } => StatusCode::CONFLICT,
            soloist::Error::Store { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self(status, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, Json(json!({ "error": self.1 }))).into_response()
    }
}
