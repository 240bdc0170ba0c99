//! An occurrence that ran, runs, or is to run again: its attempts from the ledger's lines, and
//! how it stands from the job's record.
//!
//! Must never: take a line that announces another attempt for the end, or a record that was read
//! before a line for newer than that line.

use std::collections::BTreeMap;

use super::account::{Account, Course, Fate, Origins, PastAttempt, Shard};
use super::candidates::candidates;
use super::lateness::{Beginning, Lateness, lateness};
use super::{View, pending, ranges};
use crate::scheduler::lease::{Origin, Outcome};
use crate::scheduler::time::Timestamp;
use crate::store::{AttemptRecord, LastAttempt, Standing};

/// The account of an occurrence that somebody claimed, if somebody did.
pub(super) fn account(view: &View<'_>, at: Timestamp) -> Option<Account> {
    let lines = view.lines.iter().filter(|line| {
        line.scheduled_at == at && line.detail.since.is_none() && !ranges::is_unstarted(line)
    });
    let lines: Vec<&AttemptRecord> = lines.collect();
    let state = view.state();
    let attempts = state.iter().flat_map(|state| &state.attempts);
    let record: Vec<&LastAttempt> = attempts.filter(|last| last.scheduled_at == at).collect();
    if lines.is_empty() && record.is_empty() {
        return None;
    }
    let origins = match (record.first(), lines.first()) {
        (Some(last), _) => (last.origin, last.by.clone()),
        (None, Some(line)) => (line.detail.origin, line.detail.by.clone()),
        (None, None) => return None,
    };
    let origins = Origins {
        origin: origins.0,
        by: origins.1,
    };
    let shards = shards(view, origins.origin, &lines, &record);
    let fate = fate(view, &shards);
    Some(Account {
        shards,
        ..pending::described(view, at, origins, fate)
    })
}

fn shards(
    view: &View<'_>,
    origin: Origin,
    lines: &[&AttemptRecord],
    record: &[&LastAttempt],
) -> Vec<Shard> {
    let mut by_shard: BTreeMap<u32, Vec<&AttemptRecord>> = BTreeMap::new();
    let mut count = u32::try_from(record.len()).unwrap_or(u32::MAX).max(1);
    for line in lines {
        let (shard, of) = line.detail.shard.unwrap_or((0, 1));
        count = count.max(of);
        by_shard.entry(shard).or_default().push(line);
    }
    let shard = |number: u32| {
        let mut lines = by_shard.remove(&number).unwrap_or_default();
        // Lines come in the order of ends, the newest first; two of one attempt in that order.
        lines.reverse();
        lines.sort_by_key(|line| line.attempt);
        let last = record.get(number as usize).copied();
        Shard {
            shard: number,
            shards: count,
            course: course(view, origin, &lines, last),
            attempts: past(view, origin, &lines),
        }
    };
    (0..count).map(shard).collect()
}

fn past(view: &View<'_>, origin: Origin, lines: &[&AttemptRecord]) -> Vec<PastAttempt> {
    let told = |(index, line): (usize, &&AttemptRecord)| {
        let before = index.checked_sub(1).map(|before| lines[before]);
        let same = before.is_some_and(|before| before.run_id == line.run_id);
        let detail = &line.detail;
        let closing = same || line.attempt == 0;
        let beginning = Beginning {
            attempt: line.attempt,
            started_at: line.started_at,
            recorded: detail.late,
            before,
        };
        PastAttempt {
            attempt: line.attempt,
            closing,
            late: match closing {
                true => None,
                false => lateness(view, line.scheduled_at, origin, &beginning),
            },
            run_id: line.run_id,
            replica: line.replica.clone(),
            token: line.token,
            started_at: line.started_at,
            ended_at: line.ended_at,
            outcome: line.outcome,
            cause: detail.cause,
            exit_code: detail.exit_code,
            signal: detail.signal,
            reason: detail.reason.clone(),
            next_attempt_at: detail.next_attempt_at,
        }
    };
    lines.iter().enumerate().map(told).collect()
}

/// How a shard stands. Its record was read before its lines.
fn course(
    view: &View<'_>,
    origin: Origin,
    lines: &[&AttemptRecord],
    record: Option<&LastAttempt>,
) -> Course {
    let newest = lines.last();
    let ended = newest.filter(|line| line.detail.is_final());
    if let Some(line) = ended {
        return Course::Ended {
            outcome: line.outcome,
            ended_at: line.ended_at,
        };
    }
    let told = newest.map_or(0, |line| line.attempt);
    let again = newest.and_then(|line| {
        let at = line.detail.next_attempt_at?;
        let attempt = line.attempt + 1;
        Some(Course::Again { attempt, at })
    });
    match record {
        // Its end, and what follows it, were written down since.
        Some(last) if last.attempt <= told && is_running(last) => {
            again.unwrap_or(Course::Interrupted)
        }
        Some(last) => {
            let beginning = Beginning {
                attempt: last.attempt,
                started_at: last.since,
                recorded: last.late,
                before: newest.copied(),
            };
            standing(last, lateness(view, last.scheduled_at, origin, &beginning))
        }
        None if lines.is_empty() => Course::Forgotten,
        None => Course::Interrupted,
    }
}

fn is_running(last: &LastAttempt) -> bool {
    matches!(last.standing, Standing::Running { .. })
}

fn standing(last: &LastAttempt, late: Option<Lateness>) -> Course {
    match last.standing {
        Standing::Running { deadline } => Course::Running {
            replica: last.replica.clone(),
            attempt: last.attempt,
            token: last.token,
            since: last.since,
            late,
            deadline,
        },
        Standing::Again { at, .. } => Course::Again {
            attempt: last.attempt + 1,
            at,
        },
        Standing::Idle => Course::Idle { since: last.since },
        // Its line is no longer kept.
        Standing::Ended(outcome) => Course::Ended {
            outcome,
            ended_at: last.since,
        },
    }
}

/// What became of the whole: the occurrence is done when all shards are.
fn fate(view: &View<'_>, shards: &[Shard]) -> Fate {
    let courses = || shards.iter().map(|shard| &shard.course);
    let deadlines = courses().filter_map(|course| match course {
        Course::Running { deadline, .. } => Some(*deadline),
        _ => None,
    });
    match deadlines.max() {
        Some(deadline) if deadline >= view.now => return Fate::Running,
        Some(_) => return Fate::Abandoned,
        None => {}
    }
    let free = courses().filter_map(|course| match course {
        Course::Again { at, .. } => Some(*at),
        Course::Idle { since } => Some(*since),
        _ => None,
    });
    if let Some(at) = free.min() {
        let candidates = candidates(view);
        return Fate::WaitsForAttempt { at, candidates };
    }
    let interrupted = courses().any(|course| matches!(course, Course::Interrupted));
    let ends = courses().filter_map(|course| match course {
        Course::Ended { outcome, ended_at } => Some((*outcome, *ended_at)),
        _ => None,
    });
    let ends: Vec<(Outcome, Timestamp)> = ends.collect();
    let last = ends.iter().map(|(_, ended_at)| *ended_at).max();
    let bad = ends
        .iter()
        .find(|(outcome, _)| *outcome != Outcome::Succeeded);
    match last {
        Some(ended_at) if !interrupted => Fate::Ended {
            outcome: bad.map_or(Outcome::Succeeded, |(outcome, _)| *outcome),
            ended_at,
        },
        _ => Fate::Interrupted,
    }
}
