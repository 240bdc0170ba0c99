//! The one thread that has the connection, and what it does with requests.
//!
//! ```text
//!  callers ──▶ queue ──▶ owner: all that waits in one transaction ──▶ commit ──▶ answers
//! ```
//!
//! What waits in the queue shares a transaction and so its fsync(2): each step is atomic, they
//! come one after the other, and no answer leaves before the commit.
//!
//! Must never: answer what is not on the disk, or run a step whose caller has gone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use tokio::sync::{broadcast, mpsc, oneshot};

use super::fault::Fault;
use super::file::{self, Identity};
use super::ledger::Ledger;
use super::{layout, news};
use crate::clock::Clock;
use crate::store::{StoreError, StoreEvent};

/// How many requests wait for the owner before callers have to wait for a place.
pub(super) const QUEUE_LIMIT: usize = 1024;
/// How many requests share a transaction. At 128 jobs each this is some tenths of a second of
/// work in the worst case, and ordinarily a few milliseconds.
const GROUP_LIMIT: usize = 64;
/// How often a transaction is tried while another process has the lock, each time for the
/// engine's own wait (`layout`): a second and a half in all.
const BUSY_ATTEMPTS: u32 = 3;

/// What a step does to the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Reads,
    Writes,
}

/// What others are told of once a transaction is written.
pub(super) type News = BTreeSet<StoreEvent>;

/// A request on its way through the owner.
pub(super) trait Step: Send {
    fn kind(&self) -> Kind;
    /// Nobody waits for the answer any more.
    fn is_given_up(&self) -> bool;
    /// Does it. May be called again, when its transaction was rolled back.
    fn run(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Fault>;
    /// Answers, once its transaction is over.
    fn finish(self: Box<Self>, outcome: Result<(), StoreError>);
}

/// A step made of a closure and the way back to its caller.
pub(super) struct Request<T, F> {
    pub(super) kind: Kind,
    pub(super) ask: F,
    pub(super) answer: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Step for Request<T, F>
where
    T: Send,
    F: FnMut(&mut Ledger<'_>) -> Result<T, Fault> + Send,
{
    fn kind(&self) -> Kind {
        self.kind
    }

    fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, ledger: &mut Ledger<'_>) -> Result<(), Fault> {
        self.answer = Some((self.ask)(ledger)?);
        Ok(())
    }

    fn finish(self: Box<Self>, outcome: Result<(), StoreError>) {
        if let Some(result) = match outcome {
            Ok(()) => self.answer.map(Ok),
            Err(error) => Some(Err(error)),
        } {
            // Whoever asked may have gone meanwhile; the request can be sent again.
            let _ = self.reply.send(result);
        }
    }
}

type Steps = Vec<Box<dyn Step>>;

/// The owner of the connection.
pub(super) struct Owner {
    path: PathBuf,
    namespace: String,
    clock: Arc<dyn Clock>,
    events: broadcast::Sender<StoreEvent>,
    open: Option<(Connection, Identity)>,
    watch: Option<news::Watch>,
    /// The file was replaced under this process; holds until a grace window is in the new one.
    after_loss: bool,
}

impl Owner {
    pub(super) fn new(
        path: PathBuf,
        namespace: String,
        clock: Arc<dyn Clock>,
        events: broadcast::Sender<StoreEvent>,
    ) -> Self {
        Self {
            path,
            namespace,
            clock,
            events,
            open: None,
            watch: None,
            after_loss: false,
        }
    }

    /// Serves until the last caller's end of the queue is dropped.
    pub(super) fn serve(mut self, mut queue: mpsc::Receiver<Box<dyn Step>>) {
        while let Some(first) = queue.blocking_recv() {
            let mut steps = vec![first];
            while steps.len() < GROUP_LIMIT
                && let Ok(next) = queue.try_recv()
            {
                steps.push(next);
            }
            steps.retain(|step| !step.is_given_up());
            let (reads, writes): (Steps, Steps) = steps
                .into_iter()
                .partition(|step| step.kind() == Kind::Reads);
            self.serve_together(writes);
            // Reads are as concurrent with the writes as those are among each other; they
            // don't take the file's lock.
            for read in reads {
                self.serve_together(vec![read]);
            }
        }
    }

    fn serve_together(&mut self, mut steps: Steps) {
        if steps.is_empty() {
            return;
        }
        match self.transact(&mut steps) {
            Ok(news) => {
                steps.into_iter().for_each(|step| step.finish(Ok(())));
                news.into_iter().for_each(|event| self.tell(event));
            }
            Err(fault) if fault.is_of_one_step() && steps.len() > 1 => {
                for step in steps {
                    self.serve_together(vec![step]);
                }
            }
            Err(fault) => {
                let error = fault.to_store_error(&self.path);
                for step in steps {
                    step.finish(Err(error.clone()));
                }
            }
        }
    }

    fn transact(&mut self, steps: &mut Steps) -> Result<News, Fault> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.attempt(steps) {
                Err(fault) if fault.is_busy() && attempts < BUSY_ATTEMPTS => {}
                Err(fault) => {
                    if !fault.is_of_one_step() {
                        // Whatever it was, the next request begins with a fresh connection.
                        self.open = None;
                    }
                    return Err(fault);
                }
                Ok(news) => return Ok(news),
            }
        }
    }

    fn attempt(&mut self, steps: &mut Steps) -> Result<News, Fault> {
        self.connect()?;
        let Some((connection, _)) = &mut self.open else {
            unreachable!("connect() leaves a connection or an error");
        };
        let writes = steps.iter().any(|step| step.kind() == Kind::Writes);
        let behavior = match writes {
            true => TransactionBehavior::Immediate,
            false => TransactionBehavior::Deferred,
        };
        let transaction = connection.transaction_with_behavior(behavior)?;
        layout::check(&transaction)?;
        let mut ledger = Ledger {
            connection: &transaction,
            namespace: &self.namespace,
            clock: &*self.clock,
            after_loss: self.after_loss,
            entered: false,
            news: News::new(),
        };
        for step in steps.iter_mut() {
            step.run(&mut ledger)?;
        }
        let (entered, news) = (ledger.entered, std::mem::take(&mut ledger.news));
        transaction.commit()?;
        self.after_loss &= !entered;
        Ok(news)
    }

    /// Leaves a connection to the file that the path leads to now. One that was opened before
    /// and is there no more is a store that lost its data: what is written to it is seen by
    /// nobody else.
    fn connect(&mut self) -> Result<(), Fault> {
        if let Some((_, identity)) = &self.open {
            if file::identity(&self.path) == Some(*identity) {
                return Ok(());
            }
            tracing::warn!(
                path = %self.path.display(),
                "the store's file was removed or replaced: nothing is granted until holders had the time to write their leases anew"
            );
            self.open = None;
            self.after_loss = true;
            let _ = self.events.send(StoreEvent::Reconnected);
        }
        file::make_sure(&self.path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.path, flags)?;
        layout::prepare(&mut connection, &boot_id())?;
        let identity = file::identity(&self.path).ok_or_else(|| {
            Fault::refused(
                "the file went away while it was opened",
                "leave it in place",
            )
        })?;
        self.open = Some((connection, identity));
        if self.watch.is_none() {
            self.listen();
        }
        Ok(())
    }

    fn listen(&mut self) {
        let path = news::path(&self.path, &self.namespace);
        match news::watch(path, self.events.clone()) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => {
                tracing::debug!(%error, "hand-overs by other processes are found by looking");
            }
        }
    }

    fn tell(&self, event: StoreEvent) {
        if let Err(error) = news::tell(&news::path(&self.path, &self.namespace), event) {
            tracing::debug!(%error, "other processes find it by looking");
        }
    }
}

/// Which boot of the host this is (random(4)); empty where the kernel won't say, which then
/// counts as one boot for ever.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}
