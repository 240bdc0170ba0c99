//! A job whose attempts are calls of a function, and its policies.
//!
//! Must never: have a default of its own: what isn't said here is as in jobs.toml.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::attempt::{BoxError, Function};
use super::calendar::Calendar;
use super::context::Context;
use crate::scheduler::job::OnCrash;
use crate::scheduler::policy::{CatchUp, Concurrency, Retry};
use crate::scheduler::schedule::{DstFold, DstGap};

/// A job: a name, when it is due, and an async function that is called once for each attempt.
///
/// Its policies are those of `jobs.toml`, under the same names and with the same defaults. What is
/// wrong with one is told by [`Builder::start`](crate::Builder::start), all of it at once.
///
/// ```
/// use std::time::Duration;
/// use soloist::{Context, Job, Retry};
///
/// let job = Job::new("close-expired-orders", "0 * * * *", |ctx: Context| async move {
///     println!("closing what expired before {}", ctx.scheduled_at());
///     Ok::<_, std::io::Error>(())
/// })
/// .timezone("Asia/Shanghai")
/// .timeout(Duration::from_secs(50))
/// .retry(Retry::times(3));
/// ```
#[derive(Clone)]
#[must_use = "a job runs once it is given to a builder"]
pub struct Job {
    pub(super) name: String,
    pub(super) when: When,
    pub(super) function: Function,
    pub(super) said: Said,
}

/// When a job is due.
#[derive(Clone, Debug)]
pub(super) enum When {
    Schedule(String),
    After(Vec<String>),
}

/// What was said of a job's policies; none: what holds by default.
#[derive(Clone, Debug, Default)]
pub(super) struct Said {
    pub(super) description: Option<String>,
    pub(super) timezone: Option<String>,
    pub(super) dst_gap: DstGap,
    pub(super) dst_fold: DstFold,
    pub(super) except: Vec<Calendar>,
    pub(super) only: Vec<Calendar>,
    pub(super) random_delay: Option<Duration>,
    pub(super) enabled: Option<bool>,
    pub(super) timeout: Option<Duration>,
    pub(super) kill_grace: Option<Duration>,
    pub(super) lease_ttl: Option<Duration>,
    pub(super) warn_after: Option<Duration>,
    pub(super) catch_up: Option<CatchUp>,
    pub(super) starting_deadline: Option<Duration>,
    pub(super) concurrency: Concurrency,
    pub(super) retry: Retry,
    pub(super) on_crash: OnCrash,
    pub(super) max_attempts: Option<u32>,
    pub(super) shards: Option<u32>,
    pub(super) run_on: BTreeMap<String, String>,
    pub(super) history_limit: Option<u32>,
    pub(super) history_age: Option<Duration>,
    /// Another timer says when to look at it.
    pub(super) waits_for_poke: bool,
}

impl Job {
    /// A job that is due by a schedule: five fields as in a crontab, six with seconds first, seven
    /// with a year; `@daily`, `@every 5m`, `@at 2027-01-01T00:00:00Z`; `@manual` for one that runs
    /// only when it is triggered. `H` spreads by the job's name.
    ///
    /// The function is called once an attempt, on the runtime on which the scheduler was started.
    /// An error that it returns, and a panic, is a failure with that text. It should await often:
    /// what never does can't be cut short, see [`Context::check`]. What takes a processor for long
    /// belongs into `tokio::task::spawn_blocking`, which can't be cut short either.
    pub fn new<F, R, E>(name: impl Into<String>, schedule: impl Into<String>, function: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        Self::made(name.into(), When::Schedule(schedule.into()), function)
    }

    /// A job that is due when each of these jobs has succeeded for the same instant.
    pub fn after<F, R, E>(
        name: impl Into<String>,
        jobs: impl IntoIterator<Item = impl Into<String>>,
        function: F,
    ) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let jobs = jobs.into_iter().map(Into::into).collect();
        Self::made(name.into(), When::After(jobs), function)
    }

    fn made<F, R, E>(name: String, when: When, function: F) -> Self
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn StdError + Send + Sync>>,
    {
        let function = Arc::new(function);
        Self {
            name,
            when,
            function: Arc::new(move |context| {
                let function = Arc::clone(&function);
                Box::pin(async move { function(context).await.map_err(Into::<BoxError>::into) })
            }),
            said: Said::default(),
        }
    }

    /// For people. Default: none.
    pub fn description(mut self, text: impl Into<String>) -> Self {
        self.said.description = Some(text.into());
        self
    }

    /// The IANA time zone of the schedule. Default `UTC`, never the host's.
    pub fn timezone(mut self, name: impl Into<String>) -> Self {
        self.said.timezone = Some(name.into());
        self
    }

    /// What becomes of local times that are skipped when clocks are set forward. Default: they run
    /// at the first instant after the gap.
    pub fn dst_gap(mut self, gap: DstGap) -> Self {
        self.said.dst_gap = gap;
        self
    }

    /// Which of two equal local times is meant when clocks are set back. Default: the first.
    pub fn dst_fold(mut self, fold: DstFold) -> Self {
        self.said.dst_fold = fold;
        self
    }

    /// Days on which it is not due, whatever its schedule says. Said again, those of each. Default: none.
    pub fn except(mut self, calendar: &Calendar) -> Self {
        self.said.except.push(calendar.clone());
        self
    }

    /// The only days on which it is due, where its schedule has them. Said again, those of either;
    /// [`Self::except`] wins. Default: all.
    pub fn only(mut self, calendar: &Calendar) -> Self {
        self.said.only.push(calendar.clone());
        self
    }

    /// Up to how long after its instant an occurrence starts, the same on every replica for one
    /// occurrence; below a day. Default: none.
    pub fn random_delay(mut self, longest: Duration) -> Self {
        self.said.random_delay = Some(longest);
        self
    }

    /// A job that isn't enabled is known to the ledger and never started. Default: enabled.
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.said.enabled = Some(enabled);
        self
    }

    /// How long an attempt may run before it is cancelled. Default: no limit.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.said.timeout = Some(timeout);
        self
    }

    /// From its cancellation until an attempt is aborted; up to an hour. Default 5 s; cut to fit when
    /// a lease is being lost.
    pub fn kill_grace(mut self, grace: Duration) -> Self {
        self.said.kill_grace = Some(grace);
        self
    }

    /// How long a lease lasts unless it is renewed, which is about when another replica takes over
    /// from one that vanished; from 1 s to 1 h. Default: the builder's, 15 s.
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.said.lease_ttl = Some(ttl);
        self
    }

    /// An attempt that runs for longer is told of, by [`Event::Slow`](crate::Event::Slow) and a line
    /// of the log. Default: none.
    pub fn warn_after(mut self, after: Duration) -> Self {
        self.said.warn_after = Some(after);
        self
    }

    /// What becomes of occurrences that nobody could claim in time. Default: the newest still runs.
    pub fn catch_up(mut self, catch_up: CatchUp) -> Self {
        self.said.catch_up = Some(catch_up);
        self
    }

    /// How late an occurrence may start at most; from 1 s to 366 days. Default 1 min, and a day where
    /// all are caught up with.
    pub fn starting_deadline(mut self, deadline: Duration) -> Self {
        self.said.starting_deadline = Some(deadline);
        self
    }

    /// What becomes of an occurrence that finds the job busy, on whichever replica. Default: it is
    /// skipped.
    pub fn concurrency_policy(mut self, policy: Concurrency) -> Self {
        self.said.concurrency = policy;
        self
    }

    /// What follows a failure. Default: nothing.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.said.retry = retry;
        self
    }

    /// What becomes of an occurrence whose replica vanished in the middle of it. Default: it is run
    /// again, on another one.
    pub fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.said.on_crash = on_crash;
        self
    }

    /// Attempts of one occurrence over all causes and replicas; from 1 to 1000. Default 10.
    pub fn max_attempts(mut self, most: u32) -> Self {
        self.said.max_attempts = Some(most);
        self
    }

    /// In how many parts each occurrence runs, each under a lease of its own; up to 128. Default 1.
    pub fn shards(mut self, shards: u32) -> Self {
        self.said.shards = Some(shards);
        self
    }

    /// A tag that a replica must have to run it, see [`Builder::tag`](crate::Builder::tag). Said
    /// again, it must have both. Default: none.
    pub fn run_on(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.said.run_on.insert(name.into(), value.into());
        self
    }

    /// How many attempts the ledger keeps of it. Default 1000.
    pub fn history_limit(mut self, attempts: u32) -> Self {
        self.said.history_limit = Some(attempts);
        self
    }

    /// For how long the ledger keeps them. Default 30 days.
    pub fn history_age(mut self, age: Duration) -> Self {
        self.said.history_age = Some(age);
        self
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name)
            .field("when", &self.when)
            .field("said", &self.said)
            .finish_non_exhaustive()
    }
}
