//! All scenarios: what holds and to which bound, what falls by which missing guard, and the locks
//! that fall by themselves.
//!
//! Must never: be made smaller so that something holds; a bound is stated with its figures.

mod holding;
mod missing;

pub use self::holding::{long, quick};
pub use self::missing::missing_guards;

use crate::locks::{Fault, Lock};
use crate::protocol::Protocol;
use crate::protocol::setup::{Acks, Guard, Jump, Names, OnCrash, Setup, Tokens, Wipe};
use crate::protocol::state::Budget;

/// One search, and what is to come of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A short name, by which its trace is found.
    pub name: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// What is searched.
    pub subject: Subject,
    /// What has to come of it.
    pub expected: Verdict,
}

/// What is searched.
#[derive(Clone, Debug)]
pub enum Subject {
    /// The protocol.
    Protocol(Protocol),
    /// A lock with a fault.
    Lock(Lock),
}

/// What comes of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No state breaks a law, and all that is to come about does.
    Holds,
    /// A state breaks one.
    Falls,
}

/// Nothing goes wrong.
const CALM: Budget = Budget {
    losses: 0,
    copies: 0,
    crashes: 0,
    wipes: 0,
    jumps: 0,
    freezes: 0,
    pauses: 0,
};

/// Two replicas, one occurrence, nothing that goes wrong.
const PLAIN: Setup = Setup {
    replicas: 2,
    occurrences: 1,
    due: [0, 4],
    ticks: 6,
    runs: 2,
    attempts: 3,
    on_crash: OnCrash::Rerun,
    budget: CALM,
    wipe: Wipe::Empty,
    jump: Jump::Never,
    early: 0,
    tokens: Tokens::Counted,
    without: None,
    names: Names::Alike,
};

impl Setup {
    fn of_three(self) -> Self {
        let replicas = 3;
        Self { replicas, ..self }
    }

    fn of_two_instants(self) -> Self {
        let occurrences = 2;
        Self {
            occurrences,
            ..self
        }
    }

    fn due_at(self, due: [u8; 2]) -> Self {
        Self { due, ..self }
    }

    fn until(self, ticks: u8) -> Self {
        Self { ticks, ..self }
    }

    fn once(self) -> Self {
        let on_crash = OnCrash::Skip;
        Self { on_crash, ..self }
    }

    fn with(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    fn real_tokens(self) -> Self {
        let tokens = Tokens::Real;
        Self { tokens, ..self }
    }

    /// Data are lost once.
    fn loses(self, wipe: Wipe) -> Self {
        let budget = Budget {
            wipes: 1,
            ..self.budget
        };
        Self {
            wipe,
            budget,
            ..self
        }
    }

    /// Another master is elected once.
    fn elects(self, lives: u8, acks: Acks) -> Self {
        self.loses(Wipe::Election { lives, acks })
    }

    /// The store's clock steps once.
    fn steps(self, jump: Jump) -> Self {
        let budget = Budget {
            jumps: 1,
            ..self.budget
        };
        Self {
            jump,
            budget,
            ..self
        }
    }
}

impl Guard {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Guard::Memory => "no-memory",
            Guard::Replay => "no-replay",
            Guard::RequestDeadline => "no-request-deadline",
            Guard::CompareAndSteal => "expiry-alone",
            Guard::TrustedClock => "untrue-clock",
            Guard::HealthyConnection => "no-health",
            Guard::RisingDeadline => "resting-deadline",
            Guard::FullMatch => "token-match",
            Guard::SentTime => "heard-time",
            Guard::KillMargin => "no-margin",
            Guard::Guardian => "no-guardian",
            Guard::Grace => "no-grace",
            Guard::HeldBack => "grace-by-store",
            Guard::BornInclusive => "born-exclusive",
            Guard::BornMoves => "born-stays",
            Guard::Twin => "no-twin",
            Guard::TokenByTime => "token-plus-one",
        }
    }
}

/// The locks.
pub fn locks() -> Vec<Scenario> {
    let lock = |name, title, fault, expected| Scenario {
        name,
        title,
        subject: Subject::Lock(Lock { fault, ticks: 6 }),
        expected,
    };
    let falls = |name, title, fault| lock(name, title, fault, Verdict::Falls);
    vec![
        falls("L1", "SETNX, then EXPIRE", Fault::ExpiresLater),
        falls("L2", "a time as the value, GETSET", Fault::TimeForAName),
        falls(
            "L2-skew",
            "the same, with a clock that is ahead",
            Fault::TimeForANameAndSkew,
        ),
        falls("L3", "DEL, whoever has it", Fault::DeletesBlindly),
        falls("L4", "GET, then DEL", Fault::ComparesFirst),
        falls("L5", "the job outlives the TTL", Fault::OutlivesItsTerm),
        falls(
            "L8",
            "the master dies before it replicated",
            Fault::RepliesBeforeItCopies,
        ),
        falls(
            "L12",
            "a short job, and clocks that differ",
            Fault::ForgetsTheRun,
        ),
        lock(
            "no-fault",
            "the same lock without a fault",
            Fault::None,
            Verdict::Holds,
        ),
    ]
}
