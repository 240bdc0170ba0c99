//! Errors as RFC 9457 has them: `application/problem+json`, with a type that stays, and a detail
//! that names cause and cure.
//!
//! Must never: hold a secret, or what a client sent as credentials.

use std::time::Duration;

use axum::http::header::{ALLOW, CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::store::StoreError;

/// The media type of all errors.
pub(super) const PROBLEM_JSON: &str = "application/problem+json";

/// What of an error's text that a library made is passed on.
const DETAIL_LIMIT: usize = 500;

/// When to ask again where the store is away: it is asked anew about each second.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// What an error is about, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    NothingRuns,
    JobDisabled,
    QueueFull,
    ContentTooLarge,
    UnsupportedMediaType,
    VersionNotSupported,
    Internal,
    StoreUnavailable,
    NotReady,
    Stuck,
    Overdue,
}

impl Kind {
    /// The end of its type.
    const fn ending(self) -> &'static str {
        match self {
            Kind::BadRequest => "bad-request",
            Kind::Unauthorized => "unauthorized",
            Kind::Forbidden => "forbidden",
            Kind::NotFound => "not-found",
            Kind::MethodNotAllowed => "method-not-allowed",
            Kind::RequestTimeout => "request-timeout",
            Kind::NothingRuns => "nothing-runs",
            Kind::JobDisabled => "job-disabled",
            Kind::QueueFull => "queue-full",
            Kind::ContentTooLarge => "content-too-large",
            Kind::UnsupportedMediaType => "unsupported-media-type",
            Kind::VersionNotSupported => "version-not-supported",
            Kind::Internal => "internal",
            Kind::StoreUnavailable => "store-unavailable",
            Kind::NotReady => "not-ready",
            Kind::Stuck => "stuck",
            Kind::Overdue => "overdue",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Kind::BadRequest => "The request makes no sense",
            Kind::Unauthorized => "A bearer token is required",
            Kind::Forbidden => "The token doesn't allow this",
            Kind::NotFound => "There is no such thing",
            Kind::MethodNotAllowed => "The method has no meaning here",
            Kind::RequestTimeout => "The request took too long to arrive",
            Kind::NothingRuns => "Nothing of the job runs",
            Kind::JobDisabled => "The job is disabled",
            Kind::QueueFull => "Too much waits already",
            Kind::ContentTooLarge => "The body is too large",
            Kind::UnsupportedMediaType => "The body has to be JSON",
            Kind::VersionNotSupported => "This version of HTTP is not spoken here",
            Kind::Internal => "Something is wrong with soloist",
            Kind::StoreUnavailable => "The store can't be asked",
            Kind::NotReady => "The replica is not ready",
            Kind::Stuck => "The scheduler doesn't answer",
            Kind::Overdue => "The answer took too long",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Kind::BadRequest => StatusCode::BAD_REQUEST,
            Kind::Unauthorized => StatusCode::UNAUTHORIZED,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Kind::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Kind::NothingRuns | Kind::JobDisabled | Kind::QueueFull => StatusCode::CONFLICT,
            Kind::ContentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Kind::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Kind::VersionNotSupported => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Kind::StoreUnavailable | Kind::NotReady | Kind::Stuck | Kind::Overdue => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// What a status that a library answered with is about.
    fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::NOT_FOUND => Kind::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => Kind::MethodNotAllowed,
            StatusCode::PAYLOAD_TOO_LARGE => Kind::ContentTooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Kind::UnsupportedMediaType,
            StatusCode::REQUEST_TIMEOUT => Kind::RequestTimeout,
            status if status.is_client_error() => Kind::BadRequest,
            _ => Kind::Internal,
        }
    }
}

/// An error, as RFC 9457 has it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Problem {
    /// What it is about: `urn:soloist:problem:…`. Types stay what they are.
    #[serde(rename = "type")]
    #[schema(rename = "type", example = "urn:soloist:problem:store-unavailable")]
    kind: String,
    /// The same for people.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What happened this time, and what to do about it.
    detail: String,
    /// More of it, by its type.
    #[serde(flatten)]
    #[schema(ignore)]
    more: Map<String, Value>,
    #[serde(skip)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:soloist:problem:{}", kind.ending()),
            title: kind.title(),
            status: kind.status().as_u16(),
            detail: detail.into(),
            more: Map::new(),
            headers: Vec::new(),
        }
    }

    /// No such job; `near` is what may have been meant.
    pub(super) fn no_such_job(job: &str, near: Option<&str>) -> Self {
        let cure = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "GET /api/v1/jobs lists those that there are".to_owned(),
        };
        let detail = format!("neither the table here nor the ledger has a job `{job}`; {cure}");
        Self::new(Kind::NotFound, detail)
    }

    /// Credentials that are missing or wrong; `error` is a word of RFC 6750, where one is wrong.
    pub(super) fn unauthorized(error: Option<&'static str>, detail: impl Into<String>) -> Self {
        let challenge = match error {
            None => HeaderValue::from_static("Bearer realm=\"soloist\""),
            Some("insufficient_scope") => HeaderValue::from_static(
                "Bearer realm=\"soloist\", error=\"insufficient_scope\", scope=\"operator\"",
            ),
            Some(_) => {
                HeaderValue::from_static("Bearer realm=\"soloist\", error=\"invalid_token\"")
            }
        };
        let kind = match error {
            Some("insufficient_scope") => Kind::Forbidden,
            _ => Kind::Unauthorized,
        };
        Self::new(kind, detail).header(WWW_AUTHENTICATE, challenge)
    }

    pub(super) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Says when to ask again.
    pub(super) fn retry_after(self, wait: Duration) -> Self {
        self.header(RETRY_AFTER, HeaderValue::from(wait.as_secs()))
    }

    /// Says more, by a name that its type knows.
    pub(super) fn with(mut self, more: Map<String, Value>) -> Self {
        self.more.extend(more);
        self
    }

    /// Its body.
    pub(super) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// An answer of a library, in our form: its status and headers with a body of ours. `text` is
    /// its body.
    pub(super) fn of_library(answer: &Response, text: &str, path: &str) -> Self {
        let kind = Kind::of(answer.status());
        let detail = match kind {
            Kind::NotFound => format!("nothing is at `{}`; GET / names what there is", short(path)),
            Kind::MethodNotAllowed => {
                let allowed = answer.headers().get(ALLOW);
                let allowed = allowed.and_then(|allowed| allowed.to_str().ok());
                format!("this address takes {}", allowed.unwrap_or("nothing"))
            }
            Kind::Internal => "its log says more".to_owned(),
            // All that is left to a library to refuse.
            Kind::BadRequest => "the address is not UTF-8 behind its `%`".to_owned(),
            _ => short(text).to_owned(),
        };
        let mut problem = Self::new(kind, detail);
        problem.status = answer.status().as_u16();
        if let Some(allowed) = answer.headers().get(ALLOW) {
            problem = problem.header(ALLOW, allowed.clone());
        }
        problem
    }
}

fn short(text: &str) -> &str {
    let end = text.floor_char_boundary(DETAIL_LIMIT);
    &text[..end]
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::new(Kind::StoreUnavailable, error.to_string()).retry_after(STORE_RETRY)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = self.text();
        let mut response = (status, [(CONTENT_TYPE, PROBLEM_JSON)], body).into_response();
        for (name, value) in self.headers {
            response.headers_mut().append(name, value);
        }
        response
    }
}
