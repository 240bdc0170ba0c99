//! What a driver does without waiting: it takes in what happened, and hands out what follows.
//! The simulation has it do both in virtual time, with hands of its own.
//!
//! Must never: decide, wait, or look at a clock but to pass the time on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::call::{Call, timeout_of};
use super::{CALL_TIMEOUT, Moment, Observer, Request, report};
use crate::clock::Clock;
use crate::scheduler::job::Job;
use crate::scheduler::lease::{Caller, RunId};
use crate::scheduler::time::{BootTime, millis};
use crate::scheduler::{
    Attempt, Effect, Entropy, Event, Guard, Notice, Scheduler, Settings, StopReason,
};
use crate::store::{ReplicaInfo, StoreEvent};

/// What performs the effects of a [`Dispatcher`], without waiting for what comes of them: that
/// comes back to it as an event.
pub trait Hands {
    /// Send a call to the store.
    fn call(&mut self, call: Call);
    /// Start an attempt. Its end comes back as [`Event::AttemptEnded`], always.
    fn start(&mut self, attempt: Attempt);
    /// End an attempt, if it runs: TERM, and KILL after `grace` at the latest.
    fn stop(&mut self, run_id: RunId, reason: StopReason, grace: Duration);
    /// Let an attempt, if it runs, run for longer than its last guard said.
    fn guard(&mut self, run_id: RunId, guard: Guard);
    /// Kill all attempts that run, now.
    fn kill_all(&mut self);
}

/// Where a replica is, as others are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The name of its host.
    pub host: String,
    /// Its process there.
    pub pid: u32,
}

impl Place {
    /// Of this very process.
    pub fn here() -> Self {
        let host = rustix::system::uname();
        Self {
            host: host.nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
        }
    }
}

/// What follows from a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Wait until then, or for ever, unless something happens before.
    Wait(Option<BootTime>),
    /// All is done: take this replica off the list and end.
    Over,
}

/// One replica between what happens and what follows from it.
pub struct Dispatcher {
    scheduler: Scheduler,
    clock: Arc<dyn Clock>,
    replica: String,
    place: Place,
    /// Why the newest table could not be read, where it could not.
    table_refused: Option<String>,
    observers: Vec<Box<dyn Observer>>,
}

impl Dispatcher {
    /// One that is to run `jobs`.
    pub fn new(
        settings: Settings,
        jobs: impl IntoIterator<Item = Arc<Job>>,
        clock: Arc<dyn Clock>,
        entropy: Entropy,
        place: Place,
    ) -> Self {
        let replica = settings.replica.name.clone();
        Self {
            scheduler: Scheduler::new(settings, jobs, entropy, clock.boot()),
            clock,
            replica,
            place,
            table_refused: None,
            observers: Vec::new(),
        }
    }

    /// Lets somebody look on.
    pub fn observe(&mut self, observer: Box<dyn Observer>) {
        self.observers.push(observer);
    }

    /// What decides, as it stands.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Takes in what happened. What follows from it, the next [`Self::turn`] hands out.
    pub fn take_in(&mut self, event: Event) {
        self.observed(|observer, moment| observer.event(&event, moment));
        self.scheduler.handle(event, self.clock.boot());
    }

    /// Takes in news of the store.
    pub fn take_in_news(&mut self, news: Result<StoreEvent, RecvError>) {
        match news {
            Ok(StoreEvent::Opening) => self.take_in(Event::Opening),
            Ok(StoreEvent::StopAsked) => self.take_in(Event::StopAsked),
            Ok(StoreEvent::PauseChanged) => self.take_in(Event::PauseChanged),
            // What was not heard may be anything.
            Ok(StoreEvent::Reconnected) | Err(RecvError::Lagged(_)) => {
                self.take_in(Event::Disturbed);
            }
            // Of leases, which this ledger has none of.
            Ok(StoreEvent::Turn(_)) | Err(RecvError::Closed) => {}
        }
    }

    /// Does what was asked from outside; true when that is to end at once.
    pub fn take_request(&mut self, request: Request, hands: &mut dyn Hands) -> bool {
        match request {
            Request::Drain => self.take_in(Event::DrainRequested),
            Request::Abort => {
                hands.kill_all();
                return true;
            }
            Request::Reload(reload) => {
                self.table_refused = None;
                self.scheduler.reload(*reload);
            }
            Request::TableRefused { cause } => {
                self.table_refused = Some(cause);
                self.scheduler.announce(self.clock.boot());
            }
            Request::Poke { jobs, wall } => self.scheduler.poke(jobs, wall),
            Request::Ping(answer) => {
                // Whoever asked may have given up waiting.
                let _ = answer.send(());
            }
        }
        false
    }

    /// Hands out what follows from all that was taken in, and from the time.
    pub fn turn(&mut self, hands: &mut dyn Hands) -> Turn {
        self.scheduler.advance(self.clock.boot());
        let is_over = self.hand_out(hands);
        self.observed(|observer, moment| observer.settled(moment));
        match is_over {
            true => Turn::Over,
            false => Turn::Wait(self.scheduler.next_wakeup()),
        }
    }

    /// As whom a replica takes itself off the list.
    pub fn caller(&self) -> Caller {
        self.scheduler.caller(self.clock.boot(), CALL_TIMEOUT)
    }

    /// True when the scheduler wants to end.
    fn hand_out(&mut self, hands: &mut dyn Hands) -> bool {
        while let Some(effect) = self.scheduler.poll_effect() {
            match effect {
                Effect::Finish => return true,
                Effect::Report(notice) => self.report(&notice),
                Effect::Start(attempt) => hands.start(attempt),
                Effect::Stop {
                    run_id,
                    reason,
                    grace,
                } => hands.stop(run_id, reason, grace),
                Effect::Guard { run_id, guard } => hands.guard(run_id, guard),
                Effect::Observe(scope) => {
                    let (wall, boot) = (self.clock.wall(), self.clock.boot());
                    self.scheduler.compare_wall(wall, boot);
                    let info = self.info();
                    hands.call(self.call_of(Effect::Observe(scope), info));
                }
                call => hands.call(self.call_of(call, ReplicaInfo::default())),
            }
        }
        false
    }

    fn call_of(&self, effect: Effect, info: ReplicaInfo) -> Call {
        let (sent, timeout) = (self.clock.boot(), timeout_of(&effect));
        Call {
            caller: Arc::new(self.scheduler.caller(sent, timeout)),
            effect: Arc::new(effect),
            info: Arc::new(info),
            sent,
            timeout,
        }
    }

    fn report(&mut self, notice: &Notice) {
        report::tell(notice, &self.replica);
        self.observed(|observer, moment| observer.notice(notice, moment));
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

    fn info(&self) -> ReplicaInfo {
        let scheduler = &self.scheduler;
        let wall = self.clock.wall().as_millis();
        let store = scheduler.store_time(self.clock.boot());
        ReplicaInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.place.host.clone(),
            pid: self.place.pid,
            skew_ms: store.map_or(0, |store| wall - store.as_millis()),
            round_trip_ms: millis(scheduler.round_trip()).unsigned_abs(),
            running: u32::try_from(scheduler.running()).unwrap_or(u32::MAX),
            jobs: u32::try_from(scheduler.jobs()).unwrap_or(u32::MAX),
            draining: scheduler.is_draining(),
            tags: scheduler.tags().clone(),
            max_running: scheduler.max_running(),
            declines: scheduler.declines(),
            digest: scheduler.digest().to_owned(),
            revision: scheduler.revision(),
            beat: scheduler.beat(),
            table_refused: self.table_refused.clone(),
            alive_ms: millis(scheduler.alive_for()).unsigned_abs(),
        }
    }
}
