//! The store of one process: nothing is kept. It is the twin that tests hold the other engines
//! against, and what `memory:` opens.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::limits::check_batch;
use super::rules::{Entry, Group, Record, State};
use super::{
    Answered, AttemptRecord, Caller, EVENT_CAPACITY, JobState, LastAttempt, OUTPUTS_KEPT,
    Observation, REPLICA_RETENTION, Registration, ReplicaInfo, ReplicaState, Scope, Snapshot,
    Standing, Store, StoreError, StoreEvent, batch,
};
use crate::clock::Clock;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Claim, ClaimAnswer, Outcome, Output, Release, ReleaseAnswer, Renewal, RenewalAnswer, Retention,
    RunId,
};
use crate::scheduler::time::Timestamp;

/// A store in this process's memory.
pub struct MemoryStore {
    state: Mutex<Ledger>,
    events: broadcast::Sender<StoreEvent>,
}

struct Ledger {
    clock: Arc<dyn Clock>,
    group: Group,
    records: BTreeMap<JobName, Record>,
    lines: BTreeMap<JobName, VecDeque<(AttemptRecord, Option<Output>)>>,
    replicas: BTreeMap<uuid::Uuid, ReplicaState>,
}

impl MemoryStore {
    /// An empty store that goes by the wall clock of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let ledger = Ledger {
            clock,
            group: Group::default(),
            records: BTreeMap::new(),
            lines: BTreeMap::new(),
            replicas: BTreeMap::new(),
        };
        Self {
            state: Mutex::new(ledger),
            events: broadcast::Sender::new(EVENT_CAPACITY),
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A panic in the middle of a call is a fault of the rules; what they had written by
        // then is whole records.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl batch::Records for Ledger {
    type Error = Infallible;

    fn clock_us(&mut self) -> Result<i64, Infallible> {
        Ok(self.clock.wall().as_millis() * 1000)
    }

    fn group(&mut self) -> Result<Group, Infallible> {
        Ok(self.group.clone())
    }

    fn set_group(&mut self, group: &Group) -> Result<(), Infallible> {
        self.group = group.clone();
        Ok(())
    }

    fn record(&mut self, job: &JobName) -> Result<Option<Record>, Infallible> {
        Ok(self.records.get(job).cloned())
    }

    fn set_record(&mut self, job: &JobName, record: &Record) -> Result<(), Infallible> {
        self.records.insert(job.clone(), record.clone());
        Ok(())
    }

    fn append(
        &mut self,
        job: &JobName,
        entry: &Entry,
        output: Option<&Output>,
        retention: Retention,
    ) -> Result<(), Infallible> {
        let lines = self.lines.entry(job.clone()).or_default();
        lines.push_front((entry.to_record(job), output.cloned()));
        lines.truncate(retention.limit as usize);
        let oldest = entry.ended_at - retention.age;
        lines.retain(|(line, _)| line.ended_at >= oldest);
        let with_output = lines.iter_mut().filter(|(_, output)| output.is_some());
        with_output
            .skip(OUTPUTS_KEPT)
            .for_each(|(_, output)| *output = None);
        Ok(())
    }

    fn open_records(
        &mut self,
        after: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<(JobName, Record)>, Infallible> {
        let mut open: Vec<_> = self
            .records
            .iter()
            .filter(|(_, record)| record.state.is_open())
            .filter(|(_, record)| record.deadline > after && record.deadline <= until)
            .map(|(job, record)| (job.clone(), record.clone()))
            .collect();
        open.sort_by_key(|(_, record)| record.deadline);
        open.truncate(limit);
        Ok(open)
    }
}

fn done<T>(result: Result<T, Infallible>) -> Result<T, StoreError> {
    let Ok(value) = result;
    Ok(value)
}

#[async_trait]
impl Store for MemoryStore {
    fn place(&self) -> String {
        "memory:".to_owned()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn register(
        &self,
        caller: &Caller,
        jobs: &[JobName],
    ) -> Result<Answered<Vec<Registration>>, StoreError> {
        check_batch(&self.place(), jobs.iter())?;
        done(batch::register(&mut *self.ledger(), caller, jobs))
    }

    async fn claim(
        &self,
        caller: &Caller,
        claims: &[Claim],
    ) -> Result<Answered<Vec<ClaimAnswer>>, StoreError> {
        check_batch(
            &self.place(),
            claims.iter().map(|claim| &claim.occurrence.job),
        )?;
        done(batch::claim(&mut *self.ledger(), caller, claims))
    }

    async fn renew(
        &self,
        caller: &Caller,
        renewals: &[Renewal],
    ) -> Result<Answered<Vec<RenewalAnswer>>, StoreError> {
        check_batch(
            &self.place(),
            renewals.iter().map(|renewal| &renewal.occurrence.job),
        )?;
        done(batch::renew(&mut *self.ledger(), caller, renewals))
    }

    async fn release(
        &self,
        caller: &Caller,
        releases: &[Release],
    ) -> Result<Answered<Vec<ReleaseAnswer>>, StoreError> {
        check_batch(
            &self.place(),
            releases.iter().map(|release| &release.occurrence.job),
        )?;
        let answered = done(batch::release(&mut *self.ledger(), caller, releases))?;
        if releases
            .iter()
            .any(|release| release.outcome == Outcome::HandedOver)
        {
            // Nobody may be listening; that is no fault.
            let _ = self.events.send(StoreEvent::HandedOver);
        }
        Ok(answered)
    }

    async fn observe(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Answered<Observation>, StoreError> {
        let mut ledger = self.ledger();
        let answered = done(batch::observe(&mut *ledger, caller, scope))?;
        let seen_at = answered.now;
        let state = ReplicaState {
            replica: caller.replica.clone(),
            info: info.clone(),
            seen_at,
        };
        ledger.replicas.insert(caller.replica.id, state);
        ledger
            .replicas
            .retain(|_, state| state.seen_at >= seen_at - REPLICA_RETENTION);
        Ok(answered)
    }

    async fn depart(&self, caller: &Caller) -> Result<(), StoreError> {
        self.ledger().replicas.remove(&caller.replica.id);
        Ok(())
    }

    async fn snapshot(&self) -> Result<Answered<Snapshot>, StoreError> {
        let ledger = self.ledger();
        let now = ledger.clock.wall();
        let mut replicas: Vec<_> = ledger.replicas.values().cloned().collect();
        replicas.sort_by(|a, b| a.replica.name.cmp(&b.replica.name));
        let jobs = ledger
            .records
            .iter()
            .map(|(job, record)| record.to_state(job))
            .collect();
        let grace = ledger.group.grace_until.saturating_since(now);
        Ok(Answered {
            now,
            answer: Snapshot {
                grace,
                jobs,
                replicas,
            },
        })
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let ledger = self.ledger();
        let mut lines: Vec<_> = ledger
            .lines
            .iter()
            .filter(|(name, _)| job.is_none_or(|job| job == *name))
            .flat_map(|(_, lines)| lines.iter().take(limit).map(|(line, _)| line.clone()))
            .collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.ended_at));
        lines.truncate(limit);
        Ok(lines)
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        let ledger = self.ledger();
        // A run that was handed over and closed later has a second line, without output.
        let lines = ledger.lines.get(job).into_iter().flatten();
        Ok(lines
            .filter(|(line, _)| line.run_id == run_id)
            .find_map(|(_, output)| output.clone()))
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        self.events.subscribe()
    }
}

impl Entry {
    /// The line as readers of the ledger see it.
    pub(super) fn to_record(&self, job: &JobName) -> AttemptRecord {
        AttemptRecord {
            job: job.clone(),
            scheduled_at: self.scheduled_at,
            attempt: self.attempt,
            run_id: self.run_id,
            token: self.token,
            replica: self.replica.clone(),
            started_at: self.started_at,
            ended_at: self.ended_at,
            outcome: self.outcome,
            detail: self.detail.clone(),
        }
    }
}

impl Record {
    /// The record as `status` shows it.
    pub(super) fn to_state(&self, job: &JobName) -> JobState {
        let standing = match self.state {
            State::New => None,
            State::Running => Some(Standing::Running {
                deadline: self.deadline,
            }),
            State::Ended(outcome) => Some(Standing::Ended(outcome)),
        };
        let last = standing.map(|standing| LastAttempt {
            scheduled_at: self.scheduled_at,
            attempt: self.attempt,
            run_id: self.run_id,
            token: self.token,
            replica: self.holder.name.clone(),
            since: self.since,
            standing,
        });
        JobState {
            job: job.clone(),
            settled_until: self.settled_until,
            last,
        }
    }
}
