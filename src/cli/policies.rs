//! The policies of a job that differ from their defaults, on one line.
//!
//! Must never: leave out one that differs.

use std::time::Duration;

use crate::config::{default_starting_deadline, format_duration};
use crate::scheduler::job::{Job, OnCrash};
use crate::scheduler::policy::{self, CatchUp, Concurrency, Retry};
use crate::scheduler::schedule::Schedule;

/// By the names of their keys, none when all are as by default.
pub(super) fn line(job: &Job) -> Option<String> {
    let default = default_of(job);
    let parts = [
        random_delay(job),
        catch_up(job.catch_up),
        (job.starting_deadline != default_starting_deadline(job.catch_up)).then(|| {
            let deadline = format_duration(job.starting_deadline);
            format!("starting_deadline {deadline}")
        }),
        concurrency(job.concurrency),
        retry(job.retry),
        (job.on_crash != default.on_crash).then(|| match job.on_crash {
            OnCrash::Rerun => "on_crash rerun".to_owned(),
            OnCrash::Skip => "on_crash skip".to_owned(),
        }),
        (job.max_attempts != default.max_attempts)
            .then(|| format!("max_attempts {}", job.max_attempts)),
        job.warn_after
            .map(|after| format!("warn_after {}", format_duration(after))),
        (job.shards != default.shards).then(|| format!("shards {}", job.shards)),
        (!job.run_on.is_empty()).then(|| format!("run_on {}", policy::list(&job.run_on))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The job, had it no policies of its own.
fn default_of(job: &Job) -> Job {
    let schedule: Schedule = job.schedule.clone();
    Job::new(job.name.clone(), schedule, job.command.program.clone())
}

fn random_delay(job: &Job) -> Option<String> {
    let delay: Duration = job.random_delay;
    (!delay.is_zero()).then(|| format!("random_delay {}", format_duration(delay)))
}

fn catch_up(catch_up: CatchUp) -> Option<String> {
    match catch_up {
        CatchUp::Latest => None,
        CatchUp::All { limit } => Some(format!("catch_up all, at most {limit}")),
        CatchUp::None => Some("catch_up none".into()),
    }
}

fn concurrency(concurrency: Concurrency) -> Option<String> {
    match concurrency {
        Concurrency::Forbid => None,
        Concurrency::Queue { limit } => Some(format!("concurrency_policy queue, at most {limit}")),
        Concurrency::Replace => Some("concurrency_policy replace".into()),
    }
}

fn retry(retry: Retry) -> Option<String> {
    let times = match retry.max {
        0 => return None,
        1 => "once".to_owned(),
        max => format!("{max} times"),
    };
    let (first, longest) = (
        format_duration(retry.backoff),
        format_duration(retry.max_backoff),
    );
    Some(format!(
        "retry {times}, after {first} × {}, at most {longest}",
        retry.factor
    ))
}
