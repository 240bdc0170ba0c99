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
    /// scheduler.
    ///
    /// # Errors
    /// [`Error::Broken`] when its task had failed before.
    pub async fn shutdown(self) -> Result<Shutdown, Error> {
        self.end(Request::Drain).await
    }

    /// Ends it at once: what runs is aborted, and its leases run out by themselves.
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
    store: Arc<dyn Store>,
    jobs: Vec<Job>,
    replica: String,
    /// Who asks, for the ledger.
    by: String,
    subscribers: Subscribers,
}

impl Handle {
    pub(super) fn new(
        store: Arc<dyn Store>,
        jobs: Vec<Job>,
        replica: String,
        subscribers: Subscribers,
    ) -> Self {
        Self(Arc::new(Inner {
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

    /// Asks for an occurrence of a job now, under its policies, and answers with its instant. Some
    /// replica runs it, now or once there is room; nothing is lost while all are away.
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
        let answered = self.look(self.0.store.snapshot()).await?;
        Ok(views::status(answered.answer, answered.now, &self.0.jobs))
    }

    /// Ended attempts of one job, or of all, and occurrences that never started; the newest first, at
    /// most `limit`.
    ///
    /// # Errors
    /// [`Error::UnknownJob`] for what can't be a name, and [`Error::Store`] when the store gave no
    /// answer.
    pub async fn history(
        &self,
        job: Option<&str>,
        limit: usize,
    ) -> Result<Vec<EndedAttempt>, Error> {
        let job = job.map(|job| self.name(job)).transpose()?;
        let lines = self.look(self.0.store.history(job.as_ref(), limit)).await?;
        Ok(lines.into_iter().map(EndedAttempt::of).collect())
    }

    /// Asks the store, and not for ever.
    async fn look<T>(
        &self,
        asked: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, Error> {
        match tokio::time::timeout(LOOK_TIMEOUT, asked).await {
            Ok(answer) => Ok(answer?),
            Err(_) => Err(Error::from(StoreError::Unreachable {
                place: self.0.store.place(),
                cause: format!("no answer within {}", format_duration(LOOK_TIMEOUT)),
            })),
        }
    }

    async fn order(&self, what: OrderKind, job: &str) -> Result<Said, Error> {
        let name = self.name(job)?;
        let sender = Sender::new(&*self.0.store, &self.0.jobs, self.0.replica.clone());
        let request = orders::Request {
            what,
            jobs: std::slice::from_ref(&name),
            by: &self.0.by,
            id: None,
        };
        let mut said = sender.send(request).await?;
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
