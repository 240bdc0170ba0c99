//! The scripts' replies, decoded: each into the answer that it says, or into an error. What is
//! not understood is never a win.

use std::time::Duration;

use redis::Value;

use super::record::parse_record;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Answered, ClaimAnswer, FencingToken, Grant, Held, Observation, ObservedLease, Outcome,
    Registration, ReleaseAnswer, RenewalAnswer, Sighting,
};
use crate::scheduler::time::Timestamp;
use crate::store::rules::State;

/// What a script answered.
pub(super) struct Reply<A> {
    pub(super) answered: Answered<A>,
    /// Why a line of history could not be written; empty where all were.
    pub(super) fault: String,
}

/// Reads the reply to a batch of `count` items; none where it isn't one.
pub(super) fn batch<A>(
    reply: &Value,
    count: usize,
    decode: impl Fn(&[Value]) -> Option<A>,
) -> Option<Reply<Vec<A>>> {
    let [now, fault, answers @ ..] = items(reply)? else {
        return None;
    };
    if answers.len() != count {
        return None;
    }
    let answers: Option<Vec<A>> = answers
        .iter()
        .map(|answer| decode(items(answer)?))
        .collect();
    Some(Reply {
        answered: Answered {
            now: time(now)?,
            answer: answers?,
        },
        fault: String::from_utf8_lossy(bytes(fault)?).into_owned(),
    })
}

pub(super) fn registration(answer: &[Value]) -> Option<Registration> {
    let [settled_until, new] = answer else {
        return None;
    };
    let new = match number(new)? {
        0 => false,
        1 => true,
        _ => return None,
    };
    Some(Registration {
        settled_until: time(settled_until)?,
        new,
    })
}

pub(super) fn claim(answer: &[Value]) -> Option<ClaimAnswer> {
    let (code, rest) = answer.split_first()?;
    match (text(code)?, rest) {
        ("granted", [token, attempt, deadline, remaining]) => Some(ClaimAnswer::Granted(Grant {
            token: token_of(token)?,
            attempt: u32::try_from(number(attempt)?).ok()?,
            deadline: time(deadline)?,
            remaining: duration(remaining)?,
        })),
        ("held", lease) => Some(ClaimAnswer::Held(held(lease)?)),
        ("overlap", lease) => Some(ClaimAnswer::Overlap(held(lease)?)),
        ("early", [wait]) => Some(ClaimAnswer::Early {
            wait: duration(wait)?,
        }),
        ("grace", [wait]) => Some(ClaimAnswer::Grace {
            wait: duration(wait)?,
        }),
        ("finished", []) => Some(ClaimAnswer::Finished),
        ("too_late", []) => Some(ClaimAnswer::TooLate),
        ("closed", []) => Some(ClaimAnswer::Closed),
        ("expired", []) => Some(ClaimAnswer::RequestExpired),
        _ => None,
    }
}

fn held(lease: &[Value]) -> Option<Held> {
    let [scheduled_at, token, deadline, ttl] = lease else {
        return None;
    };
    Some(Held {
        scheduled_at: time(scheduled_at)?,
        sighting: Sighting {
            token: token_of(token)?,
            deadline: time(deadline)?,
        },
        ttl: duration(ttl)?,
    })
}

pub(super) fn renewal(answer: &[Value]) -> Option<RenewalAnswer> {
    let (code, rest) = answer.split_first()?;
    match (text(code)?, rest) {
        ("renewed", [deadline, remaining]) => Some(RenewalAnswer::Renewed {
            deadline: time(deadline)?,
            remaining: duration(remaining)?,
        }),
        ("lost", []) => Some(RenewalAnswer::Lost),
        _ => None,
    }
}

pub(super) fn release(answer: &[Value]) -> Option<ReleaseAnswer> {
    match answer {
        [code] if text(code) == Some("released") => Some(ReleaseAnswer::Released),
        [code] if text(code) == Some("superseded") => Some(ReleaseAnswer::Superseded),
        _ => None,
    }
}

pub(super) fn observation(reply: &Value) -> Option<Reply<Observation>> {
    let [now, fault, grace, next_deadline, leases @ ..] = items(reply)? else {
        return None;
    };
    let next_deadline = match number(next_deadline)? {
        -1 => None,
        millis => Some(Timestamp::from_millis(millis)),
    };
    let leases: Option<Vec<ObservedLease>> = leases.iter().map(observed).collect();
    Some(Reply {
        answered: Answered {
            now: time(now)?,
            answer: Observation {
                leases: leases?,
                next_deadline,
                grace: duration(grace)?,
            },
        },
        fault: String::from_utf8_lossy(bytes(fault)?).into_owned(),
    })
}

fn observed(lease: &Value) -> Option<ObservedLease> {
    let [job, record] = items(lease)? else {
        return None;
    };
    let record = parse_record(text(record)?)?;
    Some(ObservedLease {
        job: JobName::new(text(job)?).ok()?,
        handed_over: record.state == State::Ended(Outcome::HandedOver),
        held: Held {
            scheduled_at: record.scheduled_at,
            sighting: (&record).into(),
            ttl: record.ttl,
        },
    })
}

/// The parts of an array; none for anything else.
pub(super) fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(values) => Some(values),
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

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        _ => None,
    }
}

fn time(value: &Value) -> Option<Timestamp> {
    number(value).map(Timestamp::from_millis)
}

fn duration(value: &Value) -> Option<Duration> {
    let millis = u64::try_from(number(value)?).ok()?;
    Some(Duration::from_millis(millis))
}

fn token_of(value: &Value) -> Option<FencingToken> {
    let token = FencingToken::new(u64::try_from(number(value)?).ok()?);
    (token <= FencingToken::MAX).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    fn granted(numbers: &[i64]) -> Vec<Value> {
        let numbers = numbers.iter().map(|&number| Value::Int(number));
        std::iter::once(word("granted")).chain(numbers).collect()
    }

    #[test]
    fn only_a_complete_grant_is_a_grant() {
        let whole = granted(&[1_763_680_000_000_000, 1, 1_763_680_015_000, 15_000]);
        assert!(matches!(claim(&whole), Some(ClaimAnswer::Granted(_))));
        for torn in [
            granted(&[]),
            granted(&[1, 1, 1]),
            granted(&[1, 1, 1, -1]),
            granted(&[1 << 53, 1, 1, 1]),
            vec![word("OK")],
            vec![Value::Int(1)],
            vec![Value::Nil],
            vec![],
        ] {
            assert_eq!(claim(&torn), None, "{torn:?}");
        }
    }

    #[test]
    fn a_batch_has_an_answer_for_each_item_or_is_no_answer() {
        let lost = Value::Array(vec![word("lost")]);
        let reply = Value::Array(vec![Value::Int(5), word(""), lost]);
        assert!(batch(&reply, 1, renewal).is_some());
        assert!(batch(&reply, 2, renewal).is_none());
        assert!(batch(&Value::Okay, 0, renewal).is_none());
        assert!(batch(&Value::Nil, 0, renewal).is_none());
    }
}
