//! What has to fall: a guard is missing, or what is asked for is not promised.
//!
//! Must never: say of a guard that it is needed, where nothing falls without it.

use super::{CALM, PLAIN, Scenario, Subject, Verdict};
use crate::protocol::Protocol;
use crate::protocol::laws::{Breach, Law};
use crate::protocol::setup::{Acks, Guard, Jump, Names, Setup, Wipe};
use crate::protocol::state::Budget;

const ONE: Law = Law::OneAtATime;
const LOST: Law = Law::Never(Breach::GrantLost);

fn falls(name: &'static str, title: &'static str, setup: Setup, law: Law) -> Scenario {
    let setup = Setup {
        names: Names::Told,
        ..setup
    };
    Scenario {
        name,
        title,
        subject: Subject::Protocol(Protocol::of_laws(setup, vec![law], Vec::new())),
        expected: Verdict::Falls,
    }
}

fn without(guard: Guard, title: &'static str, setup: Setup, law: Law) -> Scenario {
    let setup = Setup {
        without: Some(guard),
        ..setup
    };
    falls(guard.name(), title, setup, law)
}

/// What falls.
pub fn missing_guards() -> Vec<Scenario> {
    [requests(), leases(), after_losses(), not_promised()].concat()
}

fn requests() -> Vec<Scenario> {
    let lossy = PLAIN.with(Budget { losses: 1, ..CALM });
    vec![
        without(
            Guard::Memory,
            "an occurrence is forgotten with its lease",
            PLAIN,
            Law::Never(Breach::FinishedAgain),
        ),
        without(
            Guard::Replay,
            "a request that is sent again is a new one",
            lossy,
            LOST,
        ),
        without(
            Guard::RequestDeadline,
            "a claim has no deadline of its own",
            lossy,
            LOST,
        ),
    ]
}

fn leases() -> Vec<Scenario> {
    let forward = PLAIN.steps(Jump::Forward);
    let back = PLAIN.steps(Jump::Back);
    let two = PLAIN.of_two_instants().until(8).loses(Wipe::Empty);
    let heard = "a lease is trusted from when it was heard of";
    let rests = "a deadline rests while the clock stands still";
    vec![
        without(
            Guard::CompareAndSteal,
            "expiry alone decides, and the clock jumps",
            forward,
            ONE,
        ),
        without(
            Guard::TrustedClock,
            "a clock that jumped is believed",
            forward,
            ONE,
        ),
        without(Guard::RisingDeadline, rests, back, ONE),
        without(
            Guard::FullMatch,
            "a renewal is matched by its token alone",
            two,
            ONE,
        ),
        without(Guard::SentTime, heard, PLAIN, ONE),
        without(
            Guard::KillMargin,
            "nothing is kept back for KILL",
            PLAIN,
            ONE,
        ),
        without(Guard::Guardian, "nobody ends the job in time", PLAIN, ONE),
    ]
}

fn after_losses() -> Vec<Scenario> {
    let wiped = PLAIN.of_two_instants().loses(Wipe::Empty);
    let older = PLAIN.loses(Wipe::Older).once();
    let elected = PLAIN.until(5).due_at([1, 4]).elects(2, Acks::Unasked);
    vec![
        without(Guard::Grace, "no grace after a loss of data", wiped, ONE),
        without(
            Guard::HeldBack,
            "a grace window goes by the store's clock alone",
            wiped.steps(Jump::Forward),
            Law::Never(Breach::GrantedInGrace),
        ),
        without(
            Guard::BornInclusive,
            "what was due at the moment of the loss counts as new",
            older,
            Law::StartedOnce,
        ),
        without(
            Guard::BornMoves,
            "a ledger that fell back keeps its birth",
            older,
            Law::StartedOnce,
        ),
        without(
            Guard::Twin,
            "what is due in a failover counts as new",
            elected.once(),
            Law::StartedOnce,
        ),
        without(
            Guard::TokenByTime,
            "a token is the last one plus one",
            wiped.real_tokens(),
            Law::Never(Breach::TokenFell),
        ),
    ]
}

fn not_promised() -> Vec<Scenario> {
    let frozen = PLAIN.with(Budget { freezes: 1, ..CALM });
    let split = PLAIN.elects(6, Acks::Unasked);
    let pause = "not promised: a host stands still, rerun";
    let brain = "not promised: a former master is asked for longer than a lease";
    vec![
        falls("host-pause", pause, frozen, ONE),
        falls("split-brain", brain, split, ONE),
    ]
}
