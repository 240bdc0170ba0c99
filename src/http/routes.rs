//! What there is under which address, and the OpenAPI document of it: both are made from the same
//! declarations, which stand at the handlers.
//!
//! Must never: route to a handler by another way than `routes!`, which is what documents it.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use super::query::{Nothing, Parameter};
use super::{api, probes};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "soloist",
        description = "One cron table on many machines. Any replica of a fleet gives the same answers: \
                       they are what the store and the replica's table say.\n\n\
                       Reading is open on loopback only; elsewhere, and for every change, send \
                       `Authorization: Bearer TOKEN`. Errors are problem details (RFC 9457); instants \
                       are RFC 3339 in UTC. Fields may be added, and none changes its meaning.",
    ),
    tags(
        (name = "probes", description = "For orchestrators and scrapers"),
        (name = "jobs", description = "Jobs, and orders to them"),
        (name = "ledger", description = "What ran, what didn't, and why"),
        (name = "fleet", description = "Replicas and store"),
    ),
    security(("bearer" = [])),
    modifiers(&Security)
)]
struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        let bearer = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some(
                "A token of the file that `api_tokens` names: of role `read` to look, of role \
                 `operator` to change. On loopback reading takes none.",
            ))
            .build();
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

/// All that there is.
pub(super) fn routes() -> OpenApiRouter {
    OpenApiRouter::with_openapi(Document::openapi())
        .routes(routes!(index))
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::readyz))
        .routes(routes!(probes::metrics))
        .routes(routes!(document))
        .routes(routes!(api::fleet::status))
        .routes(routes!(api::fleet::replicas))
        .routes(routes!(api::jobs::jobs))
        .routes(routes!(api::jobs::job))
        .routes(routes!(api::occurrences::occurrences))
        .routes(routes!(api::occurrences::occurrence))
        .routes(routes!(api::attempts::attempts))
        .routes(routes!(api::attempts::output))
        .routes(routes!(api::orders::trigger))
        .routes(routes!(api::orders::pause))
        .routes(routes!(api::orders::resume))
        .routes(routes!(api::orders::kill))
}

/// This document.
#[utoipa::path(get, path = "/api/v1/openapi.json", tag = "fleet", responses(
    (status = 200, description = "An OpenAPI 3.1 document", body = Object),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
))]
async fn document(_: Parameter<Nothing>) -> Response {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| routes().to_openapi().to_pretty_json().unwrap_or_default());
    ([(CONTENT_TYPE, "application/json")], TEXT.as_str()).into_response()
}

/// What there is, for people.
#[utoipa::path(get, path = "/", tag = "fleet", responses(
    (status = 200, description = "A line for each address", body = String, content_type = "text/plain"),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
))]
async fn index() -> Response {
    static TEXT: LazyLock<String> = LazyLock::new(listing);
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], TEXT.as_str()).into_response()
}

fn listing() -> String {
    let mut text = format!("soloist {}\n\n", env!("CARGO_PKG_VERSION"));
    for (path, item) in &routes().to_openapi().paths.paths {
        for (method, operation) in [("GET ", &item.get), ("POST", &item.post)] {
            if let Some(operation) = operation {
                let summary = operation.summary.as_deref().unwrap_or_default();
                let summary = summary.split(". ").next().unwrap_or_default();
                let summary = summary.trim_end_matches('.');
                text += &format!("{method} {path}\n     {}\n", summary.replace('\n', " "));
            }
        }
    }
    text
}
