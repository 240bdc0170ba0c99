//! What happens to one occurrence, told a line at a time from what the ledger shows of it.
//!
//! Where it shows nothing, the occurrence is over and its lines are cut off, or the store lost
//! what it had acknowledged. Which of the two is told by what the job's record remembers, and by
//! when the ledger began. After a loss its holder may bring it back, for as long as the store's
//! grace window lasts.
//!
//! Must never: tell the same line twice, or take silence for an end.

use std::collections::HashSet;
use std::time::Duration;

use crate::cli::history::how_it_ended;
use crate::cli::output::short_duration;
use crate::orders::absence;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{OrderKind, Outcome};
use crate::scheduler::policy::Tags;
use crate::scheduler::time::Timestamp;
use crate::store::{AttemptRecord, JobState, LastAttempt, Snapshot, Standing};

/// How many lines of a job's past are looked through for those of an unsharded occurrence: more
/// than a job leaves between two looks.
const LINES: usize = 100;

/// How long an occurrence that the store lost is waited for where no grace window begins: that is
/// opened by the first replica that comes back to the store, and maybe none does.
const NOBODY_COMES: Duration = Duration::from_secs(60);

/// One occurrence that somebody waits for.
pub(super) struct Progress {
    pub(super) job: JobName,
    pub(super) scheduled_at: Timestamp,
    run_on: Tags,
    told: HashSet<String>,
    /// What was said last of what it waits for.
    situation: Option<String>,
    shards: usize,
    /// How it stood when it was last seen, if it was seen at its end.
    last_seen: Option<Outcome>,
    /// Which order it was acknowledged with, and when.
    order: (OrderKind, Timestamp),
    /// Since when the store, which lost data, shows nothing of it.
    missing_since: Option<Timestamp>,
}

/// How an occurrence stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is not over.
    Open,
    /// It is: this is the worst of its shards.
    Over(Outcome),
    /// It is over, and the ledger doesn't keep how any more.
    Forgotten,
    /// The store lost its data, and nobody brought it back.
    Lost,
}

impl Progress {
    /// Of a job that asks for replicas with these tags, as far as is known here; by a trigger
    /// that made it just then.
    pub(super) fn new(job: JobName, scheduled_at: Timestamp, run_on: Tags) -> Self {
        Self {
            job,
            scheduled_at,
            run_on,
            told: HashSet::new(),
            situation: None,
            shards: 1,
            last_seen: None,
            order: (OrderKind::Trigger, scheduled_at),
            missing_since: None,
        }
    }

    /// By another order, or one that was acknowledged later.
    pub(super) fn ordered(mut self, what: OrderKind, acknowledged_at: Timestamp) -> Self {
        self.order = (what, acknowledged_at);
        self
    }

    /// The store lost data, and shows nothing of the occurrence.
    pub(super) fn is_missing(&self) -> bool {
        self.missing_since.is_some()
    }

    /// How many of the newest lines of the job to look at.
    pub(super) fn lines_wanted(&self) -> usize {
        LINES + 4 * self.shards
    }

    /// Takes in what the ledger shows: a snapshot, and lines that were read after it, the newest
    /// first. Answers what is new, and how the occurrence stands.
    pub(super) fn look(
        &mut self,
        now: Timestamp,
        snapshot: &Snapshot,
        lines: &[AttemptRecord],
    ) -> (Vec<String>, Fate) {
        let state = snapshot.jobs.iter().find(|state| state.job == self.job);
        let attempts: Vec<&LastAttempt> = state
            .iter()
            .flat_map(|state| &state.attempts)
            .filter(|attempt| attempt.scheduled_at == self.scheduled_at)
            .collect();
        let own = lines
            .iter()
            .filter(|line| line.scheduled_at == self.scheduled_at);
        let own: Vec<&AttemptRecord> = own.collect();
        self.shards = self.shards.max(attempts.len());
        let mut news = course(&attempts, &own);
        news.retain(|line| self.told.insert(line.clone()));
        let waits = state.is_some_and(|state| {
            let waiting = &state.waiting;
            waiting
                .iter()
                .any(|one| one.scheduled_at == self.scheduled_at)
        });
        let known = match waits {
            true => Some(Fate::Open),
            false => self.fate(&attempts, &own),
        };
        let fate = match known {
            Some(fate) => {
                self.missing_since = None;
                fate
            }
            None => self.unknown(now, snapshot, state),
        };
        if fate == Fate::Open {
            let situation = self.situation(now, snapshot, state, &attempts);
            if situation != self.situation {
                news.extend(situation.clone());
                self.situation = situation;
            }
        } else if self.shards > 1 || news.is_empty() {
            news.extend(self.summary(fate));
        }
        (news, fate)
    }

    /// None where the ledger has nothing that tells.
    fn fate(&mut self, attempts: &[&LastAttempt], lines: &[&AttemptRecord]) -> Option<Fate> {
        if !attempts.is_empty() {
            let ends: Option<Vec<Outcome>> = attempts.iter().map(|one| ending(one)).collect();
            self.last_seen = ends.and_then(worst);
            return Some(self.last_seen.map_or(Fate::Open, Fate::Over));
        }
        // It is no longer the job's newest: the lines have the last word on each of its shards.
        let last = lines.iter().filter(|line| line.detail.is_final());
        let mut shards = HashSet::new();
        let mut of = 1;
        let mut ends = Vec::new();
        for line in last {
            let (shard, total) = line.detail.shard.unwrap_or((0, 1));
            of = of.max(total as usize);
            if shards.insert(shard) {
                ends.push(line.outcome);
            }
        }
        match worst(ends) {
            Some(outcome) if shards.len() >= of => Some(Fate::Over(outcome)),
            _ => self.last_seen.map(Fate::Over),
        }
    }

    /// What is to be thought of an occurrence that the ledger has nothing of.
    fn unknown(&mut self, now: Timestamp, snapshot: &Snapshot, state: Option<&JobState>) -> Fate {
        let (_, acknowledged_at) = self.order;
        let window = snapshot.born.is_some_and(|born| born > acknowledged_at);
        if !self.is_lost(state, window) {
            return Fate::Forgotten;
        }
        let since = *self.missing_since.get_or_insert(now);
        let nobody_comes = match window {
            true => snapshot.grace.is_zero(),
            false => now.saturating_since(since) >= NOBODY_COMES,
        };
        if nobody_comes { Fate::Lost } else { Fate::Open }
    }

    /// Whether the record with the occurrence is gone, or one from before it is back. `window`:
    /// something happened to the ledger since.
    fn is_lost(&self, state: Option<&JobState>, window: bool) -> bool {
        let Some(state) = state else {
            // An order is acknowledged to jobs that the ledger knows, and it drops none.
            return true;
        };
        let at = self.scheduled_at;
        match (self.order.0, state.triggers.first()) {
            (OrderKind::Trigger, None) => true,
            (OrderKind::Trigger, Some(oldest)) if *oldest <= at => !state.triggers.contains(&at),
            // Newer ones may have taken its place.
            _ => window,
        }
    }

    fn summary(&self, fate: Fate) -> Option<String> {
        let outcome = match fate {
            Fate::Over(outcome) => outcome,
            Fate::Open | Fate::Forgotten | Fate::Lost => return None,
        };
        let line = match self.shards {
            1 => format!("over: {outcome}"),
            shards => format!("all {shards} shards are over: {outcome}"),
        };
        Some(line).filter(|line| !self.told.contains(line))
    }

    /// What keeps it from going on, if anything does.
    fn situation(
        &self,
        now: Timestamp,
        snapshot: &Snapshot,
        state: Option<&JobState>,
        attempts: &[&LastAttempt],
    ) -> Option<String> {
        if self.is_missing() {
            let hope = "waits whether a replica that has it comes back";
            return Some(format!("the store lost its data: {hope}"));
        }
        let gone = attempts
            .iter()
            .find(|one| matches!(one.standing, Standing::Running { deadline } if deadline < now));
        if let Some(gone) = gone {
            return Some(format!(
                "{} was not heard of until its lease ran out: another replica sees to it",
                gone.replica
            ));
        }
        let is_running = |one: &&LastAttempt| matches!(one.standing, Standing::Running { .. });
        if attempts.iter().any(is_running) {
            return None;
        }
        if let Some(absence) = absence(now, snapshot, &self.job, &self.run_on) {
            return Some(absence);
        }
        if !snapshot.grace.is_zero() {
            let why = "the ledger is new, or lost data";
            return Some(format!("waits: nothing is granted for a while, as {why}"));
        }
        self.place_in_line(state)
    }

    fn place_in_line(&self, state: Option<&JobState>) -> Option<String> {
        let state = state?;
        let mut waiting = state.waiting.iter();
        let before = waiting.position(|one| one.scheduled_at == self.scheduled_at)?;
        let current = state.attempts.first().map(|one| one.scheduled_at);
        let is_open = state.attempts.iter().any(|one| ending(one).is_none());
        let unfinished = current.filter(|_| is_open);
        let after = match (unfinished, before) {
            (None, 0) => return None,
            (None, before) => format!("{before} others"),
            (Some(at), 0) => format!("the occurrence of {at}, which is unfinished"),
            (Some(at), before) => {
                format!("the occurrence of {at}, which is unfinished, and {before} others")
            }
        };
        Some(format!("its turn comes after {after}"))
    }
}

fn ending(attempt: &LastAttempt) -> Option<Outcome> {
    match attempt.standing {
        Standing::Ended(outcome) => Some(outcome),
        Standing::Running { .. } | Standing::Again { .. } | Standing::Idle => None,
    }
}

fn worst(ends: impl IntoIterator<Item = Outcome>) -> Option<Outcome> {
    let ends = ends.into_iter();
    ends.max_by_key(|outcome| *outcome != Outcome::Succeeded)
}

/// A line for each attempt that ended, and for each that runs. What ran when the snapshot was
/// taken may have its end among the lines, which were read after it: its claim comes before that.
fn course(attempts: &[&LastAttempt], lines: &[&AttemptRecord]) -> Vec<String> {
    let total = attempts.len();
    let runs = attempts.iter().enumerate();
    let mut runs: Vec<_> = runs
        .filter(|(_, one)| matches!(one.standing, Standing::Running { .. }))
        .collect();
    let mut told = Vec::new();
    for line in lines.iter().rev() {
        let shard = line.detail.shard.map_or(0, |(shard, _)| shard as usize);
        let is_its = |(number, one): &mut (usize, &&LastAttempt)| {
            *number == shard && one.attempt == line.attempt
        };
        let its = runs.extract_if(.., is_its);
        told.extend(its.map(|(shard, one)| claimed(shard, total, one)));
        told.push(ended(line));
    }
    told.extend(runs.iter().map(|(shard, one)| claimed(*shard, total, one)));
    told
}

fn claimed(shard: usize, total: usize, one: &LastAttempt) -> String {
    let prefix = match total {
        1 => String::new(),
        _ => format!("shard {shard} of {total}: "),
    };
    let (replica, attempt) = (&one.replica, one.attempt);
    format!("{prefix}claimed by {replica} as attempt {attempt}")
}

/// A line of the ledger in words.
fn ended(line: &AttemptRecord) -> String {
    let prefix = match line.detail.shard {
        Some((shard, total)) => format!("shard {shard} of {total}: "),
        None => String::new(),
    };
    let how = match line.attempt {
        0 => never_started(line),
        _ => end_of(line),
    };
    let then = match line.detail.next_attempt_at {
        None => String::new(),
        Some(next) if next > line.ended_at => format!("; retried at {next}"),
        Some(_) => "; another attempt follows".to_owned(),
    };
    format!("{prefix}{how}{then}")
}

fn end_of(line: &AttemptRecord) -> String {
    let took = short_duration(line.ended_at.saturating_since(line.started_at));
    let how = match how_it_ended(line) {
        words if words.is_empty() => words,
        words => format!(", {words}"),
    };
    let (attempt, replica, outcome) = (line.attempt, &line.replica, line.outcome);
    format!("attempt {attempt} on {replica}: {outcome} after {took}{how}")
}

fn never_started(line: &AttemptRecord) -> String {
    let cause = line.detail.cause.map(|cause| cause.as_str());
    let words = line.detail.reason.as_deref().unwrap_or_default();
    // Some reasons begin with their cause.
    let words = cause
        .and_then(|cause| words.strip_prefix(cause)?.strip_prefix(": "))
        .unwrap_or(words);
    match (cause, words) {
        (None, "") => line.outcome.to_string(),
        (Some(cause), "") => format!("{} ({cause})", line.outcome),
        (None, words) => format!("{}: {words}", line.outcome),
        (Some(cause), words) => format!("{} ({cause}): {words}", line.outcome),
    }
}

#[cfg(test)]
mod tests;
