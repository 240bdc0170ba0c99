//! Lines of the ledger as spans.
//!
//! Must never: draw an id by anything that two replicas could see differently.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Status;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;

use crate::scheduler::lease::{Outcome, Written};
use crate::scheduler::spread::Spread;
use crate::scheduler::time::Timestamp;

/// As it is sent.
pub(super) type Span = opentelemetry_proto::tonic::trace::v1::Span;

/// The attempt's, if the line is of one, and the occurrence's, if it is the last word on that. A
/// line that stands for a stretch of time makes none. Of a sharded occurrence the first shard's
/// end is told as its own: nobody knows which will be the last.
pub(super) fn spans_of(namespace: &str, line: &Written) -> Vec<Span> {
    if line.detail.since.is_some() {
        return Vec::new();
    }
    let ids = Ids::of(namespace, line);
    let attempt = (line.attempt > 0).then(|| Span {
        span_id: ids.attempt,
        parent_span_id: ids.root.clone(),
        name: format!("attempt {}", line.attempt),
        start_time_unix_nano: nanos(line.started_at),
        ..span(&ids.trace, line)
    });
    let is_first_shard = line.detail.shard.is_none_or(|(shard, _)| shard == 0);
    let root = (line.is_final() && is_first_shard).then(|| Span {
        span_id: ids.root,
        name: line.job.to_string(),
        start_time_unix_nano: nanos(line.scheduled_at),
        ..span(&ids.trace, line)
    });
    attempt.into_iter().chain(root).collect()
}

/// What both have.
fn span(trace: &[u8], line: &Written) -> Span {
    let failed = matches!(
        line.outcome,
        Outcome::Failed | Outcome::TimedOut | Outcome::Lost | Outcome::Missed
    );
    let code = match (failed, line.outcome) {
        (true, _) => StatusCode::Error,
        (false, Outcome::Succeeded) => StatusCode::Ok,
        (false, _) => StatusCode::Unset,
    };
    Span {
        trace_id: trace.to_vec(),
        kind: SpanKind::Internal.into(),
        end_time_unix_nano: nanos(line.ended_at),
        attributes: attributes(line),
        status: Some(Status {
            code: code.into(),
            message: line
                .detail
                .reason
                .clone()
                .filter(|_| failed)
                .unwrap_or_default(),
        }),
        ..Span::default()
    }
}

/// The ids of an occurrence and an attempt of it.
struct Ids {
    trace: Vec<u8>,
    root: Vec<u8>,
    attempt: Vec<u8>,
}

impl Ids {
    fn of(namespace: &str, line: &Written) -> Self {
        let drawn = |purpose: &str| {
            Spread::default()
                .bytes(purpose.as_bytes())
                .bytes(&[0])
                .bytes(namespace.as_bytes())
                .bytes(&[0])
                .bytes(line.job.as_str().as_bytes())
                .bytes(&[0])
                .bytes(&line.scheduled_at.as_millis().to_be_bytes())
        };
        let bytes = |spread: Spread| spread.number().to_be_bytes();
        let halves = [
            bytes(drawn("trace, 1st half")),
            bytes(drawn("trace, 2nd half")),
        ];
        let run_id = line.run_id.to_string();
        Self {
            trace: halves.concat(),
            root: bytes(drawn("occurrence")).to_vec(),
            attempt: bytes(drawn("attempt").bytes(run_id.as_bytes())).to_vec(),
        }
    }
}

fn nanos(at: Timestamp) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(0) * 1_000_000
}

fn attributes(line: &Written) -> Vec<KeyValue> {
    let detail = &line.detail;
    let text = |value: String| Value::StringValue(value);
    let all = [
        ("soloist.job", Some(text(line.job.to_string()))),
        (
            "soloist.scheduled_at",
            Some(text(line.scheduled_at.to_string())),
        ),
        ("soloist.outcome", Some(text(line.outcome.to_string()))),
        ("soloist.replica", Some(text(line.replica.clone()))),
        (
            "soloist.cause",
            detail.cause.map(|cause| text(cause.as_str().to_owned())),
        ),
        ("soloist.reason", detail.reason.clone().map(text)),
        (
            "soloist.shard",
            detail.shard.map(|(shard, _)| Value::IntValue(shard.into())),
        ),
    ];
    let of_attempt = [
        (
            "soloist.attempt",
            Some(Value::IntValue(line.attempt.into())),
        ),
        ("soloist.run_id", Some(text(line.run_id.to_string()))),
        (
            "soloist.token",
            i64::try_from(line.token.get()).ok().map(Value::IntValue),
        ),
        (
            "process.exit.code",
            detail.exit_code.map(|code| Value::IntValue(code.into())),
        ),
        (
            "soloist.signal",
            detail.signal.map(|signal| Value::IntValue(signal.into())),
        ),
    ];
    let of_attempt = of_attempt.into_iter().filter(|_| line.attempt > 0);
    let known = all.into_iter().chain(of_attempt);
    known
        .filter_map(|(key, value)| Some(attribute(key, value?)))
        .collect()
}

/// A name and its value.
pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
