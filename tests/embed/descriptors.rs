//! A process that is out of descriptors, so that no timers are to be had.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use soloist::clock::{ClockSteps, Timer};
use soloist::scheduler::time::BootTime;
use soloist::{Clock, Event, ManualClock, OnCrash, Outcome, Timestamp};

use crate::world::{World, come, note, only_line, until};

const START: &str = "2026-11-20T00:00:30Z";

/// EMFILE.
const TOO_MANY_OPEN_FILES: i32 = 24;

const REFUSED: &str = "this process can have no timer: Too many open files (os error 24); raise its \
                       limit of open files";

/// A clock of which a number of timers are asked for in vain.
#[derive(Clone, Debug)]
struct Refusing {
    clock: ManualClock,
    left: Arc<AtomicUsize>,
}

impl Refusing {
    fn of(world: &World) -> Self {
        Self {
            clock: world.clock.clone(),
            left: Arc::default(),
        }
    }

    fn refuse(&self, timers: usize) {
        self.left.store(timers, Ordering::Relaxed);
    }
}

impl Clock for Refusing {
    fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    fn boot(&self) -> BootTime {
        self.clock.boot()
    }

    fn timer(&self) -> io::Result<Timer> {
        let one_less = |left: usize| left.checked_sub(1);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.left.fetch_update(set, fetch, one_less) {
            Ok(_) => Err(io::Error::from_raw_os_error(TOO_MANY_OPEN_FILES)),
            Err(_) => self.clock.timer(),
        }
    }

    fn steps(&self) -> ClockSteps {
        self.clock.steps()
    }
}

/// The replica that gave it up must not have it again at once, whoever would go first.
#[tokio::test]
async fn what_can_not_be_watched_over_is_handed_over_unstarted_and_runs_on_another() {
    let world = World::at(START);
    let job = || {
        let job = world.doing("once", "@manual", |ctx, notes, _| async move {
            notes.add(format!("{} on {}", note(&ctx), ctx.replica()));
            Ok(())
        });
        job.on_crash(OnCrash::Skip)
    };
    let clock = Refusing::of(&world);
    let full = world.replica("full").clock(clock.clone()).job(job());
    let full = full.start().await.unwrap();
    let healthy = world.replica("healthy").job(job()).start().await.unwrap();
    world.pass(30).await;
    clock.refuse(usize::MAX);
    let mut events = full.events();
    let (mut expected, mut handed_over) = (Vec::new(), 0);
    while handed_over < 2 {
        let at = healthy.trigger("once").await.unwrap();
        world.pass(1).await;
        let is_started = |event: &Event| matches!(event, Event::Started { .. });
        let attempt = match come(&mut events).iter().any(is_started) {
            true => {
                let ended = until(&mut events, |event| matches!(event, Event::Ended { .. })).await;
                assert_handed_over(&ended);
                handed_over += 1;
                world.pass(1).await;
                2
            }
            false => 1,
        };
        expected.push(format!("once {at} #{attempt} on healthy"));
        assert_eq!(world.notes.all(), expected);
        assert!(expected.len() < 64, "one of two goes first by chance");
    }
    full.shutdown().await.unwrap();
    healthy.shutdown().await.unwrap();
}

fn assert_handed_over(ended: &Event) {
    let Event::Ended {
        outcome, reason, ..
    } = ended
    else {
        panic!("{ended:?}");
    };
    let told = format!("never started: {REFUSED}");
    assert_eq!(
        (*outcome, reason.as_deref()),
        (Outcome::HandedOver, Some(&*told))
    );
}

#[tokio::test]
async fn descriptors_that_come_back_soon_cost_no_attempt() {
    let world = World::at(START);
    let clock = Refusing::of(&world);
    let job = world.noting("report", "@manual");
    let one = world.replica("one").clock(clock.clone()).job(job);
    let one = one.start().await.unwrap();
    world.pass(30).await;
    let mut events = one.events();
    clock.refuse(3);
    let at = one.trigger("report").await.unwrap();
    world.pass(1).await;
    until(&mut events, |event| matches!(event, Event::Ended { .. })).await;
    assert_eq!(world.notes.all(), [format!("report {at} #1")]);
    let line = only_line(&one, "report").await;
    assert_eq!(line.outcome, Outcome::Succeeded);
    one.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_scheduler_that_can_have_no_timer_says_what_helps() {
    let world = World::at(START);
    let clock = Refusing::of(&world);
    clock.refuse(usize::MAX);
    let job = world.noting("report", "@manual");
    let error = world.replica("one").clock(clock).job(job).start().await;
    assert_eq!(error.unwrap_err().to_string(), REFUSED);
}
