//! What fell due, what became of it and why, and what is to come.
//!
//! Must never: look at more lines than [`LINES`] of a job.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::jobs::upcoming;
use super::{job_name, no_such_job};
use crate::config::Config;
use crate::http::App;
use crate::http::answer::{Asked, json};
use crate::http::ledger::Look;
use crate::http::problem::Problem;
use crate::http::query::{Given, Nothing, Parameter, Parameters, instant};
use crate::scheduler::job::JobName;
use crate::scheduler::time::Timestamp;
use crate::store::AttemptRecord;
use crate::why::{self, Account, Asked as Instants, RangeLine, View};

/// How many occurrences a page has.
const USUAL: usize = 20;
const MOST: usize = 100;

/// How many to come are told.
const UPCOMING: usize = 5;

/// How many of a job's lines are looked at, the newest first.
const LINES: usize = 20_000;

#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct Page {
    /// How many at most: 1 to 100, by default 20.
    limit: Option<usize>,
    /// Those of before this instant alone, such as 2026-11-20T22:00:00Z.
    #[param(value_type = Option<String>)]
    before: Option<Timestamp>,
}

impl Parameters for Page {
    const NAMES: &'static [&'static str] = &["limit", "before"];

    fn read(given: &Given) -> Result<Self, Problem> {
        let before = given.text("before");
        Ok(Self {
            limit: given.limit(MOST)?,
            before: before.map(|text| instant("before", text)).transpose()?,
        })
    }
}

/// The occurrences of a job.
#[derive(Serialize, ToSchema)]
struct OccurrenceList {
    /// Whose they are.
    job: String,
    /// The store's clock.
    now: String,
    /// What is to come first, in order; none on later pages.
    #[schema(value_type = Vec<Object>)]
    upcoming: Vec<Account>,
    /// What fell due, was triggered or came after other jobs, the newest first: each as in
    /// `accounts` of `soloist why --json`.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Account>,
    /// The address of the next page, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// All that is known of a job.
struct Known {
    job: JobName,
    config: Arc<Config>,
    look: Arc<Look>,
    lines: Vec<AttemptRecord>,
}

impl Known {
    async fn of(app: &App, job: &str) -> Result<Self, Problem> {
        let job = job_name(job)?;
        // In this order: what ends in between has its line.
        let look = app.ledger.look().await?;
        let lines = app.ledger.lines(Some(job.clone()), LINES).await?;
        let config = app.config();
        let known = Self {
            job,
            config,
            look,
            lines,
        };
        match known.view().is_known() {
            true => Ok(known),
            false => Err(no_such_job(
                &known.job,
                &known.config,
                &known.look.answered.answer,
            )),
        }
    }

    fn view(&self) -> View<'_> {
        View {
            job: &self.job,
            table: Some(&self.config.jobs),
            snapshot: &self.look.answered.answer,
            now: self.look.answered.now,
            lines: &self.lines,
        }
    }
}

/// The newest instants, so many at most.
struct Newest {
    before: Timestamp,
    limit: usize,
    instants: BTreeSet<Timestamp>,
}

impl Newest {
    /// Takes an instant; false where it, and all that are older, have no place.
    fn take(&mut self, at: Timestamp) -> bool {
        if at >= self.before {
            return true;
        }
        self.instants.insert(at);
        self.instants.len() <= self.limit || self.instants.pop_first() != Some(at)
    }

    /// Takes instants that come the newest first.
    fn take_all(&mut self, instants: impl Iterator<Item = Timestamp>) {
        for at in instants {
            if !self.take(at) {
                return;
            }
        }
    }
}

/// The newest instants of which there is something to tell, the newest first.
fn newest(view: &View<'_>, before: Timestamp, limit: usize) -> Vec<Timestamp> {
    let mut newest = Newest {
        before,
        limit,
        instants: BTreeSet::new(),
    };
    if let Some(state) = view.state() {
        let attempts = state.attempts.iter().map(|one| one.scheduled_at);
        let waiting = state.waiting.iter().map(|one| one.scheduled_at);
        let joins = state.joins.iter().map(|(at, _)| *at);
        for at in attempts.chain(waiting).chain(joins) {
            newest.take(at);
        }
    }
    if let Some(job) = view.entry().filter(|job| job.enabled)
        && let Some(state) = view.state()
    {
        // Due, and nobody has claimed them yet.
        let just_after = (view.now + Duration::from_millis(1)).min(before);
        let last = |at: &Timestamp| job.schedule.last_before(*at);
        let due = std::iter::successors(last(&just_after), last);
        newest.take_all(due.take_while(|at| *at > state.settled_until));
    }
    for line in view.lines {
        match RangeLine::of(line, view.entry()) {
            None => {
                newest.take(line.scheduled_at);
            }
            Some(range) => newest.take_all(range.newest_first(before)),
        }
    }
    newest.instants.into_iter().rev().collect()
}

/// What fell due of a job and became of it, the newest first, and what is to come.
#[utoipa::path(get, path = "/api/v1/jobs/{job}/occurrences", tag = "ledger",
    params(("job" = String, Path, description = "The job's name"), Page),
    responses(
    (status = 200, description = "A page of occurrences", body = OccurrenceList),
    (status = 400, description = "A parameter makes no sense", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn occurrences(
    Extension(asked): Extension<Asked>,
    Path(job): Path<String>,
    Parameter(page): Parameter<Page>,
) -> Result<Response, Problem> {
    let (limit, before) = (page.limit.unwrap_or(USUAL), page.before);
    let known = Known::of(&asked.app, &job).await?;
    let view = known.view();
    let tell = |instants: Vec<Timestamp>| -> Vec<Account> {
        let accounts = instants.into_iter().map(|at| why::account(&view, at));
        accounts.collect()
    };
    let to_come = match (before, view.entry()) {
        (None, Some(job)) => upcoming(job, view.now, UPCOMING),
        _ => Vec::new(),
    };
    let from = before.unwrap_or(Timestamp::from_millis(i64::MAX));
    let mut instants = newest(&view, from, limit + 1);
    let more = instants.len() > limit;
    instants.truncate(limit);
    let last = instants.last().filter(|_| more);
    let next = last.map(|last| {
        format!(
            "/api/v1/jobs/{}/occurrences?limit={limit}&before={last}",
            known.job
        )
    });
    let list = OccurrenceList {
        job: known.job.to_string(),
        now: view.now.to_string(),
        upcoming: tell(to_come),
        items: tell(instants),
        next,
    };
    Ok(json(StatusCode::OK, &list))
}

/// What became of one occurrence, and why: what `soloist why JOB TIME --json` prints. An instant
/// at which nothing was due is told as such.
#[utoipa::path(get, path = "/api/v1/occurrences/{job}/{scheduled_at}", tag = "ledger",
    params(
        ("job" = String, Path, description = "The job's name"),
        ("scheduled_at" = String, Path, description = "Its instant, such as 2026-11-20T22:00:00Z"),
    ),
    responses(
    (status = 200, description = "What became of it", body = Object),
    (status = 400, description = "That is no instant", body = Problem, content_type = "application/problem+json"),
    (status = 401, description = "Reading takes a token here", body = Problem, content_type = "application/problem+json"),
    (status = 404, description = "There is no such job", body = Problem, content_type = "application/problem+json"),
    (status = 503, description = "The store can't be asked", body = Problem, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn occurrence(
    Extension(asked): Extension<Asked>,
    Path((job, scheduled_at)): Path<(String, String)>,
    _: Parameter<Nothing>,
) -> Result<Response, Problem> {
    let at = instant("scheduled_at", &scheduled_at)?;
    let known = Known::of(&asked.app, &job).await?;
    let instants = Instants {
        instants: vec![at],
        clocks: None,
    };
    Ok(json(StatusCode::OK, &why::answer(&known.view(), &instants)))
}
