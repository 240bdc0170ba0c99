//! Past attempts, and what they printed.
//!
//! Must never: look further back than [`LOOK_BACK`] lines.

use axum::Extension;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{job_name, no_such_job};
use crate::http::App;
use crate::http::answer::{Asked, json};
use crate::http::problem::{Kind, Problem};
use crate::http::query::{Given, Nothing, Parameter, Parameters, instant};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Captured, RunId};
use crate::scheduler::time::Timestamp;
use crate::store::AttemptRecord;
use crate::views::history::{AttemptView, shown};

/// How many lines a page has.
const USUAL: usize = 50;
const MOST: usize = 500;

/// How many lines back pages go.
const LOOK_BACK: usize = 10_000;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Page {
    /// Those of one job alone.
    job: Option<String>,
    /// How many at most: 1 to 500, by default 50.
    limit: Option<usize>,
    /// Those that ended before this instant, such as 2026-11-20T22:00:00Z; or what `next` of the
    /// page before has.
    before: Option<String>,
}

impl Parameters for Page {
    const NAMES: &'static [&'static str] = &["job", "limit", "before"];

    fn read(given: &Given) -> Result<Self, Problem> {
        Ok(Self {
            job: given.text("job").map(str::to_owned),
            limit: given.limit(MOST)?,
            before: given.text("before").map(str::to_owned),
        })
    }
}

/// Lines of the ledger, as in `soloist history --json`.
#[derive(Serialize, ToSchema)]
struct AttemptList<'a> {
    items: Vec<AttemptView<'a>>,
    /// The address of the next page, where there may be one; pages go 10,000 lines back.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Where a page begins: after a line, or below an instant.
struct Cursor {
    ended_at: Timestamp,
    line: Option<(String, u32, Timestamp)>,
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, Problem> {
        Self::of_line(text).map_or_else(
            || {
                let ended_at = instant("before", text)?;
                Ok(Self {
                    ended_at,
                    line: None,
                })
            },
            Ok,
        )
    }

    fn of_line(text: &str) -> Option<Self> {
        let [ended_at, run_id, attempt, scheduled_at] = text.split('.').collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let instant = |text: &str| text.parse().map(Timestamp::from_millis).ok();
        Some(Self {
            ended_at: instant(ended_at)?,
            line: Some((
                run_id.to_owned(),
                attempt.parse().ok()?,
                instant(scheduled_at)?,
            )),
        })
    }

    fn after(line: &AttemptRecord) -> String {
        let (ended_at, scheduled_at) = (line.ended_at.as_millis(), line.scheduled_at.as_millis());
        format!("{ended_at}.{}.{}.{scheduled_at}", line.run_id, line.attempt)
    }

    /// The lines that come after it.
    fn rest<'l>(&self, lines: &'l [AttemptRecord]) -> &'l [AttemptRecord] {
        let is_it = |line: &AttemptRecord| {
            self.line.as_ref().is_some_and(|(run_id, attempt, at)| {
                line.attempt == *attempt
                    && line.scheduled_at == *at
                    && line.run_id.to_string() == *run_id
            })
        };
        // One that is no longer kept was as old as what follows it.
        let after_it = lines.iter().position(is_it).map(|at| at + 1);
        let below = || lines.iter().position(|line| line.ended_at < self.ended_at);
        let begin = after_it.or_else(below).unwrap_or(lines.len());
        &lines[begin..]
    }
}

/// Past attempts, and what never started, the newest end first: as in `soloist history --json`.
#[utoipa::path(get, path = "/api/v1/attempts", tag = "ledger", params(Page), responses(
    (status = 200, description = "A page of attempts", body = AttemptList<'static>),
    (status = 400, description = "A parameter makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn attempts(
    Extension(asked): Extension<Asked>,
    Parameter(page): Parameter<Page>,
) -> Result<Response, Problem> {
    let app = &asked.app;
    let limit = page.limit.unwrap_or(USUAL);
    let job = page.job.as_deref().map(job_name).transpose()?;
    let cursor = page.before.as_deref().map(Cursor::parse).transpose()?;
    let config = app.config();
    let mut wanted = (2 * limit).min(LOOK_BACK);
    let (lines, complete) = loop {
        let lines = app.ledger.lines(job.clone(), wanted).await?;
        if let (Some(job), true) = (&job, lines.is_empty()) {
            known(app, job).await?;
        }
        let complete = lines.len() < wanted;
        let rest = cursor
            .as_ref()
            .map_or(&lines[..], |cursor| cursor.rest(&lines));
        let enough = shown(rest, &config.jobs, limit + 1).len() > limit;
        if complete || enough || wanted == LOOK_BACK {
            break (rest.to_vec(), complete);
        }
        wanted = (4 * wanted).min(LOOK_BACK);
    };
    let mut page_lines = shown(&lines, &config.jobs, limit + 1);
    let more = page_lines.len() > limit;
    page_lines.truncate(limit);
    let last = page_lines.last().filter(|_| more);
    let next = last.map(|last| {
        let whose = job
            .as_ref()
            .map_or(String::new(), |job| format!("&job={job}"));
        let cursor = Cursor::after(&last.record);
        format!("/api/v1/attempts?limit={limit}{whose}&before={cursor}")
    });
    tracing::trace!(lines = lines.len(), complete, "looked back");
    let list = AttemptList {
        items: page_lines.iter().map(AttemptView::of).collect(),
        next,
    };
    Ok(json(StatusCode::OK, &list))
}

/// Tells a job that has not run yet from one that there is none of.
async fn known(app: &App, job: &JobName) -> Result<(), Problem> {
    let (look, config) = (app.ledger.look().await?, app.config());
    let snapshot = &look.answered.answer;
    let is_known = config.jobs.iter().any(|one| one.name == *job)
        || snapshot.jobs.iter().any(|state| state.job == *job);
    match is_known {
        true => Ok(()),
        false => Err(no_such_job(job, &config, snapshot)),
    }
}

/// What an ended attempt printed.
#[derive(Serialize, ToSchema)]
struct AttemptOutput {
    job: String,
    run_id: String,
    stdout: Printed,
    stderr: Printed,
}

/// One stream: its beginning and its end.
#[derive(Serialize, ToSchema)]
struct Printed {
    /// What is kept of it. Where bytes are cut out, a line says so.
    text: String,
    /// How much there was.
    total_bytes: u64,
    /// How much of that is not kept.
    cut_bytes: u64,
    /// It was not UTF-8, and what was not stands as U+FFFD.
    lossy: bool,
}

impl Printed {
    fn of(stream: &Captured) -> Self {
        let cut = stream.cut();
        let mut bytes = stream.head.clone();
        if cut > 0 {
            bytes.extend(format!("\n[… {cut} bytes are not kept …]\n").bytes());
        }
        bytes.extend(&stream.tail);
        let (text, lossy) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
        };
        Self {
            text,
            total_bytes: stream.total,
            cut_bytes: cut,
            lossy,
        }
    }
}

/// What an ended attempt printed, as `soloist logs` shows it. It is kept of the newest 100 of a job.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/attempts/{run_id}/output", tag = "ledger",
    params(
        ("job" = String, Path, description = "The job's name"),
        ("run_id" = String, Path, description = "`run_id` of the attempt"),
    ),
    responses(
    (status = 200, description = "Its output", body = AttemptOutput),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "Nothing is kept of such an attempt", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn output(
    Extension(asked): Extension<Asked>,
    Path((job, run_id)): Path<(String, String)>,
    _: Parameter<Nothing>,
) -> Result<Response, Problem> {
    let job = job_name(&job)?;
    let gone = |why: &str| Problem::new(Kind::NotFound, why);
    let run_id = RunId::parse(&run_id)
        .ok_or_else(|| gone("`run_id` is no id: take it from /api/v1/attempts"))?;
    let printed = asked.app.ledger.output(job.clone(), run_id).await?;
    let printed = printed.ok_or_else(|| {
        gone("nothing is kept: the attempt runs still, printed nothing, or newer ones took the place of its output")
    })?;
    let output = AttemptOutput {
        job: job.to_string(),
        run_id: run_id.to_string(),
        stdout: Printed::of(&printed.stdout),
        stderr: Printed::of(&printed.stderr),
    };
    Ok(json(StatusCode::OK, &output))
}
