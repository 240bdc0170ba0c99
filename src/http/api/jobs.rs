//! Jobs, as table and ledger have them.
//!
//! Must never: show a job's command, request or environment, which may be secret.

use std::ops::Bound;

use axum::Extension;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{job_name, no_such_job};
use crate::http::answer::{Asked, json};
use crate::http::problem::{Kind, Problem};
use crate::http::query::{Given, Nothing, Parameter, Parameters};
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::policy;
use crate::scheduler::time::{Timestamp, to_seconds};
use crate::views::status::{self, JobStatus};

/// How many jobs a page has.
const USUAL: usize = 100;
const MOST: usize = 500;

/// How many instants to come are told of a job.
const UPCOMING: usize = 5;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Page {
    /// How many at most: 1 to 500, by default 100.
    limit: Option<usize>,
    /// The name that the page begins after.
    #[param(value_type = Option<String>)]
    after: Option<JobName>,
}

impl Parameters for Page {
    const NAMES: &'static [&'static str] = &["limit", "after"];

    fn read(given: &Given) -> Result<Self, Problem> {
        let name = |text: &str| {
            JobName::new(text).map_err(|cause| {
                let detail = format!("`after` is the name of a job: {cause}");
                Problem::new(Kind::BadRequest, detail)
            })
        };
        Ok(Self {
            limit: given.limit(MOST)?,
            after: given.text("after").map(name).transpose()?,
        })
    }
}

/// Jobs, by name.
#[derive(Serialize, ToSchema)]
struct JobList {
    /// The store's clock.
    now: String,
    items: Vec<JobStatus>,
    /// The address of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// One job: as in the list, and what this replica's table says of it.
#[derive(Serialize, ToSchema)]
struct JobDetail {
    #[serde(flatten)]
    status: JobStatus,
    /// None where the table doesn't have the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    table: Option<JobEntry>,
    /// When it falls due next.
    upcoming: Vec<String>,
}

/// A job of the table.
#[derive(Serialize, ToSchema)]
struct JobEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    enabled: bool,
    /// As it is written.
    schedule: String,
    /// The zone that it is read in.
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_seconds: Option<f64>,
    lease_ttl_seconds: f64,
    shards: u32,
    /// The tags that a replica must have, as `gpu=yes,zone=eu`.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    run_on: String,
    /// The jobs that it comes after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    after: Vec<String>,
}

impl JobEntry {
    fn of(job: &Job) -> Self {
        Self {
            description: job.description.clone(),
            enabled: job.enabled,
            schedule: job.schedule.text().to_owned(),
            timezone: job.schedule.zone().iana_name().map(str::to_owned),
            timeout_seconds: job.timeout.map(to_seconds),
            lease_ttl_seconds: to_seconds(job.lease_ttl),
            shards: job.shards,
            run_on: policy::list(&job.run_on),
            after: job.after.iter().map(ToString::to_string).collect(),
        }
    }
}

/// The first instants of a job after one.
pub(super) fn upcoming(job: &Job, after: Timestamp, count: usize) -> Vec<Timestamp> {
    if !job.enabled {
        return Vec::new();
    }
    let next = |at: &Timestamp| job.schedule.next_after(*at);
    std::iter::successors(next(&after), next)
        .take(count)
        .collect()
}

/// The jobs of table and ledger, by name: as in `soloist status --json`.
#[utoipa::path(get, path = "/api/v1/jobs", tag = "jobs", params(Page), responses(
    (status = 200, description = "A page of jobs", body = JobList),
    (status = 400, description = "A parameter makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn jobs(
    Extension(asked): Extension<Asked>,
    Parameter(page): Parameter<Page>,
) -> Result<Response, Problem> {
    let app = &asked.app;
    let limit = page.limit.unwrap_or(USUAL);
    let (look, config) = (app.ledger.look().await?, app.config());
    let now = look.answered.now;
    let snapshot = &look.answered.answer;
    let all = status::jobs(Some(&config.jobs), snapshot);
    let withdrawal = snapshot.withdrawal(now);
    let from = page
        .after
        .as_ref()
        .map_or(Bound::Unbounded, Bound::Excluded);
    let mut rest = all.range::<JobName, _>((from, Bound::Unbounded)).peekable();
    let items: Vec<JobStatus> = rest
        .by_ref()
        .take(limit)
        .map(|(name, (job, state))| {
            JobStatus::of(name, *job, *state, now, true).unless_in(&withdrawal, name)
        })
        .collect();
    let last = items.last().filter(|_| rest.peek().is_some());
    let next = last.map(|last| format!("/api/v1/jobs?limit={limit}&after={}", last.name));
    let list = JobList {
        now: now.to_string(),
        items,
        next,
    };
    Ok(json(StatusCode::OK, &list))
}

/// One job.
#[utoipa::path(get, path = "/api/v1/jobs/{job}", tag = "jobs",
    params(("job" = String, Path, description = "Its name")),
    responses(
    (status = 200, description = "The job", body = JobDetail),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn job(
    Extension(asked): Extension<Asked>,
    Path(job): Path<String>,
    _: Parameter<Nothing>,
) -> Result<Response, Problem> {
    let app = &asked.app;
    let name = job_name(&job)?;
    let (look, config) = (app.ledger.look().await?, app.config());
    let (now, snapshot) = (look.answered.now, &look.answered.answer);
    let entry = config.jobs.iter().find(|job| job.name == name);
    let state = snapshot.jobs.iter().find(|state| state.job == name);
    if entry.is_none() && state.is_none() {
        return Err(no_such_job(&name, &config, snapshot));
    }
    let withdrawal = snapshot.withdrawal(now);
    let started = entry.filter(|_| !withdrawal.has(&name));
    let upcoming = started.map_or_else(Vec::new, |entry| upcoming(entry, now, UPCOMING));
    let detail = JobDetail {
        status: JobStatus::of(&name, entry, state, now, true).unless_in(&withdrawal, &name),
        table: entry.map(JobEntry::of),
        upcoming: upcoming.iter().map(ToString::to_string).collect(),
    };
    Ok(json(StatusCode::OK, &detail))
}
