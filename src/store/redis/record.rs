//! What is kept in Redis beside a record's own text: the value it is part of, lines of the
//! ledger, replicas.
//!
//! Must never: guess. What has another form is an error.

use redis::Value;

use super::reply::{bytes, items, text};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{AttemptDetail, FencingToken, Outcome, Replica, RunId};
use crate::scheduler::time::Timestamp;
use crate::store::draft::Kept;
use crate::store::rules::Entry;
use crate::store::{AttemptRecord, ReplicaInfo, ReplicaState};

/// Stands for the agenda of a record that has none.
pub(super) const NO_AGENDA: &str = "-";

/// The value of a job: `AGENDA|RECORD`.
pub(super) fn value_of(kept: &Kept) -> String {
    match kept.agenda {
        Some(at) => format!("{}|{}", at.as_millis(), kept.text),
        None => format!("{NO_AGENDA}|{}", kept.text),
    }
}

/// The record's text in a job's value.
pub(super) fn record_in(value: &str) -> Option<&str> {
    value.split_once('|').map(|(_, record)| record)
}

/// A field of a line, as the stream of a job's history has it.
pub(super) struct LinePart {
    pub(super) name: &'static str,
    pub(super) value: String,
}

/// The fields of a line. The run id comes first: `write.lua` takes it from there.
pub(super) fn line_parts(entry: &Entry) -> [LinePart; 9] {
    let part = |name, value: String| LinePart { name, value };
    let time = |time: Timestamp| time.as_millis().to_string();
    let detail = serde_json::to_string(&entry.detail).unwrap_or_default();
    [
        part("run_id", entry.run_id.to_string()),
        part("scheduled_at", time(entry.scheduled_at)),
        part("attempt", entry.attempt.to_string()),
        part("token", entry.token.to_string()),
        part("replica", entry.replica.clone()),
        part("started_at", time(entry.started_at)),
        part("ended_at", time(entry.ended_at)),
        part("outcome", entry.outcome.as_str().to_owned()),
        part("detail", detail),
    ]
}

/// Reads an entry of the stream of a job's history.
pub(super) fn parse_line(job: &JobName, entry: &Value) -> Option<AttemptRecord> {
    let [_, fields] = items(entry)? else {
        return None;
    };
    let fields = items(fields)?;
    let field = |name: &str| {
        let mut pairs = fields.chunks_exact(2);
        let pair = pairs.find(|pair| text(&pair[0]) == Some(name))?;
        text(&pair[1])
    };
    Some(AttemptRecord {
        job: job.clone(),
        scheduled_at: time(field("scheduled_at")?)?,
        attempt: field("attempt")?.parse().ok()?,
        run_id: RunId::parse(field("run_id")?)?,
        token: FencingToken::new(field("token")?.parse().ok()?),
        replica: field("replica")?.to_owned(),
        started_at: time(field("started_at")?)?,
        ended_at: time(field("ended_at")?)?,
        outcome: outcome(field("outcome")?)?,
        detail: serde_json::from_str::<AttemptDetail>(field("detail")?).ok()?,
    })
}

/// Reads an entry of the hash of replicas: the id, and `seen_at|[name, info]`.
pub(super) fn parse_replica(id: &Value, told: &Value) -> Option<ReplicaState> {
    let told = std::str::from_utf8(bytes(told)?).ok()?;
    let (seen_at, told) = told.split_once('|')?;
    let (name, info) = serde_json::from_str::<(String, ReplicaInfo)>(told).ok()?;
    let id = uuid::Uuid::try_parse(text(id)?).ok()?;
    Some(ReplicaState {
        replica: Replica { id, name },
        info,
        seen_at: time(seen_at)?,
    })
}

/// Milliseconds since the Unix epoch.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    text.parse().ok().map(Timestamp::from_millis)
}

fn outcome(text: &str) -> Option<Outcome> {
    let all = [
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Lost,
        Outcome::Cancelled,
        Outcome::HandedOver,
        Outcome::Skipped,
        Outcome::Missed,
    ];
    all.into_iter().find(|outcome| outcome.as_str() == text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_records_text_is_found_behind_its_agenda_whatever_it_holds() {
        for agenda in [Some(Timestamp::from_millis(7)), None] {
            let text = r#"{"name":"a|b"}"#.to_owned();
            let kept = Kept { text, agenda };
            assert_eq!(record_in(&value_of(&kept)), Some(kept.text.as_str()));
        }
        assert_eq!(record_in("{}"), None);
    }

    /// Any line, with what may be in its words.
    fn entry() -> impl Strategy<Value = Entry> {
        let millis = || any::<i64>().prop_map(Timestamp::from_millis);
        let outcome = prop::sample::select(vec![
            Outcome::Succeeded,
            Outcome::Failed,
            Outcome::TimedOut,
            Outcome::Lost,
            Outcome::Cancelled,
            Outcome::HandedOver,
            Outcome::Skipped,
            Outcome::Missed,
        ]);
        let words = || prop::option::of(any::<String>());
        let detail = (
            any::<Option<i32>>(),
            words(),
            words(),
            any::<Option<(u32, u32)>>(),
        );
        let detail = detail.prop_map(|(exit_code, reason, schedule, shard)| AttemptDetail {
            exit_code,
            reason,
            schedule,
            shard,
            ..AttemptDetail::default()
        });
        let times = [millis(), millis(), millis()];
        let numbers = (any::<u32>(), any::<u128>(), 0..=FencingToken::MAX.get());
        (times, numbers, any::<String>(), outcome, detail).prop_map(
            |([scheduled_at, started_at, ended_at], numbers, replica, outcome, detail)| Entry {
                scheduled_at,
                attempt: numbers.0,
                run_id: RunId::new(uuid::Uuid::from_u128(numbers.1)),
                token: FencingToken::new(numbers.2),
                replica,
                started_at,
                ended_at,
                outcome,
                detail,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_line_of_the_ledger_is_read_as_it_was_written(entry in entry()) {
            let word = |text: &str| Value::BulkString(text.as_bytes().to_vec());
            let parts = line_parts(&entry);
            let fields = parts.iter().flat_map(|part| [word(part.name), word(&part.value)]);
            let stored = Value::Array(vec![word("1-1"), Value::Array(fields.collect())]);
            let job = JobName::new("job").unwrap();
            let read = parse_line(&job, &stored).expect("a line");
            let again = Entry {
                scheduled_at: read.scheduled_at,
                attempt: read.attempt,
                run_id: read.run_id,
                token: read.token,
                replica: read.replica,
                started_at: read.started_at,
                ended_at: read.ended_at,
                outcome: read.outcome,
                detail: read.detail,
            };
            prop_assert_eq!(again, entry);
        }
    }
}
