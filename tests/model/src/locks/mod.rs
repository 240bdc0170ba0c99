//! Locks as they are often built on Redis, each with a fault that somebody shipped: small models
//! of their own, which fall.
//!
//! ```text
//!   Outside ── gets the lock ──▶ Working ── is done, or stopped at its end ──▶ Leaving ──▶ Done
//!      └── in two commands: Half way ──┘                          └── Compared ──┘ in two commands
//! ```
//!
//! A client stops its work when its lock runs out, unless that is the fault in question. So each of
//! them falls by its own fault alone; [`Fault::None`] is the same lock without any, and holds.
//!
//! Must never: have a fault that its own name does not say.

mod words;

use stateright::{Model, Property};

pub use self::words::trace;

/// How many clients there are.
pub const CLIENTS: usize = 3;

/// For how long a lock lasts, in ticks.
const TTL: u8 = 2;

/// By how much a clock is wrong, where one is.
const SKEW: u8 = 1;

/// The name of the law that each lock is held to.
pub const LAW: &str = "the lock";

/// What is wrong with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing that its clients could tell.
    None,
    /// SETNX, and EXPIRE as a second command.
    ExpiresLater,
    /// Its value is the time at which it ends; who finds it over replaces it by GETSET.
    TimeForAName,
    /// The same, and a client whose clock is ahead.
    TimeForANameAndSkew,
    /// DEL, whoever has it.
    DeletesBlindly,
    /// GET, and DEL as a second command.
    ComparesFirst,
    /// A client works on though its lock ran out.
    OutlivesItsTerm,
    /// It is acknowledged before the server's replica has it.
    RepliesBeforeItCopies,
    /// It is for the job, not for one instant of it, and clocks differ.
    ForgetsTheRun,
}

/// A lock, its clients and its server.
#[derive(Clone, Copy, Debug)]
pub struct Lock {
    /// What is wrong with it.
    pub fault: Fault,
    /// The last tick.
    pub ticks: u8,
}

/// Where all of them are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// The server's time.
    pub now: u8,
    /// The lock at the server.
    pub key: Option<Key>,
    /// The lock at the server's replica.
    pub copy: Option<Key>,
    /// Whether the replica has become the server.
    pub promoted: bool,
    /// The clients.
    pub clients: [Client; CLIENTS],
    /// How often the job was started for its instant.
    pub starts: u8,
}

/// The lock as it is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Key {
    /// Who set it.
    pub owner: u8,
    /// When it ends. Zero: never.
    pub until: u8,
}

/// One client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    /// Where it is.
    pub at: Place,
    /// When the lock ends that it set, or that it found.
    pub until: u8,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    /// It wants the lock.
    #[default]
    Outside,
    /// It has set the lock, or has found one that is over, and is not done with it.
    HalfWay,
    /// It does what the lock is for.
    Working,
    /// It has stopped, and gives the lock back.
    Leaving,
    /// It has found that the lock is its own.
    Compared,
    /// It has had its turn.
    Done,
    /// It crashed.
    Dead,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A client sends its next command.
    Command(u8),
    /// A client has finished its work.
    Finish(u8),
    /// A client crashes.
    Crash(u8),
    /// The replica gets what the server has.
    Replicate,
    /// The server dies, and its replica takes its place.
    Promote,
}

impl Lock {
    /// Whether a state is as it is to be.
    pub fn holds(&self, state: &State) -> bool {
        let working = state.clients.iter().filter(|one| one.at == Place::Working);
        match self.fault {
            Fault::ExpiresLater => !state.key.is_some_and(|key| {
                let owner = state.clients[key.owner as usize];
                key.until == 0 && owner.at == Place::Dead
            }),
            Fault::TimeForAName => {
                let is_theirs = |client: &Client| {
                    state.key.is_some_and(|key| key.until == client.until)
                        || client.until <= state.now
                };
                let mut working = working;
                working.all(is_theirs)
            }
            Fault::ForgetsTheRun => state.starts <= 1,
            _ => working.count() <= 1,
        }
    }

    /// What it is held to, in words.
    pub fn law(&self) -> &'static str {
        match self.fault {
            Fault::ExpiresLater => "a dead client's lock runs out",
            Fault::TimeForAName => "who has the lock can give it back",
            Fault::ForgetsTheRun => "one instant is run once",
            _ => "one client at a time",
        }
    }

    fn by_time(&self) -> bool {
        matches!(self.fault, Fault::TimeForAName | Fault::TimeForANameAndSkew)
    }

    /// What a client takes for the time.
    fn time_of(&self, state: &State, client: usize) -> u8 {
        match (self.fault, client) {
            (Fault::TimeForANameAndSkew, 1) => state.now + SKEW,
            _ => state.now,
        }
    }

    /// The job is due at the first tick, by each client's clock.
    fn is_due(&self, state: &State, client: usize) -> bool {
        let slow = self.fault == Fault::ForgetsTheRun && client > 0;
        !slow || state.now >= SKEW
    }

    fn command(&self, state: &mut State, client: usize) {
        match state.clients[client].at {
            Place::Outside => self.acquire(state, client),
            Place::HalfWay => self.acquire_more(state, client),
            Place::Leaving => self.give_back(state, client),
            Place::Compared => {
                state.key = None;
                state.clients[client].at = Place::Done;
            }
            Place::Working | Place::Done | Place::Dead => {}
        }
    }

    fn acquire(&self, state: &mut State, client: usize) {
        let now = self.time_of(state, client);
        let until = match self.fault {
            Fault::ExpiresLater => 0,
            _ => now + TTL,
        };
        match state.key {
            None => {
                state.key = Some(Key {
                    owner: client as u8,
                    until,
                });
                match self.fault {
                    Fault::ExpiresLater => state.clients[client].at = Place::HalfWay,
                    _ => begin(state, client, until),
                }
            }
            // GET showed a time that is over.
            Some(key) if self.by_time() && key.until <= now => {
                state.clients[client] = Client {
                    at: Place::HalfWay,
                    until: key.until,
                };
            }
            Some(_) => {}
        }
    }

    fn acquire_more(&self, state: &mut State, client: usize) {
        let until = self.time_of(state, client) + TTL;
        if !self.by_time() {
            // EXPIRE.
            if let Some(key) = &mut state.key {
                key.until = until;
            }
            return begin(state, client, until);
        }
        // GETSET: who is told what it had found has won.
        let owner = client as u8;
        let before = state.key.replace(Key { owner, until });
        match before.is_none_or(|key| key.until == state.clients[client].until) {
            true => begin(state, client, until),
            false => state.clients[client] = Client::default(),
        }
    }

    fn give_back(&self, state: &mut State, client: usize) {
        let mine = state.key.is_some_and(|key| key.owner as usize == client);
        let at = &mut state.clients[client].at;
        match self.fault {
            Fault::ComparesFirst if mine => return *at = Place::Compared,
            Fault::DeletesBlindly => state.key = None,
            _ if mine => state.key = None,
            _ => {}
        }
        state.clients[client].at = Place::Done;
    }

    fn tick(&self, state: &mut State) {
        state.now += 1;
        let now = state.now;
        let over = |key: &mut Key| key.until > 0 && key.until <= now;
        // A time that somebody wrote into a value is no term for the server.
        if !self.by_time() {
            state.key.take_if(over);
            state.copy.take_if(over);
        }
        if self.fault == Fault::OutlivesItsTerm {
            return;
        }
        for client in &mut state.clients {
            if client.at == Place::Working && client.until <= now {
                client.at = Place::Leaving;
            }
        }
    }
}

fn begin(state: &mut State, client: usize, until: u8) {
    state.clients[client] = Client {
        at: Place::Working,
        until,
    };
    state.starts += 1;
}

impl Model for Lock {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::default()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if !self.holds(state) {
            return;
        }
        let dead = |client: &Client| client.at == Place::Dead;
        let may_crash = !state.clients.iter().any(dead);
        for (at, client) in state.clients.iter().enumerate() {
            let name = at as u8;
            match client.at {
                Place::Done | Place::Dead => continue,
                Place::Working => actions.push(Action::Finish(name)),
                Place::Outside if !self.is_due(state, at) => continue,
                _ => actions.push(Action::Command(name)),
            }
            if may_crash && client.at != Place::Outside {
                actions.push(Action::Crash(name));
            }
        }
        if self.fault == Fault::RepliesBeforeItCopies && !state.promoted {
            actions.extend([Action::Replicate, Action::Promote]);
        }
        if state.now < self.ticks {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        match action {
            Action::Tick => self.tick(&mut next),
            Action::Command(client) => self.command(&mut next, client as usize),
            Action::Finish(client) => next.clients[client as usize].at = Place::Leaving,
            Action::Crash(client) => next.clients[client as usize].at = Place::Dead,
            Action::Replicate => next.copy = next.key,
            Action::Promote => {
                next.key = next.copy.take();
                next.promoted = true;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(LAW, |model: &Self, state| model.holds(state)),
            Property::sometimes(SIGHT, |_, state: &State| {
                state.clients.iter().any(|client| client.at == Place::Done)
            }),
        ]
    }
}

/// The name of what has to come about: a client has had the lock, and has given it back.
pub const SIGHT: &str = "a client is done";
