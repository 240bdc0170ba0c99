//! The state of everything, as `status --json` shows it.
//!
//! Names in here are relied on: they may be added to, and never changed. Must never: show what a
//! job is given, which may be secret.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde::Serialize;

use crate::config::SchedulerConfig;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{Cause, Origin, Outcome};
use crate::scheduler::policy::Tags;
use crate::scheduler::time::Timestamp;
use crate::store::{
    Answered, JobState, LastAttempt, NeverStarted, ReplicaState, Snapshot, Standing,
    StoreCondition, WaitingOccurrence,
};
use crate::why::RangeLine;

#[derive(Serialize)]
pub(super) struct Status {
    pub(super) now: String,
    pub(super) store: String,
    pub(super) namespace: String,
    /// Nothing is granted for so long.
    pub(super) grace_seconds: f64,
    /// What of the store's settings puts the ledger at risk.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) store_conditions: Vec<ConditionStatus>,
    pub(super) jobs: Vec<JobStatus>,
    pub(super) replicas: Vec<ReplicaStatus>,
}

#[derive(Serialize)]
pub(super) struct ConditionStatus {
    /// `evicts` or `keeps_nothing`.
    pub(super) kind: &'static str,
    /// What it means, and its cure.
    pub(super) text: String,
}

#[derive(Serialize)]
pub(super) struct JobStatus {
    pub(super) name: String,
    /// `running`, `abandoned` (its holder is gone), `waiting_to_retry`, `waiting` (for a replica),
    /// `paused`, `disabled`, an outcome, or `never_ran`. The outcome is that of `last`, but that of
    /// `never_started` where nothing ran, or what ran before it succeeded.
    pub(super) state: String,
    /// The newest attempt; of shards the one that says most of how the job stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last: Option<LastStatus>,
    /// The newest occurrence that was skipped or missed, where none ran that is newer. None for
    /// what a pause, or `enabled = false`, kept from running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) never_started: Option<NeverStartedStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_left_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) paused: Option<PauseStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disabled_since: Option<String>,
    /// When the next attempt of the occurrence may begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_at: Option<String>,
    /// Of a job that is sharded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shards: Option<ShardsStatus>,
    /// What waits for its turn, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waiting: Vec<WaitingStatus>,
    /// What waits for the success of other jobs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) after: Vec<JoinStatus>,
}

#[derive(Serialize)]
pub(super) struct LastStatus {
    pub(super) scheduled_at: String,
    pub(super) attempt: u32,
    pub(super) run_id: String,
    pub(super) token: u64,
    pub(super) replica: String,
    pub(super) since: String,
    pub(super) for_seconds: f64,
    /// How it ended; none while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<&'static str>,
    /// What brought its occurrence about, where it wasn't the schedule.
    #[serde(skip_serializing_if = "Origin::is_schedule")]
    pub(super) origin: Origin,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
}

#[derive(Serialize)]
pub(super) struct NeverStartedStatus {
    pub(super) scheduled_at: String,
    pub(super) outcome: Outcome,
    pub(super) cause: Cause,
}

#[derive(Serialize)]
pub(super) struct PauseStatus {
    pub(super) since: String,
    pub(super) by: String,
}

#[derive(Serialize)]
pub(super) struct ShardsStatus {
    pub(super) total: usize,
    pub(super) running: usize,
    pub(super) over: usize,
    /// The names of those that run one, each once.
    pub(super) holders: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct WaitingStatus {
    pub(super) scheduled_at: String,
    #[serde(skip_serializing_if = "Origin::is_schedule")]
    pub(super) origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) by: Option<String>,
    pub(super) since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_by: Option<String>,
}

#[derive(Serialize)]
pub(super) struct JoinStatus {
    pub(super) scheduled_at: String,
    /// The jobs whose occurrences of that instant are over.
    pub(super) arrived: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct ReplicaStatus {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) version: String,
    pub(super) jobs: u32,
    pub(super) running: u32,
    pub(super) draining: bool,
    /// How far its host's wall clock is ahead of the store's.
    pub(super) clock_skew_seconds: f64,
    /// How long the store's last answer to it took: the skew is known to about this.
    pub(super) store_round_trip_seconds: f64,
    pub(super) seen_seconds_ago: f64,
    /// It was heard of lately.
    pub(super) alive: bool,
    #[serde(skip_serializing_if = "Tags::is_empty")]
    pub(super) tags: Tags,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_running: Option<u32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) config_digest: String,
    /// Its table is not the one that most live replicas have; where two are as frequent, not the
    /// first one's.
    pub(super) config_differs: bool,
}

impl Status {
    pub(super) fn of(
        scheduler: &SchedulerConfig,
        table: Option<&[Job]>,
        store: String,
        answered: &Answered<Snapshot>,
    ) -> Self {
        let (now, snapshot) = (answered.now, &answered.answer);
        let mut names: BTreeMap<&JobName, (Option<&Job>, Option<&JobState>)> = BTreeMap::new();
        for job in table.unwrap_or_default() {
            names.entry(&job.name).or_default().0 = Some(job);
        }
        for state in &snapshot.jobs {
            names.entry(&state.job).or_default().1 = Some(state);
        }
        let jobs = names.into_iter();
        let table_known = table.is_some();
        let usual = usual_digest(&snapshot.replicas, now);
        Self {
            now: now.to_string(),
            store,
            namespace: scheduler.namespace.clone(),
            grace_seconds: snapshot.grace.as_secs_f64(),
            store_conditions: snapshot
                .conditions
                .iter()
                .map(ConditionStatus::of)
                .collect(),
            jobs: jobs
                .map(|(name, (job, state))| JobStatus::of(name, job, state, now, table_known))
                .collect(),
            replicas: snapshot
                .replicas
                .iter()
                .map(|replica| ReplicaStatus::of(replica, now, usual))
                .collect(),
        }
    }
}

impl ConditionStatus {
    fn of(condition: &StoreCondition) -> Self {
        Self {
            kind: condition.kind(),
            text: condition.to_string(),
        }
    }
}

/// The digest that most live replicas have; of two that are as frequent, that of the replica that
/// comes first. None where all say nothing of theirs.
fn usual_digest(replicas: &[ReplicaState], now: Timestamp) -> Option<&str> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    let alive = replicas.iter().filter(|one| one.is_alive(now));
    let digests = alive.map(|one| one.info.digest.as_str());
    let digests: Vec<&str> = digests.filter(|digest| !digest.is_empty()).collect();
    for digest in &digests {
        *counts.entry(digest).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    digests.into_iter().find(|digest| counts[digest] == most)
}

impl JobStatus {
    fn of(
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
            lease_left_seconds: deadline
                .map(|at: Timestamp| at.saturating_since(now).as_secs_f64()),
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
            for_seconds: now.saturating_since(last.since).as_secs_f64(),
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

impl ReplicaStatus {
    fn of(state: &ReplicaState, now: Timestamp, usual: Option<&str>) -> Self {
        let info = &state.info;
        let alive = state.is_alive(now);
        Self {
            name: state.replica.name.clone(),
            id: state.replica.id.to_string(),
            host: info.host.clone(),
            pid: info.pid,
            version: info.version.clone(),
            jobs: info.jobs,
            running: info.running,
            draining: info.draining,
            #[expect(clippy::cast_precision_loss, reason = "exact below 285,000 years")]
            clock_skew_seconds: info.skew_ms as f64 / 1000.0,
            store_round_trip_seconds: Duration::from_millis(info.round_trip_ms).as_secs_f64(),
            seen_seconds_ago: now.saturating_since(state.seen_at).as_secs_f64(),
            alive,
            tags: info.tags.clone(),
            max_running: info.max_running,
            config_digest: info.digest.clone(),
            config_differs: alive
                && usual.is_some_and(|usual| !info.digest.is_empty() && info.digest != usual),
        }
    }
}

#[cfg(test)]
mod tests;
