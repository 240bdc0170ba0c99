//! The thin loop around the scheduler: it waits, feeds events, performs effects.
//!
//! ```text
//!   timer, clock steps ─┐                       ┌─▶ store calls (a task each)
//!   store's answers ────┤   ┌───────────┐       ├─▶ runner (a task an attempt)
//!   store's news ───────┼──▶│ Scheduler │──────▶┤
//!   ends of attempts ───┤   └───────────┘       └─▶ log
//!   shutdown ───────────┘
//! ```
//!
//! Must never: decide, wait for a call inside the loop, or look at a clock but to pass the time
//! on.

mod calls;
mod observer;
mod report;
mod request;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc};

use crate::clock::{BootTimer, Clock, ClockSteps};
use crate::runner::{OutputMode, Runner, RunningAttempt};
use crate::scheduler::job::Job;
use crate::scheduler::lease::RunId;
use crate::scheduler::{
    Attempt, Effect, Ending, Entropy, Event, Guard, Notice, Scheduler, Settings, StopReason,
};
use crate::store::{Store, StoreEvent};

#[cfg(feature = "daemon")]
pub(crate) use self::calls::CALL_TIMEOUT;
pub use self::calls::call_timeout;
pub use self::observer::{Moment, Observer};
pub use self::request::Request;

use self::calls::Calls;

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
    scheduler: Scheduler,
    clock: Arc<dyn Clock>,
    calls: Calls,
    runner: Runner,
    replica: String,
    attempts: HashMap<RunId, RunningAttempt>,
    events: mpsc::UnboundedReceiver<Event>,
    sender: mpsc::UnboundedSender<Event>,
    output: OutputMode,
    observers: Vec<Box<dyn Observer>>,
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
        let replica = settings.replica.name.clone();
        let runner = Runner::new(replica.clone());
        let jobs = jobs.into_iter().map(Arc::new);
        let scheduler = Scheduler::new(settings, jobs, entropy, clock.boot());
        let calls = Calls::new(store, Arc::clone(&clock), sender.clone());
        Self {
            scheduler,
            clock,
            calls,
            runner,
            replica,
            attempts: HashMap::new(),
            events,
            sender,
            output: OutputMode::Capture,
            observers: Vec::new(),
        }
    }

    /// Lets jobs write to where this process writes, instead of keeping what they write.
    pub fn inherit_output(mut self) -> Self {
        self.output = OutputMode::Inherit;
        self
    }

    /// Lets somebody look on.
    pub fn observed_by(mut self, observer: Box<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// What was asked before there was a driver comes before all that is asked of it.
    pub fn told_before(mut self, requests: Vec<Request>) -> Self {
        for request in requests {
            self.asked(request);
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
        let mut news = self.calls.news();
        loop {
            self.scheduler.advance(self.clock.boot());
            let is_over = self.perform_all();
            self.observed(|observer, moment| observer.settled(moment));
            if is_over {
                self.calls.depart(&self.scheduler).await;
                return Ok(Finished::Drained);
            }
            let wakeup = self.scheduler.next_wakeup();
            tokio::select! {
                Some(event) = self.events.recv() => self.take_in(event),
                () = timer.sleep_until(wakeup) => {}
                () = steps.changed() => self.tell(Event::Disturbed),
                event = news.recv() => self.heard(event),
                request = requests.recv() => {
                    if self.asked(request.unwrap_or(Request::Abort)) {
                        return Ok(Finished::Aborted);
                    }
                }
            }
        }
    }

    /// Takes in an event and those that came at the same moment.
    fn take_in(&mut self, first: Event) {
        let mut next = Some(first);
        for _ in 0..EVENTS_AT_ONCE {
            let Some(event) = next else { return };
            self.tell(event);
            next = self.events.try_recv().ok();
        }
        next.into_iter().for_each(|event| self.tell(event));
    }

    /// Does what was asked from outside; true when that is to end at once.
    fn asked(&mut self, request: Request) -> bool {
        match request {
            Request::Drain => self.tell(Event::DrainRequested),
            Request::Abort => {
                self.attempts.values().for_each(RunningAttempt::kill_now);
                return true;
            }
            Request::Reload(reload) => {
                self.calls.table_refused(None);
                self.scheduler.reload(*reload);
            }
            Request::TableRefused { cause } => {
                self.calls.table_refused(Some(cause));
                self.scheduler.announce(self.clock.boot());
            }
            Request::Ping(answer) => {
                // Whoever asked may have given up waiting.
                let _ = answer.send(());
            }
        }
        false
    }

    fn observed(&mut self, tell: impl Fn(&mut dyn Observer, Moment<'_>)) {
        if self.observers.is_empty() {
            return;
        }
        let moment = Moment {
            boot: self.clock.boot(),
            scheduler: &self.scheduler,
        };
        for observer in &mut self.observers {
            tell(&mut **observer, moment);
        }
    }

    fn tell(&mut self, event: Event) {
        self.observed(|observer, moment| observer.event(&event, moment));
        if let Event::AttemptEnded { run_id, .. } = &event {
            self.attempts.remove(run_id);
        }
        self.scheduler.handle(event, self.clock.boot());
    }

    fn heard(&mut self, news: Result<StoreEvent, broadcast::error::RecvError>) {
        match news {
            Ok(StoreEvent::Opening) => self.tell(Event::Opening),
            Ok(StoreEvent::StopAsked) => self.tell(Event::StopAsked),
            Ok(StoreEvent::PauseChanged) => self.tell(Event::PauseChanged),
            // What was not heard may be anything.
            Ok(StoreEvent::Reconnected) | Err(broadcast::error::RecvError::Lagged(_)) => {
                self.tell(Event::Disturbed);
            }
            Err(broadcast::error::RecvError::Closed) => {}
        }
    }

    /// Performs what the scheduler wants; true when it wants to end.
    fn perform_all(&mut self) -> bool {
        while let Some(effect) = self.scheduler.poll_effect() {
            match effect {
                Effect::Finish => return true,
                Effect::Report(notice) => self.report(&notice),
                Effect::Start(attempt) => self.start(attempt),
                Effect::Stop {
                    run_id,
                    reason,
                    grace,
                } => self.stop(run_id, reason, grace),
                Effect::Guard { run_id, guard } => self.guard(run_id, guard),
                Effect::Observe(scope) => {
                    let (wall, boot) = (self.clock.wall(), self.clock.boot());
                    self.scheduler.compare_wall(wall, boot);
                    self.calls.make(Effect::Observe(scope), &self.scheduler);
                }
                call => self.calls.make(call, &self.scheduler),
            }
        }
        false
    }

    fn report(&mut self, notice: &Notice) {
        report::tell(notice, &self.replica);
        self.observed(|observer, moment| observer.notice(notice, moment));
    }

    fn start(&mut self, attempt: Attempt) {
        let (run_id, sender) = (attempt.run_id, self.sender.clone());
        let on_end = move |ending: Ending| {
            // The receiver lives as long as the loop; after it nobody wants to know.
            let _ = sender.send(Event::AttemptEnded { run_id, ending });
        };
        let running = self.runner.start(attempt, self.output, on_end);
        self.attempts.insert(run_id, running);
    }

    fn stop(&mut self, run_id: RunId, reason: StopReason, grace: Duration) {
        if let Some(attempt) = self.attempts.get(&run_id) {
            tracing::debug!(%run_id, reason = reason.as_str(), ?grace, "stopping");
            attempt.stop(grace);
        }
    }

    fn guard(&mut self, run_id: RunId, guard: Guard) {
        if let Some(attempt) = self.attempts.get(&run_id) {
            attempt.guard(guard);
        }
    }
}
