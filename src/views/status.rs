//! The state of everything, as `status --json` shows it.
//!
//! Names in here are relied on: they may be added to, and never changed. Must never: show what a
//! job is given, which may be secret.

mod drift;
mod replica;

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use self::drift::RolloutStatus;
use self::drift::{DriftStatus, drift, rollout};
pub(crate) use self::replica::{ReplicaStatus, replicas};
use crate::config::SchedulerConfig;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{Cause, Origin, Outcome};
use crate::scheduler::time::{Timestamp, to_seconds};
use crate::store::{
    Answered, JobState, LastAttempt, NeverStarted, Snapshot, Standing, StoreCondition,
    WaitingOccurrence, Withdrawal,
};
use crate::why::RangeLine;

/// What is noted of a job that nobody starts.
const WITHDRAWN: &str = "a newer table lacks it";

#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    pub(crate) now: String,
    pub(crate) store: String,
    pub(crate) namespace: String,
    /// Nothing is granted for so long.
    pub(crate) grace_seconds: f64,
    /// What of the store's settings puts the ledger at risk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) store_conditions: Vec<ConditionStatus>,
    pub(crate) jobs: Vec<JobStatus>,
    pub(crate) replicas: Vec<ReplicaStatus>,
    /// Jobs in which the tables of live replicas differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) drift: Vec<DriftStatus>,
    /// While live replicas have different tables: how far the newest has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rollout: Option<RolloutStatus>,
    /// What of `revision` in the tables of live replicas makes it unclear which one is meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) table_conditions: Vec<ConditionStatus>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ConditionStatus {
    /// Of the store `evicts` or `keeps_nothing`, of tables `revision_mixed` or `revision_twice`.
    pub(crate) kind: &'static str,
    /// What it means, and its cure.
    pub(crate) text: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct JobStatus {
    pub(crate) name: String,
    /// `running`, `abandoned` (its holder is gone), `waiting_to_retry`, `waiting` (for a replica),
    /// `paused`, `disabled`, an outcome, or `never_ran`. The outcome is that of `last`, but that of
    /// `never_started` where nothing ran, or what ran before it succeeded.
    pub(crate) state: String,
    /// The newest attempt; of shards the one that says most of how the job stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<LastStatus>,
    /// The newest occurrence that was skipped or missed, where none ran that is newer. None for
    /// what a pause, or `enabled = false`, kept from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) never_started: Option<NeverStartedStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lease_left_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused: Option<PauseStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) disabled_since: Option<String>,
    /// When the next attempt of the occurrence may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_at: Option<String>,
    /// Of a job that is sharded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) shards: Option<ShardsStatus>,
    /// What waits for its turn, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) waiting: Vec<WaitingStatus>,
    /// What waits for the success of other jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) after: Vec<JoinStatus>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct LastStatus {
    pub(crate) scheduled_at: String,
    pub(crate) attempt: u32,
    pub(crate) run_id: String,
    pub(crate) token: u64,
    pub(crate) replica: String,
    pub(crate) since: String,
    pub(crate) for_seconds: f64,
    /// How it ended; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    /// What brought its occurrence about, where it wasn't the schedule.
    #[serde(skip_serializing_if = "Origin::is_schedule")]
    #[schema(value_type = Option<String>)]
    pub(crate) origin: Origin,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct NeverStartedStatus {
    pub(crate) scheduled_at: String,
    #[schema(value_type = String)]
    pub(crate) outcome: Outcome,
    #[schema(value_type = String)]
    pub(crate) cause: Cause,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct PauseStatus {
    pub(crate) since: String,
    pub(crate) by: String,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct ShardsStatus {
    pub(crate) total: usize,
    pub(crate) running: usize,
    pub(crate) over: usize,
    /// The names of those that run one, each once.
    pub(crate) holders: Vec<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct WaitingStatus {
    pub(crate) scheduled_at: String,
    #[serde(skip_serializing_if = "Origin::is_schedule")]
    #[schema(value_type = Option<String>)]
    pub(crate) origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    pub(crate) since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) start_by: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub(crate) struct JoinStatus {
    pub(crate) scheduled_at: String,
    /// The jobs whose occurrences of that instant are over.
    pub(crate) arrived: Vec<String>,
}

impl Status {
    pub(crate) fn of(
        scheduler: &SchedulerConfig,
        table: Option<&[Job]>,
        store: String,
        answered: &Answered<Snapshot>,
    ) -> Self {
        let (now, snapshot) = (answered.now, &answered.answer);
        let jobs = jobs(table, snapshot).into_iter();
        let table_known = table.is_some();
        let withdrawal = snapshot.withdrawal(now);
        Self {
            now: now.to_string(),
            store,
            namespace: scheduler.namespace.clone(),
            grace_seconds: to_seconds(snapshot.grace),
            store_conditions: snapshot
                .conditions
                .iter()
                .map(ConditionStatus::of)
                .collect(),
            jobs: jobs
                .map(|(name, (job, state))| {
                    JobStatus::of(name, job, state, now, table_known).unless_in(&withdrawal, name)
                })
                .collect(),
            replicas: replicas(snapshot, now),
            drift: drift(snapshot, now),
            rollout: rollout(snapshot, now),
            table_conditions: drift::conditions(snapshot, now),
        }
    }
}

/// The jobs that table and ledger know, by name, each as either has it.
pub(crate) fn jobs<'s>(
    table: Option<&'s [Job]>,
    snapshot: &'s Snapshot,
) -> BTreeMap<&'s JobName, (Option<&'s Job>, Option<&'s JobState>)> {
    let mut names: BTreeMap<_, (Option<_>, Option<_>)> = BTreeMap::new();
    for job in table.unwrap_or_default() {
        names.entry(&job.name).or_default().0 = Some(job);
    }
    for state in &snapshot.jobs {
        names.entry(&state.job).or_default().1 = Some(state);
    }
    names
}

impl ConditionStatus {
    fn of(condition: &StoreCondition) -> Self {
        Self {
            kind: condition.kind(),
            text: condition.to_string(),
        }
    }
}

impl JobStatus {
    pub(crate) fn of(
        name: &JobName,
        job: Option<&Job>,
        state: Option<&JobState>,
        now: Timestamp,
        table_known: bool,
    ) -> Self {
        let attempts = state.map_or(&[][..], |state| &state.attempts);
        let last = state.and_then(JobState::last);
        let (held, deadline) = held(attempts).unzip();
        let next = job
            .filter(|job| job.enabled)
            .and_then(|job| job.schedule.next_after(now));
        let paused = state.and_then(|state| state.paused.as_ref());
        let disabled = state.and_then(|state| state.disabled);
        let waiting = state.map_or(&[][..], |state| &state.waiting);
        let joins = state.map_or(&[][..], |state| &state.joins);
        let is_off = disabled.is_some() || job.is_some_and(|job| !job.enabled);
        let never_started = state.and_then(|state| never_started(state, job));
        let unstarted = never_started.as_ref().map(|one| one.outcome);
        Self {
            name: name.to_string(),
            state: state_of(attempts, unstarted, waiting, paused.is_some(), is_off, now),
            never_started,
            last: last.map(|last| LastStatus::of(last, now)),
            holder: held.map(|held: &LastAttempt| held.replica.clone()),
            lease_left_seconds: deadline.map(|at: Timestamp| to_seconds(at.saturating_since(now))),
            next: next.map(|next| next.to_string()),
            note: note(job, table_known),
            paused: paused.map(|paused| PauseStatus {
                since: paused.since.to_string(),
                by: paused.by.clone(),
            }),
            disabled_since: disabled.as_ref().map(ToString::to_string),
            retry_at: retry_at(attempts).as_ref().map(ToString::to_string),
            shards: ShardsStatus::of(attempts),
            waiting: waiting.iter().map(WaitingStatus::of).collect(),
            after: joins.iter().map(JoinStatus::of).collect(),
        }
    }

    /// The same where the newest table may lack the job, so that nobody starts anything of it.
    pub(crate) fn unless_in(self, withdrawal: &Withdrawal<'_>, name: &JobName) -> Self {
        match withdrawal.has(name) {
            true => Self {
                next: None,
                note: Some(WITHDRAWN),
                ..self
            },
            false => self,
        }
    }
}

/// The newest occurrence that never started. A stretch of time counts as its newest instant, if it
/// is known to have one.
fn never_started(state: &JobState, job: Option<&Job>) -> Option<NeverStartedStatus> {
    let instant = |one: &NeverStarted| match &one.within {
        None => Some(one.scheduled_at),
        Some((since, schedule)) => {
            let until = one.scheduled_at;
            RangeLine::between(&state.job, *since, until, Some(schedule), job).newest()
        }
    };
    let mut all = state.never_started.iter();
    let (one, scheduled_at) = all.find_map(|one| Some((one, instant(one)?)))?;
    let mut attempts = state.attempts.iter();
    let is_newest = attempts.all(|attempt| attempt.scheduled_at < scheduled_at);
    is_newest.then(|| NeverStartedStatus {
        scheduled_at: scheduled_at.to_string(),
        outcome: one.outcome,
        cause: one.cause,
    })
}

/// The attempt that runs, with its deadline; of several the one whose lease runs out first.
fn held(attempts: &[LastAttempt]) -> Option<(&LastAttempt, Timestamp)> {
    let running = attempts.iter().filter_map(|one| match one.standing {
        Standing::Running { deadline } => Some((one, deadline)),
        Standing::Again { .. } | Standing::Idle | Standing::Ended(_) => None,
    });
    running.min_by_key(|(_, deadline)| *deadline)
}

fn retry_at(attempts: &[LastAttempt]) -> Option<Timestamp> {
    let waits = attempts.iter().filter_map(|one| match one.standing {
        Standing::Again { at, .. } => Some(at),
        Standing::Running { .. } | Standing::Idle | Standing::Ended(_) => None,
    });
    waits.min()
}

fn note(job: Option<&Job>, table_known: bool) -> Option<&'static str> {
    match job {
        None if table_known => Some("not in this table"),
        Some(job) if !job.enabled => Some("disabled"),
        Some(job) if !job.after.is_empty() => Some("after other jobs"),
        Some(job) if job.schedule.is_manual() => Some("run by hand"),
        _ => None,
    }
}

/// What is unfinished comes first, then what keeps more from coming, then how it went last: badly,
/// if what ran did, or what came after it never started.
fn state_of(
    attempts: &[LastAttempt],
    unstarted: Option<Outcome>,
    waiting: &[WaitingOccurrence],
    is_paused: bool,
    is_off: bool,
    now: Timestamp,
) -> String {
    let any = |wanted: fn(&Standing, Timestamp) -> bool| {
        attempts.iter().any(|one| wanted(&one.standing, now))
    };
    let ends = attempts.iter().filter_map(|one| match one.standing {
        Standing::Ended(outcome) => Some(outcome),
        _ => None,
    });
    let state = if any(|one, now| matches!(one, Standing::Running { deadline } if *deadline >= now))
    {
        "running"
    } else if any(|one, _| matches!(one, Standing::Running { .. })) {
        "abandoned"
    } else if any(|one, _| matches!(one, Standing::Again { .. })) {
        "waiting_to_retry"
    } else if any(|one, _| *one == Standing::Idle) || !waiting.is_empty() {
        "waiting"
    } else if is_off {
        "disabled"
    } else if is_paused {
        "paused"
    } else {
        let worst = ends.max_by_key(|outcome| *outcome != Outcome::Succeeded);
        let bad = worst.filter(|worst| *worst != Outcome::Succeeded);
        let newest = bad.or(unstarted).or(worst);
        newest.map_or("never_ran", Outcome::as_str)
    };
    state.to_owned()
}

impl LastStatus {
    fn of(last: &LastAttempt, now: Timestamp) -> Self {
        let outcome = match last.standing {
            Standing::Ended(outcome) | Standing::Again { outcome, .. } => Some(outcome.as_str()),
            Standing::Running { .. } | Standing::Idle => None,
        };
        Self {
            scheduled_at: last.scheduled_at.to_string(),
            attempt: last.attempt,
            run_id: last.run_id.to_string(),
            token: last.token.get(),
            replica: last.replica.clone(),
            since: last.since.to_string(),
            for_seconds: to_seconds(now.saturating_since(last.since)),
            outcome,
            origin: last.origin,
            by: last.by.clone(),
        }
    }
}

impl ShardsStatus {
    fn of(attempts: &[LastAttempt]) -> Option<Self> {
        if attempts.len() < 2 {
            return None;
        }
        let mut status = Self {
            total: attempts.len(),
            running: 0,
            over: 0,
            holders: Vec::new(),
        };
        for one in attempts {
            match one.standing {
                Standing::Running { .. } => {
                    status.running += 1;
                    status.holders.push(one.replica.clone());
                }
                Standing::Ended(_) => status.over += 1,
                Standing::Again { .. } | Standing::Idle => {}
            }
        }
        status.holders.sort();
        status.holders.dedup();
        Some(status)
    }
}

impl WaitingStatus {
    fn of(one: &WaitingOccurrence) -> Self {
        Self {
            scheduled_at: one.scheduled_at.to_string(),
            origin: one.origin,
            by: one.by.clone(),
            since: one.since.to_string(),
            start_by: one.start_by.as_ref().map(ToString::to_string),
        }
    }
}

impl JoinStatus {
    fn of((scheduled_at, arrived): &(Timestamp, Vec<JobName>)) -> Self {
        Self {
            scheduled_at: scheduled_at.to_string(),
            arrived: arrived.iter().map(ToString::to_string).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
