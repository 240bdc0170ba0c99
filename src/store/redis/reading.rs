//! What people read: the state of everything, ended attempts, and what they printed.
//!
//! Must never: write, or use the connection that renewals use: an answer here may be large.

use std::time::Duration;

use redis::{Pipeline, Value};
use tokio::time::Instant;

use super::fault::Fault;
use super::health;
use super::keys::{CURRENT_LAYOUT, EPOCH, GROUP_MARK, Keys, LAYOUT};
use super::link::Link;
use super::record::{parse_line, parse_replica};
use super::reply::{Misread, bytes, items, job_and_record, pairs, server_time, text};
use super::request;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Output, RunId};
use crate::store::AttemptRecord;
use crate::store::engine::Survey;
use crate::store::history::decode_output;
use crate::store::rules::Group;

/// Of how many jobs the history is asked for in one go, so that no answer keeps the server, or
/// the line to it, for long.
const JOBS_AT_ONCE: usize = 128;

/// A failure that took longer is no dead connection but a server in trouble.
const SOON: Duration = Duration::from_secs(1);

/// The reading side of a store.
pub(super) struct Reader {
    link: Link,
    keys: Keys,
    place: String,
}

impl Reader {
    pub(super) fn new(link: Link, keys: Keys, place: String) -> Self {
        Self { link, keys, place }
    }

    /// See [`crate::store::engine::Engine::survey`].
    pub(super) async fn survey(&self) -> Result<Survey, Fault> {
        // Not a transaction: a server out of memory refuses those even where they only read.
        // The time comes last, so that nothing that is shown is ahead of it.
        let mut commands = redis::pipe();
        commands.cmd("HGETALL").arg(&self.keys.jobs);
        commands.cmd("HGETALL").arg(&self.keys.replicas);
        commands.cmd("HGETALL").arg(&self.keys.tables);
        commands.cmd("TIME");
        let answers = self.read(commands).await?;
        let survey = parse_survey(&answers);
        let survey = survey.map_err(|misread| Fault::misread(&self.place, &misread))?;
        let conditions = health::conditions(&self.link).await;
        Ok(Survey {
            conditions,
            ..survey
        })
    }

    /// See [`crate::store::Store::history`].
    pub(super) async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, Fault> {
        let jobs = match job {
            Some(job) => vec![job.clone()],
            None => self.jobs_that_ended_last(limit).await?,
        };
        let mut lines = Vec::new();
        for jobs in jobs.chunks(JOBS_AT_ONCE) {
            for mut newest in self.newest_lines(jobs, limit).await? {
                if newest.is_out_of_order {
                    newest.lines = self.all_lines(&newest.job).await?;
                }
                lines.append(&mut newest.lines);
            }
            lines.sort_by_key(|line| std::cmp::Reverse(line.ended_at));
            lines.truncate(limit);
        }
        Ok(lines)
    }

    /// The jobs of which the newest `limit` lines of all can be, by name: a job whose newest
    /// line isn't among the newest lines of the jobs has no line among the newest of all.
    async fn jobs_that_ended_last(&self, limit: usize) -> Result<Vec<JobName>, Fault> {
        let (mut jobs, mut newest) = (Vec::new(), Vec::new());
        for some in self.jobs().await?.chunks(JOBS_AT_ONCE) {
            for mut one in self.newest_lines(some, 1).await? {
                match (one.is_out_of_order, one.lines.pop()) {
                    // Which of its lines is the newest isn't known yet.
                    (true, _) => jobs.push(one.job),
                    (false, Some(line)) => newest.push(line),
                    (false, None) => {}
                }
            }
        }
        newest.sort_by_key(|line| std::cmp::Reverse(line.ended_at));
        newest.truncate(limit);
        jobs.extend(newest.into_iter().map(|line| line.job));
        jobs.sort();
        Ok(jobs)
    }

    /// The jobs that have a record, by name: one hash has them all, so that nothing is scanned.
    pub(super) async fn jobs(&self) -> Result<Vec<JobName>, Fault> {
        let mut commands = redis::pipe();
        commands.cmd("HKEYS").arg(&self.keys.jobs);
        let answers = self.read(commands).await?;
        let fields = answers.first().and_then(items).unwrap_or_default();
        let mut jobs: Vec<JobName> = fields
            .iter()
            .filter_map(|field| JobName::in_ledger(text(field)?))
            .collect();
        jobs.sort();
        Ok(jobs)
    }

    /// The lines of each of some jobs that were written last.
    async fn newest_lines(&self, jobs: &[JobName], limit: usize) -> Result<Vec<Newest>, Fault> {
        let mut commands = redis::pipe();
        for job in jobs {
            let history = self.keys.history(job);
            let command = commands.cmd("XREVRANGE").arg(history).arg("+").arg("-");
            command.arg("COUNT").arg(count_of(limit));
        }
        let answers = self.read(commands).await?;
        let all = jobs.iter().zip(&answers).map(|(job, entries)| {
            let mut newest = Newest::of(job);
            for entry in items(entries).unwrap_or_default() {
                let line = parse_line(job, entry);
                let line = line.ok_or_else(|| self.unreadable("a line in another form"))?;
                newest.is_out_of_order |= !is_id_of(entry, &line);
                newest.lines.push(line);
            }
            Ok(newest)
        });
        all.collect()
    }

    async fn all_lines(&self, job: &JobName) -> Result<Vec<AttemptRecord>, Fault> {
        let all = self.newest_lines(std::slice::from_ref(job), usize::MAX);
        Ok(all.await?.pop().map(|one| one.lines).unwrap_or_default())
    }

    /// See [`crate::store::Store::output`].
    pub(super) async fn output(
        &self,
        job: &JobName,
        run_id: RunId,
    ) -> Result<Option<Output>, Fault> {
        let ask = || self.link.run(request::output(&self.keys, job, run_id));
        let reply = twice(ask).await?;
        if reply == Value::Nil {
            return Ok(None);
        }
        let output = bytes(&reply).and_then(decode_output);
        let output = output.ok_or_else(|| self.unreadable("an output in another form"))?;
        Ok(Some(output))
    }

    /// See [`crate::store::engine::Engine::table`].
    pub(super) async fn table(&self, digest: &str) -> Result<Option<String>, Fault> {
        let mut commands = redis::pipe();
        commands.cmd("HGET").arg(&self.keys.tables).arg(digest);
        let answers = self.read(commands).await?;
        Ok(answers.first().and_then(text).map(str::to_owned))
    }

    /// Asks what changes nothing; the answer has a value for each.
    pub(super) async fn read(&self, commands: Pipeline) -> Result<Vec<Value>, Fault> {
        twice(|| self.link.send(commands.clone())).await
    }

    fn unreadable(&self, cause: &str) -> Fault {
        Fault::unreadable(&self.place, cause)
    }
}

/// The lines of a job that were written last, those first.
struct Newest {
    job: JobName,
    lines: Vec<AttemptRecord>,
    /// One of them was written after the clock had stepped back: others may have ended later.
    is_out_of_order: bool,
}

impl Newest {
    fn of(job: &JobName) -> Self {
        Self {
            job: job.clone(),
            lines: Vec::new(),
            is_out_of_order: false,
        }
    }
}

/// Whether an entry has the time of its line's end for an id. As ids rise, all before it ended no
/// later then.
fn is_id_of(entry: &Value, line: &AttemptRecord) -> bool {
    let id = items(entry).and_then(<[Value]>::first).and_then(text);
    let millis = id.and_then(|id| id.split_once('-')?.0.parse().ok());
    millis == Some(line.ended_at.as_millis())
}

/// Asks again after a failure that came soon: a connection that lay idle may have died
/// unnoticed, and what only reads may be sent twice.
async fn twice<T, F>(ask: impl Fn() -> F) -> Result<T, Fault>
where
    F: Future<Output = Result<T, Fault>>,
{
    let asked = Instant::now();
    match ask().await {
        Err(fault) if fault.disconnect && asked.elapsed() < SOON => ask().await,
        result => result,
    }
}

pub(super) fn parse_survey(answers: &[Value]) -> Result<Survey, Misread> {
    let [jobs, replicas, tables, time] = answers else {
        return Err(Misread::Form);
    };
    let tables = pairs(tables).ok_or(Misread::Form)?.iter();
    let table =
        |[digest, jobs]: &[Value; 2]| Some((text(digest)?.to_owned(), text(jobs)?.to_owned()));
    let replicas = pairs(replicas).ok_or(Misread::Form)?.iter();
    let mut survey = Survey {
        now: server_time(time).ok_or(Misread::Form)?,
        group: Group::default(),
        conditions: Vec::new(),
        records: Vec::new(),
        // Another version of the software may say other things of itself.
        replicas: replicas
            .filter_map(|[id, told]| parse_replica(id, told))
            .collect(),
        tables: tables.filter_map(table).collect(),
    };
    for [name, value] in pairs(jobs).ok_or(Misread::Form)? {
        let field = bytes(name).ok_or(Misread::Form)?;
        if field == EPOCH.as_bytes() {
            let epoch = bytes(value).ok_or(Misread::Form)?;
            survey.group = serde_json::from_slice(epoch).map_err(|_| Misread::Form)?;
        } else if field == LAYOUT.as_bytes() && text(value) != Some(CURRENT_LAYOUT) {
            let layout = text(value).unwrap_or_default();
            return Err(Misread::Layout(layout.to_owned()));
        } else if field.first() != Some(&GROUP_MARK) {
            survey.records.push(job_and_record(name, value)?);
        }
    }
    Ok(survey)
}

/// What a server takes for a count: anything up to its largest integer.
fn count_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
