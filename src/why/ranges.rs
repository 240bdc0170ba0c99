//! Lines of occurrences that never started: one of its own, or one that stands for all instants
//! of the schedule in a stretch of time.
//!
//! Must never: count a line for an instant that its schedule doesn't have.

use super::account::{Account, Doubt, Fate, Origins, Range, Setting};
use super::{View, candidates, pending, schedules};
use crate::scheduler::job::Job;
use crate::scheduler::lease::Cause;
use crate::scheduler::policy::{CatchUp, Concurrency};
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::{Timestamp, short_duration};
use crate::store::{AttemptRecord, RangeLine};

/// Whether a line stands for an instant of its time: certainly, or by today's schedule where its own can't be
/// read.
fn covers(line: &RangeLine<'_>, at: Timestamp, today: Option<&Schedule>) -> Option<Range> {
    let schedule = line.schedule().map(|known| &known.schedule);
    let doubt = match line.schedule() {
        Some(known) if known.lacks_calendars => Some(Doubt::Calendars),
        Some(_) => None,
        None => Some(Doubt::Schedule),
    };
    schedule.or(today)?.has(at).then(|| Range {
        since: line.since,
        until: line.until,
        schedule: line
            .identity
            .map(|identity| schedules::shown(identity, schedule)),
        doubt,
    })
}

/// The account of an occurrence that never started, if the ledger says that of it.
pub(super) fn never_started(view: &View<'_>, at: Timestamp) -> Option<Account> {
    let own = view
        .lines
        .iter()
        .find(|line| line.scheduled_at == at && line.detail.since.is_none() && is_unstarted(line));
    if let Some(line) = own {
        return Some(told_by(view, at, line, None));
    }
    let today = view.entry().map(|job| &job.schedule);
    let around = |line: &&AttemptRecord| {
        let since = line.detail.since;
        since.is_some_and(|since| since < at) && at <= line.scheduled_at
    };
    view.lines.iter().filter(around).find_map(|line| {
        let range = covers(&RangeLine::of(line, view.entry())?, at, today)?;
        Some(told_by(view, at, line, Some(range)))
    })
}

/// It is of no attempt, and of no shard that was to have one.
pub(super) fn is_unstarted(line: &AttemptRecord) -> bool {
    line.attempt == 0 && line.detail.shard.is_none()
}

fn told_by(view: &View<'_>, at: Timestamp, line: &AttemptRecord, range: Option<Range>) -> Account {
    let detail = &line.detail;
    let setting = detail
        .cause
        .zip(view.entry())
        .and_then(|(cause, job)| setting(cause, job));
    let fate = Fate::NeverStarted {
        outcome: line.outcome,
        cause: detail.cause,
        reason: detail.reason.clone(),
        recorded_at: line.ended_at,
        recorded_by: line.replica.clone(),
        setting,
        range,
    };
    let origins = Origins {
        origin: detail.origin,
        by: detail.by.clone(),
    };
    pending::described(view, at, origins, fate)
}

/// What the table says today of the policy that decided.
fn setting(cause: Cause, job: &Job) -> Option<Setting> {
    let (key, value) = match cause {
        Cause::QueueFull => match job.concurrency {
            Concurrency::Queue { limit } => ("queue_limit", limit.to_string()),
            _ => return None,
        },
        Cause::Placement => ("run_on", candidates::tags(&job.run_on)),
        Cause::After => ("after", pending::names(&job.after)),
        Cause::Deadline => ("starting_deadline", short_duration(job.starting_deadline)),
        Cause::CatchUp => return Some(catch_up(job)),
        _ => return None,
    };
    Some(Setting { key, value })
}

/// What the table says of occurrences that nobody could claim in time.
pub(super) fn catch_up(job: &Job) -> Setting {
    let (key, value) = match job.catch_up {
        CatchUp::Latest => ("catch_up", "latest".to_owned()),
        CatchUp::All { limit } => ("catch_up_limit", limit.to_string()),
        CatchUp::None => ("catch_up", "none".to_owned()),
    };
    Setting { key, value }
}
