//! What has to hold in every state of a scenario, and what has to come about in some.
//!
//! A law that looks at one state is a question to it. One that looks at a step is noted by whoever
//! takes the step, as a [`Breach`] in the laws' memory, and is a question to that.
//!
//! Must never: hold a scenario to more than is promised of it; `docs/guarantees.md` says what is.

use super::setup::{Jump, OnCrash, Setup, TTL, Tokens, Wipe};
use super::state::{Current, Doing, Life, Memory, PARTS, Standing, State};
use super::store;

/// What is broken by a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// An attempt of an occurrence was granted that was granted before.
    SameAttempt,
    /// A token was drawn that is not above all others.
    TokenFell,
    /// An occurrence that has its fate got another one.
    TwoFates,
    /// An occurrence was granted that had succeeded.
    FinishedAgain,
    /// Something was granted while holders had not had the time to come back.
    GrantedInGrace,
    /// An occurrence was granted before it was due, by the store's clock.
    BeforeDue,
    /// Something of the schedule was granted in a pause, or after one that it fell due in.
    InPause,
    /// A renewal did not raise the deadline.
    DeadlineFell,
    /// A replica gave up a claim that had been granted, or was granted one that it had given up.
    GrantLost,
}

impl Breach {
    fn bit(self) -> u16 {
        1 << self as u8
    }

    /// Notes it.
    pub(super) fn note(self, memory: &mut Memory) {
        memory.broken |= self.bit();
    }
}

/// What always holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Nowhere do two attempts run beside each other.
    OneAtATime,
    /// No occurrence is started twice.
    StartedOnce,
    /// What may be broken by a step.
    Never(Breach),
    /// A lease ends by itself, one lease's length from now at the latest.
    LeasesEnd,
}

/// What comes about in some state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// An occurrence was run to its end, and that is written down.
    Completed,
    /// All were.
    AllCompleted,
    /// A second attempt runs.
    SecondAttempt,
    /// An occurrence has its fate though no run of it was finished.
    Unfinished,
    /// A ledger that lost its data has taken up a lease again, and its holder is at it.
    Reasserted,
    /// A lease was renewed by a ledger on whose clock no time had passed.
    StoodStill,
}

/// The laws of a scenario.
pub fn of(setup: &Setup) -> Vec<Law> {
    let loses_data = setup.budget.wipes > 0;
    let steps_back = matches!(setup.jump, Jump::Back | Jump::FarBack);
    let mut laws = vec![Law::OneAtATime, Law::Never(Breach::DeadlineFell)];
    // What a ledger that lost its data has written off, as nobody could tell whether it ran, may come
    // back later from who ran it.
    if !loses_data || setup.runs_once() {
        laws.push(Law::Never(Breach::TwoFates));
    }
    if setup.on_crash == OnCrash::Skip {
        laws.push(Law::StartedOnce);
        // A frozen host's job is no breach of it, but may well be beside another one.
        if setup.budget.freezes > 0 {
            laws.retain(|law| *law != Law::OneAtATime);
        }
    }
    if !loses_data {
        laws.push(Law::Never(Breach::SameAttempt));
        if setup.budget.copies == 0 {
            laws.push(Law::Never(Breach::GrantLost));
        }
    }
    if !loses_data || setup.wipe == Wipe::Empty || setup.runs_once() {
        laws.push(Law::Never(Breach::FinishedAgain));
    }
    if loses_data && !matches!(setup.wipe, Wipe::Election { .. }) {
        laws.push(Law::Never(Breach::GrantedInGrace));
    }
    if setup.tokens == Tokens::Real {
        laws.push(Law::Never(Breach::TokenFell));
    }
    if setup.budget.pauses > 0 {
        laws.push(Law::Never(Breach::InPause));
    }
    if !steps_back {
        laws.extend([Law::Never(Breach::BeforeDue), Law::LeasesEnd]);
    }
    laws
}

/// The bits of what a scenario remembers as broken: nothing that none of its laws asks for.
pub(super) fn watched(laws: &[Law]) -> u16 {
    laws.iter().fold(0, |bits, law| match law {
        Law::Never(breach) => bits | breach.bit(),
        Law::OneAtATime | Law::StartedOnce | Law::LeasesEnd => bits,
    })
}

impl Law {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Law::OneAtATime => "one attempt at a time",
            Law::StartedOnce => "started at most once",
            Law::LeasesEnd => "a lease ends by itself",
            Law::Never(Breach::SameAttempt) => "one grant per attempt",
            Law::Never(Breach::TokenFell) => "tokens rise",
            Law::Never(Breach::TwoFates) => "one fate per occurrence",
            Law::Never(Breach::FinishedAgain) => "what finished is never granted again",
            Law::Never(Breach::GrantedInGrace) => "nothing is granted in grace",
            Law::Never(Breach::BeforeDue) => "nothing is granted before it is due",
            Law::Never(Breach::InPause) => "nothing starts in a pause",
            Law::Never(Breach::DeadlineFell) => "a lease's deadline rises",
            Law::Never(Breach::GrantLost) => "a grant reaches who asked for it",
        }
    }

    /// Whether a state keeps it.
    pub fn holds(self, setup: &Setup, state: &State) -> bool {
        match self {
            Law::OneAtATime => running(state) <= 1,
            Law::StartedOnce => state.memory.starts.iter().all(|starts| *starts <= 1),
            Law::Never(breach) => state.memory.broken & breach.bit() == 0,
            Law::LeasesEnd => leases_end(setup, state),
        }
    }
}

impl Sight {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Sight::Completed => "an occurrence completes",
            Sight::AllCompleted => "all occurrences complete",
            Sight::SecondAttempt => "a second attempt runs",
            Sight::Unfinished => "an occurrence is closed unfinished",
            Sight::Reasserted => "a lease is taken up again after a loss",
            Sight::StoodStill => "a lease is renewed while time stands still",
        }
    }

    /// Whether it is to be seen in a state.
    pub fn is_in(self, setup: &Setup, state: &State) -> bool {
        let fated = state.ledger.fated;
        let all = (1 << setup.occurrences) - 1;
        match self {
            Sight::Completed => state.memory.finished > 0,
            Sight::AllCompleted => state.memory.finished == all,
            Sight::SecondAttempt => held(state).is_some_and(|current| current.attempt > 1),
            Sight::Unfinished => fated & !state.memory.finished > 0,
            Sight::Reasserted => state.ledger.born > 0 && held(state).is_some(),
            Sight::StoodStill => held(state).is_some_and(|current| current.deadline % PARTS > 0),
        }
    }
}

/// How many jobs do something.
fn running(state: &State) -> usize {
    let live = state.replicas.iter();
    live.filter(|replica| replica.life == Life::Alive && replica.doing == Doing::Running)
        .count()
}

/// The lease at the store whose holder runs its job under it.
fn held(state: &State) -> Option<Current> {
    let current = state.ledger.current?;
    let holder = &state.replicas[current.holder as usize];
    let runs = holder.doing == Doing::Running && holder.run == current.run;
    (current.standing == Standing::Running && runs && holder.token == current.token)
        .then_some(current)
}

fn leases_end(setup: &Setup, state: &State) -> bool {
    let now = store::time(setup, &state.ledger, state.now + state.offset);
    let latest = (now + TTL + 1) * PARTS;
    let current = state.ledger.current;
    current.is_none_or(|current| current.standing != Standing::Running || current.deadline < latest)
}
