//! Ended attempts and what they printed.
//!
//! Lines of a job are numbered in the order in which they were written, so that what is over
//! `history_limit` is found without counting.

use rusqlite::{OptionalExtension, Row, params};

use super::fault::Fault;
use super::ledger::{
    Ledger, read, read_job, read_outcome, read_run_id, read_time, read_token, token_number,
};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Output, RunId};
use crate::store::draft::Line;
use crate::store::history::{decode_output, encode_output};
use crate::store::rules::Entry;
use crate::store::{AttemptRecord, OUTPUTS_KEPT};

impl Ledger<'_> {
    /// Writes a line, and drops what the job's retention keeps no longer.
    pub(super) fn append_line(&self, line: &Line) -> Result<(), Fault> {
        let (job, retention) = (&line.job, line.retention);
        let number = self.last_number(job)? + 1;
        self.insert_line(job, number, &line.entry)?;
        if let Some(output) = &line.output {
            self.insert_output(job, number, output)?;
        }
        let kept_from = number - i64::from(retention.limit);
        self.connection
            .prepare_cached(
                "DELETE FROM attempt WHERE namespace = ?1 AND job = ?2 AND number <= ?3",
            )?
            .execute(params![self.namespace, job.as_str(), kept_from])?;
        let oldest = line.entry.ended_at - retention.age;
        self.connection
            .prepare_cached(
                "DELETE FROM attempt WHERE namespace = ?1 AND job = ?2 AND ended_at_ms < ?3",
            )?
            .execute(params![self.namespace, job.as_str(), oldest.as_millis()])?;
        Ok(())
    }

    /// Drops all lines of a job; what they printed goes with them.
    pub(super) fn forget_lines(&self, job: &JobName) -> Result<(), Fault> {
        self.connection
            .prepare_cached("DELETE FROM attempt WHERE namespace = ?1 AND job = ?2")?
            .execute([self.namespace, job.as_str()])?;
        Ok(())
    }

    fn insert_output(&self, job: &JobName, number: i64, output: &Output) -> Result<(), Fault> {
        let bytes = encode_output(output);
        self.connection
            .prepare_cached(
                "INSERT INTO output (namespace, job, number, bytes) VALUES (?1, ?2, ?3, ?4)",
            )?
            .execute(params![self.namespace, job.as_str(), number, bytes])?;
        self.prune_outputs(job)
    }

    fn last_number(&self, job: &JobName) -> Result<i64, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT number FROM attempt WHERE namespace = ?1 AND job = ?2 ORDER BY number DESC LIMIT 1",
        )?;
        let last = statement
            .query_row([self.namespace, job.as_str()], |row| row.get(0))
            .optional()?;
        Ok(last.unwrap_or(0))
    }

    fn insert_line(&self, job: &JobName, number: i64, entry: &Entry) -> Result<(), Fault> {
        let detail = serde_json::to_string(&entry.detail)
            .map_err(|error| Fault::Unreadable(error.to_string()))?;
        self.connection
            .prepare_cached(
                "INSERT INTO attempt (namespace, job, number, scheduled_at_ms, attempt, run_id, \
                 token, replica, started_at_ms, ended_at_ms, outcome, detail) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                self.namespace,
                job.as_str(),
                number,
                entry.scheduled_at.as_millis(),
                entry.attempt,
                entry.run_id.to_string(),
                token_number(entry.token),
                entry.replica,
                entry.started_at.as_millis(),
                entry.ended_at.as_millis(),
                entry.outcome.as_str(),
                detail,
            ])?;
        Ok(())
    }

    fn prune_outputs(&self, job: &JobName) -> Result<(), Fault> {
        self.connection
            .prepare_cached(
                "DELETE FROM output WHERE namespace = ?1 AND job = ?2 AND number <= \
                 (SELECT number FROM output WHERE namespace = ?1 AND job = ?2 \
                  ORDER BY number DESC LIMIT 1 OFFSET ?3)",
            )?
            .execute(params![self.namespace, job.as_str(), OUTPUTS_KEPT as i64])?;
        Ok(())
    }

    /// Lines of one job or of all, newest first.
    pub(super) fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, Fault> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let columns = "job, scheduled_at_ms, attempt, run_id, token, replica, started_at_ms, \
                       ended_at_ms, outcome, detail";
        let mut lines = Vec::new();
        match job {
            Some(job) => {
                let sql = format!(
                    "SELECT {columns} FROM attempt WHERE namespace = ?1 AND job = ?2 \
                     ORDER BY ended_at_ms DESC, number DESC LIMIT ?3"
                );
                let mut statement = self.connection.prepare_cached(&sql)?;
                let mut rows = statement.query(params![self.namespace, job.as_str(), limit])?;
                while let Some(row) = rows.next()? {
                    lines.push(read_line(row)?);
                }
            }
            None => {
                let sql = format!(
                    "SELECT {columns} FROM attempt WHERE namespace = ?1 \
                     ORDER BY ended_at_ms DESC, job, number DESC LIMIT ?2"
                );
                let mut statement = self.connection.prepare_cached(&sql)?;
                let mut rows = statement.query(params![self.namespace, limit])?;
                while let Some(row) = rows.next()? {
                    lines.push(read_line(row)?);
                }
            }
        }
        Ok(lines)
    }

    /// What an attempt printed, if that is kept.
    pub(super) fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, Fault> {
        let mut statement = self.connection.prepare_cached(
            "SELECT bytes FROM attempt JOIN output USING (namespace, job, number) \
             WHERE namespace = ?1 AND job = ?2 AND run_id = ?3 ORDER BY number DESC LIMIT 1",
        )?;
        let bytes: Option<Vec<u8>> = statement
            .query_row(
                params![self.namespace, job.as_str(), run_id.to_string()],
                |row| row.get(0),
            )
            .optional()?;
        let Some(bytes) = bytes else {
            return Ok(None);
        };
        match decode_output(&bytes) {
            Some(output) => Ok(Some(output)),
            None => Err(Fault::Unreadable(format!("the output of run {run_id}"))),
        }
    }
}

fn read_line(row: &Row<'_>) -> Result<AttemptRecord, Fault> {
    let detail: String = read(row, "detail")?;
    Ok(AttemptRecord {
        job: read_job(row, "job")?,
        scheduled_at: read_time(row, "scheduled_at_ms")?,
        attempt: read(row, "attempt")?,
        run_id: read_run_id(row, "run_id")?,
        token: read_token(row, "token")?,
        replica: read(row, "replica")?,
        started_at: read_time(row, "started_at_ms")?,
        ended_at: read_time(row, "ended_at_ms")?,
        outcome: read_outcome(&read::<String>(row, "outcome")?)?,
        detail: serde_json::from_str(&detail)
            .map_err(|error| Fault::Unreadable(format!("column detail: {error}")))?,
    })
}
