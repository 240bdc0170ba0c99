//! Lines of the ledger, as `history --json` shows them.
//!
//! Names in here are relied on: they may be added to, and never changed. Must never: count what a
//! line stands for without an end.

use serde::Serialize;
use utoipa::ToSchema;

use crate::scheduler::job::Job;
use crate::scheduler::lease::{Cause, Origin};
use crate::store::{AttemptRecord, RangeLine};

pub(crate) use crate::store::COUNT_LIMIT;

/// A line that is shown.
pub(crate) struct Line {
    pub(crate) record: AttemptRecord,
    /// For a line that stands for a stretch of time: how many occurrences it has, counted up to
    /// [`COUNT_LIMIT`]; none where the schedule of that time can't be read.
    pub(crate) range: Option<Option<usize>>,
}

/// The first lines that stand for anything: what was settled while nothing was due leaves a line
/// as well.
pub(crate) fn shown(lines: &[AttemptRecord], jobs: &[Job], limit: usize) -> Vec<Line> {
    let line = |record: &AttemptRecord| {
        let job = jobs.iter().find(|job| job.name == record.job);
        let range = RangeLine::of(record, job).map(|range| range.count(COUNT_LIMIT));
        (range != Some(Some(0))).then(|| Line {
            record: record.clone(),
            range,
        })
    };
    lines.iter().filter_map(line).take(limit).collect()
}

/// An attempt as `--json` shows it.
#[derive(Serialize, ToSchema)]
pub(crate) struct AttemptView<'a> {
    job: &'a str,
    scheduled_at: String,
    attempt: u32,
    run_id: String,
    token: u64,
    replica: &'a str,
    started_at: String,
    ended_at: String,
    outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Origin::is_schedule")]
    #[schema(value_type = Option<String>)]
    origin: Origin,
    /// Who asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    /// From 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u32>,
    /// Of how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    cause: Option<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_attempt_at: Option<String>,
    /// The line stands for all instants after this, up to `scheduled_at`, that `schedule` has.
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<&'a str>,
    /// How many those are, counted up to 1000.
    #[serde(skip_serializing_if = "Option::is_none")]
    occurrences: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
    /// Whose memory that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_of: Option<&'static str>,
}

impl<'a> AttemptView<'a> {
    pub(crate) fn of(line: &'a Line) -> Self {
        let record = &line.record;
        let detail = &record.detail;
        let usage = record.detail.usage.unwrap_or_default();
        Self {
            job: record.job.as_str(),
            scheduled_at: record.scheduled_at.to_string(),
            attempt: record.attempt,
            run_id: record.run_id.to_string(),
            token: record.token.get(),
            replica: &record.replica,
            started_at: record.started_at.to_string(),
            ended_at: record.ended_at.to_string(),
            outcome: record.outcome.to_string(),
            exit_code: record.detail.exit_code,
            signal: record.detail.signal,
            reason: record.detail.reason.as_deref(),
            origin: detail.origin,
            by: detail.by.as_deref(),
            shard: detail.shard.map(|(shard, _)| shard),
            shards: detail.shard.map(|(_, of)| of),
            cause: detail.cause,
            next_attempt_at: detail.next_attempt_at.map(|at| at.to_string()),
            since: detail.since.map(|at| at.to_string()),
            schedule: detail.schedule.as_deref(),
            occurrences: line.range.flatten(),
            cpu_seconds: usage.cpu.map(|time| time.as_secs_f64()),
            peak_memory_bytes: usage.peak_memory.map(|peak| peak.bytes),
            peak_memory_of: usage.peak_memory.map(|peak| peak.of.as_str()),
        }
    }
}
