//! The records as rows: what a step reads and what it writes, inside one transaction.
//!
//! Must never: begin or end a transaction, decide anything, or look into a record to write it.

use rusqlite::types::FromSql;
use rusqlite::{Connection, Row, Rows, params};
use uuid::Uuid;

use super::fault::Fault;
use super::owner::News;
use super::tables::read_lineage;
use crate::clock::Clock;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{FencingToken, Outcome, Replica, RunId};
use crate::scheduler::time::Timestamp;
use crate::store::draft::{self, Changes, Kept, Reading};
use crate::store::engine::{Look, Window};
use crate::store::rules::{Group, Life, Record, time_us};
use crate::store::{Caller, REPLICA_RETENTION, ReplicaInfo, ReplicaState, Scope};

/// One namespace of the file, inside a transaction.
pub(super) struct Ledger<'c> {
    pub(super) connection: &'c Connection,
    pub(super) namespace: &'c str,
    pub(super) clock: &'c dyn Clock,
    /// The file that this process used before is gone, and this one is in its place.
    pub(super) after_loss: bool,
    /// What that means for the group has been written.
    pub(super) entered: bool,
    /// Who is to hear of the transaction.
    pub(super) news: News,
}

/// What is due to be looked at, in the order of the index.
pub(super) const AGENDA: &str = "SELECT name, record, agenda_ms FROM job \
     WHERE namespace = ?1 AND agenda_ms > ?2 AND agenda_ms <= ?3 ORDER BY agenda_ms LIMIT ?4";

impl Ledger<'_> {
    fn clock_us(&self) -> i64 {
        self.clock.wall().as_millis() * 1000
    }

    fn life(&self) -> Life {
        match self.after_loss {
            true => Life::AfterLoss,
            false => Life::Steady,
        }
    }

    /// What a step that touches `jobs` begins with.
    pub(super) fn read(&self, jobs: &[JobName]) -> Result<Reading, Fault> {
        let texts = jobs.iter().map(|job| Ok((job.clone(), self.text(job)?)));
        Ok(Reading {
            clock_us: self.clock_us(),
            life: self.life(),
            group: self.group()?,
            records: texts.collect::<Result<_, Fault>>()?,
        })
    }

    fn text(&self, job: &JobName) -> Result<Option<String>, Fault> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT record FROM job WHERE namespace = ?1 AND name = ?2")?;
        let mut rows = statement.query([self.namespace, job.as_str()])?;
        match rows.next()? {
            Some(row) => read(row, "record").map(Some),
            None => Ok(None),
        }
    }

    /// Writes what a step wants written. Nobody else can have been faster: the transaction has
    /// held the file's lock since before the step's reading.
    pub(super) fn write(&mut self, changes: Changes) -> Result<(), Fault> {
        if let Some(group) = &changes.group {
            self.set_group(group)?;
        }
        // Also where another process wrote the same in the same millisecond.
        self.entered |= self.after_loss && changes.group_is_set;
        for (job, kept) in &changes.records {
            self.set_record(job, kept)?;
        }
        for job in &changes.forgotten {
            self.forget(job)?;
        }
        for line in &changes.lines {
            self.append_line(line)?;
        }
        self.news.extend(&changes.news);
        Ok(())
    }

    pub(super) fn group(&self) -> Result<Group, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT token, grace_until_ms, clock_us, born_ms, tables FROM epoch WHERE namespace = ?1",
        )?;
        let mut rows = statement.query([self.namespace])?;
        let Some(row) = rows.next()? else {
            return Ok(Group::default());
        };
        Ok(Group {
            process: String::new(),
            token: read_token(row, "token")?,
            grace_until: read_time(row, "grace_until_ms")?,
            clock_us: read(row, "clock_us")?,
            born: read_time(row, "born_ms")?,
            tables: read_lineage(row, "tables")?,
        })
    }

    fn set_group(&self, group: &Group) -> Result<(), Fault> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO epoch (namespace, token, grace_until_ms, clock_us, born_ms, tables) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?
            .execute(params![
                self.namespace,
                token_number(group.token),
                group.grace_until.as_millis(),
                group.clock_us,
                group.born.as_millis(),
                serde_json::to_string(&group.tables).unwrap_or_default(),
            ])?;
        Ok(())
    }

    fn set_record(&self, job: &JobName, kept: &Kept) -> Result<(), Fault> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO job (namespace, name, record, agenda_ms) \
                 VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![
                self.namespace,
                job.as_str(),
                kept.text,
                kept.agenda.map(Timestamp::as_millis),
            ])?;
        Ok(())
    }

    fn forget(&self, job: &JobName) -> Result<(), Fault> {
        self.connection
            .prepare_cached("DELETE FROM job WHERE namespace = ?1 AND name = ?2")?
            .execute([self.namespace, job.as_str()])?;
        self.forget_lines(job)
    }

    /// The jobs that have a record.
    pub(super) fn names(&self) -> Result<Vec<JobName>, Fault> {
        let sql = "SELECT name FROM job WHERE namespace = ?1 ORDER BY name";
        let mut statement = self.connection.prepare_cached(sql)?;
        collect(statement.query([self.namespace])?, |row| {
            read_job(row, "name")
        })
    }

    /// See [`crate::store::engine::Engine::look`].
    pub(super) fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, Fault> {
        let (clock_us, group) = (self.clock_us(), self.group()?);
        let now = Timestamp::from_millis(time_us(&group, clock_us).div_euclid(1000));
        self.note_replica(caller, info, now)?;
        let records = self.agenda(Window::of(scope, now), read_record)?;
        let next = self.agenda(Window::next(now), |row| read_time(row, "agenda_ms"))?;
        Ok(Look {
            clock_us,
            life: self.life(),
            group,
            records,
            next: next.first().copied(),
            replicas: self.replicas()?,
            published: self.published()?,
        })
    }

    fn agenda<T>(
        &self,
        window: Window,
        read: impl Fn(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut statement = self.connection.prepare_cached(AGENDA)?;
        let limit = i64::try_from(window.limit).unwrap_or(i64::MAX);
        let rows = statement.query(params![
            self.namespace,
            window.after.as_millis(),
            window.until.as_millis(),
            limit
        ])?;
        collect(rows, read)
    }

    /// Notes that a replica lives, and forgets those that were not heard of for long.
    pub(super) fn note_replica(
        &self,
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
        self.drop_unnamed_tables()
    }

    /// Takes a replica off the list.
    pub(super) fn forget_replica(&self, replica: &Replica) -> Result<(), Fault> {
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
        let sql = "SELECT name, record FROM job WHERE namespace = ?1 ORDER BY name";
        let mut statement = self.connection.prepare_cached(sql)?;
        collect(statement.query([self.namespace])?, read_record)
    }
}

pub(super) fn collect<T>(
    mut rows: Rows<'_>,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn read_record(row: &Row<'_>) -> Result<(JobName, Record), Fault> {
    let job = read_job(row, "name")?;
    let text: String = read(row, "record")?;
    match Record::from_text(&text) {
        Some(record) => Ok((job, record)),
        None => Err(draft::Fault::Unreadable(job).into()),
    }
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
    JobName::in_ledger(&text).ok_or_else(|| unreadable(column, &text))
}

fn read_replica(row: &Row<'_>, id: &str, name: &str) -> Result<Replica, Fault> {
    let text: String = read(row, id)?;
    Ok(Replica {
        id: Uuid::try_parse(&text).map_err(|_| unreadable(id, &text))?,
        name: read(row, name)?,
    })
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
