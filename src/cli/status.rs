//! `soloist status`: who runs what, how it went last, and when it is due next.

use std::sync::Arc;
use std::time::Duration;

use super::args::{Global, StatusArgs};
use super::settings::Settings;
use super::{Exit, output, print, store, tags};
use crate::store::Store;

mod wire;

use wire::{JobStatus, LastStatus, ReplicaStatus, Status};

/// How much of a table's digest is shown: enough to tell two tables apart.
const DIGEST_SHOWN: usize = 8;

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
    for condition in &status.store_conditions {
        text += &format!("! {}\n\n", condition.text);
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
            "NOTE",
        ],
        status.jobs.iter().map(job_row),
    );
    text += "\n";
    text += &output::columns(
        &[
            "REPLICA", "HOST", "PID", "RUNNING", "JOBS", "TABLE", "SKEW", "SEEN", "VERSION", "TAGS",
        ],
        status.replicas.iter().map(replica_row),
    );
    if status.replicas.iter().any(|one| one.config_differs) {
        text += "\n! the tables differ: the same jobs.toml belongs on every machine\n";
    }
    text
}

fn job_row(job: &JobStatus) -> Vec<String> {
    let last = |show: fn(&LastStatus) -> String| job.last.as_ref().map_or("-".into(), show);
    // A paused job's next occurrence will be skipped.
    let next = job.next.clone().filter(|_| job.paused.is_none());
    let state = match &job.shards {
        Some(shards) if shards.over < shards.total => {
            format!("{} {}/{}", job.state, shards.running, shards.total)
        }
        _ => job.state.clone(),
    };
    let holder = match &job.shards {
        Some(shards) if !shards.holders.is_empty() => Some(shards.holders.join(", ")),
        _ => job.holder.clone(),
    };
    vec![
        job.name.clone(),
        state,
        last(|last| format!("{} ago", output::short_duration(seconds(last.for_seconds)))),
        last(|last| last.scheduled_at.clone()),
        last(|last| last.attempt.to_string()),
        last(|last| last.token.to_string()),
        holder.unwrap_or("-".into()),
        job.lease_left_seconds
            .map_or("-".into(), |left| output::short_duration(seconds(left))),
        next.unwrap_or("-".into()),
        notes(job).join("; "),
    ]
}

/// What else there is to know of a job, the most pressing first.
fn notes(job: &JobStatus) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(at) = &job.retry_at {
        notes.push(format!("retries at {at}"));
    }
    notes.extend(never_started(job));
    if let Some(paused) = &job.paused {
        notes.push(format!("paused by {} since {}", paused.by, paused.since));
    }
    match job.waiting.len() {
        0 => {}
        1 => notes.push("1 waits".to_owned()),
        more => notes.push(format!("{more} wait")),
    }
    for join in &job.after {
        let (at, arrived) = (&join.scheduled_at, join.arrived.join(", "));
        notes.push(format!("of {at}, {arrived} succeeded so far"));
    }
    let disabled = job.disabled_since.as_ref();
    match (disabled, job.note) {
        (Some(since), None | Some("disabled")) => notes.push(format!("disabled since {since}")),
        (_, note) => notes.extend(note.map(str::to_owned)),
    }
    notes
}

/// What became of the newest that was due, where it did not run, and what stands beside it: the
/// row shows when the job last ran, if ever, and not how that ended.
fn never_started(job: &JobStatus) -> Option<String> {
    let one = job.never_started.as_ref()?;
    let (at, outcome, cause) = (&one.scheduled_at, one.outcome, one.cause.as_str());
    let ran = match &job.last {
        None => "nothing of it ever started: ",
        Some(LastStatus { outcome: None, .. }) => "",
        Some(LastStatus {
            outcome: Some(how), ..
        }) if job.state != *how => &format!("{how} when it last ran; since then "),
        Some(_) => "",
    };
    Some(format!("{ran}{at} was {outcome} ({cause})"))
}

fn replica_row(replica: &ReplicaStatus) -> Vec<String> {
    let most = replica
        .max_running
        .map_or(String::new(), |most| format!("/{most}"));
    let draining = if replica.draining { ", draining" } else { "" };
    let digest: String = replica.config_digest.chars().take(DIGEST_SHOWN).collect();
    let tags = tags::list(&replica.tags);
    vec![
        replica.name.clone(),
        replica.host.clone(),
        replica.pid.to_string(),
        format!("{}{most}{draining}", replica.running),
        replica.jobs.to_string(),
        match (digest.is_empty(), replica.config_differs) {
            (true, _) => "-".to_owned(),
            (false, false) => digest,
            (false, true) => format!("{digest} !"),
        },
        format!("{:+.3}s", replica.clock_skew_seconds),
        format!(
            "{} ago",
            output::short_duration(seconds(replica.seen_seconds_ago))
        ),
        replica.version.clone(),
        match tags.is_empty() {
            true => "-".to_owned(),
            false => tags,
        },
    ]
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
