//! Laws of the timers, on the host's real clocks. Lateness is printed, never asserted: it is
//! the machine's, not ours.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use super::*;

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
struct ManualClock {
    now: Mutex<(Timestamp, BootTime)>,
}

impl ManualClock {
    fn set_wall(&self, wall: Timestamp) {
        self.now.lock().expect("no test panics with it").0 = wall;
    }

    /// Lets time pass on both clocks.
    fn advance(&self, by: Duration) {
        let mut now = self.now.lock().expect("no test panics with it");
        *now = (now.0 + by, now.1 + by);
    }
}

impl Clock for ManualClock {
    fn wall(&self) -> Timestamp {
        self.now.lock().expect("no test panics with it").0
    }

    fn boot(&self) -> BootTime {
        self.now.lock().expect("no test panics with it").1
    }
}

fn now() -> BootTime {
    SystemClock.boot()
}

/// Polls once: what is pending now stays pending until an event.
fn is_pending(future: impl Future<Output = ()>) -> bool {
    let mut future = pin!(future);
    future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
        == Poll::Pending
}

#[tokio::test]
async fn a_timer_never_fires_early() {
    let mut timer = BootTimer::new().unwrap();
    let mut worst = Duration::ZERO;
    for step in 0..50 {
        let due = now() + Duration::from_micros(137 * step);
        timer.sleep_until(Some(due)).await;
        let fired = now();
        assert!(
            fired >= due,
            "fired {:?} early",
            due.saturating_since(fired)
        );
        worst = worst.max(fired.saturating_since(due));
    }
    println!("worst lateness of 50 timers: {worst:?}");
}

#[tokio::test]
async fn an_instant_that_has_passed_is_due_at_once() {
    let mut timer = BootTimer::new().unwrap();
    timer.sleep_until(Some(BootTime::default())).await;
    timer.sleep_until(Some(now() - SHORT)).await;
}

#[tokio::test]
async fn no_instant_is_waited_for_for_ever() {
    let mut timer = BootTimer::new().unwrap();
    assert!(is_pending(timer.sleep_until(None)));
    let mut other = BootTimer::new().unwrap();
    tokio::select! {
        () = timer.sleep_until(None) => panic!("there was nothing to wait for"),
        () = other.sleep_until(Some(now() + SHORT)) => {}
    }
}

#[tokio::test]
async fn the_end_of_time_is_not_now() {
    let mut timer = BootTimer::new().unwrap();
    assert!(is_pending(
        timer.sleep_until(Some(BootTime::since_boot(Duration::MAX)))
    ));
}

#[tokio::test]
async fn a_timer_can_be_set_earlier() {
    let mut timer = BootTimer::new().unwrap();
    assert!(is_pending(timer.sleep_until(Some(now() + LONG))));
    let due = now() + SHORT;
    timer.sleep_until(Some(due)).await;
    assert!(now() >= due);
}

#[tokio::test]
async fn a_timer_set_later_ignores_its_former_instant() {
    let mut timer = BootTimer::new().unwrap();
    let mut other = BootTimer::new().unwrap();
    let first = now() + SHORT;
    assert!(is_pending(timer.sleep_until(Some(first))));
    // The former instant passes, and is seen to pass, while the timer is not being waited for.
    other.sleep_until(Some(first + SHORT)).await;
    let due = now() + SHORT;
    timer.sleep_until(Some(due)).await;
    assert!(now() >= due, "the former instant counted");
}

#[tokio::test]
async fn a_cancelled_wait_loses_no_expiry() {
    let mut timer = BootTimer::new().unwrap();
    let mut other = BootTimer::new().unwrap();
    let due = now() + SHORT;
    assert!(is_pending(timer.sleep_until(Some(due))));
    other.sleep_until(Some(due + SHORT)).await;
    timer.sleep_until(Some(due)).await;
}

#[test]
fn the_boot_clock_never_runs_backwards() {
    let mut last = now();
    for _ in 0..10_000 {
        let next = now();
        assert!(next >= last);
        last = next;
    }
}

#[test]
fn the_wall_clock_is_the_systems() {
    let before = Timestamp::from(jiff::Timestamp::now());
    let read = SystemClock.wall();
    // A step in between would be the machine's owner's doing; a day is told from an error.
    assert!(
        read.saturating_since(before) < Duration::from_secs(86_400),
        "{before} {read}"
    );
    assert!(
        before.saturating_since(read) < Duration::from_secs(86_400),
        "{before} {read}"
    );
}

#[tokio::test]
async fn a_clock_that_was_not_set_is_not_reported() {
    let mut steps = ClockSteps::from_kernel().expect("Linux has it since 3.0");
    let mut timer = BootTimer::new().unwrap();
    tokio::select! {
        () = steps.changed() => panic!("reported a change that did not happen"),
        () = timer.sleep_until(Some(now() + SHORT)) => {}
    }
}

/// Sets the wall clock to what it shows, which moves it back by the nanoseconds in between.
#[tokio::test]
#[ignore = "sets this host's clock, which takes CAP_SYS_TIME and the owner's consent"]
async fn a_change_of_the_wall_clock_is_reported_once() {
    let mut steps = ClockSteps::from_kernel().expect("Linux has it since 3.0");
    assert!(
        is_pending(steps.changed()),
        "reported a change before there was one"
    );
    let wall = clock_gettime(ClockId::Realtime);
    rustix::time::clock_settime(ClockId::Realtime, wall).expect("needs CAP_SYS_TIME");
    steps.changed().await;
    assert!(is_pending(steps.changed()), "reported one change twice");
}

#[tokio::test]
async fn comparing_clocks_notices_a_step_and_ignores_the_passing_of_time() {
    let clock = Arc::new(ManualClock::default());
    let mut steps = ClockSteps::polling(clock.clone(), Duration::from_millis(1));
    let mut timer = BootTimer::new().unwrap();
    clock.advance(LONG);
    clock.set_wall(clock.wall() + Duration::from_millis(1)); // slewed
    tokio::select! {
        () = steps.changed() => panic!("time passed, and was reported as a step"),
        () = timer.sleep_until(Some(now() + SHORT)) => {}
    }
    clock.set_wall(clock.wall() - LONG);
    steps.changed().await;
}
