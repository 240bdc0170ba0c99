//! Jobs of tokio-cron-scheduler, of which each occurrence runs once over all replicas.
//!
//! Its callback is not told which occurrence it is for, its timer's idea of the time is the host's,
//! and its channel drops calls. So a callback only says that the timer is at work, for all jobs that
//! are still there ([`Request::Poke`]); what of them is due, and still to be had, is for the scheduler
//! and the store. One call that comes through makes up for those that were dropped beside it.
//!
//! Must never: run a function from within a callback, or take the callback's time for the occurrence's.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::mpsc::WeakSender;
use tokio_cron_scheduler::JobSchedulerError;

use super::builder::Builder;
use super::context::Context;
use super::error::{Error, Fault, Faults};
use super::handle::Scheduler;
use super::job::{Job, When};
use crate::clock::Clock;
use crate::driver::Request;
use crate::scheduler::job::JobName;
use crate::scheduler::time::Timestamp;

/// A job as tokio-cron-scheduler has it.
type Timed = tokio_cron_scheduler::Job;

/// Makes jobs of a `tokio_cron_scheduler::JobScheduler` run once over all replicas, each occurrence
/// of them (feature `tokio-cron-scheduler`).
///
/// A line a job: what [`Self::singleton`] answers is added to the `JobScheduler` in the place of
/// `Job::new_async(…)`. The `JobScheduler` keeps the say in when this replica looks: a job that is
/// removed there, or whose `JobScheduler` is shut down, is not claimed here any more. What is due, by
/// the store's clock, and who runs it, is decided as for any [`Scheduler`]; what a replica that died
/// left is taken over, and retries are made, without a callback. All jobs of one of these belong into
/// one `JobScheduler`: each of its calls has all of them looked at.
///
/// ```
/// use soloist::{Context, Scheduler, Singletons};
/// use tokio_cron_scheduler::JobScheduler;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// let timer = JobScheduler::new().await?;
/// let mut singletons = Singletons::new(
///     Scheduler::builder()
///         .store("memory:") // for a fleet: redis://127.0.0.1:6379
///         .namespace("shop"),
/// );
/// let close_orders = |ctx: Context| async move {
///     println!("closing what expired before {}", ctx.scheduled_at());
///     Ok::<_, std::io::Error>(())
/// };
/// timer.add(singletons.singleton("close-orders", "0 * * * * *", close_orders)?).await?;
///
/// timer.start().await?;
/// let scheduler = singletons.start().await?;
/// // … the rest of the service …
/// scheduler.shutdown().await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing runs before `start`"]
pub struct Singletons {
    builder: Builder,
    poker: Arc<Poker>,
}

/// Where callbacks go.
struct Poker {
    clock: Arc<dyn Clock>,
    stage: Mutex<Stage>,
    /// Each job, and whether its callback still is anywhere.
    jobs: Mutex<Vec<(JobName, Weak<()>)>>,
    /// The last second in which the scheduler was told. All schedules are of whole seconds: who
    /// calls within the same one has nothing to add.
    told: AtomicI64,
}

/// How far a scheduler is.
enum Stage {
    /// Nobody starts one.
    None,
    /// One is being started.
    Starting {
        /// What the clock said at the last callback since.
        called: Option<Timestamp>,
    },
    /// There is one. Weak, so that it ends when it is dropped though its callbacks are still there.
    Started(WeakSender<Request>),
}

impl Poker {
    /// Says that the timer is at work. Before the start and after the end nobody wants to know.
    async fn poke(&self) {
        let wall = self.clock.wall();
        let requests = match &mut *self.stage() {
            Stage::None => None,
            Stage::Starting { called } => {
                *called = Some(wall);
                None
            }
            Stage::Started(requests) => requests.upgrade(),
        };
        if let Some(requests) = requests
            && let Some(request) = self.request(wall)
        {
            // Whoever has ended meanwhile doesn't want to know either.
            let _ = requests.send(request).await;
        }
    }

    /// There is a scheduler from now on, which is told of a callback that came too early for it.
    fn started(&self, requests: WeakSender<Request>) {
        // In one step: who calls is noted by now, or finds the scheduler, which then knows of this.
        let mut stage = self.stage();
        if let Stage::Starting { called: Some(wall) } = *stage
            && let Some(scheduler) = requests.upgrade()
            && let Some(request) = self.request(wall)
        {
            // Nobody has asked it for anything yet: there is room.
            let _ = scheduler.try_send(request);
        }
        *stage = Stage::Started(requests);
    }

    /// What the scheduler is told, unless it was told in this second.
    fn request(&self, wall: Timestamp) -> Option<Request> {
        let second = wall.as_second();
        let is_new = self.told.swap(second, Ordering::Relaxed) != second;
        is_new.then(|| Request::Poke {
            jobs: self.jobs(),
            wall,
        })
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that were not taken away.
    fn jobs(&self) -> Vec<JobName> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.retain(|(_, callback)| callback.strong_count() > 0);
        jobs.iter().map(|(job, _)| job.clone()).collect()
    }

    fn note(&self, job: JobName, callback: &Arc<()>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.push((job, Arc::downgrade(callback)));
    }
}

impl Singletons {
    /// Singletons in this store and namespace, under what else is said in the builder. Jobs that it
    /// has already stay its own: they need no `JobScheduler`.
    pub fn new(builder: Builder) -> Self {
        let poker = Poker {
            clock: builder.its_clock(),
            stage: Mutex::new(Stage::None),
            jobs: Mutex::default(),
            told: AtomicI64::new(i64::MIN),
        };
        let poker = Arc::new(poker);
        Self { builder, poker }
    }

    /// A job under the policies that hold by default: see [`Job::new`].
    ///
    /// # Errors
    /// As [`Self::job`].
    pub fn singleton<F, R, E>(
        &mut self,
        name: impl Into<String>,
        schedule: impl Into<String>,
        function: F,
    ) -> Result<Timed, Error>
    where
        F: Fn(Context) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.job(Job::new(name, schedule, function))
    }

    /// A job with policies of its own. Its schedule and its time zone mean what they mean in
    /// [`Job`], by the zone's rules: the `JobScheduler` only says when to look.
    ///
    /// # Errors
    /// [`Error::Invalid`] where no callback could say when to look: for a job without a schedule, and
    /// for one that says both a day of the month and one of the week, by which tokio-cron-scheduler
    /// means both and a crontab either. All else that is wrong is told by [`Self::start`].
    pub fn job(&mut self, mut job: Job) -> Result<Timed, Error> {
        let pattern = pattern_of(&job)?;
        let name = JobName::new(&job.name).map_err(|error| {
            let cure = "leases, history and logs go by it, such as `close-expired-orders`";
            fault(&job.name, "name", error.to_string(), cure)
        })?;
        let callback = Arc::new(());
        let timed = self.timed(&pattern, &callback);
        // One that its parser doesn't take, though it is right, is looked at more often.
        let timed = timed.or_else(|_| self.timed(EACH_SECOND, &callback));
        let timed = timed.map_err(|error| Error::Broken(error.to_string()))?;
        self.poker.note(name, &callback);
        job.said.waits_for_poke = true;
        self.builder.add(job);
        Ok(timed)
    }

    fn timed(&self, pattern: &str, callback: &Arc<()>) -> Result<Timed, JobSchedulerError> {
        let (poker, callback) = (Arc::clone(&self.poker), Arc::clone(callback));
        Timed::new_async(pattern, move |_, _| {
            // It is there for as long as this is.
            let _ = &callback;
            let poker = Arc::clone(&poker);
            Box::pin(async move { poker.poke().await })
        })
    }

    /// Checks all that was said and sets to work, as [`Builder::start`].
    ///
    /// Callbacks that come while this is awaited, as with a store that is slow, have all jobs looked
    /// at once it is done: what fell due meanwhile runs, unless its job is new to the ledger. Those
    /// that came before count for nothing. So the order of this and `JobScheduler::start` doesn't
    /// matter, where one follows the other.
    ///
    /// End the `JobScheduler` before this one, whose [`Scheduler::shutdown`] waits for what runs.
    ///
    /// # Errors
    /// As [`Builder::start`].
    pub async fn start(self) -> Result<Scheduler, Error> {
        *self.poker.stage() = Stage::Starting { called: None };
        let scheduler = self.builder.start().await?;
        self.poker.started(scheduler.requests());
        Ok(scheduler)
    }
}

impl fmt::Debug for Singletons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Singletons").field(&self.builder).finish()
    }
}

const EACH_MINUTE: &str = "0 * * * * *";
const EACH_SECOND: &str = "* * * * * *";

/// When the other timer is to call: at each of the job's instants at least. Where what the job says
/// means the same there it is that; else, as for time zones, of which it keeps the offset of the day
/// that the job was added, it is more often, and a call for which nothing is due comes to nothing.
fn pattern_of(job: &Job) -> Result<String, Error> {
    let When::Schedule(text) = &job.when else {
        let cure = "give it to the builder by `Builder::job`: it is due when others have succeeded";
        return Err(fault(&job.name, "after", "it has no schedule", cure));
    };
    let mut fields: Vec<&str> = text.split_whitespace().collect();
    let is = |word: &str| {
        fields
            .first()
            .is_some_and(|first| first.eq_ignore_ascii_case(word))
    };
    if is("@manual") {
        let cure = "give it to the builder by `Builder::job`, and trigger it";
        return Err(fault(&job.name, "schedule", "it is never due", cure));
    }
    let has_seconds = fields.is_empty() || is("@every") || is("@at");
    if fields.len() == 5 {
        fields.insert(0, "0");
    }
    if !(6..=7).contains(&fields.len()) {
        // `@hourly` and its kin; what is no schedule at all is told at the start.
        return Ok(each(has_seconds));
    }
    if [fields[3], fields[5]]
        .iter()
        .all(|days| is_restricted(days))
    {
        let cause = "both a day of the month and a day of the week are said: for \
                     tokio-cron-scheduler a day has to be both, here, as in crontab(5), either";
        let cure = "leave one of them to the function, or give it to the builder by `Builder::job` \
                    if either is meant";
        return Err(fault(&job.name, "schedule", cause, cure));
    }
    let is_utc = job
        .said
        .timezone
        .as_deref()
        .is_none_or(|zone| zone == "UTC");
    // croner counts steps of years from year 1, not 1970; and steps of days that begin at 7, Sunday, end there.
    let has_odd_steps = fields[5..].iter().any(|field| field.contains('/'));
    Ok(
        match is_utc && !has_odd_steps && fields.iter().all(|field| is_plain(field)) {
            true => fields.join(" "),
            false => each(fields[0] != "0"),
        },
    )
}

fn each(has_seconds: bool) -> String {
    let each = match has_seconds {
        true => EACH_SECOND,
        false => EACH_MINUTE,
    };
    each.to_owned()
}

fn is_restricted(days: &str) -> bool {
    !days.starts_with(['*', '?'])
}

/// Whether every crontab means the same by it.
fn is_plain(field: &str) -> bool {
    field
        .chars()
        .all(|c| c.is_ascii_digit() || "*,-/".contains(c))
}

fn fault(job: &str, key: &'static str, cause: impl Into<String>, cure: &str) -> Error {
    Error::Invalid(Faults(vec![Fault {
        job: Some(job.to_owned()),
        key,
        cause: cause.into(),
        cure: cure.to_owned(),
    }]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(schedule: &str) -> Job {
        Job::new("a", schedule, |_| async { Ok::<_, Error>(()) })
    }

    fn pattern(schedule: &str) -> String {
        pattern_of(&job(schedule)).unwrap()
    }

    #[test]
    fn what_means_the_same_to_both_is_handed_on() {
        assert_eq!(pattern("0 * * * * *"), "0 * * * * *");
        assert_eq!(pattern("*/5 10-20 8,9 1 * *"), "*/5 10-20 8,9 1 * *");
        assert_eq!(pattern("30 22 * * 1-5"), "0 30 22 * * 1-5");
        assert_eq!(pattern("0 0 0 */2 * 5"), "0 0 0 */2 * 5");
    }

    #[test]
    fn what_does_not_is_looked_at_more_often_than_it_is_due() {
        for minutely in ["@hourly", "H 3 * * *", "0 0 22 L * *", "0 9 * * MON"] {
            assert_eq!(pattern(minutely), EACH_MINUTE, "{minutely}");
        }
        for stepped in ["0 9 * * 7/2", "0 0 0 1 1 * */2"] {
            assert_eq!(pattern(stepped), EACH_MINUTE, "{stepped}");
        }
        let instants = ["@every 90s", "@Every 90s", "@AT 2027-01-01T00:00:00Z"];
        for secondly in instants.into_iter().chain(["H * * * * *"]) {
            assert_eq!(pattern(secondly), EACH_SECOND, "{secondly}");
        }
    }

    #[test]
    fn a_zone_is_not_left_to_a_timer_that_keeps_its_offset() {
        let zoned = job("0 30 2 * * *").timezone("Europe/Berlin");
        assert_eq!(pattern_of(&zoned).unwrap(), EACH_MINUTE);
        let utc = job("0 30 2 * * *").timezone("UTC");
        assert_eq!(pattern_of(&utc).unwrap(), "0 30 2 * * *");
    }

    #[test]
    fn what_would_change_its_meaning_or_never_be_called_is_refused() {
        for refused in ["0 0 0 13 * 5", "0 12 1-7 * MON", "@manual", "@Manual"] {
            assert!(pattern_of(&job(refused)).is_err(), "{refused}");
        }
        let after = Job::after("a", ["b"], |_| async { Ok::<_, Error>(()) });
        assert!(pattern_of(&after).is_err());
    }
}
