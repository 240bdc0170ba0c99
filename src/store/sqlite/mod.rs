//! The embedded store: replicas on one host share a file.
//!
//! One thread owns the one connection (`owner`); callers send it steps and wait for the
//! answer without blocking their runtime. Each batch is decided by the rules that all record
//! keeping engines share, inside one `BEGIN IMMEDIATE` transaction that is on the disk
//! (`synchronous = FULL`) before its answer leaves.
//!
//! The store's time is the host's wall clock, read while the file's lock is held and made
//! monotone by the rules, so that all processes see one time.
//!
//! Must never: live on a file system that other hosts write to (`file`), touch a file that
//! is another program's (`layout`), or be trusted across two kernels.

mod fault;
mod file;
mod layout;
mod ledger;
mod news;
mod owner;
mod past;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use tokio::sync::{broadcast, mpsc, oneshot};

use self::fault::Fault;
use self::ledger::Ledger;
use self::owner::{Kind, Owner, QUEUE_LIMIT, Request, Step};
use super::limits::check_batch;
use super::{
    Answered, AttemptRecord, Caller, EVENT_CAPACITY, Observation, Registration, ReplicaInfo, Scope,
    Snapshot, Store, StoreError, StoreEvent, batch,
};
use crate::clock::Clock;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Claim, ClaimAnswer, Outcome, Output, Release, ReleaseAnswer, Renewal, RenewalAnswer, RunId,
};

/// A store in a file that the replicas of one host share.
pub struct SqliteStore {
    path: PathBuf,
    steps: mpsc::Sender<Box<dyn Step>>,
    events: broadcast::Sender<StoreEvent>,
}

impl SqliteStore {
    /// The store in the file at `path`, which is opened, and made if need be, by the first
    /// call. `namespace` keeps fleets in one file apart; `clock` is this host's.
    pub fn open(path: &Path, namespace: &str, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        let unreachable = |error: std::io::Error| StoreError::Unreachable {
            place: fault::place(path),
            cause: error.to_string(),
        };
        // The working directory may change later.
        let path = std::path::absolute(path).map_err(unreachable)?;
        let events = broadcast::Sender::new(EVENT_CAPACITY);
        let (steps, queue) = mpsc::channel(QUEUE_LIMIT);
        let owner = Owner::new(path.clone(), namespace.to_owned(), clock, events.clone());
        thread::Builder::new()
            .name("soloist-sqlite".to_owned())
            .spawn(move || owner.serve(queue))
            .map_err(unreachable)?;
        Ok(Self {
            path,
            steps,
            events,
        })
    }

    async fn ask<T, F>(&self, kind: Kind, ask: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut Ledger<'_>) -> Result<T, Fault> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let request = Request {
            kind,
            ask,
            answer: None,
            reply,
        };
        let gone = || StoreError::Unreachable {
            place: self.place(),
            cause: "its thread has ended".to_owned(),
        };
        let sent = self.steps.send(Box::new(request)).await;
        sent.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn place(&self) -> String {
        fault::place(&self.path)
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.ask(Kind::Reads, |_| Ok(())).await
    }

    async fn register(
        &self,
        caller: &Caller,
        jobs: &[JobName],
    ) -> Result<Answered<Vec<Registration>>, StoreError> {
        check_batch(&self.place(), jobs.iter())?;
        let (caller, jobs) = (caller.clone(), jobs.to_vec());
        self.ask(Kind::Writes, move |ledger| {
            ledger.enter(&caller)?;
            batch::register(ledger, &caller, &jobs)
        })
        .await
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
        let (caller, claims) = (caller.clone(), claims.to_vec());
        self.ask(Kind::Writes, move |ledger| {
            ledger.enter(&caller)?;
            batch::claim(ledger, &caller, &claims)
        })
        .await
    }

    async fn renew(
        &self,
        caller: &Caller,
        renewals: &[Renewal],
    ) -> Result<Answered<Vec<RenewalAnswer>>, StoreError> {
        let jobs = renewals.iter().map(|renewal| &renewal.occurrence.job);
        check_batch(&self.place(), jobs)?;
        let (caller, renewals) = (caller.clone(), renewals.to_vec());
        self.ask(Kind::Writes, move |ledger| {
            ledger.enter(&caller)?;
            batch::renew(ledger, &caller, &renewals)
        })
        .await
    }

    async fn release(
        &self,
        caller: &Caller,
        releases: &[Release],
    ) -> Result<Answered<Vec<ReleaseAnswer>>, StoreError> {
        let jobs = releases.iter().map(|release| &release.occurrence.job);
        check_batch(&self.place(), jobs)?;
        let hands_over = |release: &Release| release.outcome == Outcome::HandedOver;
        let kind = match releases.iter().any(hands_over) {
            true => Kind::HandsOver,
            false => Kind::Writes,
        };
        let (caller, releases) = (caller.clone(), releases.to_vec());
        self.ask(kind, move |ledger| {
            ledger.enter(&caller)?;
            batch::release(ledger, &caller, &releases)
        })
        .await
    }

    async fn observe(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Answered<Observation>, StoreError> {
        let (caller, info) = (caller.clone(), info.clone());
        self.ask(Kind::Writes, move |ledger| {
            ledger.enter(&caller)?;
            let answered = batch::observe(ledger, &caller, scope)?;
            ledger.note_replica(&caller, &info, answered.now)?;
            Ok(answered)
        })
        .await
    }

    async fn depart(&self, caller: &Caller) -> Result<(), StoreError> {
        let caller = caller.clone();
        self.ask(Kind::Writes, move |ledger| {
            ledger.enter(&caller)?;
            ledger.forget_replica(&caller.replica)
        })
        .await
    }

    async fn snapshot(&self) -> Result<Answered<Snapshot>, StoreError> {
        self.ask(Kind::Reads, |ledger| {
            let now = ledger.clock.wall();
            let records = ledger.records()?;
            let answer = Snapshot {
                grace: batch::Records::group(ledger)?
                    .grace_until
                    .saturating_since(now),
                jobs: records
                    .iter()
                    .map(|(job, record)| record.to_state(job))
                    .collect(),
                replicas: ledger.replicas()?,
            };
            Ok(Answered { now, answer })
        })
        .await
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        let job = job.cloned();
        self.ask(Kind::Reads, move |ledger| {
            ledger.history(job.as_ref(), limit)
        })
        .await
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        let job = job.clone();
        self.ask(Kind::Reads, move |ledger| ledger.output(&job, run_id))
            .await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        self.events.subscribe()
    }
}
