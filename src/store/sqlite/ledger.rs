//! The records as rows: what the shared rules read and write inside one transaction.
//!
//! Must never: begin or end a transaction, or decide anything.

use std::time::Duration;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension, Row, named_params, params};
use uuid::Uuid;

use super::fault::Fault;
use crate::clock::Clock;
use crate::scheduler::job::{JobName, OnCrash};
use crate::scheduler::lease::{FencingToken, Outcome, Output, Replica, Retention, RunId};
use crate::scheduler::time::{Timestamp, millis};
use crate::store::rules::{Entry, Group, Record, State};
use crate::store::{Caller, REPLICA_RETENTION, ReplicaInfo, ReplicaState, batch};

/// One namespace of the file, inside a transaction.
pub(super) struct Ledger<'c> {
    pub(super) connection: &'c Connection,
    pub(super) namespace: &'c str,
    pub(super) clock: &'c dyn Clock,
    /// The file that this process used before is gone, and this one is in its place.
    pub(super) after_loss: bool,
}

const RECORD_COLUMNS: &str = "name, scheduled_at_ms, state, holder_id, holder_name, run_id, \
     token, deadline_ms, attempt, ttl_ms, settled_until_ms, on_crash, since_ms";

impl Ledger<'_> {
    /// Begins a call of a replica. Where the file was lost under the replicas' feet, holders
    /// get the time to write their leases anew before anything is granted.
    pub(super) fn enter(&mut self, caller: &Caller) -> Result<(), Fault> {
        if !self.after_loss {
            return Ok(());
        }
        let now = self.clock.wall();
        let mut group = batch::Records::group(self)?;
        group.grace_until = group.grace_until.max(now + caller.quarantine);
        group.born = group.born.max(now);
        batch::Records::set_group(self, &group)
    }

    /// Notes that a replica lives, and forgets those that were not heard of for long.
    pub(super) fn note_replica(
        &mut self,
        caller: &Caller,
        info: &ReplicaInfo,
        now: Timestamp,
    ) -> Result<(), Fault> {
        let info =
            serde_json::to_string(info).map_err(|error| Fault::Unreadable(error.to_string()))?;
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO replica (namespace, id, name, info, seen_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![
                self.namespace,
                caller.replica.id.to_string(),
                caller.replica.name,
                info,
                now.as_millis(),
            ])?;
        let oldest = now - REPLICA_RETENTION;
        self.connection
            .prepare_cached("DELETE FROM replica WHERE namespace = ?1 AND seen_at_ms < ?2")?
            .execute(params![self.namespace, oldest.as_millis()])?;
        Ok(())
    }

    /// Takes a replica off the list.
    pub(super) fn forget_replica(&mut self, replica: &Replica) -> Result<(), Fault> {
        self.connection
            .prepare_cached("DELETE FROM replica WHERE namespace = ?1 AND id = ?2")?
            .execute(params![self.namespace, replica.id.to_string()])?;
        Ok(())
    }

    /// The list of replicas, by name.
    pub(super) fn replicas(&self) -> Result<Vec<ReplicaState>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT id, name, info, seen_at_ms FROM replica WHERE namespace = ?1 ORDER BY name, id",
        )?;
        let mut rows = statement.query([self.namespace])?;
        let mut replicas = Vec::new();
        while let Some(row) = rows.next()? {
            let info: String = row.get("info")?;
            let info = serde_json::from_str(&info)
                .map_err(|error| Fault::Unreadable(format!("a replica's row: {error}")))?;
            replicas.push(ReplicaState {
                replica: read_replica(row, "id", "name")?,
                info,
                seen_at: read_time(row, "seen_at_ms")?,
            });
        }
        Ok(replicas)
    }

    /// Every record, by job.
    pub(super) fn records(&self) -> Result<Vec<(JobName, Record)>, Fault> {
        let sql = format!("SELECT {RECORD_COLUMNS} FROM job WHERE namespace = ?1 ORDER BY name");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query([self.namespace])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            records.push(read_record(row)?);
        }
        Ok(records)
    }
}

impl batch::Records for Ledger<'_> {
    type Error = Fault;

    fn clock_us(&mut self) -> Result<i64, Fault> {
        Ok(self.clock.wall().as_millis() * 1000)
    }

    fn group(&mut self) -> Result<Group, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT token, grace_until_ms, clock_us, born_ms FROM epoch WHERE namespace = ?1",
        )?;
        let mut rows = statement.query([self.namespace])?;
        let Some(row) = rows.next()? else {
            return Ok(Group::default());
        };
        Ok(Group {
            token: read_token(row, "token")?,
            grace_until: read_time(row, "grace_until_ms")?,
            clock_us: read(row, "clock_us")?,
            born: read_time(row, "born_ms")?,
        })
    }

    fn set_group(&mut self, group: &Group) -> Result<(), Fault> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO epoch (namespace, token, grace_until_ms, clock_us, born_ms) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .execute(params![
                self.namespace,
                token_number(group.token),
                group.grace_until.as_millis(),
                group.clock_us,
                group.born.as_millis(),
            ])?;
        Ok(())
    }

    fn record(&mut self, job: &JobName) -> Result<Option<Record>, Fault> {
        let sql = format!("SELECT {RECORD_COLUMNS} FROM job WHERE namespace = ?1 AND name = ?2");
        let mut statement = self.connection.prepare_cached(&sql)?;
        statement
            .query_row([self.namespace, job.as_str()], |row| Ok(read_record(row)))
            .optional()?
            .transpose()
            .map(|found| found.map(|(_, record)| record))
    }

    fn set_record(&mut self, job: &JobName, record: &Record) -> Result<(), Fault> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO job (namespace, name, scheduled_at_ms, state, holder_id, \
                 holder_name, run_id, token, deadline_ms, attempt, ttl_ms, settled_until_ms, \
                 on_crash, since_ms) \
                 VALUES (:namespace, :name, :scheduled_at, :state, :holder_id, :holder_name, \
                 :run_id, :token, :deadline, :attempt, :ttl, :settled_until, :on_crash, :since)",
            )?
            .execute(named_params! {
                ":namespace": self.namespace,
                ":name": job.as_str(),
                ":scheduled_at": record.scheduled_at.as_millis(),
                ":state": state_text(record.state),
                ":holder_id": record.holder.id.to_string(),
                ":holder_name": record.holder.name,
                ":run_id": record.run_id.to_string(),
                ":token": token_number(record.token),
                ":deadline": record.deadline.as_millis(),
                ":attempt": record.attempt,
                ":ttl": millis(record.ttl),
                ":settled_until": record.settled_until.as_millis(),
                ":on_crash": on_crash_text(record.on_crash),
                ":since": record.since.as_millis(),
            })?;
        Ok(())
    }

    fn append(
        &mut self,
        job: &JobName,
        entry: &Entry,
        output: Option<&Output>,
        retention: Retention,
    ) -> Result<(), Fault> {
        self.append_line(job, entry, output, retention)
    }

    fn open_records(
        &mut self,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(JobName, Record)>, Fault> {
        let mut statement = self.connection.prepare_cached(&open_records_sql())?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = statement.query(params![
            self.namespace,
            after.as_millis(),
            until.as_millis(),
            limit
        ])?;
        let mut records = Vec::new();
        while let Some(row) = rows.next()? {
            records.push(read_record(row)?);
        }
        Ok(records)
    }
}

/// The condition on `state` is the index's own, word for word, so that it is used.
pub(super) fn open_records_sql() -> String {
    format!(
        "SELECT {RECORD_COLUMNS} FROM job WHERE namespace = ?1 \
         AND state IN ('running', 'handed_over') AND deadline_ms > ?2 AND deadline_ms <= ?3 \
         ORDER BY deadline_ms LIMIT ?4"
    )
}

fn read_record(row: &Row<'_>) -> Result<(JobName, Record), Fault> {
    let record = Record {
        scheduled_at: read_time(row, "scheduled_at_ms")?,
        state: read_state(&read::<String>(row, "state")?)?,
        holder: read_replica(row, "holder_id", "holder_name")?,
        run_id: read_run_id(row, "run_id")?,
        token: read_token(row, "token")?,
        deadline: read_time(row, "deadline_ms")?,
        attempt: read(row, "attempt")?,
        ttl: Duration::from_millis(read_unsigned(row, "ttl_ms")?),
        settled_until: read_time(row, "settled_until_ms")?,
        on_crash: read_on_crash(&read::<String>(row, "on_crash")?)?,
        since: read_time(row, "since_ms")?,
    };
    Ok((read_job(row, "name")?, record))
}

/// A column's value. One of the wrong type or out of range is no fault of the engine.
pub(super) fn read<T: FromSql>(row: &Row<'_>, column: &str) -> Result<T, Fault> {
    row.get(column).map_err(|error| match error {
        rusqlite::Error::SqliteFailure(..) => Fault::Engine(error),
        other => Fault::Unreadable(format!("column {column}: {other}")),
    })
}

/// The engine's integers are signed.
fn read_unsigned(row: &Row<'_>, column: &str) -> Result<u64, Fault> {
    let number: i64 = read(row, column)?;
    u64::try_from(number).map_err(|_| unreadable(column, &number.to_string()))
}

/// A token as the engine keeps it: it has 53 bits.
pub(super) fn token_number(token: FencingToken) -> i64 {
    i64::try_from(token.get()).unwrap_or(i64::MAX)
}

fn unreadable(column: &str, text: &str) -> Fault {
    Fault::Unreadable(format!("column {column}: `{text}`"))
}

pub(super) fn read_time(row: &Row<'_>, column: &str) -> Result<Timestamp, Fault> {
    read(row, column).map(Timestamp::from_millis)
}

pub(super) fn read_token(row: &Row<'_>, column: &str) -> Result<FencingToken, Fault> {
    read_unsigned(row, column).map(FencingToken::new)
}

pub(super) fn read_run_id(row: &Row<'_>, column: &str) -> Result<RunId, Fault> {
    let text: String = read(row, column)?;
    RunId::parse(&text).ok_or_else(|| unreadable(column, &text))
}

pub(super) fn read_job(row: &Row<'_>, column: &str) -> Result<JobName, Fault> {
    let text: String = read(row, column)?;
    JobName::new(&text).map_err(|_| unreadable(column, &text))
}

fn read_replica(row: &Row<'_>, id: &str, name: &str) -> Result<Replica, Fault> {
    let text: String = read(row, id)?;
    Ok(Replica {
        id: Uuid::try_parse(&text).map_err(|_| unreadable(id, &text))?,
        name: read(row, name)?,
    })
}

fn state_text(state: State) -> &'static str {
    match state {
        State::New => "new",
        State::Running => "running",
        State::Ended(outcome) => outcome.as_str(),
    }
}

fn read_state(text: &str) -> Result<State, Fault> {
    match text {
        "new" => Ok(State::New),
        "running" => Ok(State::Running),
        other => read_outcome(other).map(State::Ended),
    }
}

pub(super) fn read_outcome(text: &str) -> Result<Outcome, Fault> {
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
    all.into_iter()
        .find(|outcome| outcome.as_str() == text)
        .ok_or_else(|| unreadable("outcome", text))
}

fn on_crash_text(on_crash: OnCrash) -> &'static str {
    match on_crash {
        OnCrash::Rerun => "rerun",
        OnCrash::Skip => "skip",
    }
}

fn read_on_crash(text: &str) -> Result<OnCrash, Fault> {
    match text {
        "rerun" => Ok(OnCrash::Rerun),
        "skip" => Ok(OnCrash::Skip),
        other => Err(unreadable("on_crash", other)),
    }
}
