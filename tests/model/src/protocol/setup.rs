//! What a scenario is made of: how many of what, what may go wrong, and which guard is missing.
//!
//! Must never: have two guards missing at once; what falls is to fall by one of them.

use super::state::{Budget, OCCURRENCES};

/// The length of a lease, in ticks.
pub const TTL: u8 = 3;

/// What is kept back of a lease for KILL to take effect, in ticks.
pub const KILL_MARGIN: u8 = 1;

/// How long a call may take, in ticks: a claim that the store hears later does nothing.
pub const CALL_TIMEOUT: u8 = 1;

/// From one look at the store to the next: a connection has to be well for so long before its
/// replica takes anything over.
pub const INTERVAL: u8 = 1;

/// How long nothing is granted after a loss of data, in ticks.
pub const GRACE: u8 = TTL + CALL_TIMEOUT;

/// By how much the store's clock steps: by more than a lease lasts.
pub const JUMP: u8 = TTL + 1;

/// A scenario, and the bound to which it is searched.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many replicas.
    pub replicas: usize,
    /// How many occurrences.
    pub occurrences: usize,
    /// When they are due, in ticks.
    pub due: [u8; OCCURRENCES],
    /// The last tick.
    pub ticks: u8,
    /// How many requests a replica names at most: claims, not counting the same sent again.
    pub runs: u8,
    /// `max_attempts`.
    pub attempts: u8,
    /// What becomes of what its holder left.
    pub on_crash: OnCrash,
    /// What may go wrong, and how often.
    pub budget: Budget,
    /// What a loss of data is.
    pub wipe: Wipe,
    /// What a step of the store's clock is.
    pub jump: Jump,
    /// So many ticks before its instant may an occurrence be claimed, by those whose idea of the
    /// time is wrong.
    pub early: u8,
    /// How tokens are drawn.
    pub tokens: Tokens,
    /// The guard that is missing.
    pub without: Option<Guard>,
    /// Whether replicas that only differ by their names are one state.
    pub names: Names,
}

/// `on_crash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrash {
    /// Closed as lost.
    Skip,
    /// Run again as the next attempt.
    Rerun,
}

/// What a loss of data is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wipe {
    /// All is gone: FLUSHALL, a restart without a file.
    Empty,
    /// The server goes on with something older: a restart from a snapshot.
    Older,
    /// Another server, with something older, becomes the master, while the former one lives on for
    /// so many ticks.
    Election {
        /// For how long replicas may go on to ask the former master.
        lives: u8,
        /// What the former master's answers are worth.
        acks: Acks,
    },
}

/// What the word of a master is worth that nobody follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// As much as any other's.
    Unasked,
    /// It gives none: `min-replicas-to-write 1`, or `min_replicas_ack = 1`.
    Wanted,
}

/// What a step of the store's clock is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// It never steps, and all know it.
    Never,
    /// Forward, by more than a lease.
    Forward,
    /// Back, by more than a lease and so little that it is waited out.
    Back,
    /// Back by so much that it isn't waited out.
    FarBack,
}

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// By counting alone, so that a ledger which lost data draws the same ones again. No other law
    /// than that of tokens may hang on their rising, and such states are fewer.
    Counted,
    /// By the real rule: above the last one, above the time, above what the caller knows.
    Real,
}

/// Whether names of replicas count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Two states that differ by who is who are one.
    Alike,
    /// They are two, so that a trace can be told.
    Told,
}

/// A rule without which the protocol is broken, or is said to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// An occurrence is remembered after its release.
    Memory,
    /// A request that is sent again gets the same answer again.
    Replay,
    /// A claim carries a deadline of its own.
    RequestDeadline,
    /// A takeover names the token and the deadline that were watched.
    CompareAndSteal,
    /// Expiry by the store's clock is believed only where that clock ran true meanwhile.
    TrustedClock,
    /// A replica that lost the connection looks for a while before it takes.
    HealthyConnection,
    /// The deadline of one token rises at each renewal.
    RisingDeadline,
    /// A renewal is matched by occurrence, request and token.
    FullMatch,
    /// A lease is trusted from when it was asked for.
    SentTime,
    /// A part of the lease is kept back for KILL.
    KillMargin,
    /// Somebody else than the replica ends the job in time.
    Guardian,
    /// Nothing is granted for a while after a loss of data.
    Grace,
    /// The rest of a grace window also counts by the caller's own clock.
    HeldBack,
    /// What was due at the very moment of the loss may have run too.
    BornInclusive,
    /// The ledger is born again with every loss, also one that leaves it a record.
    BornMoves,
    /// What is due in the grace window of an elected master may run at the former one.
    Twin,
    /// Tokens are above the time and above what the caller knows.
    TokenByTime,
}

impl Setup {
    /// Whether a guard is in its place.
    pub fn has(&self, guard: Guard) -> bool {
        self.without != Some(guard)
    }

    /// Whether what an occurrence is due to run may run at most once.
    pub fn runs_once(&self) -> bool {
        self.on_crash == OnCrash::Skip
    }

    /// Whether the store's clock may step.
    pub fn clock_steps(&self) -> bool {
        self.jump != Jump::Never
    }
}
