//! An answer in sentences: what became of it first, then how it came to that, then what else
//! there is to know. One sentence or two a line; instants in UTC, as `history` shows them.
//!
//! Must never: find out anything; all of it is in the [`Answer`].

mod course;
mod expected;
mod late;
mod unstarted;

use super::account::{Account, Fate, Near, Remark, Shard};
use super::suspension::Suspension;
use super::{Answer, ClocksNote, StandIn};
use crate::scheduler::lease::{Origin, Outcome};
use crate::scheduler::time::{Timestamp, short_duration};

/// The answer, for people.
pub fn tell(answer: &Answer) -> String {
    let clocks = answer.clocks.iter().map(|note| clocks(note) + "\n");
    let accounts = answer
        .accounts
        .iter()
        .map(|account| paragraph(account, answer.now));
    let paragraphs: Vec<String> = clocks.chain(accounts).collect();
    paragraphs.join("\n")
}

fn paragraph(account: &Account, now: Timestamp) -> String {
    let mut lines = vec![headline(account)];
    lines.extend(origin(account));
    lines.extend(course::lines(account, now));
    lines.extend(unstarted::lines(&account.fate));
    lines.extend(expected::lines(account, now));
    lines.extend(account.remarks.iter().map(remark));
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn headline(account: &Account) -> String {
    let local = account.local.as_ref();
    let local = local.map_or(String::new(), |local| format!(" ({local})"));
    let verdict = verdict(account);
    format!(
        "{} at {}{local} {verdict}.",
        account.job, account.scheduled_at
    )
}

fn verdict(account: &Account) -> String {
    let text = match &account.fate {
        Fate::Ended { outcome, .. } => return ended(*outcome, &account.shards),
        Fate::Running => "is running",
        Fate::Abandoned => "was running on a replica that was not heard of since",
        Fate::WaitsForAttempt { .. } if account.shards.len() > 1 => {
            "is not over: some of its shards wait for an attempt"
        }
        Fate::WaitsForAttempt { .. } if has_attempts(&account.shards) => {
            "waits for its next attempt"
        }
        Fate::WaitsForAttempt { .. } => "waits for its first attempt",
        Fate::Interrupted => "did not come to an end, as far as the ledger knows",
        Fate::NeverStarted { outcome, .. } => return format!("never started: it was {outcome}"),
        Fate::WaitsInQueue { .. } => "waits for its turn",
        Fate::WaitsForJobs { .. } => "waits for other jobs",
        Fate::Suspended {
            suspension: Suspension::Paused { .. },
        } => "does not run: the job is paused",
        Fate::Suspended {
            suspension: Suspension::Disabled { .. },
        } => "does not run: the job is disabled",
        Fate::Suspended {
            suspension: Suspension::Over { reason, .. },
        } => return format!("does not run: {reason}"),
        Fate::Due { .. } => "is due, and nobody has claimed it yet",
        Fate::ToCome { .. } => "is still to come",
        Fate::NotAnOccurrence { .. } => "is not an occurrence",
        Fate::NotRecorded { .. } => "is not in the ledger",
    };
    text.to_owned()
}

fn has_attempts(shards: &[Shard]) -> bool {
    shards.iter().any(|shard| !shard.attempts.is_empty())
}

fn ended(outcome: Outcome, shards: &[Shard]) -> String {
    let outcome = outcome_words(outcome);
    match shards {
        [shard] => {
            let attempts = shard.attempts.iter().filter(|attempt| !attempt.closing);
            match attempts.map(|attempt| attempt.attempt).max() {
                Some(last) if last > 1 => format!("{outcome} at attempt {last}"),
                _ => outcome.to_owned(),
            }
        }
        _ => {
            let count = shards.len();
            let good = shards.iter().filter(|shard| shard.succeeded()).count();
            match good == count {
                true => format!("{outcome} in all {count} shards"),
                false => format!("{outcome}: {good} of {count} shards succeeded"),
            }
        }
    }
}

/// Completes "it …".
fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Failed => "failed",
        Outcome::TimedOut => "timed out",
        Outcome::Lost => "was lost",
        Outcome::Cancelled => "was cancelled",
        Outcome::HandedOver => "was handed over",
        Outcome::Skipped => "was skipped",
        Outcome::Missed => "was missed",
    }
}

fn origin(account: &Account) -> Option<String> {
    let by = account.origins.by.as_deref();
    let of = |by: Option<&str>| by.map_or(String::new(), |by| format!(" by {by}"));
    match account.origins.origin {
        Origin::Schedule => None,
        Origin::Trigger => Some(format!("It was triggered{}.", of(by))),
        Origin::RunOnce => Some(format!("It was run by hand, by `run-once`{}.", of(by))),
        Origin::After => by.map(|jobs| format!("The job comes after {jobs}.")),
    }
}

fn remark(remark: &Remark) -> String {
    match remark {
        Remark::Clocks { what } => format!("The clocks were set: it {what}."),
        Remark::Suspended { suspension } => {
            let suspended = suspended(suspension);
            format!("{suspended}: unless that ends before its turn comes, it is skipped.")
        }
        Remark::NotInTable => {
            "This table has no such job: it was taken out or renamed, or is another fleet's."
                .to_owned()
        }
        Remark::OtherSchedule { table, in_force } => format!(
            "This table has the schedule `{table}`, the ledger `{in_force}`: no replica has taken up the table's yet."
        ),
        Remark::OtherDefinition {
            table,
            in_force,
            replicas,
        } => other_definition(table, in_force, replicas),
        Remark::LacksCalendars => {
            "That schedule is due on days that its calendars leave; which those are is not known here."
                .to_owned()
        }
        Remark::Near { occurrences } => {
            let all: Vec<String> = occurrences.iter().map(near).collect();
            format!("Close to it the ledger has {}.", all.join(", "))
        }
        Remark::MayBeLost { born } => format!(
            "What was triggered at that time may be gone: the ledger began, lost data, or its server was restarted at {born}."
        ),
        Remark::NewerAreDue { catch_up } => {
            format!(
                "Newer ones are due as well. {}",
                unstarted::catch_up(catch_up)
            )
        }
    }
}

fn other_definition(table: &str, in_force: &str, replicas: &[String]) -> String {
    let whose = match replicas {
        [] => "no replica that is alive has".to_owned(),
        [one] => format!("{one} has"),
        [all @ .., last] => format!("{} and {last} have", all.join(", ")),
    };
    format!(
        "This table's definition of the job ({table}) is older than the one in force ({in_force}), which {whose}: replicas with this table leave the job to those with that one."
    )
}

fn near(one: &Near) -> String {
    let by = one.origins.by.as_deref();
    let by = by.map_or(String::new(), |by| format!(" by {by}"));
    let at = one.scheduled_at;
    match one.origins.origin {
        Origin::Schedule => at.to_string(),
        Origin::Trigger => format!("{at} (triggered{by})"),
        Origin::RunOnce => format!("{at} (by `run-once`)"),
        Origin::After => format!("{at} (after other jobs)"),
    }
}

fn suspended(suspension: &Suspension) -> String {
    match suspension {
        Suspension::Paused { since, by } => {
            format!("The job has been paused since {since}, by {by}")
        }
        Suspension::Disabled { since: Some(since) } => {
            format!("The job has been disabled since {since}")
        }
        Suspension::Disabled { since: None } => "The job is disabled in this table".to_owned(),
        Suspension::Over {
            since,
            until,
            reason,
        } => format!("From {since} to {until} {reason}"),
    }
}

/// `in 1h 5m`, `2m 3s ago`, `now`.
fn relative(at: Timestamp, now: Timestamp) -> String {
    let (ahead, back) = (at.saturating_since(now), now.saturating_since(at));
    match (ahead.is_zero(), back.is_zero()) {
        (false, _) => format!("in {}", short_duration(ahead)),
        (_, false) => format!("{} ago", short_duration(back)),
        _ => "now".to_owned(),
    }
}

fn clocks(note: &ClocksNote) -> String {
    match note {
        ClocksNote::Skipped {
            local,
            zone,
            until,
            stand_in,
        } => {
            let what = match stand_in {
                StandIn::EndOfGap => {
                    "by `dst_gap = \"run_after\"` the occurrence of that instant stands for it"
                }
                StandIn::Nothing => "by `dst_gap = \"skip\"` nothing stands for it",
                StandIn::NotNeeded => "the schedule lost nothing by that",
            };
            format!(
                "{local} does not exist in {zone}: the clocks are set forward past it at {until}; {what}."
            )
        }
        ClocksNote::Twice {
            local,
            zone,
            dst_fold,
        } => {
            let what = match dst_fold {
                Some("first") => "; by `dst_fold = \"first\"` the first of the two counts",
                Some("last") => "; by `dst_fold = \"last\"` the second of the two counts",
                Some(_) => "; by `dst_fold = \"both\"` both count",
                None => "",
            };
            format!("{local} comes twice in {zone}, where the clocks are set back{what}.")
        }
    }
}
