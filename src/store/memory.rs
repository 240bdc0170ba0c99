//! The store of one process: nothing is kept. It is the twin that tests hold the other engines
//! against, and what `memory:` opens.
//!
//! Records are kept as texts here too, so that whatever is tried out on this store has been
//! through the form in which the others keep it.
//!
//! Must never: outlive its process, or be shared by two.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::draft::{Changes, Draft, Fault, Kept, Line, Reading};
use super::engine::{Engine, Look, Survey, Terms, Window};
use super::rules::{Entry, Group, Life, Record, time_us};
use super::{
    AttemptRecord, Caller, EVENT_CAPACITY, JobState, OUTPUTS_KEPT, REPLICA_RETENTION, ReplicaInfo,
    ReplicaState, Scope, StoreError, StoreEvent,
};
use crate::clock::Clock;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{FencingToken, Output, Replica, RunId};
use crate::scheduler::time::Timestamp;

/// A store in this process's memory.
pub struct MemoryStore {
    state: Mutex<Ledger>,
    events: broadcast::Sender<StoreEvent>,
}

/// All that a memory store holds at one moment.
#[derive(Clone)]
pub struct Image(Ledger);

impl Image {
    /// What it holds of each job: when somebody should look at it, in milliseconds, and its record,
    /// as every engine keeps it.
    pub fn records(&self) -> impl Iterator<Item = (&JobName, Option<Timestamp>, &str)> {
        let records = self.0.records.iter();
        records.map(|(job, kept)| (job, kept.agenda, kept.text.as_str()))
    }

    /// The marks of all jobs together: the highest token, and the time at which it was granted, in
    /// microseconds.
    pub fn marks(&self) -> (FencingToken, i64) {
        (self.0.group.token, self.0.group.clock_us)
    }

    /// The same with another highest token: an engine that writes the steps of two callers may have
    /// shown it to both before either was granted one.
    #[must_use]
    pub fn with_token(mut self, token: FencingToken) -> Self {
        self.0.group.token = token;
        self
    }
}

/// How the jobs of a memory store stood at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Glance {
    /// For how long nothing is granted.
    pub grace: Duration,
    /// Each with the text that it was read from.
    records: BTreeMap<JobName, (String, Arc<JobState>)>,
}

impl Glance {
    /// The jobs, by name.
    pub fn jobs(&self) -> impl Iterator<Item = &Arc<JobState>> {
        self.records.values().map(|(_, state)| state)
    }

    /// One of them.
    pub fn job(&self, name: &JobName) -> Option<&Arc<JobState>> {
        self.records.get(name).map(|(_, state)| state)
    }
}

#[derive(Clone)]
struct Ledger {
    clock: Arc<dyn Clock>,
    /// Which server's process it stands for; none where it has none.
    process: Option<Life>,
    /// Data were lost, and the group doesn't know of it yet.
    is_after_loss: bool,
    group: Group,
    records: BTreeMap<JobName, Kept>,
    /// The agendas of the records, in the order of time.
    agenda: BTreeSet<(Timestamp, JobName)>,
    lines: BTreeMap<JobName, VecDeque<(AttemptRecord, Option<Output>)>>,
    replicas: BTreeMap<uuid::Uuid, ReplicaState>,
    /// By their digests.
    tables: BTreeMap<String, String>,
}

impl MemoryStore {
    /// An empty store that goes by the wall clock of `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let ledger = Ledger {
            clock,
            process: None,
            is_after_loss: false,
            group: Group::default(),
            records: BTreeMap::new(),
            agenda: BTreeSet::new(),
            lines: BTreeMap::new(),
            replicas: BTreeMap::new(),
            tables: BTreeMap::new(),
        };
        Self::of(Image(ledger))
    }

    /// One that holds what another one held.
    pub fn of(image: Image) -> Self {
        Self {
            state: Mutex::new(image.0),
            events: broadcast::Sender::new(EVENT_CAPACITY),
        }
    }

    /// From now on it stands for this process of a server: by a new one it knows that it may have
    /// lost what was acknowledged.
    pub fn run_as(&self, process: &str) {
        self.ledger().process = Some(Life::Process(process.to_owned()));
    }

    /// The same, and the process may have been elected while the one before it lives.
    pub fn run_as_elected(&self, process: &str) {
        self.ledger().process = Some(Life::Elected(process.to_owned()));
    }

    /// What it holds now.
    pub fn image(&self) -> Image {
        Image(self.ledger().clone())
    }

    /// Loses all that was written since an image was taken, as a server does that starts again
    /// from an old snapshot. Nobody is told.
    pub fn fall_back_to(&self, image: Image) {
        let mut ledger = self.ledger();
        let process = ledger.process.take();
        *ledger = image.0;
        ledger.process = process;
        ledger.is_after_loss = true;
    }

    /// How each job stands, without a call: for whoever looks on at every step. What stands as it did
    /// at the `last` glance is not read again.
    pub fn glance(&self, last: &Glance) -> Glance {
        let ledger = self.ledger();
        let now_us = time_us(&ledger.group, ledger.clock_us());
        let now = Timestamp::from_millis(now_us.div_euclid(1000));
        let state = |job: &JobName, text: &str| {
            let seen = last.records.get(job).filter(|(seen, _)| seen == text);
            let read = || Record::from_text(text).map(|record| Arc::new(record.to_state(job)));
            seen.map(|(_, state)| Arc::clone(state)).or_else(read)
        };
        let known = ledger.records.iter().filter_map(|(job, kept)| {
            Some((job.clone(), (kept.text.clone(), state(job, &kept.text)?)))
        });
        Glance {
            grace: ledger.group.grace_until.saturating_since(now),
            records: known.collect(),
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // A panic in the middle of a step is a fault of the rules; it had written nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn clock_us(&self) -> i64 {
        self.clock.wall().as_millis() * 1000
    }

    /// A loss is one until the group knows that it began anew.
    fn life(&self) -> Life {
        match (&self.process, self.is_after_loss) {
            (Some(process), _) => process.clone(),
            (None, true) => Life::AfterLoss,
            (None, false) => Life::Steady,
        }
    }

    fn read(&self, jobs: &[JobName]) -> Reading {
        let text = |job: &JobName| self.records.get(job).map(|kept| kept.text.clone());
        Reading {
            clock_us: self.clock_us(),
            life: self.life(),
            group: self.group.clone(),
            records: jobs.iter().map(|job| (job.clone(), text(job))).collect(),
        }
    }

    fn write(&mut self, changes: Changes) {
        if let Some(group) = changes.group {
            self.group = group;
        }
        // It knows of the loss now, whatever the clock reads by then.
        self.is_after_loss &= !changes.group_is_set;
        for (job, kept) in changes.records {
            self.keep(job, kept);
        }
        for job in changes.forgotten {
            self.forget(&job);
        }
        for line in changes.lines {
            self.append(line);
        }
    }

    fn keep(&mut self, job: JobName, kept: Kept) {
        self.agenda.extend(kept.agenda.map(|at| (at, job.clone())));
        let agenda = kept.agenda;
        let before = self.records.insert(job.clone(), kept);
        if let Some(at) = before.and_then(|kept| kept.agenda)
            && agenda != Some(at)
        {
            self.agenda.remove(&(at, job));
        }
    }

    fn forget(&mut self, job: &JobName) {
        let before = self.records.remove(job);
        if let Some(at) = before.and_then(|kept| kept.agenda) {
            self.agenda.remove(&(at, job.clone()));
        }
        self.lines.remove(job);
    }

    fn append(&mut self, line: Line) {
        let printed = line.output.is_some();
        let lines = self.lines.entry(line.job.clone()).or_default();
        let oldest = line.entry.ended_at - line.retention.age;
        lines.push_front((line.entry.to_record(&line.job), line.output));
        lines.truncate(line.retention.limit as usize);
        lines.retain(|(line, _)| line.ended_at >= oldest);
        if !printed {
            return;
        }
        let with_output = lines.iter_mut().filter(|(_, output)| output.is_some());
        with_output
            .skip(OUTPUTS_KEPT)
            .for_each(|(_, output)| *output = None);
    }

    fn agenda(&self, window: Window) -> Vec<(JobName, Timestamp)> {
        let later = self.agenda.iter().skip_while(|(at, _)| *at <= window.after);
        later
            .take_while(|(at, _)| *at <= window.until)
            .take(window.limit)
            .map(|(at, job)| (job.clone(), *at))
            .collect()
    }

    fn record(&self, job: &JobName) -> Result<Record, Fault> {
        let kept = self.records.get(job);
        let record = kept.and_then(|kept| Record::from_text(&kept.text));
        record.ok_or_else(|| Fault::Unreadable(job.clone()))
    }

    fn records<'a>(
        &self,
        jobs: impl Iterator<Item = &'a JobName>,
    ) -> Result<Vec<(JobName, Record)>, Fault> {
        jobs.map(|job| Ok((job.clone(), self.record(job)?)))
            .collect()
    }

    /// Lists the caller, and forgets who was not heard of for long.
    fn list(&mut self, caller: &Caller, info: &ReplicaInfo, seen_at: Timestamp) {
        let state = ReplicaState {
            replica: caller.replica.clone(),
            info: info.clone(),
            seen_at,
        };
        self.replicas.insert(caller.replica.id, state);
        self.replicas
            .retain(|_, state| state.seen_at >= seen_at - REPLICA_RETENTION);
        let replicas = &self.replicas;
        let is_named = |digest: &str| replicas.values().any(|one| one.info.digest == digest);
        self.tables.retain(|digest, _| is_named(digest));
    }

    fn look(&mut self, caller: &Caller, info: &ReplicaInfo, scope: Scope) -> Result<Look, Fault> {
        let clock_us = self.clock_us();
        let now = Timestamp::from_millis(time_us(&self.group, clock_us).div_euclid(1000));
        self.list(caller, info, now);
        let agenda = self.agenda(Window::of(scope, now));
        let next = self.agenda(Window::next(now));
        Ok(Look {
            clock_us,
            life: self.life(),
            group: self.group.clone(),
            records: self.records(agenda.iter().map(|(job, _)| job))?,
            next: next.first().map(|(_, at)| *at),
            replicas: self.replicas.values().cloned().collect(),
            published: self.tables.keys().cloned().collect(),
        })
    }
}

#[async_trait]
impl Engine for MemoryStore {
    fn place(&self) -> String {
        "memory:".to_owned()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn transact<R, S>(&self, terms: Terms, mut step: S) -> Result<R, StoreError>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, Fault> + Send + 'static,
    {
        let mut ledger = self.ledger();
        let reading = ledger.read(&terms.jobs);
        let mut draft = Draft::of(&reading);
        let answer = step(&mut draft).map_err(|fault| fault.at(&self.place()))?;
        let mut changes = draft.finish();
        let news = std::mem::take(&mut changes.news);
        ledger.write(changes);
        drop(ledger);
        for event in news {
            // Nobody may be listening; that is no fault.
            let _ = self.events.send(event);
        }
        Ok(answer)
    }

    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        let look = self.ledger().look(caller, info, scope);
        look.map_err(|fault| fault.at(&self.place()))
    }

    async fn names(&self) -> Result<Vec<JobName>, StoreError> {
        Ok(self.ledger().records.keys().cloned().collect())
    }

    async fn keep_table(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        let mut ledger = self.ledger();
        ledger.tables.insert(digest.to_owned(), text.to_owned());
        Ok(())
    }

    async fn table(&self, digest: &str) -> Result<Option<String>, StoreError> {
        Ok(self.ledger().tables.get(digest).cloned())
    }

    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        self.ledger().replicas.remove(&replica.id);
        Ok(())
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        let ledger = self.ledger();
        let records = ledger.records(ledger.records.keys());
        Ok(Survey {
            now: ledger.clock.wall(),
            group: ledger.group.clone(),
            conditions: Vec::new(),
            records: records.map_err(|fault| fault.at(&self.place()))?,
            replicas: ledger.replicas.values().cloned().collect(),
            tables: ledger.tables.clone().into_iter().collect(),
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
            .flat_map(|(_, lines)| lines.iter().map(|(line, _)| line))
            .collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.ended_at));
        Ok(lines.into_iter().take(limit).cloned().collect())
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
    fn to_record(&self, job: &JobName) -> AttemptRecord {
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
