//! The thin loop around the scheduler: it waits, feeds events, performs effects.
//!
//! ```text
//!   timer, clock steps ─┐                        ┌─▶ store calls (a task each) ┐
//!   store's answers ────┤   ┌────────────┐       ├─▶ attempts: runner, functions├ Hands
//!   store's news ───────┼──▶│ Dispatcher │──────▶┤                              ┘
//!   ends of attempts ───┤   │ Scheduler  │       └─▶ log, observers
//!   shutdown ───────────┘   └────────────┘
//! ```
//!
//! Must never: decide, wait for a call inside the loop, or look at a clock but to pass the time
//! on.

mod attempts;
mod call;
mod dispatcher;
mod host;
mod observer;
#[cfg(feature = "daemon")]
mod processes;
mod report;
mod request;
mod waiting;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::clock::{Clock, ClockSteps, Timer};
use crate::scheduler::job::Job;
use crate::scheduler::{Entropy, Event, Settings};
use crate::store::Store;

pub use self::attempts::{Attempts, OnEnd};
pub(crate) use self::call::CALL_TIMEOUT;
pub use self::call::{Call, Patience};
pub use self::dispatcher::{Dispatcher, Hands, Place, Turn};
pub use self::observer::{Moment, Observer};
#[cfg(feature = "daemon")]
pub use self::processes::Processes;
pub use self::request::Request;
pub(crate) use self::waiting::wait_for;

use self::host::HostHands;

/// Events that are taken in before the scheduler acts on them: what ends at one moment is
/// released in one call.
const EVENTS_AT_ONCE: usize = 1024;

/// How a driver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// All leases were given back, or ran out while the store could not be reached.
    Drained,
    /// It was told to stop at once: leases that were held run out by themselves.
    Aborted,
}

/// One replica at work.
pub struct Driver {
    dispatcher: Dispatcher,
    hands: HostHands,
    events: mpsc::UnboundedReceiver<Event>,
    timer: Timer,
    steps: ClockSteps,
}

impl Driver {
    /// A replica that will run `jobs` against `store`, in `attempts`. Must be called on a tokio
    /// runtime with I/O and time enabled.
    ///
    /// # Errors
    /// When the kernel refuses the timers.
    pub fn new(
        settings: Settings,
        jobs: Vec<Job>,
        store: Arc<dyn Store>,
        attempts: Box<dyn Attempts>,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
    ) -> std::io::Result<Self> {
        let (sender, events) = mpsc::unbounded_channel();
        let hands = HostHands::new(store, attempts, sender);
        let (timer, steps) = (clock.timer()?, clock.steps());
        let jobs = jobs.into_iter().map(Arc::new);
        Ok(Self {
            dispatcher: Dispatcher::new(settings, jobs, clock, entropy, Place::here()),
            hands,
            events,
            timer,
            steps,
        })
    }

    /// Lets somebody look on.
    pub fn observed_by(mut self, observer: Box<dyn Observer>) -> Self {
        self.dispatcher.observe(observer);
        self
    }

    /// Has it ask for more to do when another runtime than its own, on which that is to run, has a
    /// turn for it: one that is busy takes nothing that it can't begin, while what it has is renewed.
    pub fn claiming_on(mut self, runtime: Handle) -> Self {
        self.hands.claim_on(runtime);
        self
    }

    /// What was asked before there was a driver comes before all that is asked of it.
    pub fn told_before(mut self, requests: Vec<Request>) -> Self {
        for request in requests {
            self.dispatcher.take_request(request, &mut self.hands);
        }
        self
    }

    /// Runs until a drain is over or an abort is asked for.
    pub async fn run(mut self, mut requests: mpsc::Receiver<Request>) -> Finished {
        let mut news = self.hands.news();
        loop {
            let wakeup = match self.dispatcher.turn(&mut self.hands) {
                Turn::Wait(until) => until,
                Turn::Over => {
                    self.hands.depart(self.dispatcher.caller()).await;
                    return Finished::Drained;
                }
            };
            tokio::select! {
                Some(event) = self.events.recv() => self.take_in(event),
                () = self.timer.sleep_until(wakeup) => {}
                () = self.steps.changed() => self.dispatcher.take_in(Event::Disturbed),
                event = news.recv() => self.dispatcher.take_in_news(event),
                request = requests.recv() => {
                    let request = request.unwrap_or(Request::Abort);
                    if self.dispatcher.take_request(request, &mut self.hands) {
                        return Finished::Aborted;
                    }
                }
            }
        }
    }

    /// Takes in an event and those that came at the same moment.
    fn take_in(&mut self, first: Event) {
        let more = std::iter::from_fn(|| self.events.try_recv().ok()).take(EVENTS_AT_ONCE);
        for event in std::iter::once(first).chain(more) {
            if let Event::AttemptEnded { run_id, .. } = &event {
                self.hands.forget(*run_id);
            }
            self.dispatcher.take_in(event);
        }
    }
}

/// The system's random numbers.
pub(crate) fn entropy() -> Entropy {
    Box::new(|| {
        // The version and variant bits of a UUID aren't random; they are left out.
        let id = Uuid::new_v4().into_bytes();
        [
            id[0], id[1], id[2], id[3], id[4], id[5], id[7], id[9], id[10], id[11],
        ]
    })
}
