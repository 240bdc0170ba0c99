//! What is read of several servers, where nothing is decided.
//!
//! Must never: pass what a minority holds for what all hold.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::Shared;
use super::forming::{majority, median};
use super::gathering::gather;
use super::presence::Change;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Output, Replica, RunId};
use crate::scheduler::time::Timestamp;
use crate::store::engine::{Engine, Look, Survey};
use crate::store::redis::RedisStore;
use crate::store::redis::fault::Fault;
use crate::store::redis::reply::{self, Standing};
use crate::store::redis::request;
use crate::store::rules::Life;
use crate::store::{AttemptRecord, Caller, ReplicaInfo, ReplicaState, Scope, StoreError};

impl Shared {
    pub(super) async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        let all = self.members.len();
        let ask = |(number, member): (usize, &Arc<RedisStore>)| {
            let member = Arc::clone(member);
            let (caller, info) = (caller.clone(), info.clone());
            async move {
                let stood = member.standing().await?;
                let request = request::observe(&member.keys, &caller, &info, scope);
                let reply = member.asking.run(request).await?;
                let look = reply::look(&reply);
                let look = look.map_err(|misread| Fault::misread(&member.place, &misread))?;
                Ok((number, (stood, look)))
            }
        };
        let enough = |looks: &[(usize, (Standing, Look))]| looks.len() >= majority(all);
        let (looks, faults) = gather(self.members.iter().enumerate().map(ask), enough).await;
        let (answered, looks): (Vec<usize>, Vec<(Standing, Look)>) = looks.into_iter().unzip();
        self.tell_who_answers(&answered);
        if looks.len() < majority(all) {
            return Err(self.too_few(looks.len(), looks.len(), faults));
        }
        let clocks = looks.iter().map(|(_, look)| look.clock_us).collect();
        let replicas = together(looks.iter().map(|(_, look)| &look.replicas));
        // What one of them lacks is published again.
        let mut published = looks[0].1.published.clone();
        published.retain(|digest| {
            looks
                .iter()
                .all(|(_, look)| look.published.contains(digest))
        });
        let newest = looks
            .into_iter()
            .max_by(|(one, _), (other, _)| one.ballot.cmp(&other.ballot));
        let Some((stood, newest)) = newest else {
            return Err(self.too_few(0, 0, Vec::new()));
        };
        Ok(Look {
            clock_us: median(clocks),
            // A ledger that nobody has written yet begins with a step.
            life: match stood.ballot.is_empty() {
                true => Life::New,
                false => Life::Steady,
            },
            replicas,
            published,
            ..newest
        })
    }

    fn tell_who_answers(&self, answered: &[usize]) {
        let (store, all) = (&self.place, self.members.len());
        let (well, needed) = (answered.len(), majority(all));
        for change in self.presence.saw(answered) {
            match change {
                Change::Away(number) => {
                    let server = &self.members[number].place;
                    tracing::warn!(
                        store,
                        server,
                        "a server of the quorum does not answer: {well} of {all} do, and {needed} have to"
                    );
                }
                Change::Back(number) => {
                    let server = &self.members[number].place;
                    tracing::info!(store, server, "it answers again: {well} of {all} do");
                }
            }
        }
    }

    pub(super) async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        let ask = |member: &Arc<RedisStore>| {
            let (member, replica) = (Arc::clone(member), replica.clone());
            async move { Ok(member.strike_off(&replica).await) }
        };
        self.done_by_most(self.members.iter().map(ask)).await
    }

    pub(super) async fn keep_table(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            let (digest, text) = (digest.to_owned(), text.to_owned());
            async move { Ok(member.keep_table(&digest, &text).await) }
        };
        self.done_by_most(self.members.iter().map(ask)).await
    }

    /// What no step is needed for is done when a majority has done it.
    async fn done_by_most<F>(&self, asked: impl Iterator<Item = F>) -> Result<(), StoreError>
    where
        F: Future<Output = Result<Result<(), StoreError>, Fault>> + Send + 'static,
    {
        let needed = majority(self.members.len());
        let well = |answers: &[Result<(), StoreError>]| {
            answers.iter().filter(|answer| answer.is_ok()).count() >= needed
        };
        let (answers, _) = gather(asked, well).await;
        let done = well(&answers);
        match answers.into_iter().find_map(Result::err) {
            Some(error) if !done => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) async fn table(&self, digest: &str) -> Result<Option<String>, StoreError> {
        let ask = |member: &Arc<RedisStore>| {
            let (member, digest) = (Arc::clone(member), digest.to_owned());
            async move { member.reader.table(&digest).await }
        };
        self.found_by_any(self.members.iter().map(ask)).await
    }

    pub(super) async fn survey(&self) -> Result<Survey, StoreError> {
        let all = self.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            async move { Ok((member.standing().await?, member.reader.survey().await?)) }
        };
        let enough = |surveys: &[(Standing, Survey)]| surveys.len() >= majority(all);
        let (surveys, faults) = gather(self.members.iter().map(ask), enough).await;
        if surveys.len() < majority(all) {
            return Err(self.too_few(surveys.len(), surveys.len(), faults));
        }
        let replicas = together(surveys.iter().map(|(_, survey)| &survey.replicas));
        let clocks = surveys
            .iter()
            .map(|(_, survey)| survey.now.as_millis())
            .collect();
        let newest = surveys
            .into_iter()
            .max_by(|(one, _), (other, _)| one.ballot.cmp(&other.ballot));
        let Some((_, newest)) = newest else {
            return Err(self.too_few(0, 0, Vec::new()));
        };
        Ok(Survey {
            now: Timestamp::from_millis(median(clocks)),
            replicas,
            ..newest
        })
    }

    /// What any of a majority has: a step that looks at one of them finds out.
    pub(super) async fn names(&self) -> Result<Vec<JobName>, StoreError> {
        let all = self.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            async move { member.reader.jobs().await }
        };
        let enough = |names: &[Vec<JobName>]| names.len() >= majority(all);
        let (names, faults) = gather(self.members.iter().map(ask), enough).await;
        if names.len() < majority(all) {
            return Err(self.too_few(names.len(), names.len(), faults));
        }
        let mut names: Vec<JobName> = names.into_iter().flatten().collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    pub(super) async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let all = self.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let (member, job) = (Arc::clone(member), job.cloned());
            async move { member.reader.history(job.as_ref(), limit).await }
        };
        let enough = |histories: &[Vec<AttemptRecord>]| histories.len() >= majority(all);
        let (histories, faults) = gather(self.members.iter().map(ask), enough).await;
        if histories.len() < majority(all) {
            return Err(self.too_few(histories.len(), histories.len(), faults));
        }
        Ok(put_together(histories, majority(all), limit))
    }

    pub(super) async fn output(
        &self,
        job: &JobName,
        run_id: RunId,
    ) -> Result<Option<Output>, StoreError> {
        let ask = |member: &Arc<RedisStore>| {
            let (member, job) = (Arc::clone(member), job.clone());
            async move { member.reader.output(&job, run_id).await }
        };
        self.found_by_any(self.members.iter().map(ask)).await
    }

    /// What one of them has; none where a majority has not.
    async fn found_by_any<T, F>(
        &self,
        asked: impl Iterator<Item = F>,
    ) -> Result<Option<T>, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<Option<T>, Fault>> + Send + 'static,
    {
        let all = self.members.len();
        let enough = |found: &[Option<T>]| found.iter().any(Option::is_some);
        let (found, faults) = gather(asked, enough).await;
        let answered = found.len();
        match found.into_iter().flatten().next() {
            Some(output) => Ok(Some(output)),
            None if answered >= majority(all) => Ok(None),
            None => Err(self.too_few(answered, answered, faults)),
        }
    }
}

/// What tells an attempt from all others; 0, where none was made, tells nothing.
type Attempt = (u32, JobName, Timestamp, RunId, Option<(u32, u32)>);

/// A line that servers tell.
struct Told {
    line: AttemptRecord,
    servers: usize,
    last: usize,
    /// Which line it is of those that a server told, the newest first.
    position: usize,
}

/// The newest lines of several histories. Each line is on a majority, and so on one of these at
/// least; not each of these has it, as a server can't take what is older than its newest line.
/// One may have another line of the same attempt, of a step that came to nothing: what most of
/// `most` of them have became of it, or else what more of them have than anything else.
fn put_together(
    histories: Vec<Vec<AttemptRecord>>,
    most: usize,
    limit: usize,
) -> Vec<AttemptRecord> {
    let mut found: BTreeMap<Attempt, Vec<Told>> = BTreeMap::new();
    for (server, history) in histories.into_iter().enumerate() {
        for (position, line) in history.into_iter().enumerate() {
            let AttemptRecord {
                attempt,
                scheduled_at,
                run_id,
                ..
            } = line;
            let attempt = (
                attempt,
                line.job.clone(),
                scheduled_at,
                run_id,
                line.detail.shard,
            );
            let told = found.entry(attempt).or_default();
            match told.iter_mut().find(|told| told.line == line) {
                // A server may have it twice, under two ids.
                Some(same) if same.last == server => {}
                Some(same) => (same.servers, same.last) = (same.servers + 1, server),
                None => told.push(Told {
                    line,
                    servers: 1,
                    last: server,
                    position,
                }),
            }
        }
    }
    let mut all = Vec::new();
    for ((attempt, ..), mut told) in found {
        if attempt != 0 {
            // An attempt that was handed over may end with a second line, when nobody may go on.
            told.sort_by_key(|told| std::cmp::Reverse(told.servers));
            let by_most = told.iter().take_while(|told| told.servers >= most).count();
            told.truncate(by_most.max(1));
        }
        all.append(&mut told);
    }
    all.sort_by(in_order);
    all.truncate(limit);
    all.into_iter().map(|told| told.line).collect()
}

/// The order in which one server tells its lines: the newest first, those of one instant by job,
/// and those of one job as they were written.
fn in_order(one: &Told, other: &Told) -> Ordering {
    let ended = other.line.ended_at.cmp(&one.line.ended_at);
    let by_job = || one.line.job.cmp(&other.line.job);
    ended
        .then_with(by_job)
        .then(one.position.cmp(&other.position))
}

/// What servers know of replicas, together: the newest of each.
fn together<'r>(lists: impl Iterator<Item = &'r Vec<ReplicaState>>) -> Vec<ReplicaState> {
    let mut newest: BTreeMap<Uuid, ReplicaState> = BTreeMap::new();
    for state in lists.flatten() {
        let known = newest
            .entry(state.replica.id)
            .or_insert_with(|| state.clone());
        if state.seen_at > known.seen_at {
            *known = state.clone();
        }
    }
    newest.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::lease::{AttemptDetail, FencingToken, Outcome};

    fn line(attempt: u32, ended_at: i64, outcome: Outcome) -> AttemptRecord {
        AttemptRecord {
            job: JobName::new("job").unwrap(),
            scheduled_at: Timestamp::from_millis(1),
            attempt,
            run_id: RunId::new(Uuid::nil()),
            token: FencingToken::new(1),
            replica: "one".to_owned(),
            started_at: Timestamp::from_millis(2),
            ended_at: Timestamp::from_millis(ended_at),
            outcome,
            detail: AttemptDetail::default(),
        }
    }

    #[test]
    fn a_line_is_told_if_any_server_has_it_and_once() {
        let [one, two] = [1, 2].map(|attempt| line(attempt, 9 + i64::from(attempt), Outcome::Lost));
        let histories = vec![
            vec![one.clone(), one.clone()],
            vec![],
            vec![two.clone(), one.clone()],
        ];
        assert_eq!(put_together(histories.clone(), 2, 9), [two.clone(), one]);
        assert_eq!(put_together(histories, 2, 1), [two]);
    }

    #[test]
    fn lines_of_one_instant_are_told_by_job_and_as_they_were_written() {
        let [first, second] = [2, 1].map(|attempt| line(attempt, 9, Outcome::HandedOver));
        let other = AttemptRecord {
            job: JobName::new("a-job").unwrap(),
            ..line(3, 9, Outcome::Skipped)
        };
        let history = vec![other, second, first];
        let histories = vec![history.clone(), history.clone()];
        assert_eq!(put_together(histories, 2, 9), history);
    }

    #[test]
    fn of_two_ends_of_one_attempt_that_counts_which_most_servers_have() {
        let (lost, ended) = (line(1, 20, Outcome::Lost), line(1, 10, Outcome::Succeeded));
        let twice = vec![lost.clone(), lost];
        let one = vec![ended.clone()];
        let histories = vec![twice, one.clone(), one];
        assert_eq!(put_together(histories, 2, 9), [ended]);
    }

    #[test]
    fn two_lines_of_one_attempt_that_most_servers_have_are_both_told() {
        let (lost, handed) = (line(1, 20, Outcome::Lost), line(1, 10, Outcome::HandedOver));
        let both = vec![lost.clone(), handed.clone()];
        let histories = vec![both.clone(), both, vec![]];
        assert_eq!(put_together(histories, 2, 9), [lost, handed]);
    }

    #[test]
    fn what_never_started_is_told_as_often_as_it_was_written() {
        let [one, two] = [20, 10].map(|at| line(0, at, Outcome::Missed));
        let both = vec![one.clone(), two.clone()];
        assert_eq!(put_together(vec![both.clone(), both], 2, 9), [one, two]);
    }
}
