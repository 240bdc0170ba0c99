//! A CronJob, made into a draft.
//!
//! Must never: carry a field over to a key that means something else without telling.

use serde_json::Value as Json;

use super::container;
use super::fields::Fields;
use super::references::References;
use super::schedule;
use crate::import::draft::{Draft, Refused, Value};
use crate::import::{Request, name};

const JOB: &str = "spec.jobTemplate.spec";

/// How often Kubernetes tries again where a Job doesn't say.
const BACKOFF_LIMIT: u64 = 6;

/// How many finished Jobs it keeps where a CronJob doesn't say.
const SUCCESSES_KEPT: u64 = 3;
const FAILURES_KEPT: u64 = 1;

/// In how many parts soloist runs a job at most.
const SHARDS: u64 = 128;

/// Attempts that soloist makes by default, and at most.
const ATTEMPTS: u64 = 10;
const MOST_ATTEMPTS: u64 = 1000;

/// How late a job may start in soloist, and how long it may take from TERM to KILL.
const LONGEST_DEADLINE_S: u64 = 366 * 86_400;
const LONGEST_GRACE_S: u64 = 3600;

/// How many attempts soloist keeps at most.
const MOST_KEPT: u64 = 1_000_000;

/// Makes a draft of a CronJob.
pub(super) fn draft(
    document: &Json,
    request: &Request<'_>,
    references: &mut References,
) -> Result<Draft, Refused> {
    let metadata = &document["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let place = match (metadata["namespace"].as_str(), name) {
        (_, "") => "a CronJob without a name".to_owned(),
        (Some(namespace), name) => format!("CronJob {namespace}/{name}"),
        (None, name) => format!("CronJob {name}"),
    };
    let mut draft = Draft::new(place, name::slug(name), Vec::new());
    let fields = Fields::new(document);
    match fill(&fields, request, references, &mut draft) {
        Ok(()) => {
            fields
                .unread()
                .into_iter()
                .for_each(|line| draft.differs(line));
            Ok(draft)
        }
        Err(reason) => Err(draft.refused(reason)),
    }
}

fn fill(
    fields: &Fields<'_>,
    request: &Request<'_>,
    references: &mut References,
    draft: &mut Draft,
) -> Result<(), String> {
    for path in ["kind", "metadata.name"] {
        fields.get(path);
    }
    match fields.text("apiVersion")? {
        Some("batch/v1" | "batch/v1beta1" | "batch/v2alpha1") => {}
        other => {
            let version = other.unwrap_or("nothing");
            return Err(format!(
                "its `apiVersion` is `{version}`, not `batch/v1` or `batch/v1beta1`"
            ));
        }
    }
    set_schedule(fields, request, draft)?;
    let is_indexed = set_shards(fields, draft)?;
    container::read(fields, is_indexed, references, draft)?;
    set_times(fields, draft)?;
    set_concurrency(fields, draft)?;
    set_retry(fields, draft)?;
    set_history(fields, draft)
}

fn set_schedule(
    fields: &Fields<'_>,
    request: &Request<'_>,
    draft: &mut Draft,
) -> Result<(), String> {
    let text = fields
        .text("spec.schedule")?
        .ok_or("it has no `spec.schedule`")?;
    let schedule = schedule::read(text);
    draft.set_text("schedule", schedule.text);
    for difference in schedule.differences {
        draft.differs(difference);
    }
    let zone = fields
        .text("spec.timeZone")?
        .map(str::to_owned)
        .or(schedule.zone);
    let is_utc = |zone: &str| ["utc", "etc/utc"].contains(&zone.to_ascii_lowercase().as_str());
    let holds = zone.as_deref().or(request.timezone).unwrap_or("UTC");
    if !is_utc(holds) {
        draft.differs("where clocks are set, Kubernetes leaves out a local time that doesn't exist and may run one that comes twice, twice; here it runs after the gap, and once (`dst_gap`, `dst_fold`)");
    }
    if let Some(zone) = zone {
        draft.set_text("timezone", zone);
    }
    let suspended = ["spec.suspend", "spec.jobTemplate.spec.suspend"];
    for path in suspended {
        if fields.flag(path)? && !draft.has("enabled") {
            draft.set("enabled", Value::Boolean(false));
        }
    }
    Ok(())
}

/// `completions` and `parallelism` as shards; whether the parts know their numbers.
fn set_shards(fields: &Fields<'_>, draft: &mut Draft) -> Result<bool, String> {
    let completions = fields.number(&format!("{JOB}.completions"))?;
    let parallelism = fields.number(&format!("{JOB}.parallelism"))?;
    let mode = fields.text(&format!("{JOB}.completionMode"))?;
    let shards = completions.unwrap_or(1);
    if parallelism == Some(0) {
        return Err("its `parallelism` is 0, so that nothing of it runs (write `suspend`, or another number)".into());
    }
    if shards == 0 {
        return Err("its `completions` is 0, so that nothing of it runs".into());
    }
    if shards > SHARDS {
        return Err(format!(
            "it has {shards} `completions`, and soloist runs a job in {SHARDS} parts at most"
        ));
    }
    let at_once = parallelism.unwrap_or(1);
    if completions.is_none() && at_once > 1 {
        draft.differs("`parallelism` without `completions` is left out: its pods share a queue of work, and one runs here");
    }
    if shards > 1 {
        draft.set("shards", Value::Integer(shards));
        if at_once < shards {
            draft.differs(format!("of its {shards} parts {at_once} ran at once; here all do, where replicas have room (`max_running`)"));
        }
    }
    Ok(mode == Some("Indexed"))
}

fn set_times(fields: &Fields<'_>, draft: &mut Draft) -> Result<(), String> {
    if let Some(seconds) = fields.number("spec.startingDeadlineSeconds")? {
        let seconds = seconds.clamp(1, LONGEST_DEADLINE_S);
        draft.set_text("starting_deadline", format!("{seconds}s"));
    }
    let of_job = fields.number(&format!("{JOB}.activeDeadlineSeconds"))?;
    let of_pod = fields.number(&format!("{JOB}.template.spec.activeDeadlineSeconds"))?;
    if let Some(seconds) = [of_job, of_pod].into_iter().flatten().min() {
        draft.set_text("timeout", format!("{seconds}s"));
    }
    if of_job.is_some() {
        draft.differs("`activeDeadlineSeconds` of the Job is for all its pods together; here `timeout` is for each attempt");
    }
    if let Some(seconds) = fields.number(&format!(
        "{JOB}.template.spec.terminationGracePeriodSeconds"
    ))? {
        if seconds > LONGEST_GRACE_S {
            draft.differs("`terminationGracePeriodSeconds` is longer than `kill_grace` can be, 1h");
        }
        draft.set_text("kill_grace", format!("{}s", seconds.min(LONGEST_GRACE_S)));
    }
    Ok(())
}

fn set_concurrency(fields: &Fields<'_>, draft: &mut Draft) -> Result<(), String> {
    match fields.text("spec.concurrencyPolicy")? {
        None | Some("Allow") => draft.differs("`concurrencyPolicy` is Allow, so that runs overlap; here one that finds the job busy is skipped (`concurrency_policy = \"queue\"` keeps it for later)"),
        Some("Forbid") => {
            draft.set_text("concurrency_policy", "forbid");
            draft.differs("`concurrencyPolicy: Forbid` starts a held back run late, once the other ends; here it is skipped (`concurrency_policy = \"queue\"` with `queue_limit = 1` comes nearest)");
        }
        Some("Replace") => draft.set_text("concurrency_policy", "replace"),
        Some(other) => return Err(format!("`{other}` is no `concurrencyPolicy`")),
    }
    Ok(())
}

/// Failed pods come back after 10 s, 20 s and so on, up to 6 minutes.
fn set_retry(fields: &Fields<'_>, draft: &mut Draft) -> Result<(), String> {
    let written = fields.number(&format!("{JOB}.backoffLimit"))?;
    let of_part = fields.number(&format!("{JOB}.backoffLimitPerIndex"))?;
    let mut max = of_part.or(written).unwrap_or(BACKOFF_LIMIT);
    if of_part.is_none() && draft.has("shards") {
        draft
            .differs("`backoffLimit` is for all its parts together; here each has as many retries");
    }
    if max >= MOST_ATTEMPTS {
        max = MOST_ATTEMPTS - 1;
        draft.differs(format!("`backoffLimit` is more than soloist tries: {max}"));
    }
    if max == 0 {
        return Ok(());
    }
    let text = |text: &str| Value::Text(text.into());
    let retry = vec![
        ("max", Value::Integer(max)),
        ("backoff", text("10s")),
        ("max_backoff", text("6m")),
    ];
    draft.set("retry", Value::Table(retry));
    if max >= ATTEMPTS {
        draft.set("max_attempts", Value::Integer(max + 1));
    }
    if written.is_none() && of_part.is_none() {
        draft.differs("`backoffLimit` is 6 where it isn't set, and so is written");
    }
    Ok(())
}

fn set_history(fields: &Fields<'_>, draft: &mut Draft) -> Result<(), String> {
    let successes = fields.number("spec.successfulJobsHistoryLimit")?;
    let failures = fields.number("spec.failedJobsHistoryLimit")?;
    if successes.is_none() && failures.is_none() {
        return Ok(());
    }
    let kept = successes
        .unwrap_or(SUCCESSES_KEPT)
        .saturating_add(failures.unwrap_or(FAILURES_KEPT));
    draft.set("history_limit", Value::Integer(kept.clamp(1, MOST_KEPT)));
    draft.differs("the history limits are for successes and failures each; here `history_limit` is for all attempts, and its default of 1000 costs little");
    Ok(())
}
