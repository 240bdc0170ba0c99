//! A scheduler at work, and what can be asked of it.
//!
//! Must never: answer from memory what the store knows better.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::builder::Builder;
use super::error::Error;
use super::events::{Events, Subscribers};
use super::home::Home;
use super::views::{self, EndedAttempt, Status};
use crate::driver::{Finished, Request};
use crate::jobs::names::nearest;
use crate::orders::{self, Said, Sender};
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{OrderAnswer, OrderKind};
use crate::scheduler::time::{Timestamp, format_duration};
use crate::store::{Store, StoreError};

/// How long a question waits for the store, as those of the command line do.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// A scheduler at work: one replica of a fleet, whose jobs are functions of this program.
///
/// It works in the background until [`Scheduler::shutdown`]. Dropped without, it is as if the process
/// had been killed, but for its functions, which are aborted: its leases run out by themselves, and
/// other replicas take over then.
///
/// ```
/// # use std::time::Duration;
/// use soloist::{Context, Event, Job, ManualClock, Scheduler};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), soloist::Error> {
/// # let clock = ManualClock::at("2026-11-20T21:59:50Z".parse().unwrap());
/// let scheduler = Scheduler::builder()
///     .store("memory:") // in a fleet: redis://127.0.0.1:6379
/// #   .clock(clock.clone())
///     .job(Job::new("report", "0 22 * * *", |ctx: Context| async move {
///         println!("the report of {}", ctx.scheduled_at());
///         Ok::<_, std::io::Error>(())
///     }))
///     .start()
///     .await?;
/// let mut events = scheduler.events();
/// # clock.advance(Duration::from_secs(60)).await;
/// while let Some(event) = events.next().await {
///     if let Event::Ended { attempt, outcome, .. } = event {
///         println!("{} {outcome}", attempt.job);
///         break;
///     }
/// }
/// scheduler.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a scheduler that is dropped ends at once"]
pub struct Scheduler {
    handle: Handle,
    requests: mpsc::Sender<Request>,
    task: JoinHandle<Finished>,
}

/// How a shutdown ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Shutdown {
    /// Nothing runs any more, and all leases were given back, or ran out where the store could not
    /// be told.
    Drained,
    /// It was ended at once: leases that were held run out by themselves.
    Aborted,
}

impl Scheduler {
    /// Says what is to be run, and where.
    pub fn builder() -> Builder {
        Builder::new()
    }

    #[cfg(feature = "tokio-cron-scheduler")]
    pub(super) fn requests(&self) -> mpsc::WeakSender<Request> {
        self.requests.downgrade()
    }

    pub(super) fn new(
        handle: Handle,
        requests: mpsc::Sender<Request>,
        task: JoinHandle<Finished>,
    ) -> Self {
        Self {
            handle,
            requests,
            task,
        }
    }

    /// What can be asked of it, for other parts of the program. Cheap to clone; it keeps nothing at
    /// work.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// What happens from now on.
    pub fn events(&self) -> Events {
        self.handle.events()
    }

    /// See [`Handle::trigger`].
    pub async fn trigger(&self, job: &str) -> Result<Timestamp, Error> {
        self.handle.trigger(job).await
    }

    /// See [`Handle::pause`].
    pub async fn pause(&self, job: &str) -> Result<Timestamp, Error> {
        self.handle.pause(job).await
    }

    /// See [`Handle::resume`].
    pub async fn resume(&self, job: &str) -> Result<bool, Error> {
        self.handle.resume(job).await
    }

    /// See [`Handle::kill`].
    pub async fn kill(&self, job: &str) -> Result<bool, Error> {
        self.handle.kill(job).await
    }

    /// See [`Handle::status`].
    pub async fn status(&self) -> Result<Status, Error> {
        self.handle.status().await
    }

    /// See [`Handle::history`].
    pub async fn history(
        &self,
        job: Option<&str>,
        limit: usize,
    ) -> Result<Vec<EndedAttempt>, Error> {
        self.handle.history(job, limit).await
    }

    /// Ends it, and completes when it has ended.
    ///
    /// Nothing new is started from now on. What runs has `shutdown_grace` to end by itself; then it
    /// is cancelled, has its `kill_grace`, and is aborted. Its occurrence is handed over: another
    /// replica starts the next attempt at once. Leases are given back as their attempts end.
    ///
    /// A function that never awaits can't be aborted, and is waited for: put
    /// `tokio::time::timeout` around this where that may be. To drop this future is to drop the
    /// scheduler. Even so the process stays for as long as that function runs, as the runtime of
    /// `#[tokio::main]` waits for its threads when `main` returns: there, `std::process::exit` ends
    /// it.
    ///
    /// # Errors
    /// [`Error::Broken`] when its task had failed before.
    pub async fn shutdown(self) -> Result<Shutdown, Error> {
        self.end(Request::Drain).await
    }

    /// Ends it at once: what runs is aborted, and its leases run out by themselves. Completes when
    /// nothing of it runs any more.
    ///
    /// A function that never awaits is waited for here, too: see [`Self::shutdown`].
    ///
    /// # Errors
    /// [`Error::Broken`] when its task had failed before.
    pub async fn abort(self) -> Result<Shutdown, Error> {
        self.end(Request::Abort).await
    }

    async fn end(self, how: Request) -> Result<Shutdown, Error> {
        // One that has ended hears nothing more.
        let _ = self.requests.send(how).await;
        match self.task.await {
            Ok(Finished::Drained) => Ok(Shutdown::Drained),
            Ok(Finished::Aborted) => Ok(Shutdown::Aborted),
            Err(error) => Err(Error::Broken(error.to_string())),
        }
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("replica", &self.handle.0.replica)
            .finish_non_exhaustive()
    }
}

/// What can be asked of a scheduler from anywhere in a program: orders to jobs, how they stand, what
/// happens. Cheap to clone. All but [`Handle::events`] works through the store, whichever replica it
/// concerns.
#[derive(Clone)]
pub struct Handle(Arc<Inner>);

struct Inner {
    home: Home,
    store: Arc<dyn Store>,
    jobs: Vec<Job>,
    replica: String,
    /// Who asks, for the ledger.
    by: String,
    subscribers: Subscribers,
}

impl Handle {
    pub(super) fn new(
        home: Home,
        store: Arc<dyn Store>,
        jobs: Vec<Job>,
        replica: String,
        subscribers: Subscribers,
    ) -> Self {
        Self(Arc::new(Inner {
            home,
            store,
            jobs,
            by: replica.clone(),
            replica,
            subscribers,
        }))
    }

    pub(super) fn store(&self) -> &dyn Store {
        &*self.0.store
    }

    pub(super) fn subscribers(&self) -> &Subscribers {
        &self.0.subscribers
    }

    /// The same on behalf of somebody, who is written down with what is asked for. Default: the
    /// replica.
    #[must_use]
    pub fn by(&self, who: impl Into<String>) -> Self {
        let inner = &self.0;
        Self(Arc::new(Inner {
            home: inner.home.clone(),
            store: Arc::clone(&inner.store),
            jobs: inner.jobs.clone(),
            replica: inner.replica.clone(),
            by: who.into(),
            subscribers: inner.subscribers.clone(),
        }))
    }

    /// What happens at this replica from now on.
    pub fn events(&self) -> Events {
        self.0.subscribers.subscribe()
    }

    /// Asks for an occurrence of a job now, and answers with its instant once it is written down:
    /// nothing is lost while all replicas are away. What becomes of it is for the job's policies to
    /// say: it may wait, and where the job is busy and may not overlap, or its queue is full, it is
    /// skipped. [`Self::history`] has it under its instant. A pause doesn't concern it.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], [`Error::Disabled`], [`Error::Full`], and [`Error::Store`] when the
    /// store gave no answer: it may have been done even so.
    pub async fn trigger(&self, job: &str) -> Result<Timestamp, Error> {
        let said = self.order(OrderKind::Trigger, job).await?;
        match said.answer {
            OrderAnswer::Triggered { scheduled_at } => Ok(scheduled_at),
            other => Err(self.refused(job, &other)),
        }
    }

    /// Pauses a job on all replicas, and answers since when it is paused: what falls due until it is
    /// resumed is skipped, what runs goes on, and a trigger is run.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], and [`Error::Store`] when the store gave no answer.
    pub async fn pause(&self, job: &str) -> Result<Timestamp, Error> {
        let said = self.order(OrderKind::Pause, job).await?;
        match said.answer {
            OrderAnswer::Paused { since, .. } => Ok(since),
            other => Err(self.refused(job, &other)),
        }
    }

    /// Ends the pause of a job; false where it had none.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], and [`Error::Store`] when the store gave no answer.
    pub async fn resume(&self, job: &str) -> Result<bool, Error> {
        let said = self.order(OrderKind::Resume, job).await?;
        match said.answer {
            OrderAnswer::Resumed { since } => Ok(since.is_some()),
            other => Err(self.refused(job, &other)),
        }
    }

    /// Ends what runs of a job, on whichever replica, and what waits to be tried again; false where
    /// there was nothing of it. Attempts are cancelled, and aborted after their `kill_grace`.
    ///
    /// # Errors
    /// [`Error::UnknownJob`], and [`Error::Store`] when the store gave no answer.
    pub async fn kill(&self, job: &str) -> Result<bool, Error> {
        let said = self.order(OrderKind::Kill, job).await?;
        match said.answer {
            OrderAnswer::Killed { .. } => Ok(true),
            OrderAnswer::Idle => Ok(false),
            other => Err(self.refused(job, &other)),
        }
    }

    /// How all jobs and replicas of the namespace stand, by the ledger.
    ///
    /// # Errors
    /// [`Error::Store`] when the store gave no answer.
    pub async fn status(&self) -> Result<Status, Error> {
        let store = Arc::clone(&self.0.store);
        let answered = self.look(async move { store.snapshot().await }).await?;
        Ok(views::status(answered.answer, answered.now, &self.0.jobs))
    }

    /// Ended attempts of one job, or of all, and occurrences that never started, one by one or all of a
    /// stretch of time in a line; what ended last, or was told last, comes first. At most `limit`.
    ///
    /// # Errors
    /// [`Error::UnknownJob`] for a job that neither this scheduler nor the ledger has, and
    /// [`Error::Store`] when the store gave no answer.
    pub async fn history(
        &self,
        job: Option<&str>,
        limit: usize,
    ) -> Result<Vec<EndedAttempt>, Error> {
        let job = job.map(|job| self.name(job)).transpose()?;
        let lines = self.lines(job.as_ref(), limit).await?;
        match job {
            Some(job) if lines.is_empty() && !self.is_known(&job).await? => {
                Err(self.unknown(job.as_str()))
            }
            _ => Ok(lines),
        }
    }

    /// Whether this scheduler has a job, or the ledger.
    async fn is_known(&self, job: &JobName) -> Result<bool, Error> {
        if self.0.jobs.iter().any(|own| own.name == *job) {
            return Ok(true);
        }
        let store = Arc::clone(&self.0.store);
        let answered = self.look(async move { store.snapshot().await }).await?;
        Ok(answered.answer.jobs.iter().any(|state| state.job == *job))
    }

    async fn lines(&self, job: Option<&JobName>, limit: usize) -> Result<Vec<EndedAttempt>, Error> {
        let mut asked = limit;
        loop {
            let (store, job) = (Arc::clone(&self.0.store), job.cloned());
            let lines = async move { store.history(job.as_ref(), asked).await };
            let lines = self.look(lines).await?;
            let complete = lines.len() < asked;
            let shown = lines.into_iter();
            let shown = shown.filter_map(|line| EndedAttempt::of(line, &self.0.jobs));
            let shown: Vec<_> = shown.take(limit).collect();
            if complete || shown.len() == limit {
                return Ok(shown);
            }
            // Some of them stand for nothing: so many more are needed.
            asked = asked.saturating_mul(2);
        }
    }

    /// Asks the store, and not for ever. At home: what a question holds on to is not held up by the
    /// program.
    async fn look<T: Send + 'static>(
        &self,
        asked: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, Error> {
        let limited = async move { tokio::time::timeout(LOOK_TIMEOUT, asked).await };
        match self.0.home.run(limited).await? {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::from(StoreError::Unreachable {
                place: self.0.store.place(),
                cause: format!("no answer within {}", format_duration(LOOK_TIMEOUT)),
            })),
        }
    }

    async fn order(&self, what: OrderKind, job: &str) -> Result<Said, Error> {
        let (name, inner) = (self.name(job)?, Arc::clone(&self.0));
        let sent = async move {
            let sender = Sender::new(&*inner.store, &inner.jobs, inner.replica.clone());
            let request = orders::Request {
                what,
                jobs: std::slice::from_ref(&name),
                by: &inner.by,
                id: None,
            };
            let said = sender.send(request).await;
            // What a pause kept from running is written down where it is ended.
            let job = |name: &JobName| inner.jobs.iter().find(|job| job.name == *name);
            let job = |name: &JobName| job(name).cloned().map(Arc::new);
            inner
                .subscribers
                .tell_stretches(&sender.into_written(), job);
            said
        };
        let mut said = self.0.home.run(sent).await??;
        said.pop().ok_or_else(|| self.unknown(job))
    }

    fn name(&self, job: &str) -> Result<JobName, Error> {
        JobName::new(job).map_err(|_| self.unknown(job))
    }

    fn refused(&self, job: &str, answer: &OrderAnswer) -> Error {
        let job = job.to_owned();
        match answer {
            OrderAnswer::Disabled => Error::Disabled { job },
            OrderAnswer::Full => Error::Full { job },
            _ => self.unknown(&job),
        }
    }

    fn unknown(&self, name: &str) -> Error {
        let known = self.0.jobs.iter().map(|job| job.name.as_str());
        Error::UnknownJob {
            name: name.to_owned(),
            near: nearest(name, known).map(str::to_owned),
        }
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("replica", &self.0.replica)
            .field("by", &self.0.by)
            .finish_non_exhaustive()
    }
}
