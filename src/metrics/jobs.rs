//! Series of each job: its ends, how long attempts take, and how it stands.
//!
//! A table may have any number of jobs, and names come and go with it. So there are series for the
//! first [`JOBS_SHOWN`] jobs by name; what the others do is counted under [`OTHER`], and how they
//! stand is not told. What is no job of the table is counted there too: a job that was removed
//! takes its series with it.
//!
//! Must never: take a name from anywhere but the table; or cost anything for a job that rests, but
//! for its lines.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::histogram::Histogram;

use super::encoding::{Named, truth};
use super::replica::Replica;
use crate::clock::Clock;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::lease::{Outcome, RunId};
use crate::scheduler::time::Timestamp;

/// Of how many jobs there are series, at most.
pub const JOBS_SHOWN: usize = 1000;

/// What stands for all other jobs. No job may be called so.
const OTHER: &str = "_other";

/// How an occurrence may end.
const ENDS: [Outcome; 7] = [
    Outcome::Succeeded,
    Outcome::Failed,
    Outcome::TimedOut,
    Outcome::Lost,
    Outcome::Cancelled,
    Outcome::Skipped,
    Outcome::Missed,
];

/// How an attempt may end.
const ATTEMPT_ENDS: [Outcome; 6] = [
    Outcome::Succeeded,
    Outcome::Failed,
    Outcome::TimedOut,
    Outcome::Lost,
    Outcome::Cancelled,
    Outcome::HandedOver,
];

/// From what ends at once to what takes half a day.
const DURATIONS: [f64; 11] = [
    0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0,
];

/// An instant that is not known.
const NEVER: i64 = i64::MIN;

static OCCURRENCES: Named = Named::new(
    "occurrences",
    "Occurrences that are over for good, by how they ended; each shard of a sharded one counts.",
);
static ATTEMPTS: Named = Named::new(
    "attempts",
    "Attempts that ended, by how they ended; also those that another attempt follows.",
);
static DURATION: Named = Named::seconds(
    "attempt_duration",
    "How long attempts of this replica took, from start to end.",
);
static LAST_SUCCESS: Named = Named::seconds(
    "job_last_success_timestamp",
    "When an occurrence of the job last succeeded, as far as this replica knows, in seconds since the Unix epoch.",
);
static LAST_FAILURE: Named = Named::seconds(
    "job_last_failure_timestamp",
    "When an occurrence of the job last failed, timed out or was lost for good, as far as this replica knows, in seconds since the Unix epoch.",
);
static LAST_MISSED: Named = Named::seconds(
    "job_last_missed_timestamp",
    "When an occurrence of the job was last recorded as missed, as far as this replica knows, in seconds since the Unix epoch.",
);
static NEXT: Named = Named::seconds(
    "job_next_occurrence_timestamp",
    "The next instant of the job's schedule, in seconds since the Unix epoch; not of a job that this replica leaves to others.",
);
static PREVIOUS: Named = Named::seconds(
    "job_previous_occurrence_timestamp",
    "The newest instant of the job's schedule that has come, with its random delay, in seconds since the Unix epoch.",
);
static PAUSED: Named = Named::new("job_paused", "Whether the job is paused.");
static RUNNING_SINCE: Named = Named::seconds(
    "job_running_since_timestamp",
    "Since when the oldest attempt of the job that this replica runs has been running, in seconds since the Unix epoch.",
);

/// What was counted of a job.
#[derive(Default)]
pub(super) struct Counts {
    ends: [AtomicU64; ENDS.len()],
    attempts: [AtomicU64; ATTEMPT_ENDS.len()],
    duration: OnceLock<Histogram>,
    last_success: Known,
    last_failure: Known,
    last_missed: Known,
    paused: AtomicBool,
    left: AtomicBool,
    running: Mutex<Vec<(RunId, Timestamp)>>,
}

/// The newest instant of something, where one is known.
struct Known(AtomicI64);

impl Default for Known {
    fn default() -> Self {
        Self(AtomicI64::new(NEVER))
    }
}

impl Known {
    fn heard_of(&self, at: Timestamp) {
        self.0.fetch_max(at.as_millis(), Ordering::Relaxed);
    }

    fn get(&self) -> Option<Timestamp> {
        let millis = self.0.load(Ordering::Relaxed);
        (millis != NEVER).then_some(Timestamp::from_millis(millis))
    }
}

impl Counts {
    /// So many occurrences are over.
    pub(super) fn ended(&self, outcome: Outcome, occurrences: u64) {
        add(&ENDS, &self.ends, outcome, occurrences);
    }

    /// An attempt is over.
    pub(super) fn attempt_ended(&self, outcome: Outcome) {
        add(&ATTEMPT_ENDS, &self.attempts, outcome, 1);
    }

    pub(super) fn succeeded_at(&self, at: Timestamp) {
        self.last_success.heard_of(at);
    }

    pub(super) fn last_success(&self) -> Option<Timestamp> {
        self.last_success.get()
    }

    pub(super) fn failed_at(&self, at: Timestamp) {
        self.last_failure.heard_of(at);
    }

    pub(super) fn missed_at(&self, at: Timestamp) {
        self.last_missed.heard_of(at);
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// Whether this replica leaves the job to others.
    pub(super) fn set_left(&self, left: bool) {
        self.left.store(left, Ordering::Relaxed);
    }

    /// An attempt began here.
    pub(super) fn began(&self, run_id: RunId, at: Timestamp) {
        self.running().push((run_id, at));
    }

    /// It is over here, after so long.
    pub(super) fn finished(&self, run_id: RunId, took: Duration) {
        self.running().retain(|(id, _)| *id != run_id);
        let duration = self.duration.get_or_init(|| Histogram::new(DURATIONS));
        duration.observe(took.as_secs_f64());
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Vec<(RunId, Timestamp)>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running_since(&self) -> Option<Timestamp> {
        self.running().iter().map(|(_, at)| *at).min()
    }
}

fn add(words: &[Outcome], counters: &[AtomicU64], outcome: Outcome, number: u64) {
    let index = words.iter().position(|word| *word == outcome);
    if let Some(counter) = index.and_then(|index| counters.get(index)) {
        counter.fetch_add(number, Ordering::Relaxed);
    }
}

/// A job of the table, and what was counted of it.
pub(super) struct Series {
    pub(super) job: Arc<Job>,
    pub(super) counts: Arc<Counts>,
    around: Mutex<Option<Around>>,
}

/// The instants around the present. Looking for them costs more than keeping them.
#[derive(Clone, Copy)]
struct Around {
    previous: Option<Timestamp>,
    next: Option<Timestamp>,
    /// From here on they may be others.
    until: Option<Timestamp>,
    since: Timestamp,
}

impl Series {
    fn around(&self, now: Timestamp) -> Around {
        let mut known = self.around.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |one: &Around| one.since <= now && one.until.is_none_or(|until| now < until);
        let around = known.filter(holds).unwrap_or_else(|| self.look(now));
        *known = Some(around);
        around
    }

    fn look(&self, now: Timestamp) -> Around {
        let (job, schedule) = (&self.job, &self.job.schedule);
        let next = schedule.next_after(now);
        let newest = schedule.last_before(now + Duration::from_millis(1));
        let claimed_at = newest.map(|at| at + job.delay(at));
        let is_delayed = claimed_at.is_some_and(|at| at > now);
        Around {
            previous: match is_delayed {
                true => newest.and_then(|at| schedule.last_before(at)),
                false => newest,
            },
            next,
            until: match is_delayed {
                true => claimed_at.into_iter().chain(next).min(),
                false => next,
            },
            since: now,
        }
    }

    /// The newest instant that has come.
    pub(super) fn previous(&self, now: Timestamp) -> Option<Timestamp> {
        self.around(now).previous
    }
}

/// The jobs of a table.
#[derive(Default)]
pub(super) struct Shown {
    /// By name, and in its order.
    series: Vec<Series>,
    index: HashMap<JobName, usize>,
    other: Arc<Counts>,
    has_other: AtomicBool,
}

impl Shown {
    /// A job that has series of its own.
    pub(super) fn get(&self, job: &JobName) -> Option<&Series> {
        self.series.get(*self.index.get(job)?)
    }

    /// Where a job is counted.
    pub(super) fn counts(&self, job: &JobName) -> &Arc<Counts> {
        match self.get(job) {
            Some(series) => &series.counts,
            None => {
                self.has_other.store(true, Ordering::Relaxed);
                &self.other
            }
        }
    }

    /// All that have series of their own, by name.
    pub(super) fn all(&self) -> &[Series] {
        &self.series
    }

    /// What is counted, by the value of the label.
    fn counted(&self) -> impl Iterator<Item = (&str, &Counts)> {
        let own = self.series.iter();
        let own = own.map(|one| (one.job.name.as_str(), &*one.counts));
        let has_other = self.has_other.load(Ordering::Relaxed);
        own.chain(has_other.then_some((OTHER, &*self.other)))
    }
}

/// The jobs of the table in force.
pub(super) struct Jobs {
    shown: RwLock<Arc<Shown>>,
    clock: Arc<dyn Clock>,
    replica: Arc<Replica>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

impl Jobs {
    /// Of a replica that has no table yet.
    pub(super) fn new(clock: Arc<dyn Clock>, replica: Arc<Replica>) -> Self {
        Self {
            shown: RwLock::default(),
            clock,
            replica,
        }
    }

    /// The jobs that are shown.
    pub(super) fn shown(&self) -> Arc<Shown> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&shown)
    }

    /// Another table took the place of the one before, in the order of names. What was counted of
    /// a job that is still there goes on.
    pub(super) fn replace(&self, table: Vec<Arc<Job>>) {
        let before = self.shown();
        let has_other = before.has_other.load(Ordering::Relaxed) || table.len() > JOBS_SHOWN;
        let series = table.into_iter().take(JOBS_SHOWN).map(|job| {
            let counts = before.get(&job.name).map(|one| Arc::clone(&one.counts));
            Series {
                counts: counts.unwrap_or_default(),
                around: Mutex::new(None),
                job,
            }
        });
        let series: Vec<_> = series.collect();
        let names = series.iter().map(|one| one.job.name.clone());
        let shown = Arc::new(Shown {
            index: names.zip(0..).collect(),
            series,
            other: Arc::clone(&before.other),
            has_other: AtomicBool::new(has_other),
        });
        *self.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
    }

    /// The store's time, as far as it is known.
    pub(super) fn now(&self) -> Timestamp {
        let ahead_ms = self.replica.skew_ms();
        Timestamp::from_millis(self.clock.wall().as_millis() - ahead_ms)
    }
}

impl Collector for Jobs {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let shown = self.shown();
        let encoder = &mut encoder;
        counters(&shown, encoder)?;
        let of = |value: fn(&Counts) -> Option<Timestamp>| {
            move |one: &Series| value(&one.counts).map(seconds)
        };
        gauges(
            &shown,
            encoder,
            &LAST_SUCCESS,
            of(|one| one.last_success.get()),
        )?;
        gauges(
            &shown,
            encoder,
            &LAST_FAILURE,
            of(|one| one.last_failure.get()),
        )?;
        gauges(
            &shown,
            encoder,
            &LAST_MISSED,
            of(|one| one.last_missed.get()),
        )?;
        gauges(&shown, encoder, &RUNNING_SINCE, of(Counts::running_since))?;
        gauges(&shown, encoder, &PAUSED, |one| {
            Some(truth(one.counts.paused.load(Ordering::Relaxed)))
        })?;
        let now = self.now();
        let around = |one: &Series| one.job.enabled.then(|| one.around(now));
        let is_left = |one: &Series| one.counts.left.load(Ordering::Relaxed);
        gauges(&shown, encoder, &NEXT, |one| {
            let around = around(one).filter(|_| !is_left(one));
            around?.next.map(seconds)
        })?;
        gauges(&shown, encoder, &PREVIOUS, |one| {
            around(one)?.previous.map(seconds)
        })
    }
}

fn counters(shown: &Shown, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let mut family = OCCURRENCES.counter(encoder)?;
    for (job, counts) in shown.counted() {
        // All of them from the beginning: what is not there yet can't be seen to rise.
        for (outcome, count) in ENDS.iter().zip(&counts.ends) {
            let labels = [("job", job), ("outcome", outcome.as_str())];
            family.count(labels, count.load(Ordering::Relaxed))?;
        }
    }
    let mut family = ATTEMPTS.counter(encoder)?;
    for (job, counts) in shown.counted() {
        for (outcome, count) in ATTEMPT_ENDS.iter().zip(&counts.attempts) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                family.count([("job", job), ("outcome", outcome.as_str())], count)?;
            }
        }
    }
    let mut family = DURATION.histogram(encoder)?;
    for (job, counts) in shown.counted() {
        if let Some(duration) = counts.duration.get() {
            family.metric([("job", job)], duration)?;
        }
    }
    Ok(())
}

fn gauges(
    shown: &Shown,
    encoder: &mut DescriptorEncoder<'_>,
    named: &Named,
    value: impl Fn(&Series) -> Option<f64>,
) -> fmt::Result {
    let mut family = named.gauge(encoder)?;
    for one in &shown.series {
        if let Some(value) = value(one) {
            family.set([("job", one.job.name.as_str())], value)?;
        }
    }
    Ok(())
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millis() as f64 / 1e3
}
