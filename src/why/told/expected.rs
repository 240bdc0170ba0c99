//! What has not happened: what waits, what is due, what is to come, and what is no occurrence.
//!
//! Must never: say that something will run; what keeps it from running may come any time.

use super::{relative, suspended};
use crate::scheduler::job::JobName;
use crate::scheduler::time::{Timestamp, short_duration};
use crate::why::account::{Account, Because, Fate, Remark, Unrecorded};
use crate::why::candidates::Candidates;
use crate::why::suspension::Suspension;

pub(super) fn lines(account: &Account, now: Timestamp) -> Vec<String> {
    match &account.fate {
        Fate::WaitsForAttempt { candidates, .. } => vec![who(candidates, now)],
        Fate::WaitsInQueue { .. } => queue(account, now),
        Fate::WaitsForJobs { arrived, missing } => vec![jobs(arrived, missing.as_deref())],
        Fate::Suspended {
            suspension: Suspension::Over { since, until, .. },
        } => vec![format!(
            "That lasted from {since} to {until}. It is recorded as skipped once what was due before that has run or is missed."
        )],
        Fate::Suspended { suspension } => vec![format!(
            "{}: what falls due meanwhile is recorded as skipped when that ends.",
            suspended(suspension)
        )],
        Fate::Due { .. } => due(&account.fate, now),
        Fate::ToCome { .. } => to_come(account, now),
        Fate::NotAnOccurrence { .. } => beside(&account.fate),
        Fate::NotRecorded { why } => vec![unrecorded(why)],
        _ => Vec::new(),
    }
}

fn queue(account: &Account, now: Timestamp) -> Vec<String> {
    let Fate::WaitsInQueue {
        place,
        ahead,
        behind,
        since,
        start_by,
        candidates,
    } = &account.fate
    else {
        return Vec::new();
    };
    let mut before: Vec<String> = Vec::new();
    before.extend(behind.map(|at| format!("the unfinished occurrence of {at}")));
    before.extend(ahead.iter().map(|at| format!("that of {at}")));
    let place = match before.is_empty() {
        true => "nothing is before it".to_owned(),
        false => format!("it is number {place}, behind {}", before.join(" and ")),
    };
    let until = match start_by {
        Some(at) => format!("It may start until {at} ({}).", relative(*at, now)),
        None => "It may start however late.".to_owned(),
    };
    let mut lines = vec![format!(
        "It waits since {since} ({}); {place}. {until}",
        relative(*since, now)
    )];
    let is_first = behind.is_none() && ahead.is_empty();
    let is_disabled = matches!(candidates, Candidates::Disabled { .. });
    // Whoever claims it in a pause only has it skipped, as the remark says.
    let is_paused = account.remarks.iter().any(|remark| {
        matches!(remark, Remark::Suspended { suspension } if matches!(suspension, Suspension::Paused { .. }))
    });
    lines.extend(((is_first && !is_paused) || is_disabled).then(|| who(candidates, now)));
    lines
}

fn jobs(arrived: &[JobName], missing: Option<&[JobName]>) -> String {
    let list = |jobs: &[JobName]| {
        let names = jobs.iter().map(|job| format!("`{job}`"));
        names.collect::<Vec<_>>().join(", ")
    };
    match (arrived, missing) {
        ([], Some(missing)) => format!("None of them has succeeded yet: {}.", list(missing)),
        (arrived, Some(missing)) => {
            let (arrived, missing) = (list(arrived), list(missing));
            format!("Succeeded: {arrived}. Not yet: {missing}.")
        }
        (arrived, None) => {
            let arrived = list(arrived);
            format!("Succeeded: {arrived}. No table here says which others it waits for.")
        }
    }
}

fn due(fate: &Fate, now: Timestamp) -> Vec<String> {
    let Fate::Due {
        start_by,
        candidates,
        ..
    } = fate
    else {
        return Vec::new();
    };
    let until = start_by.map(|at| match at >= now {
        true => format!(
            "It may start until {at} ({}), by `starting_deadline`.",
            relative(at, now)
        ),
        false => format!(
            "It was to start by {at} ({}), by `starting_deadline`: the next replica that looks records it as missed.",
            relative(at, now)
        ),
    });
    until.into_iter().chain([who(candidates, now)]).collect()
}

fn to_come(account: &Account, now: Timestamp) -> Vec<String> {
    let Fate::ToCome {
        start_from,
        suspension,
        after,
        outlook,
    } = &account.fate
    else {
        return Vec::new();
    };
    let at = account.scheduled_at;
    let mut lines = vec![format!("It is due {}.", relative(at, now))];
    if !after.is_empty() {
        lines[0] = format!(
            "What it comes after is due {}; it runs when all of that has succeeded.",
            relative(at, now)
        );
    }
    let delay = start_from.saturating_since(at);
    if !delay.is_zero() {
        lines.push(format!(
            "Its `random_delay` is {}: it starts at {start_from}, on whatever replica.",
            short_duration(delay)
        ));
    }
    lines.extend(suspension.as_ref().map(|suspension| {
        format!(
            "{}: unless that ends before, it is skipped.",
            suspended(suspension)
        )
    }));
    let outlook = outlook.as_ref().filter(|_| suspension.is_none());
    lines.extend(outlook.map(|candidates| {
        let then = match candidates {
            Candidates::NoneWithTags { .. } => {
                " If that is so until its `starting_deadline`, it is recorded as skipped."
            }
            _ => "",
        };
        format!("As things are now: {}{then}", lower(&who(candidates, now)))
    }));
    lines
}

/// To go on within a sentence.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn who(candidates: &Candidates, now: Timestamp) -> String {
    match candidates {
        Candidates::Replicas { names } => {
            format!("Any of these may claim it: {}.", names.join(", "))
        }
        Candidates::Unsure { names } => format!(
            "Those of these may claim it whose tables have the job, with the tags that it asks for: {}. No table is here that says which.",
            names.join(", ")
        ),
        Candidates::NotInTable { names } => format!(
            "Nobody who has this table claims it, as the job is not in it; alive are: {}.",
            names.join(", ")
        ),
        Candidates::Withdrawn { by } => format!(
            "Nobody claims it: {} has a newer table, which lacks the job, and replicas with an older one start nothing of it.",
            by.join(", ")
        ),
        Candidates::Disabled { since } => {
            let since = match since {
                Some(since) => format!("has been disabled since {since}"),
                None => "is disabled in this table".to_owned(),
            };
            format!("Nobody claims it while the job is disabled: it {since}.")
        }
        Candidates::Grace { until } => format!(
            "Nothing is granted until {until} ({}): the store is new, lost data, or its clock was set.",
            relative(*until, now)
        ),
        Candidates::NoReplica => {
            "Nobody can claim it: no replica has been heard of lately.".to_owned()
        }
        Candidates::NoneWithTags { run_on, names } => format!(
            "Nobody can claim it: none of the replicas that are alive ({}) has the tags of `run_on = {run_on}`.",
            names.join(", ")
        ),
        Candidates::AllDecline { full, draining } => {
            let part = |names: &[String], what: &str| {
                (!names.is_empty()).then(|| format!("{} {what}", names.join(", ")))
            };
            let parts = [part(full, "full"), part(draining, "draining")];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            format!(
                "Every replica that could claim it takes nothing new: {}.",
                parts.join("; ")
            )
        }
    }
}

fn beside(fate: &Fate) -> Vec<String> {
    let Fate::NotAnOccurrence {
        schedule,
        because,
        before,
        after,
    } = fate
    else {
        return Vec::new();
    };
    let because = because.as_ref().map(|because| match because {
        Because::Manual => "The job runs only when somebody says so: its schedule is `@manual`.".to_owned(),
        Because::After(jobs) => {
            let names: Vec<String> = jobs.iter().map(|job| format!("`{job}`")).collect();
            format!("The job runs when {} have succeeded, at their instants, and this is none that the ledger has.", names.join(", "))
        }
        Because::Fold(policy) => format!(
            "Its local time comes twice, where the clocks are set back, and `dst_fold = \"{policy}\"` has the other."
        ),
        Because::Gap => "It stands for nothing that was skipped, by `dst_gap = \"skip\"`.".to_owned(),
        Because::Calendar(calendar) => format!("It is not due: {calendar}."),
        Because::LaterSchedule(today) => format!(
            "Today's schedule, `{today}`, has it; the one in force at that time had not."
        ),
    });
    because
        .into_iter()
        .chain(nearest(schedule.as_deref(), *before, *after))
        .collect()
}

fn nearest(
    schedule: Option<&str>,
    before: Option<Timestamp>,
    after: Option<Timestamp>,
) -> Option<String> {
    let schedule = schedule?;
    Some(match (before, after) {
        (Some(before), Some(after)) => {
            format!("The nearest of the schedule, `{schedule}`, are {before} and {after}.")
        }
        (Some(before), None) => {
            format!("The last of the schedule, `{schedule}`, is {before}; none comes after.")
        }
        (None, Some(after)) => {
            format!("The first of the schedule, `{schedule}`, is {after}; none comes before.")
        }
        (None, None) => return None,
    })
}

fn unrecorded(why: &Unrecorded) -> String {
    match why {
        Unrecorded::Unenrolled => {
            "No replica has told the ledger of the job yet: it is new, and a new job never runs its past.".to_owned()
        }
        Unrecorded::BeforeKnown { known_since } => format!(
            "The ledger has known the job since {known_since}, and a new job never runs its past."
        ),
        Unrecorded::BeforeOldest {
            oldest,
            history_limit,
            history_age_seconds,
        } => {
            let oldest = match oldest {
                Some(oldest) => format!("The oldest line of the job goes back to {oldest}"),
                None => "No line of the job is left".to_owned(),
            };
            let kept = match (history_limit, history_age_seconds) {
                (Some(limit), Some(age)) => format!(
                    ": its history is kept for {} and {limit} lines (`history_age`, `history_limit`)",
                    short_duration(std::time::Duration::from_secs(*age))
                ),
                _ => String::new(),
            };
            format!("{oldest}{kept}. Or the job was not known by then.")
        }
        Unrecorded::Gap => {
            "It should be: the store lost data, or the job's schedule was another one by then.".to_owned()
        }
        Unrecorded::NoSchedule => {
            "Neither a table here nor the ledger has a schedule of the job.".to_owned()
        }
    }
}
