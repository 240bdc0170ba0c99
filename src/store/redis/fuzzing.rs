//! Any answer of a server, written as JSON: `null` is nil, a number an integer, a text a string,
//! `{"a": "b"}` a map, and what is no JSON is read as RESP.
//!
//! Must never: be part of a program.

use redis::Value;

use super::reply::{self, Written, items};
use super::{cluster, health, news, reading, record, sentinel, server};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::FencingToken;
use crate::store::fuzzing::steps;

/// How many jobs a reply is read about at most.
const JOBS_LIMIT: usize = 8;

/// What a step that is over says.
const DONE: &str = "written";

/// Any answer is read, or told to be none; and what wasn't said to be written wasn't.
pub(crate) fn reply(input: &[u8]) {
    let Some(answer) = answer(input) else {
        return;
    };
    scripts(&answer);
    ledger(&answer);
    let answers = items(&answer).unwrap_or_default();
    let _ = server::ServerInfo::read("redis://shop", answers);
    let _ = health::read(answers);
    for tls in [false, true] {
        let _ = cluster::read(answers, "10.0.0.1", tls);
    }
    if let Some(told) = sentinel::read(answers) {
        let master = told.master.clone();
        if let Ok(chosen) = sentinel::choose(vec![told]) {
            assert_eq!(chosen, master);
        }
    }
}

fn answer(input: &[u8]) -> Option<Value> {
    match serde_json::from_slice::<serde_json::Value>(input) {
        Ok(json) => Some(value(json)),
        Err(_) => redis::parse_redis_value(input).ok(),
    }
}

fn value(json: serde_json::Value) -> Value {
    let string = |text: String| Value::BulkString(text.into_bytes());
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(true) => Value::Okay,
        serde_json::Value::Bool(false) => Value::Boolean(false),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => Value::Double(number.as_f64().unwrap_or_default()),
        },
        serde_json::Value::String(text) => string(text),
        serde_json::Value::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        serde_json::Value::Object(pairs) => {
            let pairs = pairs.into_iter();
            Value::Map(
                pairs
                    .map(|(key, item)| (string(key), value(item)))
                    .collect(),
            )
        }
    }
}

/// As many jobs as a reply is about.
fn jobs_of(answer: &Value) -> Vec<JobName> {
    let values = items(answer).into_iter().flatten().filter_map(items);
    let count = values.map(<[Value]>::len).max().unwrap_or(0);
    let names = (0..count.saturating_sub(4).min(JOBS_LIMIT)).map(|number| format!("job-{number}"));
    names.filter_map(|name| JobName::new(&name).ok()).collect()
}

fn scripts(answer: &Value) {
    let jobs = jobs_of(answer);
    if let Ok(shown) = reply::shown(answer, &jobs) {
        assert!(shown.reading.group.token <= FencingToken::MAX);
        let known: Vec<_> = shown.values.keys().cloned().collect();
        assert_eq!(known, jobs, "it is about other jobs");
        steps(&shown.reading);
    }
    if let Ok((shown, _)) = reply::prepared(answer, &jobs) {
        assert_eq!(shown.values.len(), jobs.len());
    }
    let parts = items(answer).unwrap_or_default();
    let first = parts.first().and_then(reply::text);
    match reply::written(answer, &jobs) {
        Ok(Written::Done { .. }) => {
            assert!(
                first == Some(DONE) && parts.len() == 2,
                "it was not said to be written"
            );
        }
        Ok(Written::Changed(_)) => assert_eq!(first, Some("changed")),
        Err(_) => {}
    }
    assert_eq!(reply::taken(answer), first == Some(DONE));
    let _ = reply::standing(answer);
    if let Ok(look) = reply::look(answer) {
        assert!(look.group.token <= FencingToken::MAX);
        assert!(
            look.records
                .iter()
                .all(|(_, record)| record.token <= FencingToken::MAX)
        );
    }
}

fn ledger(answer: &Value) {
    let job = JobName::new("job").expect("a name");
    let _ = record::parse_line(&job, answer);
    let _ = reply::server_time(answer);
    if let Some(text) = reply::text(answer) {
        let _ = news::read(text);
    }
    let parts = items(answer).unwrap_or_default();
    if let [one, other] = parts {
        let _ = record::parse_replica(one, other);
        let _ = reply::job_and_record(one, other);
    }
    if let Ok(survey) = reading::parse_survey(parts) {
        assert!(
            survey
                .records
                .iter()
                .all(|(_, record)| record.token <= FencingToken::MAX)
        );
    }
}
