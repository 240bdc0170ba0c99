//! From a request to its answer: who asks, the body, the time-out, and one form for all errors.
//!
//! Must never: let what goes wrong in one answer end more than that answer; or log a query or a
//! header, which may hold what is secret.

use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HOST, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{Method, Request, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt as _, StreamExt as _};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use tracing::{debug, error};

use super::access::Visitor;
use super::problem::{Kind, PROBLEM_JSON, Problem};
use super::{App, routes};

/// The largest body of a request.
pub(super) const BODY_LIMIT: usize = 64 * 1024;

/// What of a library's error is read.
const TEXT_LIMIT: usize = 16 * 1024;

tokio::task_local! {
    static ANSWERING: ();
}

/// Whether this thread is making an answer: a panic in there ends that answer alone.
pub(crate) fn is_answering() -> bool {
    ANSWERING.try_with(|()| ()).is_ok()
}

/// What handlers are told of a request beside itself.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) app: Arc<App>,
    pub(super) visitor: Visitor,
}

/// The answer to a request of `peer`.
pub(super) async fn answer(
    app: &Arc<App>,
    peer: IpAddr,
    within: Duration,
    request: Request<Body>,
) -> Response {
    let began = app.clock.boot();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let admission = names_one_host(&request).and_then(|()| app.gate.admit(peer, &request));
    let (who, response) = match admission {
        Ok(visitor) => {
            let who = visitor.name.clone();
            (who, admitted(app, visitor, within, request).await)
        }
        Err(refusal) => (None, refusal.into_response()),
    };
    let response = in_our_form(response, &method, &path).await;
    let took = app.clock.boot().saturating_since(began);
    debug!(%peer, %method, path, status = response.status().as_u16(), ?took, by = who, "answered");
    response
}

/// As RFC 9112, 3.2 wants it of servers: where proxies and this replica could take a request for one
/// to different hosts, nobody answers it.
fn names_one_host<B>(request: &Request<B>) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let is_host =
        |host: &HeaderValue| host.is_empty() || Authority::try_from(host.as_bytes()).is_ok();
    let is_right = match (hosts.next(), hosts.next()) {
        (None, _) => request.version() < Version::HTTP_11,
        (Some(host), None) => is_host(host),
        (Some(_), Some(_)) => false,
    };
    let detail = "a request has one header `Host`, with the host and port that it is meant for";
    is_right
        .then_some(())
        .ok_or_else(|| Problem::new(Kind::BadRequest, detail))
}

async fn admitted(
    app: &Arc<App>,
    visitor: Visitor,
    within: Duration,
    request: Request<Body>,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = match tokio::time::timeout(within, read(body)).await {
        Ok(Ok(body)) => body,
        Ok(Err(refusal)) => return refusal.into_response(),
        Err(_) => {
            let detail = format!("the body was not there within {within:?}; send it at once");
            let problem = Problem::new(Kind::RequestTimeout, detail);
            return problem
                .header(CONNECTION, HeaderValue::from_static("close"))
                .into_response();
        }
    };
    let mut request = Request::from_parts(parts, Body::from(body));
    request.extensions_mut().insert(Asked {
        app: Arc::clone(app),
        visitor,
    });
    let made = ANSWERING.scope((), AssertUnwindSafe(routed(request)).catch_unwind());
    match tokio::time::timeout(within, made).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            error!("an answer was not made: there is a defect, which the lines above name");
            let detail = "there is a defect in soloist, and nothing but this answer is harmed; \
                          please report what the log of this replica says";
            Problem::new(Kind::Internal, detail).into_response()
        }
        Err(_) => {
            let detail = format!("no answer was ready within {within:?}; ask again later");
            let problem = Problem::new(Kind::Overdue, detail);
            problem.retry_after(Duration::from_secs(5)).into_response()
        }
    }
}

async fn read(body: Body) -> Result<Bytes, Problem> {
    let too_large = || {
        let detail = format!("a body has at most {BODY_LIMIT} bytes");
        Problem::new(Kind::ContentTooLarge, detail)
            .header(CONNECTION, HeaderValue::from_static("close"))
    };
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|cause| {
            let detail = format!("the body broke off: {cause}; send all of it");
            Problem::new(Kind::BadRequest, detail)
        })?;
        if bytes.len() + part.len() > BODY_LIMIT {
            return Err(too_large());
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.into())
}

async fn routed(request: Request<Body>) -> Response {
    static ROUTER: OnceLock<Router> = OnceLock::new();
    let router = ROUTER.get_or_init(|| routes::routes().split_for_parts().0);
    let service = TowerToHyperService::new(router.clone());
    match service.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// With the headers that all answers have; errors that a library made with a body of ours.
async fn in_our_form(response: Response, method: &Method, path: &str) -> Response {
    let content = response.headers().get(CONTENT_TYPE);
    let is_ours = content.is_some_and(|content| content == PROBLEM_JSON);
    let is_error = response.status().is_client_error() || response.status().is_server_error();
    let mut response = match is_error && !is_ours {
        false => response,
        true => {
            let (parts, body) = response.into_parts();
            let text = to_bytes(body, TEXT_LIMIT).await.unwrap_or_default();
            let answer = Response::from_parts(parts, Body::empty());
            let text = String::from_utf8_lossy(&text);
            let problem = Problem::of_library(&answer, &text, path);
            problem.into_response()
        }
    };
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Answers with JSON.
pub(super) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => (status, [(CONTENT_TYPE, "application/json")], text + "\n").into_response(),
        Err(cause) => {
            Problem::new(Kind::Internal, format!("failed to write JSON: {cause}")).into_response()
        }
    }
}
