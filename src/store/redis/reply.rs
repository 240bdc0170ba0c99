//! The scripts' replies, decoded: each into what it says, or into an error. What is not
//! understood is never a win.

use std::collections::BTreeMap;

use redis::Value;

use super::keys::CURRENT_LAYOUT;
use super::record::{self, parse_replica, record_in};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::FencingToken;
use crate::scheduler::time::Timestamp;
use crate::store::draft::{Fault, Reading};
use crate::store::engine::Look;
use crate::store::rules::{Group, Life, Record};

/// Why a reply has no answer in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misread {
    /// The ledger is in another layout.
    Layout(String),
    /// A record in it has another form.
    Step(Fault),
    /// It isn't what the script says.
    Form,
}

/// What a step begins with, and the values as the server has them, to be compared.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) reading: Reading,
    /// Which process the server is.
    pub(super) process: String,
    /// The text of the epoch; empty where there is none.
    pub(super) epoch: String,
    pub(super) values: BTreeMap<JobName, Option<String>>,
}

/// What came of a write.
#[derive(Debug)]
pub(super) enum Written {
    /// All of it; with why a line of history could not be written, empty where all were.
    Done { fault: String },
    /// Nothing of it: this is how things are.
    Changed(Box<Shown>),
}

/// The group, and when and where it was read.
struct Head {
    clock_us: i64,
    process: String,
    epoch: String,
    group: Group,
}

/// Reads the first parts of a reply, and the values of jobs that come with it.
fn head<'v>(
    clock_us: &Value,
    process: &Value,
    values: &'v Value,
) -> Result<(Head, &'v [Value]), Misread> {
    let [layout, epoch, token, mark, jobs @ ..] = items(values).ok_or(Misread::Form)? else {
        return Err(Misread::Form);
    };
    let layout = optional(layout)?;
    if layout.is_some_and(|layout| layout != CURRENT_LAYOUT) {
        return Err(Misread::Layout(layout.unwrap_or_default().to_owned()));
    }
    let epoch = optional(epoch)?.unwrap_or_default();
    let group = group(epoch, optional(token)?, optional(mark)?).ok_or(Misread::Form)?;
    let head = Head {
        clock_us: integer(clock_us).ok_or(Misread::Form)?,
        process: text(process).ok_or(Misread::Form)?.to_owned(),
        epoch: epoch.to_owned(),
        group,
    };
    Ok((head, jobs))
}

fn group(epoch: &str, token: Option<&str>, mark: Option<&str>) -> Option<Group> {
    let group: Group = match epoch {
        "" => Group::default(),
        text => serde_json::from_str(text).ok()?,
    };
    let token = FencingToken::new(token.unwrap_or("0").parse().ok()?);
    Some(Group {
        token,
        clock_us: mark.unwrap_or("0").parse().ok()?,
        ..group
    })
    .filter(|_| token <= FencingToken::MAX)
}

/// How one of several servers stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Standing {
    /// The highest ballot that it promised to follow, before it was asked.
    pub(super) promised: String,
    /// That of the last step that it took; empty where it took none.
    pub(super) ballot: String,
    /// As which process it took that.
    pub(super) member: String,
    /// It promised what it was asked to.
    pub(super) granted: bool,
}

/// Reads what several servers add to a reply.
pub(super) fn standing(told: &Value) -> Result<Standing, Misread> {
    let [promised, ballot, member, granted @ ..] = items(told).ok_or(Misread::Form)? else {
        return Err(Misread::Form);
    };
    let text = |value: &Value| Ok(optional(value)?.unwrap_or_default().to_owned());
    Ok(Standing {
        promised: text(promised)?,
        ballot: text(ballot)?,
        member: text(member)?,
        granted: granted
            .first()
            .is_none_or(|granted| self::text(granted) == Some("1")),
    })
}

/// Reads the reply of one of several servers to read.lua about `jobs`.
pub(super) fn prepared(reply: &Value, jobs: &[JobName]) -> Result<(Shown, Standing), Misread> {
    let (told, rest) = items(reply)
        .and_then(<[Value]>::split_last)
        .ok_or(Misread::Form)?;
    let shown = shown(&Value::Array(rest.to_vec()), jobs)?;
    Ok((shown, standing(told)?))
}

/// Reads the reply to read.lua about `jobs`.
pub(super) fn shown(reply: &Value, jobs: &[JobName]) -> Result<Shown, Misread> {
    let [clock_us, process, values] = items(reply).ok_or(Misread::Form)? else {
        return Err(Misread::Form);
    };
    let (head, found) = head(clock_us, process, values)?;
    if found.len() != jobs.len() {
        return Err(Misread::Form);
    }
    let mut values = BTreeMap::new();
    let mut records = BTreeMap::new();
    for (job, value) in jobs.iter().zip(found) {
        let value = optional(value)?;
        // What has no agenda before it is left to the step, which finds that it is no record.
        let record = value.map(|value| record_in(value).unwrap_or_default().to_owned());
        values.insert(job.clone(), value.map(str::to_owned));
        records.insert(job.clone(), record);
    }
    Ok(Shown {
        reading: Reading {
            clock_us: head.clock_us,
            life: Life::Process(head.process.clone()),
            group: head.group,
            records,
        },
        process: head.process,
        epoch: head.epoch,
        values,
    })
}

/// Reads the reply to write.lua of a step that names `jobs`.
pub(super) fn written(reply: &Value, jobs: &[JobName]) -> Result<Written, Misread> {
    let (word, rest) = items(reply)
        .and_then(<[Value]>::split_first)
        .ok_or(Misread::Form)?;
    match (text(word), rest) {
        (Some("written"), [fault]) => {
            let fault = bytes(fault).ok_or(Misread::Form)?;
            Ok(Written::Done {
                fault: String::from_utf8_lossy(fault).into_owned(),
            })
        }
        (Some("changed"), rest) => {
            let shown = shown(&Value::Array(rest.to_vec()), jobs)?;
            Ok(Written::Changed(Box::new(shown)))
        }
        _ => Err(Misread::Form),
    }
}

/// Whether one of several servers took a step.
pub(super) fn taken(reply: &Value) -> bool {
    let word = items(reply).and_then(<[Value]>::first);
    word.and_then(text) == Some("written")
}

/// Reads the reply to observe.lua.
pub(super) fn look(reply: &Value) -> Result<Look, Misread> {
    let [clock_us, process, values, rest @ ..] = items(reply).ok_or(Misread::Form)? else {
        return Err(Misread::Form);
    };
    let (head, _) = head(clock_us, process, values)?;
    let [next, replicas, published, records @ ..] = rest else {
        return Err(Misread::Form);
    };
    let next = match text(next).ok_or(Misread::Form)? {
        "" => None,
        millis => Some(record::time(millis).ok_or(Misread::Form)?),
    };
    let records: Result<_, Misread> = records.iter().map(observed).collect();
    let replicas = pairs(replicas).ok_or(Misread::Form)?.iter();
    let published = items(published).ok_or(Misread::Form)?.iter();
    let published = published.filter_map(text).map(str::to_owned);
    Ok(Look {
        clock_us: head.clock_us,
        life: Life::Process(head.process),
        group: head.group,
        records: records?,
        next,
        // Another version of the software may say other things of itself.
        replicas: replicas
            .filter_map(|[id, told]| parse_replica(id, told))
            .collect(),
        published: published.collect(),
    })
}

fn observed(shown: &Value) -> Result<(JobName, Record), Misread> {
    let [job, value] = items(shown).ok_or(Misread::Form)? else {
        return Err(Misread::Form);
    };
    job_and_record(job, value)
}

/// Reads a field of the hash of jobs.
pub(super) fn job_and_record(job: &Value, value: &Value) -> Result<(JobName, Record), Misread> {
    let job = text(job).and_then(|name| JobName::new(name).ok());
    let job = job.ok_or(Misread::Form)?;
    let record = text(value).and_then(record_in).and_then(Record::from_text);
    match record {
        Some(record) => Ok((job, record)),
        None => Err(Misread::Step(Fault::Unreadable(job))),
    }
}

/// The parts of an array; none for anything else.
pub(super) fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
        _ => None,
    }
}

/// The parts of an array, two by two.
pub(super) fn pairs(value: &Value) -> Option<&[[Value; 2]]> {
    match items(value)?.as_chunks() {
        (pairs, []) => Some(pairs),
        _ => None,
    }
}

/// The bytes of a string; none for anything else.
pub(super) fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        Value::SimpleString(text) => Some(text.as_bytes()),
        _ => None,
    }
}

/// The text of a string; none for anything else.
pub(super) fn text(value: &Value) -> Option<&str> {
    std::str::from_utf8(bytes(value)?).ok()
}

/// The text of a field that may not be there.
fn optional(value: &Value) -> Result<Option<&str>, Misread> {
    match value {
        Value::Nil => Ok(None),
        value => text(value).map(Some).ok_or(Misread::Form),
    }
}

fn integer(value: &Value) -> Option<i64> {
    text(value)?.parse().ok()
}

/// What TIME answers: seconds, and microseconds of the second.
pub(super) fn server_time(time: &Value) -> Option<Timestamp> {
    let [seconds, micros] = items(time)? else {
        return None;
    };
    let millis = integer(seconds)?.checked_mul(1000)?;
    let millis = millis.checked_add(integer(micros)? / 1000)?;
    Some(Timestamp::from_millis(millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn reply(values: Vec<Value>) -> Vec<Value> {
        vec![word("1763680000000000"), word("abc"), Value::Array(values)]
    }

    fn of_layout(layout: &str) -> Vec<Value> {
        let epoch = r#"{"run":"abc","grace_until":7,"born":5}"#;
        vec![
            word(layout),
            word(epoch),
            word("9007199254740991"),
            word("3"),
        ]
    }

    #[test]
    fn a_group_is_read_to_the_last_digit() {
        let shown = shown(&Value::Array(reply(of_layout(CURRENT_LAYOUT))), &[]).unwrap();
        let group = &shown.reading.group;
        assert_eq!(group.token, FencingToken::MAX);
        assert_eq!((group.process.as_str(), group.clock_us), ("abc", 3));
        assert_eq!(group.born, Timestamp::from_millis(5));
    }

    #[test]
    fn a_ledger_of_another_layout_is_not_read() {
        for layout in ["1", "3", ""] {
            let reply = Value::Array(reply(of_layout(layout)));
            let misread = shown(&reply, &[]).unwrap_err();
            assert_eq!(misread, Misread::Layout(layout.to_owned()));
        }
    }

    #[test]
    fn only_a_complete_reply_is_one() {
        let jobs = [JobName::new("a").unwrap()];
        let mut whole = of_layout(CURRENT_LAYOUT);
        whole.push(Value::Nil);
        assert!(shown(&Value::Array(reply(whole.clone())), &jobs).is_ok());
        for torn in [
            Value::Array(reply(of_layout(CURRENT_LAYOUT))),
            Value::Array(reply(whole.clone())[..2].to_vec()),
            Value::Array(reply(vec![Value::Nil; 3])),
            Value::Array(reply([whole, vec![Value::Nil]].concat())),
            Value::Nil,
            Value::Okay,
        ] {
            assert_eq!(shown(&torn, &jobs).unwrap_err(), Misread::Form, "{torn:?}");
        }
    }

    #[test]
    fn what_is_not_said_to_be_written_was_not() {
        let done = Value::Array(vec![word("written"), word("")]);
        assert!(matches!(written(&done, &[]), Ok(Written::Done { .. })));
        for other in [
            Value::Okay,
            Value::Nil,
            Value::Int(1),
            word("written"),
            Value::Array(vec![]),
            Value::Array(vec![word("written")]),
            Value::Array(vec![word("done"), word("")]),
            Value::Array(vec![word("changed")]),
        ] {
            assert!(written(&other, &[]).is_err(), "{other:?}");
        }
    }

    #[test]
    fn a_time_that_no_clock_can_show_is_none() {
        let time = |seconds: &str, micros: &str| {
            server_time(&Value::Array(vec![word(seconds), word(micros)]))
        };
        assert_eq!(time("7", "8999"), Some(Timestamp::from_millis(7008)));
        assert_eq!(time("9223372036854775807", "0"), None);
        assert_eq!(time("9223372036854775", "9223372036854775807"), None);
        assert_eq!(time("7", "x"), None);
    }
}
