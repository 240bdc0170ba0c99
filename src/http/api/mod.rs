//! `/api/v1`: what `status`, `history`, `why` and `logs` show, and what `trigger`, `pause`,
//! `resume` and `kill` ask for.
//!
//! Lists are `{"items": […], "next": "/api/v1/…"}`: `next` is there where more follow, and is the
//! address of them.
//!
//! Must never: answer with a list that has no end.

pub(super) mod attempts;
pub(super) mod fleet;
pub(super) mod jobs;
pub(super) mod occurrences;
pub(super) mod orders;

use super::problem::{Kind, Problem};
use crate::config;
use crate::config::Config;
use crate::scheduler::job::JobName;
use crate::store::Snapshot;

/// A job's name, from an address.
fn job_name(text: &str) -> Result<JobName, Problem> {
    JobName::new(text).map_err(|cause| {
        let detail = format!("no job can have this name: {cause}");
        Problem::new(Kind::NotFound, detail)
    })
}

/// There is no such job; the one that may have been meant is told.
fn no_such_job(job: &JobName, config: &Config, snapshot: &Snapshot) -> Problem {
    let table = config.jobs.iter().map(|job| job.name.as_str());
    let names = table.chain(snapshot.jobs.iter().map(|state| state.job.as_str()));
    Problem::no_such_job(job.as_str(), config::nearest(job.as_str(), names))
}
