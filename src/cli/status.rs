//! `soloist status`: who runs what, how it went last, and when it is due next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::args::{Global, StatusArgs};
use super::settings::Settings;
use super::{Exit, output, print, store};
use crate::scheduler::lease::Definition;
use crate::scheduler::{few, policy};
use crate::store::Store;
use crate::views::status::{JobStatus, LastStatus, ReplicaStatus, RolloutStatus, Status};

mod watch;

/// Shows the state of everything.
pub(super) fn run(global: &Global, args: &StatusArgs) -> Result<Exit, Exit> {
    let (scheduler, table) = Settings::load_for_store(global)?;
    if let Some(seconds) = args.watch {
        return watch::run(&scheduler, table.as_ref(), args.json, seconds);
    }
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
    text + &replicas(status) + &tables(status)
}

/// A row for each replica. Former lives of one that lives are counted beside it: all of them are
/// listed for a day, and `--json` has them.
fn replicas(status: &Status) -> String {
    let alive = status.replicas.iter().filter(|one| one.alive);
    let alive: BTreeSet<&str> = alive.map(|one| one.name.as_str()).collect();
    let is_former = |one: &&ReplicaStatus| !one.alive && alive.contains(one.name.as_str());
    let (former, shown): (Vec<_>, Vec<_>) = status.replicas.iter().partition(is_former);
    let mut lives: BTreeMap<&str, usize> = BTreeMap::new();
    for one in former {
        *lives.entry(&one.name).or_default() += 1;
    }
    output::columns(
        &[
            "REPLICA", "HOST", "PID", "RUNNING", "JOBS", "TABLE", "SKEW", "SEEN", "VERSION", "TAGS",
        ],
        shown.into_iter().map(|one| {
            // Of several that live under one name, the first has them.
            let former = lives.remove(one.name.as_str());
            replica_row(one, former.unwrap_or(0))
        }),
    )
}

/// What there is to say of the replicas' tables.
fn tables(status: &Status) -> String {
    let mut lines = Vec::new();
    if let Some(rollout) = &status.rollout {
        let mut line = rollout_line(rollout);
        if !status.drift.is_empty() {
            let jobs = few(status.drift.iter().map(|one| &one.job));
            line += &format!("; the tables differ in {jobs}");
        }
        lines.push(line);
    }
    let conditions = status.table_conditions.iter();
    lines.extend(conditions.map(|one| format!("! {}", one.text)));
    for replica in status.replicas.iter().filter(|one| one.alive) {
        let name = &replica.name;
        if let Some(cause) = &replica.table_refused {
            lines.push(format!("! {name} goes on with an older table: {cause}"));
        }
        let Some(table) = &replica.table else {
            continue;
        };
        let outdated = table.outdated_jobs.iter();
        let outdated = few(outdated.filter(|job| !table.withdrawn_jobs.contains(job)));
        if !outdated.is_empty() {
            lines.push(format!(
                "! {name} leaves to others, which have newer definitions: {outdated}"
            ));
        }
        let withdrawn = few(&table.withdrawn_jobs);
        if !withdrawn.is_empty() {
            lines.push(format!(
                "! {name} starts nothing of what a newer table lacks: {withdrawn}"
            ));
        }
    }
    match lines.is_empty() {
        true => String::new(),
        false => format!("\n{}\n", lines.join("\n")),
    }
}

fn rollout_line(rollout: &RolloutStatus) -> String {
    let RolloutStatus {
        digest,
        revision,
        replicas,
        of,
    } = rollout;
    let have = if *replicas == 1 { "has" } else { "have" };
    let which = match revision {
        Some(revision) => format!("revision {revision}"),
        None => shown(digest, None),
    };
    format!("rolling out: {replicas} of {of} replicas {have} the newest table ({which})")
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

fn replica_row(replica: &ReplicaStatus, former_lives: usize) -> Vec<String> {
    let most = replica
        .max_running
        .map_or(String::new(), |most| format!("/{most}"));
    let draining = if replica.draining { ", draining" } else { "" };
    let tags = policy::list(&replica.tags);
    vec![
        replica.name.clone(),
        replica.host.clone(),
        replica.pid.to_string(),
        format!("{}{most}{draining}", replica.running),
        replica.jobs.to_string(),
        table_cell(replica),
        format!("{:+.3}s", replica.clock_skew_seconds),
        seen_cell(replica, former_lives),
        replica.version.clone(),
        match tags.is_empty() {
            true => "-".to_owned(),
            false => tags,
        },
    ]
}

/// Which table it has; an older one than another replica's is marked.
fn table_cell(replica: &ReplicaStatus) -> String {
    let mark = if replica.config_differs { " !" } else { "" };
    match &replica.table {
        Some(table) => shown(&table.digest, table.revision) + mark,
        None => "-".to_owned(),
    }
}

fn shown(digest: &str, revision: Option<u64>) -> String {
    let digest = digest.to_owned();
    Definition { digest, revision }.to_string()
}

fn seen_cell(replica: &ReplicaStatus, former_lives: usize) -> String {
    let seen = output::short_duration(seconds(replica.seen_seconds_ago));
    let lives = match former_lives {
        0 => String::new(),
        1 => "; 1 former life".to_owned(),
        more => format!("; {more} former lives"),
    };
    let gone = if replica.alive { "" } else { ", gone" };
    format!("{seen} ago{gone}{lives}")
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests;
