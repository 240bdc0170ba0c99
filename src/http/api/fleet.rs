//! The fleet as a whole.
//!
//! Must never: show the store's URL, which may hold a password.

use axum::Extension;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::answer::{Asked, json};
use crate::http::problem::Problem;
use crate::http::query::{Nothing, Parameter};
use crate::views::status::{self, ReplicaStatus, Status};

/// The replicas that were heard of in the last day, by name.
#[derive(Serialize, ToSchema)]
struct ReplicaList {
    /// The store's clock.
    now: String,
    items: Vec<ReplicaStatus>,
}

/// All of it: what `soloist status --json` prints. Large with many jobs: see /api/v1/jobs.
#[utoipa::path(get, path = "/api/v1/status", tag = "fleet", responses(
    (status = 200, description = "Store, jobs and replicas", body = Status),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn status(
    Extension(asked): Extension<Asked>,
    _: Parameter<Nothing>,
) -> Result<Response, Problem> {
    let app = &asked.app;
    let (look, config) = (app.ledger.look().await?, app.config());
    let table = Some(&config.jobs[..]);
    let status = Status::of(&config.scheduler, table, look.place.clone(), &look.answered);
    Ok(json(StatusCode::OK, &status))
}

/// The replicas that were heard of in the last day, by name.
#[utoipa::path(get, path = "/api/v1/replicas", tag = "fleet", responses(
    (status = 200, description = "The replicas", body = ReplicaList),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn replicas(
    Extension(asked): Extension<Asked>,
    _: Parameter<Nothing>,
) -> Result<Response, Problem> {
    let look = asked.app.ledger.look().await?;
    let now = look.answered.now;
    let list = ReplicaList {
        now: now.to_string(),
        items: status::replicas(&look.answered.answer, now),
    };
    Ok(json(StatusCode::OK, &list))
}
