//! The embedded store: replicas on one host share a file.
//!
//! One thread owns the one connection (`owner`); callers send it steps and wait for the
//! answer without blocking their runtime. Each step reads, is decided and is written inside
//! one `BEGIN IMMEDIATE` transaction that is on the disk
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
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use async_trait::async_trait;
use tokio::sync::{broadcast, mpsc, oneshot};

use self::fault::Fault;
use self::ledger::Ledger;
use self::owner::{Kind, Owner, QUEUE_LIMIT, Request, Step};
use super::draft::{self, Draft};
use super::engine::{Engine, Look, Survey, Terms};
use super::{AttemptRecord, Caller, EVENT_CAPACITY, ReplicaInfo, Scope, StoreError, StoreEvent};
use crate::clock::Clock;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{Output, Replica, RunId};

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

/// Every file that a store with this one namespace is made of; what the engine keeps beside a
/// database is in <https://sqlite.org/tempfiles.html>. The database is the last.
#[cfg(feature = "daemon")]
pub(super) fn files(path: &Path, namespace: &str) -> Vec<PathBuf> {
    let beside = ["-wal", "-shm", "-journal"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    });
    let news = news::path(path, namespace);
    beside.into_iter().chain([news, path.to_owned()]).collect()
}

#[async_trait]
impl Engine for SqliteStore {
    fn place(&self) -> String {
        fault::place(&self.path)
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.ask(Kind::Reads, |_| Ok(())).await
    }

    async fn transact<R, S>(&self, terms: Terms, mut step: S) -> Result<R, StoreError>
    where
        R: Send + 'static,
        S: FnMut(&mut Draft<'_>) -> Result<R, draft::Fault> + Send + 'static,
    {
        self.ask(Kind::Writes, move |ledger| {
            let reading = ledger.read(&terms.jobs)?;
            let mut draft = Draft::of(&reading);
            let answer = step(&mut draft)?;
            ledger.write(draft.finish())?;
            Ok(answer)
        })
        .await
    }

    async fn look(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Look, StoreError> {
        let (caller, info) = (caller.clone(), info.clone());
        self.ask(Kind::Writes, move |ledger| {
            ledger.look(&caller, &info, scope)
        })
        .await
    }

    async fn names(&self) -> Result<Vec<JobName>, StoreError> {
        self.ask(Kind::Reads, |ledger| ledger.names()).await
    }

    async fn keep_table(&self, digest: &str, text: &str) -> Result<(), StoreError> {
        let (digest, text) = (digest.to_owned(), text.to_owned());
        self.ask(Kind::Writes, move |ledger| {
            ledger.keep_table(&digest, &text)
        })
        .await
    }

    async fn table(&self, digest: &str) -> Result<Option<String>, StoreError> {
        let digest = digest.to_owned();
        self.ask(Kind::Reads, move |ledger| ledger.table(&digest))
            .await
    }

    async fn strike_off(&self, replica: &Replica) -> Result<(), StoreError> {
        let replica = replica.clone();
        self.ask(Kind::Writes, move |ledger| ledger.forget_replica(&replica))
            .await
    }

    async fn survey(&self) -> Result<Survey, StoreError> {
        self.ask(Kind::Reads, |ledger| {
            Ok(Survey {
                now: ledger.clock.wall(),
                group: ledger.group()?,
                conditions: Vec::new(),
                records: ledger.records()?,
                replicas: ledger.replicas()?,
                tables: ledger.tables()?,
            })
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
