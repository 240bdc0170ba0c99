//! A clock that stands still until it is told to go on: tests of jobs go through a day of them in
//! the time that it takes to run them.
//!
//! ```text
//!  advance(a day) ─▶ to the next instant that somebody waits for ─▶ wake ─▶ all quiet? ─┐
//!                          ▲                                                           │
//!                          └───────────────────────────────────────────────────────────┘
//! ```
//!
//! Must never: pass over an instant that somebody waits for, or go on by itself.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::watch;

use super::{Clock, ClockSteps, Timer};
use crate::scheduler::time::{BootTime, Timestamp};

/// How long a manual host has been up at first: instants before now have to be there too.
const UP_AT_FIRST: Duration = Duration::from_secs(86_400);

/// All is quiet when everybody had so many turns and nobody has looked at the clock. It is the
/// longest way from a look at the clock to the next one: an answer of a store, through the task
/// that asked, to the loop that waits for it; an attempt's end, the same way.
const QUIET_TURNS: u32 = 12;

/// A clock for tests, which stands still until it is told to go on.
///
/// Give it to [`Builder::clock`](crate::Builder::clock) and to a store in memory. Clones are the
/// same clock.
///
/// ```
/// # use std::time::Duration;
/// use soloist::{Clock, ManualClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let clock = ManualClock::at("2026-11-20T21:59:00Z".parse().unwrap());
/// clock.advance(Duration::from_secs(60)).await;
/// assert_eq!(clock.wall().to_string(), "2026-11-20T22:00:00Z");
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    times_set: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    wall: Timestamp,
    boot: BootTime,
    /// How often anybody has looked at the clock, or set a timer.
    looks: u64,
    /// Who waits until when; the number is the timer's.
    waiting: BTreeMap<(BootTime, u64), Waker>,
    next_timer: u64,
}

impl ManualClock {
    /// A clock that shows `wall`.
    pub fn at(wall: Timestamp) -> Self {
        let state = State {
            wall,
            boot: BootTime::since_boot(UP_AT_FIRST),
            looks: 0,
            waiting: BTreeMap::new(),
            next_timer: 0,
        };
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(state),
                times_set: watch::Sender::new(0),
            }),
        }
    }

    /// Lets time pass, from one instant that somebody waits for to the next: at each, all that
    /// follows is done before it goes on, as far as it waits for nothing but this clock.
    ///
    /// What waits for anything else (a socket, a file, tokio's timers) is not waited for: have a
    /// job say by a channel that it is done, or wait for its [`Event`](crate::Event), before you
    /// go on. To be called on the runtime that all of it runs on, of the current-thread flavor,
    /// which `#[tokio::test]` is by default: on another one, what follows may come later.
    pub async fn advance(&self, by: Duration) {
        self.settle().await;
        let until = self.state().boot + by;
        while let Some(at) = self.next_before(until) {
            self.go_to(at);
            self.settle().await;
        }
        self.go_to(until);
        self.settle().await;
    }

    /// Lets time pass in one go, as for a host that was suspended: who waited finds out late.
    pub fn jump(&self, by: Duration) {
        let at = self.state().boot + by;
        self.go_to(at);
    }

    /// Sets the wall clock, as an administrator or NTP does. The boot clock stays as it is.
    pub fn set_wall(&self, wall: Timestamp) {
        self.state().wall = wall;
        self.shared.times_set.send_modify(|times| *times += 1);
    }

    /// Waits until `by` has passed on this clock: what a job under test does in the place of work
    /// that takes long.
    pub async fn sleep(&self, by: Duration) {
        let mut timer = ManualTimer::of(self);
        let until = self.boot() + by;
        timer.sleep_until(Some(until)).await;
    }

    /// Gives turns to all others until nobody looks at the clock any more.
    pub async fn settle(&self) {
        let (mut seen, mut quiet) = (self.state().looks, 0);
        while quiet < QUIET_TURNS {
            tokio::task::yield_now().await;
            let looks = self.state().looks;
            quiet = if looks == seen { quiet + 1 } else { 0 };
            seen = looks;
        }
    }

    /// The first instant that somebody waits for, if it is before `until`.
    fn next_before(&self, until: BootTime) -> Option<BootTime> {
        let state = self.state();
        let (at, _) = state.waiting.keys().next()?;
        (*at < until).then_some(*at)
    }

    fn go_to(&self, at: BootTime) {
        let mut state = self.state();
        let passed = at.saturating_since(state.boot);
        state.boot = state.boot + passed;
        state.wall = state.wall + passed;
        let now = state.boot;
        while let Some(first) = state.waiting.first_entry() {
            if first.key().0 > now {
                break;
            }
            first.remove().wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        let mut state = self.state();
        state.looks += 1;
        state.wall
    }

    fn boot(&self) -> BootTime {
        let mut state = self.state();
        state.looks += 1;
        state.boot
    }

    fn timer(&self) -> io::Result<Timer> {
        Ok(Timer::manual(ManualTimer::of(self)))
    }

    fn steps(&self) -> ClockSteps {
        ClockSteps::manual(self.shared.times_set.subscribe())
    }
}

/// A timer of a manual clock.
#[derive(Debug)]
pub(super) struct ManualTimer {
    clock: ManualClock,
    number: u64,
    /// What it waits for, as the clock knows.
    set_to: Option<BootTime>,
}

impl ManualTimer {
    fn of(clock: &ManualClock) -> Self {
        let mut state = clock.state();
        state.next_timer += 1;
        let number = state.next_timer;
        drop(state);
        Self {
            clock: clock.clone(),
            number,
            set_to: None,
        }
    }

    pub(super) async fn sleep_until(&mut self, at: Option<BootTime>) {
        poll_fn(|context| self.poll(at, context)).await;
    }

    fn poll(&mut self, at: Option<BootTime>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.clock.state();
        if let Some(before) = self.set_to.take() {
            state.waiting.remove(&(before, self.number));
        }
        let Some(at) = at else { return Poll::Pending };
        if at <= state.boot {
            state.looks += 1;
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        state.waiting.insert((at, self.number), waker);
        self.set_to = Some(at);
        Poll::Pending
    }
}

impl Drop for ManualTimer {
    fn drop(&mut self) {
        if let Some(at) = self.set_to {
            self.clock.state().waiting.remove(&(at, self.number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A task that looks at the clock each second, and what it saw.
    fn ticking(clock: &ManualClock) -> Arc<Mutex<Vec<i64>>> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noting, clock) = (Arc::clone(&seen), clock.clone());
        tokio::spawn(async move {
            loop {
                clock.sleep(SECOND).await;
                noting.lock().unwrap().push(clock.wall().as_millis());
            }
        });
        seen
    }

    #[tokio::test]
    async fn to_advance_passes_over_no_instant_that_somebody_waits_for() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let seen = ticking(&clock);
        clock.advance(SECOND * 5 / 2).await;
        assert_eq!(*seen.lock().unwrap(), [1000, 2000]);
        assert_eq!(clock.wall(), Timestamp::from_millis(2500));
        clock.advance(SECOND / 2).await;
        assert_eq!(*seen.lock().unwrap(), [1000, 2000, 3000]);
    }

    #[tokio::test]
    async fn who_waited_finds_out_late_after_a_jump() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let seen = ticking(&clock);
        clock.settle().await;
        clock.jump(10 * SECOND);
        clock.settle().await;
        assert_eq!(*seen.lock().unwrap(), [10_000]);
    }

    #[tokio::test]
    async fn to_set_the_wall_clock_is_a_step_and_no_time_passes() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let (mut steps, boot) = (clock.steps(), clock.boot());
        clock.set_wall(Timestamp::from_second(3600));
        steps.changed().await;
        assert_eq!(clock.wall(), Timestamp::from_second(3600));
        assert_eq!(clock.boot(), boot);
    }

    #[tokio::test]
    async fn a_timer_that_is_dropped_is_waited_for_no_more() {
        let clock = ManualClock::at(Timestamp::from_second(0));
        let mut timer = clock.timer().unwrap();
        let at = clock.boot() + SECOND;
        tokio::select! {
            biased;
            () = timer.sleep_until(Some(at)) => panic!("no time has passed"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(clock.state().waiting.len(), 1);
        drop(timer);
        assert!(clock.state().waiting.is_empty());
    }
}
