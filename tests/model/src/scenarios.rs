//! All scenarios: what holds and to which bound, what falls by which missing guard, and the locks
//! that fall by themselves.
//!
//! Must never: be made smaller so that something holds; a bound is stated with its figures.

use crate::locks::{Fault, Lock};
use crate::protocol::Protocol;
use crate::protocol::laws::{Breach, Law, Sight};
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

const CALM: Budget = Budget {
    losses: 0,
    copies: 0,
    crashes: 0,
    wipes: 0,
    jumps: 0,
    freezes: 0,
    pauses: 0,
};

const WIPED: Budget = Budget { wipes: 1, ..CALM };
const JUMPED: Budget = Budget { jumps: 1, ..CALM };
const LOSSY: Budget = Budget { losses: 1, ..CALM };

const ONCE: Setup = Setup {
    on_crash: OnCrash::Skip,
    ..PLAIN
};

const ELECTED: Setup = Setup {
    budget: WIPED,
    wipe: Wipe::Election {
        lives: 2,
        acks: Acks::Unasked,
    },
    ticks: 5,
    ..PLAIN
};

const RERUNS: &[Sight] = &[Sight::Completed, Sight::SecondAttempt];
const COMPLETES: &[Sight] = &[Sight::Completed];
const CLOSES: &[Sight] = &[Sight::Completed, Sight::Unfinished];
const COMES_BACK: &[Sight] = &[Sight::Completed, Sight::Reasserted];

fn holds(name: &'static str, title: &'static str, setup: Setup, sights: &[Sight]) -> Scenario {
    Scenario {
        name,
        title,
        subject: Subject::Protocol(Protocol::new(setup, sights.to_vec())),
        expected: Verdict::Holds,
    }
}

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

/// What holds, at bounds that are searched in a minute.
pub fn quick() -> Vec<Scenario> {
    let mut all = calm();
    all.extend(lost_data());
    all.extend(stepped_clocks());
    all
}

fn calm() -> Vec<Scenario> {
    let crash = Budget {
        crashes: 1,
        ..LOSSY
    };
    let three = Setup {
        replicas: 3,
        ..PLAIN
    };
    let two = Setup {
        occurrences: 2,
        ..PLAIN
    };
    vec![
        holds("calm", "nothing goes wrong", three, RERUNS),
        holds(
            "two-instants",
            "two occurrences",
            two,
            &[Sight::AllCompleted, Sight::SecondAttempt],
        ),
        holds(
            "crash",
            "a crash and a lost message",
            Setup {
                budget: crash,
                ..PLAIN
            },
            RERUNS,
        ),
        holds(
            "crash-skip",
            "the same, at most once, and a clock that is ahead",
            Setup {
                budget: crash,
                due: [1, 4],
                early: 1,
                ..ONCE
            },
            CLOSES,
        ),
        holds(
            "twice",
            "a crash, and a message that arrives twice",
            Setup {
                budget: Budget {
                    crashes: 1,
                    copies: 1,
                    ..CALM
                },
                ..PLAIN
            },
            RERUNS,
        ),
        holds(
            "pause",
            "somebody pauses and resumes the job",
            Setup {
                budget: Budget { pauses: 1, ..CALM },
                ..two
            },
            &[Sight::AllCompleted, Sight::Unfinished],
        ),
        holds(
            "freeze-skip",
            "a host stands still, at most once",
            Setup {
                budget: Budget { freezes: 1, ..CALM },
                ..ONCE
            },
            CLOSES,
        ),
        holds(
            "no-health",
            "a crash and a lost message, without the wait for a healthy connection",
            Setup {
                budget: crash,
                without: Some(Guard::HealthyConnection),
                ..PLAIN
            },
            RERUNS,
        ),
    ]
}

fn lost_data() -> Vec<Scenario> {
    let wiped = Setup {
        budget: WIPED,
        ..PLAIN
    };
    let older = Setup {
        wipe: Wipe::Older,
        ..wiped
    };
    let acks = Wipe::Election {
        lives: 1,
        acks: Acks::Wanted,
    };
    let skip = OnCrash::Skip;
    vec![
        holds("wipe", "all data are lost", wiped, COMES_BACK),
        holds(
            "wipe-skip",
            "all data are lost, two occurrences, at most once",
            Setup {
                occurrences: 2,
                on_crash: skip,
                ..wiped
            },
            COMES_BACK,
        ),
        holds(
            "older",
            "the store falls back",
            Setup { ticks: 5, ..older },
            COMES_BACK,
        ),
        holds(
            "older-skip",
            "the store falls back, at most once",
            Setup {
                on_crash: skip,
                ..older
            },
            COMES_BACK,
        ),
        holds(
            "tokens",
            "all data are lost, two occurrences, tokens by the real rule",
            Setup {
                occurrences: 2,
                tokens: Tokens::Real,
                ..wiped
            },
            COMES_BACK,
        ),
        holds(
            "election",
            "a failover with acknowledgements",
            Setup {
                wipe: acks,
                ..ELECTED
            },
            COMPLETES,
        ),
        holds(
            "election-skip",
            "a failover without, at most once",
            Setup {
                on_crash: skip,
                ..ELECTED
            },
            COMPLETES,
        ),
    ]
}

fn stepped_clocks() -> Vec<Scenario> {
    let stepped = |jump| Setup {
        jump,
        budget: JUMPED,
        ..PLAIN
    };
    vec![
        holds(
            "forward",
            "the store's clock steps forward",
            stepped(Jump::Forward),
            RERUNS,
        ),
        holds(
            "back",
            "it steps back, and stands still",
            stepped(Jump::Back),
            &[Sight::Completed, Sight::StoodStill],
        ),
        holds(
            "far-back",
            "it steps back by far",
            stepped(Jump::FarBack),
            COMPLETES,
        ),
    ]
}

/// What holds, at bounds that take minutes.
pub fn long() -> Vec<Scenario> {
    let crash = Budget {
        crashes: 1,
        ..LOSSY
    };
    let three = Setup {
        replicas: 3,
        ..PLAIN
    };
    let wiped = Setup {
        budget: Budget {
            crashes: 1,
            ..WIPED
        },
        ..PLAIN
    };
    let skip = OnCrash::Skip;
    vec![
        holds(
            "calm-long",
            "nothing goes wrong, two occurrences",
            Setup {
                occurrences: 2,
                ..three
            },
            RERUNS,
        ),
        holds(
            "crash-long",
            "a crash and a lost message",
            Setup {
                budget: crash,
                ticks: 8,
                occurrences: 2,
                due: [0, 5],
                ..PLAIN
            },
            RERUNS,
        ),
        holds(
            "crash-three",
            "a crash",
            Setup {
                budget: Budget { crashes: 1, ..CALM },
                ..three
            },
            RERUNS,
        ),
        holds(
            "losses-long",
            "two lost messages",
            Setup {
                budget: Budget { losses: 2, ..CALM },
                ..PLAIN
            },
            RERUNS,
        ),
        holds(
            "wipe-long",
            "all data are lost, and a crash",
            Setup {
                occurrences: 2,
                ticks: 7,
                ..wiped
            },
            COMES_BACK,
        ),
        holds(
            "wipe-three",
            "all data are lost, at most once",
            Setup {
                budget: WIPED,
                on_crash: skip,
                ..three
            },
            COMES_BACK,
        ),
        holds(
            "older-long",
            "the store falls back, and a crash",
            Setup {
                wipe: Wipe::Older,
                ..wiped
            },
            COMES_BACK,
        ),
        holds(
            "older-skip-long",
            "the store falls back, two occurrences, at most once",
            Setup {
                wipe: Wipe::Older,
                budget: WIPED,
                occurrences: 2,
                ticks: 7,
                ..ONCE
            },
            COMES_BACK,
        ),
        holds(
            "forward-long",
            "the clock steps forward, and a crash",
            Setup {
                jump: Jump::Forward,
                budget: Budget {
                    crashes: 1,
                    ..JUMPED
                },
                ..PLAIN
            },
            RERUNS,
        ),
        holds(
            "election-long",
            "a failover without acknowledgements, at most once",
            Setup {
                on_crash: skip,
                ticks: 6,
                ..ELECTED
            },
            COMPLETES,
        ),
    ]
}

/// What falls: a guard is missing, or it is not promised.
pub fn missing_guards() -> Vec<Scenario> {
    let mut all = missing_leases();
    all.extend(missing_after_losses());
    all.extend(not_promised());
    all
}

fn missing_leases() -> Vec<Scenario> {
    let one = Law::OneAtATime;
    let lossy = Setup {
        budget: LOSSY,
        ..PLAIN
    };
    let forward = Setup {
        jump: Jump::Forward,
        budget: JUMPED,
        ..PLAIN
    };
    let back = Setup {
        jump: Jump::Back,
        ..forward
    };
    let two = Setup {
        occurrences: 2,
        budget: WIPED,
        ticks: 8,
        ..PLAIN
    };
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
            Law::Never(Breach::GrantLost),
        ),
        without(
            Guard::RequestDeadline,
            "a claim has no deadline of its own",
            lossy,
            Law::Never(Breach::GrantLost),
        ),
        without(
            Guard::CompareAndSteal,
            "expiry alone decides, and the clock jumps",
            forward,
            one,
        ),
        without(
            Guard::TrustedClock,
            "a clock that jumped is believed",
            forward,
            one,
        ),
        without(
            Guard::RisingDeadline,
            "a deadline rests while the clock stands still",
            back,
            one,
        ),
        without(
            Guard::FullMatch,
            "a renewal is matched by its token alone",
            two,
            one,
        ),
        without(
            Guard::SentTime,
            "a lease is trusted from when it was heard of",
            PLAIN,
            one,
        ),
        without(
            Guard::KillMargin,
            "nothing is kept back for KILL",
            PLAIN,
            one,
        ),
        without(Guard::Guardian, "nobody ends the job in time", PLAIN, one),
    ]
}

fn missing_after_losses() -> Vec<Scenario> {
    let wiped = Setup {
        budget: WIPED,
        occurrences: 2,
        ..PLAIN
    };
    let older = Setup {
        wipe: Wipe::Older,
        occurrences: 1,
        ..wiped
    };
    let jumps = Setup {
        jump: Jump::Forward,
        budget: Budget { jumps: 1, ..WIPED },
        ..wiped
    };
    let once = |setup| Setup {
        on_crash: OnCrash::Skip,
        ..setup
    };
    vec![
        without(
            Guard::Grace,
            "no grace after a loss of data",
            wiped,
            Law::OneAtATime,
        ),
        without(
            Guard::HeldBack,
            "a grace window goes by the store's clock alone",
            jumps,
            Law::Never(Breach::GrantedInGrace),
        ),
        without(
            Guard::BornInclusive,
            "what was due at the moment of the loss counts as new",
            once(older),
            Law::StartedOnce,
        ),
        without(
            Guard::BornMoves,
            "a ledger that fell back keeps its birth",
            once(older),
            Law::StartedOnce,
        ),
        without(
            Guard::Twin,
            "what is due in a failover counts as new",
            once(Setup {
                due: [1, 4],
                ..ELECTED
            }),
            Law::StartedOnce,
        ),
        without(
            Guard::TokenByTime,
            "a token is the last one plus one",
            Setup {
                tokens: Tokens::Real,
                ..wiped
            },
            Law::Never(Breach::TokenFell),
        ),
    ]
}

fn not_promised() -> Vec<Scenario> {
    let frozen = Setup {
        budget: Budget { freezes: 1, ..CALM },
        ..PLAIN
    };
    let lives = Wipe::Election {
        lives: 6,
        acks: Acks::Unasked,
    };
    let split = Setup {
        wipe: lives,
        ticks: 6,
        ..ELECTED
    };
    vec![
        falls(
            "host-pause",
            "not promised: a host stands still, rerun",
            frozen,
            Law::OneAtATime,
        ),
        falls(
            "split-brain",
            "not promised: a former master is asked for longer than a lease",
            split,
            Law::OneAtATime,
        ),
    ]
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
