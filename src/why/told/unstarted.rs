//! What never started: the ledger's words, and the policy behind them.
//!
//! Must never: blame what the ledger doesn't; the cause is the line's.

use crate::scheduler::lease::Cause;
use crate::why::account::{Doubt, Fate, Range, Setting};

pub(super) fn lines(fate: &Fate) -> Vec<String> {
    let Fate::NeverStarted {
        outcome,
        cause,
        reason,
        recorded_at,
        recorded_by,
        setting,
        range,
    } = fate
    else {
        return Vec::new();
    };
    let reason = reason.as_ref();
    let reason = reason.map_or(String::new(), |reason| format!(": {reason}"));
    let mut lines = Vec::new();
    match range {
        None => lines.push(format!(
            "{recorded_by} recorded it at {recorded_at}{reason}."
        )),
        Some(range) => {
            let Range { since, until, .. } = range;
            lines.push(format!(
                "All that fell due after {since} and up to {until} was {outcome}{reason}."
            ));
            let when = match cause {
                Some(Cause::Paused) => ", when the pause ended",
                Some(Cause::Disabled) => ", when the job was enabled again",
                _ => "",
            };
            lines.push(format!(
                "{recorded_by} recorded that at {recorded_at}{when}. {}",
                schedule(range)
            ));
        }
    }
    lines.extend(cause.and_then(|cause| policy(cause, setting.as_ref())));
    lines
}

fn schedule(range: &Range) -> String {
    match (&range.schedule, range.doubt) {
        (Some(schedule), None) => format!("The schedule of that time was `{schedule}`."),
        (Some(schedule), Some(Doubt::Calendars)) => format!(
            "The schedule of that time was `{schedule}`, on days that its calendars left; which those were is no longer known."
        ),
        (Some(schedule), Some(Doubt::Schedule)) => format!(
            "The schedule of that time, `{schedule}`, can't be read any more; the one of today has this instant."
        ),
        (None, _) => {
            "The schedule of that time is not known; the one of today has this instant.".to_owned()
        }
    }
}

/// What stands behind a cause.
fn policy(cause: Cause, setting: Option<&Setting>) -> Option<String> {
    let is = |word: &str| setting.map_or(String::new(), |one| format!(" ({word}{})", one.value));
    let text = match cause {
        Cause::Overlap => {
            "By `concurrency_policy = \"forbid\"`, the default, what finds an occurrence of its job unfinished is skipped.".to_owned()
        }
        Cause::QueueFull => format!(
            "By `concurrency_policy = \"queue\"` no more than `queue_limit`{} wait at once.",
            is("now ")
        ),
        Cause::Replaced => {
            "By `concurrency_policy = \"replace\"` only the newest of those that wait is run.".to_owned()
        }
        Cause::Paused => "While a job is paused, nothing of it runs but what is triggered.".to_owned(),
        Cause::Disabled => "While a job is disabled in the table, nothing of it runs.".to_owned(),
        Cause::Placement => format!(
            "`run_on`{} says which tags a replica must have.",
            is("now ")
        ),
        Cause::After => format!(
            "The job runs when all jobs that it comes after{} have succeeded.",
            is("now ")
        ),
        Cause::Deadline => format!(
            "`starting_deadline`{} is how late an occurrence may start.",
            is("now ")
        ),
        Cause::CatchUp => return setting.map(catch_up),
        Cause::ScheduleChanged => {
            "What the new schedule has too still runs, as far as `catch_up` says and `starting_deadline` allows.".to_owned()
        }
        Cause::Unknown => {
            "A second run could not be ruled out, so it was not run.".to_owned()
        }
        Cause::MaxAttempts | Cause::OnCrash | Cause::Killed => return None,
    };
    Some(text)
}

/// What becomes of occurrences that nobody could claim in time.
pub(super) fn catch_up(setting: &Setting) -> String {
    match (setting.key, setting.value.as_str()) {
        ("catch_up_limit", limit) => format!(
            "By `catch_up = \"all\"` the newest {limit} of those that nobody could claim still run, each within its `starting_deadline`; the others are missed."
        ),
        (_, "none") => {
            "By `catch_up = \"none\"` what nobody claims within 1 s is missed.".to_owned()
        }
        _ => "By `catch_up = \"latest\"` only the newest of those that nobody could claim still runs; the others are missed.".to_owned(),
    }
}
