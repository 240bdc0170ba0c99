//! Orders: what `soloist trigger`, `pause`, `resume` and `kill` ask for, in the name of a token.
//!
//! The store has written an order down when it is answered, and whichever replica it concerns does
//! it: hence 202. An `Idempotency-Key` makes of the same request, sent again, the same order.
//!
//! Must never: be reached without an operator's token, which `access` sees to and this checks.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::Path;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use ring::digest::{Context, SHA256};
use serde_json::Value;
use tracing::info;
use uuid::Builder;

use super::{job_name, no_such_job};
use crate::config::Config;
use crate::http::App;
use crate::http::answer::{Asked, json};
use crate::http::ledger::OneOrder;
use crate::http::problem::{Kind, Problem};
use crate::http::query::{Nothing, Parameter};
use crate::orders::{Request, Said, Told, Wire, absence, tell};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{OrderAnswer, OrderKind, RunId};
use crate::scheduler::policy::Tags;

/// The longest `Idempotency-Key`.
const KEY_LENGTH: usize = 255;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Asks for an occurrence now, on whatever replica, under the job's policies.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/trigger", tag = "jobs",
    params(
        ("job" = String, Path, description = "The job's name"),
        ("Idempotency-Key" = Option<String>, Header, description = "The same request again, with the same key, asks for nothing more: remembered for the newest 8 triggers of a job"),
    ),
    responses(
    (status = 202, description = "It is written down: `scheduled_at` names the occurrence, and so does Location", body = Wire),
    (status = 400, description = "The body or a header makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "A change takes a token", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "And one of role `operator`", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "The job is disabled, or too much of it waits", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn trigger(
    asked: Extension<Asked>,
    job: Path<String>,
    _: Parameter<Nothing>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    order(OrderKind::Trigger, asked, job, &headers, &body).await
}

/// Has what falls due of a job skipped, on every replica, until it is resumed.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/pause", tag = "jobs",
    params(("job" = String, Path, description = "The job's name")),
    responses(
    (status = 202, description = "It is paused", body = Wire),
    (status = 400, description = "The body or a header makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "A change takes a token", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "And one of role `operator`", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn pause(
    asked: Extension<Asked>,
    job: Path<String>,
    _: Parameter<Nothing>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    order(OrderKind::Pause, asked, job, &headers, &body).await
}

/// Ends the pause of a job. What fell due meanwhile stays skipped.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/resume", tag = "jobs",
    params(("job" = String, Path, description = "The job's name")),
    responses(
    (status = 202, description = "It is not paused", body = Wire),
    (status = 400, description = "The body or a header makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "A change takes a token", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "And one of role `operator`", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn resume(
    asked: Extension<Asked>,
    job: Path<String>,
    _: Parameter<Nothing>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    order(OrderKind::Resume, asked, job, &headers, &body).await
}

/// Ends what runs of a job, on whatever replica, and what waits to be tried again.
#[utoipa::path(post, path = "/api/v1/jobs/{job}/kill", tag = "jobs",
    params(("job" = String, Path, description = "The job's name")),
    responses(
    (status = 202, description = "Its attempts are told to end", body = Wire),
    (status = 400, description = "The body or a header makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "A change takes a token", body = Problem, content_type = "application/problem+json"),
    (status = 403, description = "And one of role `operator`", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 409, description = "Nothing of it runs", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn kill(
    asked: Extension<Asked>,
    job: Path<String>,
    _: Parameter<Nothing>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    order(OrderKind::Kill, asked, job, &headers, &body).await
}

async fn order(
    what: OrderKind,
    Extension(Asked { app, visitor }): Extension<Asked>,
    Path(job): Path<String>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Response, Problem> {
    let job = job_name(&job)?;
    check_body(headers, body)?;
    let Some(by) = visitor.name else {
        return Err(Problem::unauthorized(None, "a change takes a token"));
    };
    let id = key_of(headers)?.map(|key| id_of(key, &by, &job, what));
    let config = app.config();
    let one = OneOrder {
        what,
        job: job.clone(),
        by: by.clone(),
        id,
    };
    let said = app
        .ledger
        .order(one, config.clone(), app.replica.clone())
        .await?;
    let said = said.ok_or_else(|| Problem::new(Kind::Internal, "the store answered nothing"))?;
    let request = Request {
        what,
        jobs: std::slice::from_ref(&job),
        by: &by,
        id,
    };
    let told = tell(request, &said, &[]);
    match &told {
        Told::Done(text) => {
            info!(%job, order = %what.as_str(), %by, "an order came over HTTP: {text}");
            let note = note(&app, &config, &said).await;
            let wire = Wire::of(request, &said, &told).noted(note);
            Ok(accepted(&wire, &said))
        }
        Told::Refused { message, .. } => {
            info!(%job, order = %what.as_str(), %by, "an order that came over HTTP was refused: {message}");
            Err(match said.answer {
                OrderAnswer::Unknown => {
                    let look = app.ledger.look().await?;
                    no_such_job(&job, &config, &look.answered.answer)
                }
                _ => refused(&said),
            })
        }
    }
}

/// That a trigger waits for a replica that would start it. That this one has the job says little:
/// a newer table may lack it.
async fn note(app: &App, config: &Config, said: &Said) -> Option<String> {
    let is_trigger = matches!(said.answer, OrderAnswer::Triggered { .. });
    if !is_trigger {
        return None;
    }
    // The order is written down, whether or not this can be told.
    let look = app.ledger.look().await.ok()?;
    let shown = &look.answered;
    let entry = config.jobs.iter().find(|job| job.name == said.job);
    let run_on = entry.map_or_else(Tags::new, |job| job.run_on.clone());
    absence(shown.now, &shown.answer, &said.job, &run_on)
}

fn accepted(wire: &Wire, said: &Said) -> Response {
    let mut response = json(StatusCode::ACCEPTED, wire);
    if let OrderAnswer::Triggered { scheduled_at } | OrderAnswer::Killed { scheduled_at, .. } =
        &said.answer
    {
        let location = format!("/api/v1/occurrences/{}/{scheduled_at}", said.job);
        if let Ok(location) = HeaderValue::from_str(&location) {
            response.headers_mut().insert(LOCATION, location);
        }
    }
    response
}

fn refused(said: &Said) -> Problem {
    let job = &said.job;
    let (kind, detail) = match said.answer {
        OrderAnswer::Disabled => (
            Kind::JobDisabled,
            format!(
                "`{job}` is disabled in the table, so that no replica would run it; set `enabled = true` there"
            ),
        ),
        OrderAnswer::Full => (
            Kind::QueueFull,
            format!(
                "too many occurrences of `{job}` wait for their turn; see that a replica runs them"
            ),
        ),
        _ => (
            Kind::NothingRuns,
            format!("nothing of `{job}` runs; /api/v1/attempts?job={job} has what ran"),
        ),
    };
    Problem::new(kind, detail)
}

/// The body of an order is an empty object, or nothing. It has room for what is to come.
fn check_body(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    if body.is_empty() {
        return Ok(());
    }
    let content = headers
        .get(CONTENT_TYPE)
        .and_then(|content| content.to_str().ok());
    let media = content.and_then(|content| content.split(';').next());
    if !media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json")) {
        let detail = "send no body, or `{}` with `Content-Type: application/json`";
        return Err(Problem::new(Kind::UnsupportedMediaType, detail));
    }
    let wrong = match serde_json::from_slice::<Value>(body) {
        Ok(Value::Object(options)) if options.is_empty() => return Ok(()),
        Ok(Value::Object(_)) => "an order has no options".to_owned(),
        Ok(_) => "the body is no object".to_owned(),
        Err(cause) => format!(
            "the body is no JSON from line {}, column {} on",
            cause.line(),
            cause.column()
        ),
    };
    let detail = format!("{wrong}; send none, or `{{}}`");
    Err(Problem::new(Kind::BadRequest, detail))
}

fn key_of(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = match (keys.next(), keys.next()) {
        (None, _) => return Ok(None),
        (Some(key), None) => key.to_str().ok(),
        (Some(_), Some(_)) => None,
    };
    let key = key.filter(|key| (1..=KEY_LENGTH).contains(&key.len()));
    let detail = "`Idempotency-Key` is one text of 1 to 255 characters of ASCII, such as a UUID";
    key.map(Some)
        .ok_or_else(|| Problem::new(Kind::BadRequest, detail))
}

/// The identity of an order: the same for the same key of the same token, job and order, and for
/// nothing else.
fn id_of(key: &str, by: &str, job: &JobName, what: OrderKind) -> RunId {
    let mut digest = Context::new(&SHA256);
    for part in ["soloist order", by, job.as_str(), &format!("{what:?}"), key] {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part.as_bytes());
    }
    let mut bytes = [0; 16];
    for (byte, drawn) in bytes.iter_mut().zip(digest.finish().as_ref()) {
        *byte = *drawn;
    }
    RunId::new(Builder::from_custom_bytes(bytes).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_has_the_identity_of_its_key_token_job_and_kind_together() {
        let job = |name| JobName::new(name).unwrap();
        let id = id_of("k", "ann", &job("a"), OrderKind::Trigger);
        assert_eq!(id, id_of("k", "ann", &job("a"), OrderKind::Trigger));
        for other in [
            id_of("l", "ann", &job("a"), OrderKind::Trigger),
            id_of("k", "bob", &job("a"), OrderKind::Trigger),
            id_of("k", "ann", &job("b"), OrderKind::Trigger),
            id_of("k", "ann", &job("a"), OrderKind::Kill),
            id_of("ak", "ann", &job("b"), OrderKind::Trigger),
        ] {
            assert_ne!(id, other);
        }
    }
}
