//! `soloist status`: who runs what, how it went last, and when it is due next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::args::{Global, StatusArgs};
use super::settings::Settings;
use super::{Exit, output, print, store};
use crate::config::SchedulerConfig;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::time::Timestamp;
use crate::store::{Answered, JobState, LastAttempt, ReplicaState, Snapshot, Standing, Store};

/// Shows the state of everything.
pub(super) fn run(global: &Global, args: &StatusArgs) -> Result<Exit, Exit> {
    let (scheduler, table) = Settings::load_for_store(global)?;
    let (place, answered) = store::look(&scheduler, async |store: Arc<dyn Store>| {
        Ok((store.place(), store.snapshot().await?))
    })?;
    let status = Status::of(
        &scheduler,
        table.as_ref().map(|table| &table.jobs[..]),
        place,
        &answered,
    );
    if args.json {
        return Ok(output::json(&status));
    }
    Ok(print(render(&status)))
}

/// The state of everything, as `--json` shows it.
#[derive(Serialize)]
struct Status {
    now: String,
    store: String,
    namespace: String,
    /// Nothing is granted for so long.
    grace_seconds: f64,
    jobs: Vec<JobStatus>,
    replicas: Vec<ReplicaStatus>,
}

#[derive(Serialize)]
struct JobStatus {
    name: String,
    /// `running`, `abandoned` (its holder is gone), an outcome, or `never_ran`.
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<LastStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    holder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lease_left_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

#[derive(Serialize)]
struct LastStatus {
    scheduled_at: String,
    attempt: u32,
    run_id: String,
    token: u64,
    replica: String,
    since: String,
    for_seconds: f64,
}

#[derive(Serialize)]
struct ReplicaStatus {
    name: String,
    id: String,
    host: String,
    pid: u32,
    version: String,
    jobs: u32,
    running: u32,
    draining: bool,
    clock_skew_seconds: f64,
    seen_seconds_ago: f64,
}

impl Status {
    fn of(
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
        Self {
            now: now.to_string(),
            store,
            namespace: scheduler.namespace.clone(),
            grace_seconds: snapshot.grace.as_secs_f64(),
            jobs: jobs
                .map(|(name, (job, state))| JobStatus::of(name, job, state, now, table_known))
                .collect(),
            replicas: snapshot
                .replicas
                .iter()
                .map(|replica| ReplicaStatus::of(replica, now))
                .collect(),
        }
    }
}

impl JobStatus {
    fn of(
        name: &JobName,
        job: Option<&Job>,
        state: Option<&JobState>,
        now: Timestamp,
        table_known: bool,
    ) -> Self {
        let last = state.and_then(JobState::last);
        let deadline = match last.map(|last| last.standing) {
            Some(Standing::Running { deadline }) => Some(deadline),
            _ => None,
        };
        let next = job
            .filter(|job| job.enabled)
            .and_then(|job| job.schedule.next_after(now));
        Self {
            name: name.to_string(),
            state: state_of(last, now),
            last: last.map(|last| LastStatus::of(last, now)),
            holder: deadline.and(last).map(|last| last.replica.clone()),
            lease_left_seconds: deadline.map(|at| at.saturating_since(now).as_secs_f64()),
            next: next.map(|next| next.to_string()),
            note: note(job, table_known),
        }
    }
}

fn note(job: Option<&Job>, table_known: bool) -> Option<&'static str> {
    match job {
        None if table_known => Some("not in this table"),
        Some(job) if !job.enabled => Some("disabled"),
        Some(job) if job.schedule.is_manual() => Some("run by hand"),
        _ => None,
    }
}

fn state_of(last: Option<&LastAttempt>, now: Timestamp) -> String {
    match last.map(|last| last.standing) {
        None => "never_ran".to_owned(),
        Some(Standing::Running { deadline }) if deadline < now => "abandoned".to_owned(),
        Some(Standing::Running { .. }) => "running".to_owned(),
        Some(Standing::Again { .. }) => "waiting_to_retry".to_owned(),
        Some(Standing::Idle) => "waiting".to_owned(),
        Some(Standing::Ended(outcome)) => outcome.to_string(),
    }
}

impl LastStatus {
    fn of(last: &LastAttempt, now: Timestamp) -> Self {
        Self {
            scheduled_at: last.scheduled_at.to_string(),
            attempt: last.attempt,
            run_id: last.run_id.to_string(),
            token: last.token.get(),
            replica: last.replica.clone(),
            since: last.since.to_string(),
            for_seconds: now.saturating_since(last.since).as_secs_f64(),
        }
    }
}

impl ReplicaStatus {
    fn of(state: &ReplicaState, now: Timestamp) -> Self {
        let info = &state.info;
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
            seen_seconds_ago: now.saturating_since(state.seen_at).as_secs_f64(),
        }
    }
}

fn render(status: &Status) -> String {
    let Status {
        store,
        now,
        namespace,
        ..
    } = status;
    let mut text = format!("{store} at {now}, namespace {namespace}\n\n");
    if status.grace_seconds > 0.0 {
        let grace = output::short_duration(seconds(status.grace_seconds));
        text += &format!("nothing is granted for {grace}: the ledger is new or lost data\n\n");
    }
    text += &output::columns(
        &[
            "JOB",
            "STATE",
            "SINCE",
            "SCHEDULED AT",
            "ATTEMPT",
            "TOKEN",
            "HOLDER",
            "LEASE",
            "NEXT",
        ],
        status.jobs.iter().map(job_row),
    );
    text += "\n";
    text += &output::columns(
        &[
            "REPLICA", "HOST", "PID", "RUNNING", "JOBS", "SKEW", "SEEN", "VERSION",
        ],
        status.replicas.iter().map(replica_row),
    );
    text
}

fn job_row(job: &JobStatus) -> Vec<String> {
    let last = |show: fn(&LastStatus) -> String| job.last.as_ref().map_or("-".into(), show);
    let next = job.next.clone().or(job.note.map(str::to_owned));
    vec![
        job.name.clone(),
        job.state.clone(),
        last(|last| format!("{} ago", output::short_duration(seconds(last.for_seconds)))),
        last(|last| last.scheduled_at.clone()),
        last(|last| last.attempt.to_string()),
        last(|last| last.token.to_string()),
        job.holder.clone().unwrap_or("-".into()),
        job.lease_left_seconds
            .map_or("-".into(), |left| output::short_duration(seconds(left))),
        next.unwrap_or("-".into()),
    ]
}

fn replica_row(replica: &ReplicaStatus) -> Vec<String> {
    let draining = if replica.draining { ", draining" } else { "" };
    vec![
        replica.name.clone(),
        replica.host.clone(),
        replica.pid.to_string(),
        format!("{}{draining}", replica.running),
        replica.jobs.to_string(),
        format!("{:+.3}s", replica.clock_skew_seconds),
        format!(
            "{} ago",
            output::short_duration(seconds(replica.seen_seconds_ago))
        ),
        replica.version.clone(),
    ]
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
