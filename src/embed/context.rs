//! What a job's function is given: what it runs for, and whether it still may.
//!
//! Must never: ask the store. Whether a lease is trusted is known here, and an answer that took a
//! round trip would be older.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::scheduler::time::{BootTime, Timestamp};
use crate::scheduler::{Attempt, Guard, StopReason};

/// What one attempt of a job is given: what it runs for, under which lease, and whether it still
/// may. Cheap to clone.
///
/// ```
/// # use soloist::{Cancelled, Context};
/// # async fn fetch() -> Vec<u8> { Vec::new() }
/// # async fn write(_: Vec<u8>, _token: u64) {}
/// async fn import(ctx: Context) -> Result<(), Cancelled> {
///     let page = tokio::select! {
///         page = fetch() => page,
///         reason = ctx.cancelled() => return Err(Cancelled::from(reason)),
///     };
///     ctx.check()?; // May I still write?
///     write(page, ctx.fencing_token()).await;
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Context(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    attempt: Attempt,
    replica: Arc<str>,
    lease: Arc<LeaseInUse>,
}

/// Why an attempt is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CancelReason {
    /// Its lease could not be renewed and is about to run out: another replica is going to run it.
    LeaseExpiring,
    /// Its lease is another replica's: somebody else may be running it already.
    LeaseLost,
    /// This replica shuts down, and its grace is over.
    ShuttingDown,
    /// A newer occurrence takes its place.
    Replaced,
    /// Somebody asked for its end.
    Killed,
    /// It ran for longer than its `timeout`.
    TimedOut,
    /// It has ended, and its lease is given back: for what its function left behind.
    Ended,
}

impl CancelReason {
    /// In words: "the lease was lost".
    pub const fn as_str(self) -> &'static str {
        match self {
            CancelReason::LeaseExpiring => StopReason::LeaseExpiring.as_str(),
            CancelReason::LeaseLost => StopReason::LeaseLost.as_str(),
            CancelReason::ShuttingDown => StopReason::Draining.as_str(),
            CancelReason::Replaced => StopReason::Replaced.as_str(),
            CancelReason::Killed => StopReason::Killed.as_str(),
            CancelReason::TimedOut => "it ran over its timeout",
            CancelReason::Ended => "the attempt has ended",
        }
    }
}

impl fmt::Display for CancelReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<StopReason> for CancelReason {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::LeaseExpiring => CancelReason::LeaseExpiring,
            StopReason::LeaseLost => CancelReason::LeaseLost,
            StopReason::Draining => CancelReason::ShuttingDown,
            StopReason::Replaced => CancelReason::Replaced,
            StopReason::Killed => CancelReason::Killed,
        }
    }
}

/// The attempt was told to end: what [`Context::check`] answers. What a function returns after that
/// counts as cut short, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled: {reason}")]
pub struct Cancelled {
    reason: CancelReason,
}

impl Cancelled {
    /// Why.
    pub const fn reason(&self) -> CancelReason {
        self.reason
    }
}

impl From<CancelReason> for Cancelled {
    fn from(reason: CancelReason) -> Self {
        Self { reason }
    }
}

impl Context {
    pub(super) fn new(attempt: Attempt, replica: Arc<str>, lease: Arc<LeaseInUse>) -> Self {
        Self(Arc::new(Inner {
            attempt,
            replica,
            lease,
        }))
    }

    /// The job's name.
    pub fn job(&self) -> &str {
        self.0.attempt.job.name.as_str()
    }

    /// The instant that the attempt is for: that of the schedule, not of its start. For a job that
    /// was triggered, that of the trigger.
    pub fn scheduled_at(&self) -> Timestamp {
        self.0.attempt.scheduled_at
    }

    /// The attempt's number, counted from 1 over all replicas: 2 where a former one failed, was
    /// handed over, or vanished with its replica.
    pub fn attempt(&self) -> u32 {
        self.0.attempt.number
    }

    /// A number that rises with every grant of this job, on whichever replica; below 2^53. Hand it
    /// on with every write, and have the other side refuse a lower one than it has seen: that keeps
    /// out an attempt that stood still while its lease ran out.
    pub fn fencing_token(&self) -> u64 {
        self.0.attempt.token.get()
    }

    /// The unique id of this attempt, a UUID in text.
    pub fn run_id(&self) -> String {
        self.0.attempt.run_id.to_string()
    }

    /// The name of the replica that runs it.
    pub fn replica(&self) -> &str {
        &self.0.replica
    }

    /// Which part of the occurrence this is, from 0; 0 where the job has no `shards`.
    pub fn shard_index(&self) -> u32 {
        self.0.attempt.shard
    }

    /// In how many parts the occurrence runs; 1 where the job has no `shards`.
    pub fn shard_total(&self) -> u32 {
        self.0.attempt.shards
    }

    /// `JOB/SCHEDULED_AT`, the same for each attempt of an occurrence: for whoever does a thing once
    /// by such a key. Where the job has shards, they share it; add [`Self::shard_index`].
    pub fn idempotency_key(&self) -> String {
        format!("{}/{}", self.job(), self.scheduled_at())
    }

    /// Completes when the attempt is to end, or has ended, with the reason. How long it has from
    /// then on to end by itself is its `kill_grace`, cut to what is left of the lease; after that it
    /// is aborted at its next `.await`.
    pub async fn cancelled(&self) -> CancelReason {
        self.0.lease.cancelled().await;
        self.0.lease.reason()
    }

    /// A token that is cancelled when the attempt is to end, and where nobody asked for that, when
    /// it has ended: for code that takes one. To cancel it oneself ends nothing but what was given it.
    pub fn cancellation(&self) -> CancellationToken {
        self.0.lease.cancellation.child_token()
    }

    /// Whether the attempt may still do what it is about to: to be asked before each write.
    ///
    /// It costs no round trip. It fails from the moment on at which the attempt is told to end, or
    /// has ended, and from the instant on up to which the lease is trusted, by this host's clock,
    /// even where nobody came to tell it: after a freeze of the process.
    /// Between the answer and the write the process can still be frozen: against that helps
    /// [`Self::fencing_token`] alone.
    ///
    /// # Errors
    /// When the attempt is to end.
    pub fn check(&self) -> Result<(), Cancelled> {
        self.0.lease.check()
    }

    /// For how long the lease is trusted as things stand; zero once it isn't, and once the attempt
    /// has ended. It grows with each renewal: there are about six in the time of a whole lease.
    pub fn lease_left(&self) -> Duration {
        match self.0.lease.reason.get() {
            Some(CancelReason::Ended) => Duration::ZERO,
            _ => self.0.lease.left(),
        }
    }
}

/// The lease of one attempt, as the attempt and whoever watches over it share it.
#[derive(Debug)]
pub(super) struct LeaseInUse {
    clock: Arc<dyn Clock>,
    /// Nanoseconds since boot, up to which it is trusted.
    trusted_until: AtomicU64,
    cancellation: CancellationToken,
    reason: OnceLock<CancelReason>,
}

impl LeaseInUse {
    pub(super) fn new(clock: Arc<dyn Clock>, guard: Guard) -> Self {
        Self {
            clock,
            trusted_until: AtomicU64::new(nanos(guard.kill_at)),
            cancellation: CancellationToken::new(),
            reason: OnceLock::new(),
        }
    }

    /// Has it end. The first reason counts.
    pub(super) fn cancel(&self, reason: CancelReason) {
        // It may have been told before.
        let _ = self.reason.set(reason);
        self.cancellation.cancel();
    }

    /// It was renewed.
    pub(super) fn trust(&self, guard: Guard) {
        let until = nanos(guard.kill_at);
        self.trusted_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Whether it was asked to end.
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Completes when it is asked to end.
    pub(super) async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Whether it may still be used.
    pub(super) fn check(&self) -> Result<(), Cancelled> {
        if self.left().is_zero() {
            self.cancel(CancelReason::LeaseExpiring);
        }
        match self.is_cancelled() {
            true => Err(Cancelled::from(self.reason())),
            false => Ok(()),
        }
    }

    fn left(&self) -> Duration {
        let until = Duration::from_nanos(self.trusted_until.load(Ordering::Relaxed));
        BootTime::since_boot(until).saturating_since(self.clock.boot())
    }

    /// Why it was asked to end, once it was.
    pub(super) fn reason(&self) -> CancelReason {
        let reason = self.reason.get().copied();
        reason.unwrap_or(CancelReason::LeaseLost)
    }
}

/// Of a host that is up for less than 584 years.
fn nanos(at: BootTime) -> u64 {
    u64::try_from(at.as_duration().as_nanos()).unwrap_or(u64::MAX)
}
