//! What the scripts keep, read back: records, lines of the ledger, replicas. The forms are
//! written by `lua/common.lua` and `lua/observe.lua`.
//!
//! Must never: guess. What has another form is an error.

use std::time::Duration;

use redis::Value;

use super::reply::{bytes, items, text};
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::lease::{AttemptDetail, FencingToken, Outcome, Replica, RunId};
use crate::scheduler::time::Timestamp;
use crate::store::rules::{Record, State};
use crate::store::{AttemptRecord, ReplicaInfo, ReplicaState};

/// How many fields a record has; the last is the holder, which alone may hold a `|`.
const RECORD_FIELDS: usize = 11;

/// Reads a record:
/// `scheduled_at|state|run_id|token|deadline|attempt|ttl|settled_until|on_crash|since|name/id`.
pub(super) fn parse_record(line: &str) -> Option<Record> {
    let mut fields = line.splitn(RECORD_FIELDS, '|');
    let mut next = || fields.next();
    Some(Record {
        scheduled_at: time(next()?)?,
        state: state(next()?)?,
        run_id: RunId::parse(next()?)?,
        token: FencingToken::new(next()?.parse().ok()?),
        deadline: time(next()?)?,
        attempt: next()?.parse().ok()?,
        ttl: Duration::from_millis(next()?.parse().ok()?),
        settled_until: time(next()?)?,
        on_crash: on_crash(next()?)?,
        since: time(next()?)?,
        holder: holder(next()?)?,
    })
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

fn state(text: &str) -> Option<State> {
    match text {
        "new" => Some(State::New),
        "running" => Some(State::Running),
        ended => outcome(ended).map(State::Ended),
    }
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

fn on_crash(text: &str) -> Option<OnCrash> {
    match text {
        "rerun" => Some(OnCrash::Rerun),
        "skip" => Some(OnCrash::Skip),
        _ => None,
    }
}

fn holder(text: &str) -> Option<Replica> {
    let (name, id) = text.rsplit_once('/')?;
    Some(Replica {
        id: uuid::Uuid::try_parse(id).ok()?,
        name: name.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "1763680000000|running|00000000-0000-0000-0000-000000000001|\
        9007199254740991|1763680015000|3|15000|1763680000000|skip|1763680000123|\
        a|b/c/00000000-0000-0000-0000-000000000002";

    #[test]
    fn a_record_is_read_to_the_last_digit_whatever_its_holder_is_called() {
        let record = parse_record(LINE).unwrap();
        assert_eq!(record.token, FencingToken::MAX);
        assert_eq!(record.attempt, 3);
        assert_eq!(record.holder.name, "a|b/c");
        assert_eq!(record.state, State::Running);
        assert_eq!(record.on_crash, OnCrash::Skip);
    }

    #[test]
    fn a_record_of_another_form_is_not_read() {
        for bad in [
            "",
            "x",
            &LINE[1..].replace("running", "runs"),
            &LINE.replace("|3|", "|-3|"),
            &LINE.replace("skip", "sometimes"),
            &LINE[..LINE.len() - 1],
        ] {
            assert!(parse_record(bad).is_none(), "{bad}");
        }
    }
}
