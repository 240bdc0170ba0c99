//! Deliberate faults of the protocol. The simulator has to find each of them: one that it doesn't
//! find is a hole in what it checks.
//!
//! They are there in builds with `--cfg soloist_mutants` alone (`make mutants`). Anywhere else
//! [`mutant!`](crate::mutant) is `false`.
//!
//! Must never: be on where nobody asked for one, or change anything that is shipped.

use std::cell::Cell;

/// A fault, and the rule that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A release is believed without its token and its id.
    ReleaseByAnyone,
    /// What ran is forgotten when it is released.
    ForgetsWhatRan,
    /// Claims are granted, and sent, before the store's clock has reached their instant.
    GrantsEarly,
    /// No grace window after a loss of data.
    NoGrace,
    /// A ledger that lost data does not know since when it remembers.
    BornStays,
    /// Whoever watches believes a clock that has jumped.
    BelievesTheClock,
    /// A lease is taken as soon as it is seen.
    TakesWhatItSees,
    /// A token is one more than the last that the ledger knows.
    TokenCounts,
    /// A renewal on a clock that stands still leaves the deadline as it is.
    DeadlineStands,
    /// `on_crash = "skip"` is not heeded.
    SkipRunsAgain,
    /// `max_attempts` is not heeded.
    AttemptsUnbounded,
    /// A pause is not heeded.
    PauseIgnored,
    /// The next occurrence starts beside an unfinished one.
    StartsBeside,
    /// What nobody claimed is settled without a line.
    NoLine,
    /// A release that is sent again is written down again.
    LineTwice,
    /// What waits is forgotten when an attempt ends.
    ForgetsWhoWaits,
    /// A lease is trusted from the moment of its answer, not from that of the request.
    TrustsTheAnswer,
    /// Nothing of a lease is kept back for KILL to take effect.
    NoKillMargin,
    /// A grant whose answer was lost is not told again.
    ForgetsWhoAsked,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::ReleaseByAnyone,
        Self::ForgetsWhatRan,
        Self::GrantsEarly,
        Self::NoGrace,
        Self::BornStays,
        Self::BelievesTheClock,
        Self::TakesWhatItSees,
        Self::TokenCounts,
        Self::DeadlineStands,
        Self::SkipRunsAgain,
        Self::AttemptsUnbounded,
        Self::PauseIgnored,
        Self::StartsBeside,
        Self::NoLine,
        Self::LineTwice,
        Self::ForgetsWhoWaits,
        Self::TrustsTheAnswer,
        Self::NoKillMargin,
        Self::ForgetsWhoAsked,
    ];
}

thread_local! {
    static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// From now on this thread's schedulers and stores have this fault, or none.
pub fn turn_on(mutant: Option<Mutant>) {
    ON.set(mutant);
}

/// Whether they have it.
pub fn is_on(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}
