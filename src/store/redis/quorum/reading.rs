//! What is read of several servers, where nothing is decided.
//!
//! Must never: pass what a minority holds for what all hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::Shared;
use super::forming::{majority, median};
use super::gathering::gather;
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
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            let (caller, info) = (caller.clone(), info.clone());
            async move {
                let stood = member.standing().await?;
                let request = request::observe(&member.keys, &caller, &info, scope);
                let reply = member.asking.run(request).await?;
                let look = reply::look(&reply);
                let look = look.map_err(|misread| Fault::misread(&member.place, &misread))?;
                Ok((stood, look))
            }
        };
        let enough = |looks: &[(Standing, Look)]| looks.len() >= majority(all);
        let (looks, faults) = gather(self.members.iter().map(ask), enough).await;
        if looks.len() < majority(all) {
            return Err(self.too_few(looks.len(), looks.len(), faults));
        }
        let clocks = looks.iter().map(|(_, look)| look.clock_us).collect();
        let replicas = together(looks.iter().map(|(_, look)| &look.replicas));
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
                true => Life::AfterLoss,
                false => Life::Steady,
            },
            replicas,
            ..newest
        })
    }

    pub(super) async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        let ask = |member: &Arc<RedisStore>| {
            let (member, replica) = (Arc::clone(member), replica.clone());
            async move { Ok(member.strike_off(&replica).await) }
        };
        let enough = |_: &[Result<(), StoreError>]| false;
        let (answers, _) = gather(self.members.iter().map(ask), enough).await;
        let failed = answers.iter().filter(|answer| answer.is_err()).count();
        let all = self.members.len();
        match answers.into_iter().find_map(Result::err) {
            Some(error) if all - failed < majority(all) => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) async fn survey(&self) -> Result<Survey, StoreError> {
        let all = self.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let member = Arc::clone(member);
            async move { Ok((member.standing().await?, member.reader.survey().await?)) }
        };
        let enough = |_: &[(Standing, Survey)]| false;
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
        let enough = |_: &[Vec<AttemptRecord>]| false;
        let (histories, faults) = gather(self.members.iter().map(ask), enough).await;
        if histories.len() < majority(all) {
            return Err(self.too_few(histories.len(), histories.len(), faults));
        }
        // Each line is on a majority, and so on one of these at least.
        let mut lines: Vec<AttemptRecord> = Vec::new();
        for history in histories {
            for line in history {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        lines.sort_by_key(|line| std::cmp::Reverse(line.ended_at));
        lines.truncate(limit);
        Ok(lines)
    }

    pub(super) async fn output(
        &self,
        job: &JobName,
        run_id: RunId,
    ) -> Result<Option<Output>, StoreError> {
        let all = self.members.len();
        let ask = |member: &Arc<RedisStore>| {
            let (member, job) = (Arc::clone(member), job.clone());
            async move { member.reader.output(&job, run_id).await }
        };
        let enough = |found: &[Option<Output>]| found.iter().any(Option::is_some);
        let (found, faults) = gather(self.members.iter().map(ask), enough).await;
        let answered = found.len();
        match found.into_iter().flatten().next() {
            Some(output) => Ok(Some(output)),
            None if answered >= majority(all) => Ok(None),
            None => Err(self.too_few(answered, answered, faults)),
        }
    }
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
