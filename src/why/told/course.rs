//! What ran: attempts that ended, the one that runs, the one to come.
//!
//! Must never: leave out an attempt.

use super::{late, outcome_words, relative};
use crate::scheduler::lease::Outcome;
use crate::scheduler::time::{Timestamp, short_duration};
use crate::why::account::{Account, Course, PastAttempt, Shard};
use crate::why::lateness::Lateness;

pub(super) fn lines(account: &Account, now: Timestamp) -> Vec<String> {
    match &account.shards[..] {
        [shard] if shard.shards == 1 => of_shard(shard, now).collect(),
        shards => {
            let told = shards.iter().flat_map(|shard| {
                let (number, count) = (shard.shard, shard.shards);
                let head = match course_word(&shard.course, now) {
                    Some(word) => format!("Shard {number} of {count} {word}."),
                    None => format!("Shard {number} of {count}:"),
                };
                let lines = of_shard(shard, now).map(|line| format!("  {line}"));
                std::iter::once(head).chain(lines)
            });
            told.collect()
        }
    }
}

impl Shard {
    /// It is over, and all went well.
    pub(super) fn succeeded(&self) -> bool {
        matches!(
            self.course,
            Course::Ended {
                outcome: Outcome::Succeeded,
                ..
            }
        )
    }
}

/// Completes "shard 0 of 3 …".
fn course_word(course: &Course, now: Timestamp) -> Option<&'static str> {
    match course {
        Course::Ended { outcome, .. } => Some(outcome_words(*outcome)),
        Course::Running { deadline, .. } if *deadline >= now => Some("is running"),
        Course::Running { .. } => None,
        Course::Again { .. } => Some("waits for its next attempt"),
        Course::Idle { .. } => Some("waits for its first attempt"),
        Course::Interrupted => Some("did not come to an end, as far as the ledger knows"),
        Course::Forgotten => Some("has no line in the ledger any more"),
    }
}

fn of_shard(shard: &Shard, now: Timestamp) -> impl Iterator<Item = String> {
    let past = shard.attempts.iter().map(past);
    past.chain(course(shard, now))
}

fn past(one: &PastAttempt) -> String {
    let detail = detail(one);
    let (outcome, ended_at) = (outcome_words(one.outcome), one.ended_at);
    if one.closing {
        return format!("It {outcome} at {ended_at}{detail}.");
    }
    let late = late_words(one.late.as_ref());
    let (number, token) = (one.attempt, one.token);
    let (replica, started_at) = (&one.replica, one.started_at);
    let took = short_duration(ended_at.saturating_since(started_at));
    let next = one.next_attempt_at.map_or(String::new(), |at| {
        let wait = at.saturating_since(ended_at);
        match wait.is_zero() {
            true => " The next one could begin at once.".to_owned(),
            false => format!(
                " The next one could begin {} later, at {at}.",
                short_duration(wait)
            ),
        }
    });
    format!(
        "Attempt {number} ran on {replica} from {started_at} to {ended_at} ({took}) under token {token}, and {outcome}{detail}.{late}{next}"
    )
}

/// A sentence of its own, for what began late.
fn late_words(late: Option<&Lateness>) -> String {
    late.map_or(String::new(), |late| format!(" {}", late::sentence(late)))
}

fn detail(one: &PastAttempt) -> String {
    let code = one.exit_code.filter(|code| *code != 0);
    let parts = [
        one.reason.clone(),
        code.map(|code| format!("exit code {code}")),
        one.signal.map(|signal| format!("signal {signal}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!(": {}", parts.join(", ")),
    }
}

/// What there is to say beside the attempts that ended.
fn course(shard: &Shard, now: Timestamp) -> Option<String> {
    match &shard.course {
        Course::Ended { outcome, ended_at } if shard.attempts.is_empty() => Some(format!(
            "It {} at {ended_at}; the lines of its attempts are no longer kept.",
            outcome_words(*outcome)
        )),
        Course::Running {
            replica,
            attempt,
            token,
            since,
            late,
            deadline,
        } => {
            let late = late_words(late.as_ref());
            let lasted = relative(*since, now);
            let lease = match *deadline >= now {
                true => format!(
                    "its lease lasts until {deadline} ({}) unless it is renewed",
                    relative(*deadline, now)
                ),
                false => format!(
                    "its lease ran out at {deadline} ({}): any replica that watched it may take over",
                    relative(*deadline, now)
                ),
            };
            Some(format!(
                "Attempt {attempt} began on {replica} at {since} ({lasted}) under token {token}; {lease}.{late}"
            ))
        }
        Course::Again { attempt, at } => {
            let when = match *at > now {
                true => format!("may begin at {at} ({})", relative(*at, now)),
                false => format!("may begin since {at} ({})", relative(*at, now)),
            };
            Some(format!("Attempt {attempt} {when}."))
        }
        Course::Interrupted => {
            Some("Another attempt was to follow, and the ledger knows nothing of it.".to_owned())
        }
        Course::Ended { .. } | Course::Idle { .. } | Course::Forgotten => None,
    }
}
