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

    // Of named leases alone.
    /// A grant that is told again is trusted as one that was just made.
    ToldAgainIsNew,
    /// A release is sent before the answer to what asked for the hold.
    LeavesUnheard,
    /// A holder that is named dead is, though it has renewed its lease since it was watched.
    DeadByName,
    /// Nobody waits for those who came first.
    PassesTheLine,
    /// Who shares is let in beside who has it alone.
    SharesWithOne,
    /// Of several names those are taken that are free, and the others waited for.
    OneByOne,
    /// A renewal is believed, whoever has the name.
    RenewsAnybody,
    /// A renewal writes anew what was lost or taken over, also outside of a grace window.
    WritesAnewAnytime,
    /// In a grace window a renewal writes a hold anew over one that was granted since.
    WritesOverNewer,
    /// A place in line that nobody keeps is never given up.
    PlacesStay,
    /// Who lost its place comes last.
    ComesLast,
    /// Nobody is told that it is its turn.
    TellsNobody,
    /// Who waits asks again only when it is told to.
    WaitsForNews,
    /// Who is let in again gets a token of its own.
    TokenOfItsOwn,
    /// Who gives back one of its holds gives back all.
    FreesAll,
    /// Who shares and wants it alone waits for the others who share.
    RisesAndWaits,
    /// What the dead had, and nobody wants, stays.
    NeverSweeps,
    /// A request is heeded also when it comes after its own deadline.
    LateCounts,
    /// Who doesn't wait has what is past its deadline, as soon as it sees it so.
    OverdueAtOnce,
    /// A client doesn't tell which tokens it has seen.
    FloorUntold,
    /// A turn is missed that comes while its hold is being asked for.
    MissesItsTurn,
    /// A window without grants lasts for as long as the lease of whoever notices the loss, however short.
    ShortWindow,
    /// A client that has seen a window without grants forgets it.
    ForgetsTheWindow,
}

impl Mutant {
    /// Those that storms of jobs have to find.
    pub const OF_JOBS: [Self; 19] = [
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

    /// Those that worlds of named leases have to find: rules of their own, and those that they share with
    /// jobs.
    pub const OF_LEASES: [Self; 29] = [
        Self::NoGrace,
        Self::BelievesTheClock,
        Self::TakesWhatItSees,
        Self::TokenCounts,
        Self::DeadlineStands,
        Self::TrustsTheAnswer,
        Self::ToldAgainIsNew,
        Self::LeavesUnheard,
        Self::DeadByName,
        Self::PassesTheLine,
        Self::SharesWithOne,
        Self::OneByOne,
        Self::RenewsAnybody,
        Self::WritesAnewAnytime,
        Self::WritesOverNewer,
        Self::PlacesStay,
        Self::ComesLast,
        Self::TellsNobody,
        Self::WaitsForNews,
        Self::TokenOfItsOwn,
        Self::FreesAll,
        Self::RisesAndWaits,
        Self::NeverSweeps,
        Self::LateCounts,
        Self::OverdueAtOnce,
        Self::FloorUntold,
        Self::MissesItsTurn,
        Self::ShortWindow,
        Self::ForgetsTheWindow,
    ];
}

thread_local! {
    static ON: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// From now on this thread's schedulers, clients and stores have this fault, or none.
pub fn turn_on(mutant: Option<Mutant>) {
    ON.set(mutant);
}

/// Whether they have it.
pub fn is_on(mutant: Mutant) -> bool {
    ON.get() == Some(mutant)
}
