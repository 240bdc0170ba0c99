//! The thin loop around the scheduler: it waits, feeds events, performs effects.
//!
//! ```text
//!   timer, clock steps ─┐                        ┌─▶ store calls (a task each) ┐
//!   store's answers ────┤   ┌────────────┐       ├─▶ runner (a task an attempt)├ Hands
//!   store's news ───────┼──▶│ Dispatcher │──────▶┤                             ┘
//!   ends of attempts ───┤   │ Scheduler  │       └─▶ log, observers
//!   shutdown ───────────┘   └────────────┘
//! ```
//!
//! Must never: decide, wait for a call inside the loop, or look at a clock but to pass the time
//! on.

mod call;
mod dispatcher;
mod host;
mod observer;
mod report;
mod request;

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::clock::{BootTimer, Clock, ClockSteps};
use crate::runner::OutputMode;
use crate::scheduler::job::Job;
use crate::scheduler::{Entropy, Event, Settings};
use crate::store::Store;

pub(crate) use self::call::CALL_TIMEOUT;
pub use self::call::{Call, Patience};
pub use self::dispatcher::{Dispatcher, Hands, Place, Turn};
pub use self::observer::{Moment, Observer};
pub use self::request::Request;

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
}

impl Driver {
    /// A replica that will run `jobs` against `store`.
    pub fn new(
        settings: Settings,
        jobs: Vec<Job>,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
    ) -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let hands = HostHands::new(store, settings.replica.name.clone(), sender);
        let jobs = jobs.into_iter().map(Arc::new);
        Self {
            dispatcher: Dispatcher::new(settings, jobs, clock, entropy, Place::here()),
            hands,
            events,
        }
    }

    /// Lets jobs write to where this process writes, instead of keeping what they write.
    pub fn inherit_output(mut self) -> Self {
        self.hands.output = OutputMode::Inherit;
        self
    }

    /// Lets somebody look on.
    pub fn observed_by(mut self, observer: Box<dyn Observer>) -> Self {
        self.dispatcher.observe(observer);
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
    ///
    /// # Errors
    /// When the kernel refuses the timers.
    pub async fn run(mut self, mut requests: mpsc::Receiver<Request>) -> std::io::Result<Finished> {
        let mut timer = BootTimer::new()?;
        let mut steps = ClockSteps::of_host();
        let mut news = self.hands.news();
        loop {
            let wakeup = match self.dispatcher.turn(&mut self.hands) {
                Turn::Wait(until) => until,
                Turn::Over => {
                    self.hands.depart(&self.dispatcher.caller()).await;
                    return Ok(Finished::Drained);
                }
            };
            tokio::select! {
                Some(event) = self.events.recv() => self.take_in(event),
                () = timer.sleep_until(wakeup) => {}
                () = steps.changed() => self.dispatcher.take_in(Event::Disturbed),
                event = news.recv() => self.dispatcher.take_in_news(event),
                request = requests.recv() => {
                    let request = request.unwrap_or(Request::Abort);
                    if self.dispatcher.take_request(request, &mut self.hands) {
                        return Ok(Finished::Aborted);
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
