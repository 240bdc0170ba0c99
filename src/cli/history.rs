//! `soloist history`: past attempts.

use serde::Serialize;

use super::args::{Global, HistoryArgs};
use super::settings::Settings;
use super::{Exit, complain, output, print_error, store};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::Usage;
use crate::store::AttemptRecord;

/// Shows past attempts, the newest first.
pub(super) fn run(global: &Global, args: &HistoryArgs) -> Result<Exit, Exit> {
    let (scheduler, _) = Settings::load_for_store(global)?;
    let job = args.job.as_deref().map(parse_name).transpose()?;
    let limit = usize::try_from(args.count).unwrap_or(usize::MAX);
    let attempts = store::look(&scheduler, async |store| {
        store.history(job.as_ref(), limit).await
    })?;
    if args.json {
        let wire: Vec<WireAttempt> = attempts.iter().map(WireAttempt::from).collect();
        return Ok(output::json(&wire));
    }
    if attempts.is_empty() {
        let whose = job.map_or(String::new(), |job| format!(" of `{job}`"));
        print_error(&format!(
            "nothing{whose} has run yet, as far as the store knows\n"
        ));
        return Ok(Exit::Done);
    }
    Ok(output::table(
        &[
            "SCHEDULED AT",
            "JOB",
            "ATTEMPT",
            "OUTCOME",
            "TOOK",
            "CPU",
            "MEMORY",
            "REPLICA",
            "TOKEN",
            "DETAIL",
        ],
        attempts.iter().map(row),
    ))
}

pub(super) fn parse_name(text: &str) -> Result<JobName, Exit> {
    JobName::new(text).map_err(|error| {
        complain(
            Exit::Usage,
            &format!("`{text}` can't be a job's name: {error}"),
            None,
        )
    })
}

fn row(attempt: &AttemptRecord) -> Vec<String> {
    let started = attempt.attempt > 0;
    let took = attempt.ended_at.saturating_since(attempt.started_at);
    let or_dash = |text: String| if started { text } else { "-".to_owned() };
    let [cpu, memory] = used(attempt.detail.usage);
    vec![
        attempt.scheduled_at.to_string(),
        attempt.job.to_string(),
        or_dash(attempt.attempt.to_string()),
        attempt.outcome.to_string(),
        or_dash(output::short_duration(took)),
        cpu,
        memory,
        attempt.replica.clone(),
        or_dash(attempt.token.to_string()),
        detail(attempt),
    ]
}

/// CPU time and peak of memory, as far as they are known.
fn used(usage: Option<Usage>) -> [String; 2] {
    let usage = usage.unwrap_or_default();
    let memory = usage.peak_memory.map(|peak| output::short_size(peak.bytes));
    [usage.cpu.map(output::short_duration), memory].map(|text| text.unwrap_or("-".to_owned()))
}

/// How it ended, beyond its outcome.
pub(super) fn detail(attempt: &AttemptRecord) -> String {
    let detail = &attempt.detail;
    let code = detail
        .exit_code
        .filter(|code| *code != 0)
        .map(|code| format!("exit code {code}"));
    let signal = detail.signal.map(|signal| format!("signal {signal}"));
    let parts = [detail.reason.clone(), code, signal];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// An attempt as `--json` shows it.
#[derive(Serialize)]
struct WireAttempt<'a> {
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
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
    /// Whose memory that is.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_of: Option<&'static str>,
}

impl<'a> From<&'a AttemptRecord> for WireAttempt<'a> {
    fn from(record: &'a AttemptRecord) -> Self {
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
            cpu_seconds: usage.cpu.map(|time| time.as_secs_f64()),
            peak_memory_bytes: usage.peak_memory.map(|peak| peak.bytes),
            peak_memory_of: usage.peak_memory.map(|peak| peak.of.as_str()),
        }
    }
}
