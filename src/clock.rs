//! The only reader of clocks, and timers that fire at an instant instead of at a poll.
//!
//! Two clocks, never mixed up ([`Timestamp`], [`BootTime`]): the wall clock, which people set
//! and NTP steps, and the boot clock, which never steps and goes on counting while the host
//! is suspended. Deadlines are counted on the boot clock alone.
//!
//! Nothing else in the crate may ask the operating system for the time: that keeps every
//! decision replayable from its arguments.

use std::fmt;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior};

use crate::scheduler::time::{BootTime, Timestamp, millis};

#[cfg(feature = "daemon")]
mod alarm;
mod civil;
mod manual;
#[cfg(test)]
mod tests;
mod timer;

#[cfg(feature = "daemon")]
pub(crate) use alarm::BootAlarm;
pub use manual::ManualClock;
pub use timer::Timer;

/// How often [`ClockSteps`] compares the clocks where the kernel won't report steps.
pub const STEP_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How far the wall clock must move against the boot clock to count as a step when polling.
/// NTP slews by at most 0.5 ms a second (adjtimex(2)), so this is never reached by slewing.
pub const STEP_THRESHOLD: Duration = Duration::from_millis(50);

/// A source of the time, so that tests and embedders can bring their own.
///
/// One that does not go at the host's pace has to be a [`ManualClock`], or pass on to one: others
/// are waited for by the host's timers.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Civil time as this host believes it to be.
    fn wall(&self) -> Timestamp;
    /// Time since boot, suspended time counted.
    fn boot(&self) -> BootTime;

    /// A timer that goes by [`Clock::boot`]. Must be called on a tokio runtime with I/O enabled.
    /// Unless a clock brings its own it is the host's, which is right for each clock whose boot
    /// time is the host's.
    ///
    /// # Errors
    /// When the kernel refuses one: descriptors ran out.
    #[doc(hidden)]
    fn timer(&self) -> io::Result<Timer> {
        BootTimer::new().map(Timer::of_host)
    }

    /// Tells when [`Clock::wall`] is set. Unless a clock brings its own, of the host's.
    #[doc(hidden)]
    fn steps(&self) -> ClockSteps {
        ClockSteps::of_host()
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn wall(&self) -> Timestamp {
        (**self).wall()
    }

    fn boot(&self) -> BootTime {
        (**self).boot()
    }

    fn timer(&self) -> io::Result<Timer> {
        (**self).timer()
    }

    fn steps(&self) -> ClockSteps {
        (**self).steps()
    }
}

/// This host's clocks: CLOCK_REALTIME and CLOCK_BOOTTIME.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    /// Read through libc, so that a preloaded library that shifts a process's civil time
    /// (as libfaketime does) is believed.
    fn wall(&self) -> Timestamp {
        Timestamp::from(SystemTime::now())
    }

    fn boot(&self) -> BootTime {
        let now = clock_gettime(ClockId::Boottime);
        BootTime::since_boot(Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        ))
    }
}

impl SystemClock {
    /// CLOCK_MONOTONIC, which stands still while the host is suspended: for service managers that
    /// compare stamps of it, and nothing else.
    #[cfg(feature = "daemon")]
    pub(crate) fn monotonic(self) -> Duration {
        let now = clock_gettime(ClockId::Monotonic);
        Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        )
    }
}

/// A timer on CLOCK_BOOTTIME: never early, as late as the kernel's wake-up (some 0.1 ms), and
/// due at once after a suspension that it fell into. One descriptor for its whole life.
#[derive(Debug)]
pub struct BootTimer {
    timer: AsyncFd<OwnedFd>,
    /// What the kernel's timer is set to and has not been seen to reach.
    armed_at: Option<BootTime>,
}

impl BootTimer {
    /// Must be called on a tokio runtime with I/O enabled. Fails when descriptors run out.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            timer: new_timer(TimerfdClockId::Boottime)?,
            armed_at: None,
        })
    }

    /// Completes at `at`, at once if that has passed; never for `None`. Cancel safe: dropping
    /// the future loses nothing, and the next call sets the timer anew where it differs.
    pub async fn sleep_until(&mut self, at: Option<BootTime>) {
        let Some(at) = at else { return pending().await };
        if self.armed_at != Some(at) {
            self.arm(at);
        }
        match expired(&self.timer).await {
            Ok(()) => self.armed_at = None,
            // A deadline that could pass unnoticed is worse than a task that ends loudly.
            Err(error) => panic!("an armed timerfd can be read: {error}"),
        }
    }

    fn arm(&mut self, at: BootTime) {
        let value = to_timespec(at.as_duration());
        if let Err(error) = settime(&self.timer, TimerfdTimerFlags::ABSTIME, value) {
            panic!("timerfd_settime takes any valid time: {error}");
        }
        self.armed_at = Some(at);
    }
}

/// Notices that the wall clock was set, or that the host woke from suspension.
///
/// The kernel reports it at once (`TFD_TIMER_CANCEL_ON_SET`, timerfd_create(2)). Where it
/// refuses to, the clocks are compared every [`STEP_POLL_INTERVAL`]: steps over
/// [`STEP_THRESHOLD`] are then seen up to that much later, waking from suspension not at all
/// (a [`BootTimer`] needs no telling).
#[derive(Debug)]
pub struct ClockSteps {
    source: StepSource,
}

#[derive(Debug)]
enum StepSource {
    Kernel(AsyncFd<OwnedFd>),
    Polling {
        clock: Arc<dyn Clock>,
        ticks: Interval,
        offset_ms: i64,
    },
    Manual(watch::Receiver<u64>),
}

impl ClockSteps {
    /// Hears of a manual clock how often it was set.
    fn manual(times_set: watch::Receiver<u64>) -> Self {
        Self {
            source: StepSource::Manual(times_set),
        }
    }

    /// Watches this host's wall clock. Must be called on a tokio runtime with I/O and time
    /// enabled. Never fails: see the type for what a refusal by the kernel costs, which is
    /// logged.
    pub fn of_host() -> Self {
        match Self::from_kernel() {
            Ok(steps) => steps,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the kernel won't report changes of the wall clock: comparing clocks every {STEP_POLL_INTERVAL:?} instead"
                );
                Self::polling(Arc::new(SystemClock), STEP_POLL_INTERVAL)
            }
        }
    }

    /// Compares the wall clock with the boot clock every so often. For clocks that aren't the
    /// host's own.
    pub fn polling(clock: Arc<dyn Clock>, every: Duration) -> Self {
        let offset_ms = offset_ms(&*clock);
        let mut ticks = tokio::time::interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            source: StepSource::Polling {
                clock,
                ticks,
                offset_ms,
            },
        }
    }

    fn from_kernel() -> io::Result<Self> {
        let timer = new_timer(TimerfdClockId::Realtime)?;
        // Armed for the end of time: it is there to be cancelled, and stays armed when it is.
        let never = Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        };
        let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
        settime(&timer, flags, never)?;
        Ok(Self {
            source: StepSource::Kernel(timer),
        })
    }

    /// Completes when the wall clock has been changed since the last completion, or since
    /// this was made. Several changes may be reported as one. Cancel safe.
    pub async fn changed(&mut self) {
        match &mut self.source {
            StepSource::Kernel(timer) => {
                // ECANCELED is the report. Any other end of the read would be the year 292
                // billion, or a descriptor gone bad: neither may turn into a busy loop.
                match expired(timer).await {
                    Err(error) if Errno::from_io_error(&error) == Some(Errno::CANCELED) => {}
                    other => {
                        tracing::warn!(?other, "changes of the wall clock are no longer reported");
                        pending().await
                    }
                }
            }
            StepSource::Manual(times_set) => {
                if times_set.changed().await.is_err() {
                    // Nobody is left who could set it.
                    pending().await
                }
            }
            StepSource::Polling {
                clock,
                ticks,
                offset_ms: known,
            } => loop {
                ticks.tick().await;
                let offset_ms = offset_ms(clock);
                let moved = Duration::from_millis(offset_ms.abs_diff(*known));
                if moved > STEP_THRESHOLD {
                    *known = offset_ms;
                    return;
                }
                // Slewing is followed, so that a month of it doesn't add up to a step.
                *known = offset_ms;
            },
        }
    }
}

/// How far the wall clock is ahead of the boot clock.
fn offset_ms(clock: &dyn Clock) -> i64 {
    clock
        .wall()
        .as_millis()
        .saturating_sub(millis(clock.boot().as_duration()))
}

fn new_timer(clock: TimerfdClockId) -> io::Result<AsyncFd<OwnedFd>> {
    let timer = timerfd_create(clock, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    watch(timer)
}

/// The successor that tokio names is `unsafe`, for the sake of types that could close or swap
/// their descriptor while it is registered. An [`OwnedFd`] that is only ever borrowed can't.
#[expect(
    deprecated,
    reason = "sound for an OwnedFd, and the successor is unsafe"
)]
fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

fn settime(timer: &AsyncFd<OwnedFd>, flags: TimerfdTimerFlags, at: Timespec) -> io::Result<()> {
    let once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    timerfd_settime(
        timer.get_ref(),
        flags,
        &Itimerspec {
            it_interval: once,
            it_value: at,
        },
    )?;
    Ok(())
}

/// Waits until the timer has expired (or was cancelled: ECANCELED) and takes note of it.
async fn expired(timer: &AsyncFd<OwnedFd>) -> io::Result<()> {
    loop {
        let Ok(mut ready) = timer.readable().await else {
            // The runtime is shutting down: this task is about to be dropped.
            return pending().await;
        };
        let mut expirations = [0; 8];
        let read = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?));
        match read {
            Ok(result) => return result.map(|_| ()),
            Err(_would_block) => {} // readiness left over from an earlier setting
        }
    }
}

/// Zero would disarm the timer, so it becomes the first nanosecond.
fn to_timespec(since_boot: Duration) -> Timespec {
    let since_boot = since_boot.max(Duration::from_nanos(1));
    Timespec {
        tv_sec: i64::try_from(since_boot.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: since_boot.subsec_nanos().into(),
    }
}
