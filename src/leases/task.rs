//! The task of a client: it waits, asks the store, and lets those know who hold and wait.
//!
//! ```text
//!   commands ─┐                 ┌─▶ store calls (`calls`), one of each kind at a time
//!   answers ──┤   ┌───────┐     │
//!   news ─────┼──▶│ Holds │────▶┤
//!   timer ────┘   └───────┘     └─▶ word to whoever waits or holds
//! ```
//!
//! Must never: decide, or wait for a call.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use uuid::Uuid;

use super::calls::{Calls, Heard};
use super::error::AcquireError;
use super::holds::{Effect, Granted, Holds, Patience, Trust, Word};
use crate::clock::{Clock, Timer};
use crate::scheduler::lease::{Hold, NameState};
use crate::scheduler::time::BootTime;
use crate::store::{LeaseStore, StoreError, StoreEvent};

/// Commands that are taken in before the store is asked: they go together.
const COMMANDS_AT_ONCE: usize = 1024;

/// How a lease stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    pub(super) trust: Trust,
    pub(super) lost: bool,
}

/// What was granted.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) granted: Granted,
    pub(super) standing: watch::Receiver<Standing>,
}

/// What clients ask of their task.
#[derive(Debug)]
pub(super) enum Command {
    Acquire {
        hold: Hold,
        patience: Patience,
        since: BootTime,
        answer: oneshot::Sender<Result<Grant, AcquireError>>,
    },
    Release {
        id: Uuid,
        done: Option<oneshot::Sender<()>>,
    },
    /// Tell how all names stand.
    Names {
        answer: oneshot::Sender<Result<Vec<NameState>, StoreError>>,
    },
    /// Give everything back and end.
    Close { done: oneshot::Sender<()> },
}

/// What a task waits for.
struct Ears {
    commands: mpsc::UnboundedReceiver<Command>,
    answers: mpsc::UnboundedReceiver<Heard>,
    surveys: mpsc::UnboundedReceiver<Option<Vec<NameState>>>,
    events: broadcast::Receiver<StoreEvent>,
    timer: Timer,
}

/// One client at work.
pub(super) struct Task {
    calls: Calls,
    clock: Arc<dyn Clock>,
    holds: Holds,
    wanted: HashMap<Uuid, oneshot::Sender<Result<Grant, AcquireError>>>,
    held: HashMap<Uuid, watch::Sender<Standing>>,
    leaving: HashMap<Uuid, oneshot::Sender<()>>,
    /// Those who wait for its end: none, where it goes on.
    closing: Vec<oneshot::Sender<()>>,
}

impl Task {
    /// Begins to work, until it is closed or all who could ask are gone.
    pub(super) fn spawn(
        store: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        holds: Holds,
        timer: Timer,
    ) -> mpsc::UnboundedSender<Command> {
        let (sender, commands) = mpsc::unbounded_channel();
        let (heard, answers) = mpsc::unbounded_channel();
        let (surveyed, surveys) = mpsc::unbounded_channel();
        // Before anything is asked, so that no turn is missed.
        let events = store.events();
        let task = Self {
            calls: Calls::new(store, Arc::clone(&clock), heard, surveyed),
            clock,
            holds,
            wanted: HashMap::new(),
            held: HashMap::new(),
            leaving: HashMap::new(),
            closing: Vec::new(),
        };
        let ears = Ears {
            commands,
            answers,
            surveys,
            events,
            timer,
        };
        tokio::spawn(task.run(ears));
        sender
    }

    async fn run(
        mut self,
        Ears {
            mut commands,
            mut answers,
            mut surveys,
            mut events,
            mut timer,
        }: Ears,
    ) {
        let mut open = true;
        loop {
            self.holds.advance(self.clock.boot());
            self.perform();
            if self.holds.is_empty() && (!open || self.is_closing()) {
                break;
            }
            let wakeup = self.holds.next_wakeup();
            tokio::select! {
                command = commands.recv(), if open => match command {
                    Some(command) => {
                        let more = std::iter::from_fn(|| commands.try_recv().ok());
                        let all = std::iter::once(command).chain(more.take(COMMANDS_AT_ONCE));
                        all.for_each(|command| self.obey(command));
                    }
                    None => {
                        open = false;
                        self.leave_all();
                    }
                },
                Some(heard) = answers.recv() => {
                    let now = self.clock.boot();
                    self.holds.answered(heard.kind, &heard.requests, heard.result, heard.sent, now);
                }
                Some(names) = surveys.recv() => self.holds.surveyed(names, self.clock.boot()),
                event = events.recv() => self.take_in(event),
                () = timer.sleep_until(wakeup) => {}
            }
        }
        for done in self.closing {
            // Whoever closed it may not wait.
            let _ = done.send(());
        }
    }

    fn is_closing(&self) -> bool {
        !self.closing.is_empty()
    }

    fn obey(&mut self, command: Command) {
        let now = self.clock.boot();
        match command {
            Command::Acquire { answer, .. } if self.is_closing() => {
                // Whoever asked may have gone.
                let _ = answer.send(Err(AcquireError::Closed));
            }
            Command::Acquire {
                hold,
                patience,
                since,
                answer,
            } => {
                self.wanted.insert(hold.id, answer);
                self.holds.acquire(hold, patience, since, now);
            }
            Command::Release { id, done } => {
                self.held.remove(&id);
                self.wanted.remove(&id);
                if let Some(done) = done {
                    self.leaving.insert(id, done);
                }
                self.holds.release(id, now);
            }
            Command::Names { answer } => self.calls.names(answer),
            Command::Close { done } => {
                self.closing.push(done);
                self.leave_all();
            }
        }
    }

    fn leave_all(&mut self) {
        let now = self.clock.boot();
        for (_, answer) in self.wanted.drain() {
            // Whoever asked may have gone.
            let _ = answer.send(Err(AcquireError::Closed));
        }
        for (_, standing) in self.held.drain() {
            standing.send_modify(|standing| standing.lost = true);
        }
        for id in self.holds.ids() {
            self.holds.release(id, now);
        }
    }

    fn take_in(&mut self, event: Result<StoreEvent, RecvError>) {
        let now = self.clock.boot();
        match event {
            Ok(StoreEvent::Turn(id)) => self.holds.turn(id, now),
            Ok(StoreEvent::Opening) => self.holds.opening(now),
            Ok(StoreEvent::Reconnected) | Err(RecvError::Lagged(_)) => self.holds.disturbed(),
            Ok(StoreEvent::StopAsked | StoreEvent::PauseChanged) | Err(RecvError::Closed) => {}
        }
    }

    fn perform(&mut self) {
        while let Some(effect) = self.holds.poll_effect() {
            match effect {
                Effect::Call {
                    kind,
                    caller,
                    requests,
                    timeout,
                } => self.calls.ask(kind, caller, requests, timeout),
                Effect::Survey => self.calls.survey(),
                Effect::Tidy {
                    caller,
                    names,
                    dead,
                } => self.calls.tidy(caller, names, dead),
                Effect::Tell(id, word) => self.tell(id, word),
            }
        }
    }

    fn tell(&mut self, id: Uuid, word: Word) {
        match word {
            Word::Granted(granted) => self.grant(id, granted),
            Word::Trusted(trust) => {
                if let Some(standing) = self.held.get(&id) {
                    standing.send_modify(|standing| standing.trust = trust);
                }
            }
            Word::Lost => {
                if let Some(standing) = self.held.remove(&id) {
                    standing.send_modify(|standing| standing.lost = true);
                }
            }
            Word::Refused(why) => {
                if let Some(answer) = self.wanted.remove(&id) {
                    // Whoever asked may have gone.
                    let _ = answer.send(Err(why));
                }
            }
            Word::Released => {
                if let Some(done) = self.leaving.remove(&id) {
                    // Whoever gave it back may not wait.
                    let _ = done.send(());
                }
            }
        }
    }

    fn grant(&mut self, id: Uuid, granted: Granted) {
        let standing = Standing {
            trust: granted.trust,
            lost: false,
        };
        let (sender, standing) = watch::channel(standing);
        let answer = self.wanted.remove(&id);
        let heard = answer.map(|answer| answer.send(Ok(Grant { granted, standing })));
        match heard {
            Some(Ok(())) => {
                self.held.insert(id, sender);
            }
            // Whoever wanted it is gone.
            Some(Err(_)) | None => self.holds.release(id, self.clock.boot()),
        }
    }
}
