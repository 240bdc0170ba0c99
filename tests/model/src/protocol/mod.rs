//! The lease protocol as a model: what replicas and the store do, and what may happen to them.
//!
//! ```text
//!   replica ── request ──▶ store ── answer ──▶ replica
//!     │  may be lost, come late, come twice      │ crash, freeze, be killed by its guardian
//!     └── a stray: an earlier one, still on its way
//!   store: loses data, falls back, is followed by another; its clock steps; people pause the job
//! ```
//!
//! One action is one step of one of them, and any may come next. `store` follows the store's rules,
//! `replica` the scheduler; `setup` says how much of everything there is.
//!
//! Must never: let something happen that the guarantees rule out, but where a guard is missing.

mod canonical;
pub mod laws;
mod replica;
pub mod setup;
pub mod state;
mod store;
mod words;
mod world;

use stateright::{Model, Property};

use self::laws::{Law, Sight};
use self::setup::{Setup, Wipe};
use self::state::{AHEAD, Answer, Call, Doing, Life, Replica, Request, START, Standing, State};

/// A scenario as the checker wants it.
#[derive(Clone, Debug)]
pub struct Protocol {
    /// What it is made of.
    pub setup: Setup,
    /// What has to hold in every state.
    pub laws: Vec<Law>,
    /// What has to come about in some.
    pub sights: Vec<Sight>,
    watched: u16,
}

/// What may happen next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time goes on.
    Tick,
    /// A replica claims an occurrence that is due.
    Claim(u8, u8),
    /// A replica claims what was handed over.
    Reclaim(u8),
    /// A replica takes a lease over that it has watched.
    TakeOver(u8),
    /// A replica sends its claim again.
    Resend(u8),
    /// A replica renews its lease.
    Renew(u8),
    /// A job ends by itself.
    End(u8),
    /// A replica gives its lease back.
    Release(u8),
    /// A replica looks who has a lease.
    Look(u8),
    /// The store hears a request and answers.
    Deliver(u8),
    /// A replica hears the answer.
    Hear(u8),
    /// A replica has waited for long enough; its request, or the answer, is lost or late.
    GiveUp(u8),
    /// A request is on its way a second time.
    Copy(u8),
    /// The store hears what it was not to hear any more.
    DeliverStray(u8),
    /// A replica crashes.
    Crash(u8),
    /// A host stands still.
    Freeze(u8),
    /// It goes on.
    Thaw(u8),
    /// What was written reaches the disk, or the server that follows.
    Save,
    /// The store loses data.
    Wipe,
    /// A replica hears of the elected master.
    Leave(u8),
    /// The store's clock steps.
    Jump,
    /// Somebody pauses the job.
    Pause,
    /// Somebody resumes it.
    Unpause,
}

impl Protocol {
    /// A scenario with all that is promised of it.
    pub fn new(setup: Setup, sights: Vec<Sight>) -> Self {
        Self::of_laws(setup, laws::of(&setup), sights)
    }

    /// A scenario that is held to some laws.
    pub fn of_laws(setup: Setup, laws: Vec<Law>, sights: Vec<Sight>) -> Self {
        assert!(sights.len() <= SIGHTS.len(), "one property for each sight");
        let watched = laws::watched(&laws);
        Self {
            setup,
            laws,
            sights,
            watched,
        }
    }

    /// The law that a state breaks, if it breaks one.
    pub fn broken(&self, state: &State) -> Option<Law> {
        let mut laws = self.laws.iter().copied();
        laws.find(|law| !law.holds(&self.setup, state))
    }

    /// What the store answers in a step, if it is asked something in it.
    pub fn answer_to(&self, state: &State, action: Action) -> Option<Answer> {
        let (at, request) = asked(state, action)?;
        let mut state = *state;
        let mut world = world::World {
            setup: &self.setup,
            state: &mut state,
        };
        Some(world.call(at, Some(request)).1)
    }

    fn of_replica(&self, state: &State, at: u8, actions: &mut Vec<Action>) {
        let replica = &state.replicas[at as usize];
        if replica.stray.is_some() {
            actions.push(Action::DeliverStray(at));
        }
        match replica.life {
            Life::Absent | Life::Dead => return,
            Life::Frozen => return actions.push(Action::Thaw(at)),
            Life::Alive => {}
        }
        self.of_call(state, at, actions);
        self.of_work(state, at, actions);
        if replica.behind {
            actions.push(Action::Leave(at));
        }
        if state.budget.crashes > 0 {
            actions.push(Action::Crash(at));
        }
        if state.budget.freezes > 0 && replica.doing == Doing::Running {
            actions.push(Action::Freeze(at));
        }
    }

    fn of_call(&self, state: &State, at: u8, actions: &mut Vec<Action>) {
        let replica = &state.replicas[at as usize];
        match replica.call {
            Call::None => return,
            Call::Asked(_) => actions.push(Action::Deliver(at)),
            Call::Answered(_) => actions.push(Action::Hear(at)),
        }
        if state.budget.losses > 0 {
            actions.push(Action::GiveUp(at));
        }
        let asked = matches!(replica.call, Call::Asked(_));
        if state.budget.copies > 0 && asked && replica.stray.is_none() {
            actions.push(Action::Copy(at));
        }
    }

    fn of_work(&self, state: &State, at: u8, actions: &mut Vec<Action>) {
        let (setup, now) = (&self.setup, state.now);
        let replica = &state.replicas[at as usize];
        for occurrence in 0..setup.occurrences as u8 {
            let due = store::due(setup, occurrence);
            if replica.may_claim(setup, now, occurrence, due) {
                actions.push(Action::Claim(at, occurrence));
            }
        }
        if replica.jumped {
            actions.push(Action::Look(at));
        }
        if replica.is_free(setup) {
            let ledger = ledger_of(state, replica);
            let store_now = store::time(setup, ledger, now + state.offset);
            if replica.takeover(setup, now, store_now).is_some() {
                actions.push(Action::TakeOver(at));
            }
            self.of_look(state, at, actions);
        }
        match replica.doing {
            Doing::Claiming if replica.call == Call::None && !replica.jumped => {
                actions.push(Action::Resend(at));
            }
            Doing::Running if replica.call == Call::None => actions.push(Action::End(at)),
            Doing::Ending if replica.call == Call::None => actions.push(Action::Release(at)),
            _ => {}
        }
        if replica.may_renew(setup, now) {
            actions.push(Action::Renew(at));
        }
    }

    /// What a look would show it that it doesn't know yet.
    fn of_look(&self, state: &State, at: u8, actions: &mut Vec<Action>) {
        let replica = &state.replicas[at as usize];
        let ledger = ledger_of(state, replica);
        if !ledger.noticed {
            actions.push(Action::Look(at));
        }
        let Some(current) = ledger.current else {
            return;
        };
        match current.standing {
            Standing::Again => actions.push(Action::Reclaim(at)),
            Standing::Running => {
                let sighting = store::sighting(&current);
                let is_news = replica.seen.is_none_or(|seen| seen.sighting != sighting);
                if is_news && ledger.noticed {
                    actions.push(Action::Look(at));
                }
            }
            Standing::Ended => {}
        }
    }

    fn of_store(&self, state: &State, actions: &mut Vec<Action>) {
        let budget = &state.budget;
        if budget.wipes > 0 && state.former.is_none() {
            actions.push(Action::Wipe);
            if self.setup.wipe != Wipe::Empty && state.copy != state.ledger {
                actions.push(Action::Save);
            }
        }
        if budget.jumps > 0 {
            actions.push(Action::Jump);
        }
        let paused = state.ledger.paused_since > 0;
        if paused {
            actions.push(Action::Unpause);
        } else if budget.pauses > 0 {
            actions.push(Action::Pause);
        }
    }
}

/// What the store is asked in a step, and by whom.
pub fn asked(state: &State, action: Action) -> Option<(u8, Request)> {
    match action {
        Action::Deliver(at) => match state.replicas[at as usize].call {
            Call::Asked(request) => Some((at, request)),
            Call::None | Call::Answered(_) => None,
        },
        Action::DeliverStray(at) => Some((at, state.replicas[at as usize].stray?)),
        _ => None,
    }
}

/// The ledger that a replica asks.
fn ledger_of<'s>(state: &'s State, replica: &Replica) -> &'s state::Ledger {
    let former = state.former.as_ref().filter(|_| replica.behind);
    former.map_or(&state.ledger, |former| &former.ledger)
}

/// How many calls take longer than they may if time goes on. Each is a loss, and those are counted.
fn overdue_calls(state: &State) -> u8 {
    let overdue = |replica: &&Replica| replica.is_waiting_too_long(state.now + 1);
    state.replicas.iter().filter(overdue).count() as u8
}

/// One property for each place in a scenario's sights; the checker takes no closures that know
/// which.
const SIGHTS: [(&str, Question); 3] = [
    ("the first sight", |model, state| sees(model, state, 0)),
    ("the second sight", |model, state| sees(model, state, 1)),
    ("the third sight", |model, state| sees(model, state, 2)),
];

/// A question to a state.
type Question = fn(&Protocol, &State) -> bool;

fn sees(model: &Protocol, state: &State, at: usize) -> bool {
    model.sights[at].is_in(&model.setup, state)
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            now: START,
            offset: AHEAD,
            budget: self.setup.budget,
            ..State::default()
        };
        state.ledger.noticed = true;
        state.ledger.known = true;
        state.copy = state.ledger;
        for replica in &mut state.replicas[..self.setup.replicas] {
            *replica = Replica::fresh(AHEAD);
        }
        canonical::form(&self.setup, self.watched, &mut state);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // What follows a breach says nothing more.
        if self.broken(state).is_some() {
            return;
        }
        for at in 0..self.setup.replicas as u8 {
            self.of_replica(state, at, actions);
        }
        self.of_store(state, actions);
        if state.now < START + self.setup.ticks && overdue_calls(state) <= state.budget.losses {
            actions.push(Action::Tick);
        }
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = *state;
        let mut world = world::World {
            setup: &self.setup,
            state: &mut next,
        };
        world.take(action);
        canonical::form(&self.setup, self.watched, &mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![Property::always(LAWS, |model: &Self, state| {
            model.broken(state).is_none()
        })];
        let sights = SIGHTS[..self.sights.len()].iter();
        properties.extend(sights.map(|(name, condition)| Property::sometimes(name, *condition)));
        properties
    }

    fn format_action(&self, action: &Action) -> String {
        format!("{action:?}")
    }
}

/// The name of the property that is all laws together.
pub const LAWS: &str = "the laws";

/// The names of the properties that are its sights, one by one.
pub fn sight_names(model: &Protocol) -> Vec<&'static str> {
    let names = SIGHTS.iter().map(|(name, _)| *name);
    names.take(model.sights.len()).collect()
}

pub use self::words::trace;
