//! One form for all states between which nothing that can still happen tells apart: what is not
//! read any more is blanked, and replicas that only differ by their names change places.
//!
//! Must never: blank what a rule may read yet; a state would be missed for that.

use super::setup::{Guard, Names, Setup, TTL, Tokens, Wipe};
use super::state::{
    Call, Doing, Ledger, Life, Memory, Outcome, REPLICAS, Replica, Reply, Request, Standing, State,
    StoreClock, Verb,
};
use super::store;

/// Brings a state into its form.
pub(super) fn form(setup: &Setup, watched: u16, state: &mut State) {
    let current = state.ledger.current.as_ref().map(store::sighting);
    let comes_back = setup.budget.wipes > 0
        || !setup.has(Guard::RisingDeadline)
        || !setup.has(Guard::CompareAndSteal);
    for replica in &mut state.replicas {
        form_replica(setup, replica, state.now);
        // A lease never again is what it was, so that nobody can take over what was watched of it.
        let stale = replica
            .seen
            .is_some_and(|seen| Some(seen.sighting) != current);
        if replica.run >= setup.runs || stale && !comes_back {
            replica.seen = None;
        }
        if replica.run >= setup.runs {
            replica.done = 0;
        }
    }
    let clock = state.now + state.offset;
    form_ledger(setup, &mut state.ledger, clock);
    if let Some(former) = &mut state.former {
        form_ledger(setup, &mut former.ledger, clock);
    }
    if state.budget.wipes == 0 || setup.wipe == Wipe::Empty {
        state.copy = Ledger::default();
    }
    form_memory(setup, watched, state);
    if setup.names == Names::Alike {
        order(setup, state);
    }
}

fn form_ledger(setup: &Setup, ledger: &mut Ledger, clock: u8) {
    if !setup.clock_steps() {
        ledger.clock = 0;
        if ledger.grace_until <= clock && !ledger.elected {
            ledger.grace_until = 0;
        }
    }
    if setup.tokens == Tokens::Counted && setup.budget.wipes == 0 {
        ledger.record_token = ledger.token;
    }
    if let Some(current) = &mut ledger.current {
        if current.standing != Standing::Running {
            current.deadline = 0;
        }
        if current.standing == Standing::Ended {
            (current.holder, current.run) = (0, 0);
        }
        current.since = match current.standing {
            Standing::Running | Standing::Ended => 0,
            // Where nothing is lost, it is after the birth whenever it was.
            Standing::Again if setup.budget.wipes == 0 => 1,
            Standing::Again => current.since,
        };
    }
}

fn form_replica(setup: &Setup, replica: &mut Replica, now: u8) {
    if matches!(replica.life, Life::Absent | Life::Dead) {
        *replica = Replica {
            life: replica.life,
            stray: replica.stray,
            behind: replica.behind,
            ..Replica::default()
        };
    }
    let claims = replica.doing == Doing::Claiming;
    let holds = matches!(replica.doing, Doing::Running | Doing::Ending);
    if !claims && !holds {
        replica.occurrence = 0;
        replica.call = Call::None;
    }
    if !claims {
        replica.watched = None;
    }
    if !holds {
        (replica.token, replica.attempt) = (0, 0);
    }
    if replica.doing != Doing::Running {
        (replica.kill_at, replica.deadline) = (0, 0);
    }
    if replica.doing != Doing::Ending {
        replica.outcome = Outcome::Succeeded;
    }
    form_knowledge(setup, replica, now);
    if let Call::Asked(request) = &mut replica.call {
        form_request(setup, request);
    }
    if let Call::Answered(reply) = &mut replica.call {
        form_reply(setup, reply);
    }
    if let Some(request) = &mut replica.stray {
        form_request(setup, request);
        request.sent = 0;
    }
}

fn form_knowledge(setup: &Setup, replica: &mut Replica, now: u8) {
    if let Some(seen) = &mut replica.seen
        && now >= seen.since + TTL
    {
        seen.since = 0;
    }
    if replica.life == Life::Alive && (replica.healthy > 0 && now >= replica.healthy) {
        replica.healthy = 1;
    }
    if !setup.has(Guard::HealthyConnection) {
        replica.healthy = 1;
    }
    if setup.tokens == Tokens::Counted {
        replica.floor = 0;
    }
    if !setup.clock_steps() || replica.held_back <= now {
        replica.held_back = 0;
    }
    if setup.budget.wipes == 0 || !setup.clock_steps() {
        (replica.jumped, replica.born, replica.held_back) = (false, 0, 0);
    }
    if matches!(replica.life, Life::Absent | Life::Dead) {
        replica.healthy = 0;
        replica.clock = StoreClock::default();
    }
}

fn form_request(setup: &Setup, request: &mut Request) {
    if !matches!(request.verb, Verb::Claim | Verb::TakeOver) {
        request.send_by = 0;
    }
    if request.verb == Verb::Renew {
        request.outcome = Outcome::Succeeded;
    }
    if setup.tokens == Tokens::Counted {
        request.floor = 0;
    }
}

fn form_reply(setup: &Setup, reply: &mut Reply) {
    if !setup.clock_steps() {
        reply.store_now = 0;
    }
    if reply.verb == Verb::Release {
        (reply.sent, reply.answer) = (0, super::state::Answer::Finished);
    }
}

fn form_memory(setup: &Setup, watched: u16, state: &mut State) {
    let Memory {
        starts,
        granted,
        token,
        quiet_until,
        broken,
        ..
    } = &mut state.memory;
    if !setup.runs_once() {
        *starts = Default::default();
    }
    if setup.budget.wipes > 0 {
        *granted = Default::default();
    }
    if setup.tokens == Tokens::Counted {
        *token = 0;
    }
    if *quiet_until <= state.now {
        *quiet_until = 0;
    }
    *broken &= watched;
}

/// Puts replicas in order, and lets the ledgers name them by their new places.
fn order(setup: &Setup, state: &mut State) {
    let mut places: [usize; REPLICAS] = std::array::from_fn(|at| at);
    // Whom a ledger names is told apart from others that look the same.
    let named = |at: usize| {
        let names = |ledger: &Ledger| {
            let current = ledger.current;
            current.is_some_and(|current| current.holder as usize == at)
        };
        let former = state.former.is_some_and(|former| names(&former.ledger));
        (names(&state.ledger), former, names(&state.copy))
    };
    let there = &mut places[..setup.replicas];
    there.sort_by_key(|at| (state.replicas[*at], named(*at)));
    if places.is_sorted() {
        return;
    }
    let before = state.replicas;
    let mut moved = [0; REPLICAS];
    for (to, from) in places.into_iter().enumerate() {
        state.replicas[to] = before[from];
        moved[from] = to as u8;
    }
    let former = state.former.as_mut().map(|former| &mut former.ledger);
    let ledgers = [&mut state.ledger, &mut state.copy]
        .into_iter()
        .chain(former);
    for current in ledgers.filter_map(|ledger| ledger.current.as_mut()) {
        current.holder = moved[current.holder as usize];
    }
}
