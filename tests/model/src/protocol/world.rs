//! What an action does to a state.
//!
//! Must never: decide whether an action is possible; whoever offers it has.

use super::Action;
use super::laws::Breach;
use super::setup::{Acks, JUMP, Jump, Setup, TTL, Wipe};
use super::state::{
    Answer, Call, Current, Doing, Former, Ledger, Life, Replica, Reply, Request, Standing, State,
    Verb,
};
use super::store::{self, Hearing, Step};

/// Whether it makes a difference when an answer is heard. All others are heard at once: to hear them
/// later allows less, and one that is lost is as a request that was not sent yet, or that was late.
fn may_be_late(reply: &Reply) -> bool {
    matches!(reply.answer, Answer::Granted { .. } | Answer::Refused) && reply.verb != Verb::Release
}

/// A state that is being changed.
pub(super) struct World<'w> {
    pub(super) setup: &'w Setup,
    pub(super) state: &'w mut State,
}

impl World<'_> {
    /// Takes an action.
    pub(super) fn take(&mut self, action: Action) {
        match action {
            Action::Tick => self.tick(),
            Action::Claim(at, occurrence) => self.begin_claim(at, occurrence),
            Action::Reclaim(at) => self.reclaim(at),
            Action::TakeOver(at) => self.take_over(at),
            Action::Resend(at) => self.with(at, |replica, now| replica.ask_claim(now)),
            Action::Renew(at) => self.with(at, |replica, now| replica.ask(Verb::Renew, now)),
            Action::Release(at) => self.with(at, |replica, now| replica.ask(Verb::Release, now)),
            Action::End(at) => self.with(at, |replica, _| replica.end(Default::default())),
            Action::Look(at) => drop(self.look(at)),
            Action::Deliver(at) => self.deliver(at),
            Action::Hear(at) => self.hear(at),
            Action::GiveUp(at) => self.give_up(at),
            Action::Copy(at) => self.copy(at),
            Action::DeliverStray(at) => self.deliver_stray(at),
            Action::Crash(at) => self.crash(at),
            Action::Freeze(at) => {
                self.state.budget.freezes -= 1;
                self.with(at, |replica, _| replica.life = Life::Frozen);
            }
            Action::Thaw(at) => self.with(at, |replica, _| replica.life = Life::Alive),
            Action::Save => self.state.copy = self.state.ledger,
            Action::Wipe => self.wipe(),
            Action::Leave(at) => self.with(at, |replica, _| replica.behind = false),
            Action::Jump => self.jump(),
            Action::Pause => self.pause(),
            Action::Unpause => self.unpause(),
        }
    }

    fn with(&mut self, at: u8, change: impl FnOnce(&mut Replica, u8)) {
        change(&mut self.state.replicas[at as usize], self.state.now);
    }

    fn tick(&mut self) {
        self.state.now += 1;
        let now = self.state.now;
        let left = self.state.former.is_some_and(|former| now >= former.until);
        if left {
            self.state.former = None;
        }
        for replica in &mut self.state.replicas {
            replica.behind &= !left;
            if replica.is_waiting_too_long(now) {
                self.state.budget.losses -= 1;
                replica.healthy = 0;
                replica.hang_up();
            }
            if replica.is_overdue(self.setup, now) {
                replica.kill(self.setup);
            }
        }
    }

    fn begin_claim(&mut self, at: u8, occurrence: u8) {
        self.with(at, |replica, now| {
            replica.begin_claim(occurrence, None, now);
        });
    }

    /// A look shows that it is to be tried again, and it is claimed at once.
    fn reclaim(&mut self, at: u8) {
        self.look(at);
        let replica = &self.state.replicas[at as usize];
        if let Some(current) = super::ledger_of(self.state, replica).current {
            self.begin_claim(at, current.occurrence);
        }
    }

    /// A look shows that a lease is as it was, and that its time is up.
    fn take_over(&mut self, at: u8) {
        let store_now = self.look(at);
        let setup = self.setup;
        self.with(at, |replica, now| {
            if let Some(sighting) = replica.takeover(setup, now, store_now) {
                replica.begin_claim(sighting.occurrence, Some(sighting), now);
            }
        });
    }

    /// A look at who has a lease, there and back in one step: one that takes longer shows no more.
    /// Answers with the store's time.
    fn look(&mut self, at: u8) -> u8 {
        let (store_now, _) = self.call(at, None);
        let setup = self.setup;
        let ledger = *super::ledger_of(self.state, &self.state.replicas[at as usize]);
        let grace = ledger.grace_until.saturating_sub(store_now);
        let running = |current: &Current| current.standing == Standing::Running;
        self.with(at, |replica, now| {
            replica.heard(setup, now, store_now, now);
            replica.looked(ledger.born, grace, now);
            if let Some(current) = ledger.current.filter(running) {
                replica.see(store::sighting(&current), now);
            }
        });
        store_now
    }

    /// The store hears a request of a replica, or shows itself.
    pub(super) fn call(&mut self, at: u8, request: Option<Request>) -> (u8, Answer) {
        let state = &mut *self.state;
        let replica = &state.replicas[at as usize];
        let hearing = Hearing {
            boot: state.now,
            clock: state.now + state.offset,
            caller: at,
            held_back: replica.held_back.saturating_sub(state.now),
            former: replica.behind,
        };
        let looking = Request {
            floor: replica.floor,
            ..Request::default()
        };
        let ledger = match state.former.as_mut().filter(|_| replica.behind) {
            Some(former) => &mut former.ledger,
            None => &mut state.ledger,
        };
        let heard = request.unwrap_or(looking);
        let mut step = Step::begin(self.setup, ledger, &mut state.memory, &heard, hearing);
        let now = step.now();
        match request {
            Some(request) => (now, step.answer(&request)),
            None => (now, Answer::Finished),
        }
    }

    fn deliver(&mut self, at: u8) {
        let Call::Asked(request) = self.state.replicas[at as usize].call else {
            return;
        };
        if self.is_refused(at) {
            return self.with(at, |replica, _| replica.call = Call::None);
        }
        let (store_now, answer) = self.call(at, Some(request));
        let reply = Reply {
            verb: request.verb,
            sent: request.sent,
            store_now,
            answer,
        };
        self.with(at, |replica, _| replica.call = Call::Answered(reply));
        if !may_be_late(&reply) {
            self.hear(at);
        }
    }

    /// Whether a replica asks a master that nobody follows, and that does nothing therefore.
    fn is_refused(&self, at: u8) -> bool {
        let wants = match self.setup.wipe {
            Wipe::Election { acks, .. } => acks == Acks::Wanted,
            Wipe::Empty | Wipe::Older => false,
        };
        wants && self.state.replicas[at as usize].behind
    }

    fn hear(&mut self, at: u8) {
        let Call::Answered(reply) = self.state.replicas[at as usize].call else {
            return;
        };
        let setup = self.setup;
        let mut started = false;
        self.with(at, |replica, now| started = replica.hear(setup, reply, now));
        let replica = &self.state.replicas[at as usize];
        if started {
            let starts = &mut self.state.memory.starts[replica.occurrence as usize];
            *starts = (*starts + 1).min(2);
        }
        let gave_up = replica.doing == Doing::Idle && reply.verb != Verb::Release;
        let run = replica.run;
        let current = self.state.ledger.current;
        let lost = current.is_some_and(|current| {
            current.standing == Standing::Running && current.holder == at && current.run == run
        });
        if gave_up && lost {
            Breach::GrantLost.note(&mut self.state.memory);
        }
    }

    /// A call fails. Its request is gone, or comes later; or the answer is gone.
    fn give_up(&mut self, at: u8) {
        self.state.budget.losses -= 1;
        self.with(at, |replica, _| {
            replica.healthy = 0;
            match replica.doing {
                // What may come later still is not given up before its own deadline has passed.
                Doing::Claiming => replica.call = Call::None,
                _ => replica.hang_up(),
            }
        });
    }

    fn copy(&mut self, at: u8) {
        self.state.budget.copies -= 1;
        self.with(at, |replica, _| {
            if let Call::Asked(request) = replica.call {
                replica.stray = Some(request);
            }
        });
    }

    fn deliver_stray(&mut self, at: u8) {
        let Some(request) = self.state.replicas[at as usize].stray.take() else {
            return;
        };
        if self.is_refused(at) {
            return;
        }
        let (_, answer) = self.call(at, Some(request));
        let replica = &self.state.replicas[at as usize];
        let waits = replica.doing != Doing::Idle && replica.run == request.run;
        let granted = matches!(answer, Answer::Granted { .. });
        if granted && replica.life == Life::Alive && !waits {
            Breach::GrantLost.note(&mut self.state.memory);
        }
    }

    fn crash(&mut self, at: u8) {
        self.state.budget.crashes -= 1;
        self.with(at, |replica, _| {
            replica.hang_up();
            replica.life = Life::Dead;
        });
    }

    fn wipe(&mut self) {
        let state = &mut *self.state;
        state.budget.wipes -= 1;
        state.memory.quiet_until = state.now + TTL;
        let before = std::mem::replace(&mut state.ledger, state.copy);
        state.ledger.noticed = false;
        match self.setup.wipe {
            Wipe::Empty => state.ledger = Ledger::default(),
            Wipe::Older => {}
            Wipe::Election { lives, .. } => {
                state.ledger.elected = true;
                state.former = Some(Former {
                    ledger: before,
                    until: state.now + lives,
                });
                for replica in &mut state.replicas {
                    replica.behind = replica.life != Life::Absent;
                }
            }
        }
    }

    fn jump(&mut self) {
        self.state.budget.jumps -= 1;
        match self.setup.jump {
            Jump::Never => {}
            Jump::Forward => self.state.offset += JUMP,
            Jump::Back | Jump::FarBack => self.state.offset -= JUMP,
        }
    }

    fn pause(&mut self) {
        self.state.budget.pauses -= 1;
        let clock = self.state.now + self.state.offset;
        self.state.ledger.paused_since = clock;
    }

    /// What fell due in the pause is skipped, at once where nothing from before is left.
    fn unpause(&mut self) {
        let clock = self.state.now + self.state.offset;
        let ledger = &mut self.state.ledger;
        let since = std::mem::take(&mut ledger.paused_since);
        for occurrence in ledger.settled..self.setup.occurrences as u8 {
            let due = store::due(self.setup, occurrence);
            if since < due && due <= clock {
                ledger.suspended |= 1 << occurrence;
            }
        }
        while ledger.suspended & (1 << ledger.settled) > 0 {
            ledger.fated |= 1 << ledger.settled;
            ledger.settled += 1;
        }
    }
}
