//! Which faults strike, when and whom: drawn from a seed before anything starts.
//!
//! Of one target (a daemon, a link, the server, …) faults come one after the other, of different
//! targets in any combination. What the guarantees exclude is not drawn, and it is said here why.
//!
//! Must never: depend on what happens: a seed is a plan, though real time makes something else of it.

use test_support::dice::Dice;

/// How many replicas there are.
pub(crate) const REPLICAS: usize = 5;

/// One server, and what becomes of its data when it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// `appendfsync always`: it keeps what it acknowledged.
    Keeps,
    /// No persistence: a kill loses all of it, and so does a flush.
    Forgets,
}

impl Store {
    /// Seeds of both kinds follow one another.
    pub(crate) fn of(seed: u64) -> Self {
        if seed.is_multiple_of(2) {
            Self::Keeps
        } else {
            Self::Forgets
        }
    }
}

/// What is done. The number is a replica's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9` of the daemon; it is started again at the end.
    Kill(usize),
    /// The same of whoever runs something that another one has to take over, and nothing else is broken.
    KillHolder,
    /// SIGSTOP of the same, for longer than a lease.
    FreezeHolder,
    KillGuardian(usize),
    /// SIGSTOP of the daemon, for less than a lease.
    FreezeShortly(usize),
    /// The same, for longer.
    Freeze(usize),
    /// SIGTERM; it is started again at the end.
    Drain(usize),
    /// Connections end, and new ones are refused.
    Cut(usize),
    /// Nothing passes, nobody is told, and what was sent arrives in the end.
    BlackHole(usize),
    /// Requests pass, replies don't.
    LoseReplies(usize),
    /// So many milliseconds each way.
    Slow(usize, u64),
    /// One connection is dead, others are not.
    Stall(usize),
    /// A reply ends in its middle.
    BreakReply(usize),
    /// The replica's wall clock is wrong by so many milliseconds.
    ShiftClock(usize, i64),
    /// All jobs have another definition, which all replicas are told to read.
    Reload,
    /// SIGSTOP of the server, for less than a lease.
    FreezeServerShortly,
    /// The same, for longer.
    FreezeServer,
    /// `kill -9` of the server; it is started again at the end.
    KillServer,
    /// All keys are gone at once.
    Flush,
    /// `SCRIPT FLUSH`.
    ForgetScripts,
    /// `CLIENT KILL` of all.
    KillClients,
}

/// What two faults can't strike at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Daemon(usize),
    /// Whichever daemon it is.
    Holder,
    Guardian(usize),
    Link(usize),
    Clock(usize),
    Table,
    Server,
}

impl Fault {
    /// One of each kind, with nobody in particular as its victim.
    pub(crate) fn all(store: Store) -> Vec<Self> {
        let mut all = vec![
            Self::Kill(0),
            Self::Kill(0),
            Self::KillGuardian(0),
            Self::FreezeShortly(0),
            Self::Freeze(0),
            Self::Drain(0),
            Self::Cut(0),
            Self::BlackHole(0),
            Self::LoseReplies(0),
            Self::Slow(0, 0),
            Self::Stall(0),
            Self::BreakReply(0),
            Self::ShiftClock(0, 0),
            Self::Reload,
            Self::FreezeServerShortly,
            Self::FreezeServer,
            Self::KillServer,
            Self::ForgetScripts,
            Self::KillClients,
        ];
        if store == Store::Forgets {
            all.push(Self::Flush);
        }
        all
    }

    /// As a report has it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Kill(_) | Self::KillHolder => "replica killed",
            Self::KillGuardian(_) => "guardian killed",
            Self::FreezeShortly(_) => "replica frozen, shorter than a lease",
            Self::Freeze(_) | Self::FreezeHolder => "replica frozen, longer",
            Self::Drain(_) => "replica drained",
            Self::Cut(_) => "link cut",
            Self::BlackHole(_) => "link a black hole",
            Self::LoseReplies(_) => "replies lost",
            Self::Slow(..) => "link slow",
            Self::Stall(_) => "one connection stalled",
            Self::BreakReply(_) => "reply cut short",
            Self::ShiftClock(..) => "wall clock shifted",
            Self::Reload => "table changed and read again",
            Self::FreezeServerShortly => "server frozen, shorter than a lease",
            Self::FreezeServer => "server frozen, longer",
            Self::KillServer => "server killed",
            Self::Flush => "all keys gone",
            Self::ForgetScripts => "scripts flushed",
            Self::KillClients => "all clients killed",
        }
    }

    /// What it strikes.
    pub(crate) fn target(self) -> Target {
        match self {
            Self::Kill(who) | Self::FreezeShortly(who) | Self::Freeze(who) | Self::Drain(who) => {
                Target::Daemon(who)
            }
            Self::KillGuardian(who) => Target::Guardian(who),
            Self::Cut(who)
            | Self::BlackHole(who)
            | Self::LoseReplies(who)
            | Self::Slow(who, _)
            | Self::Stall(who)
            | Self::BreakReply(who) => Target::Link(who),
            Self::ShiftClock(who, _) => Target::Clock(who),
            Self::KillHolder | Self::FreezeHolder => Target::Holder,
            Self::Reload => Target::Table,
            Self::FreezeServerShortly
            | Self::FreezeServer
            | Self::KillServer
            | Self::Flush
            | Self::ForgetScripts
            | Self::KillClients => Target::Server,
        }
    }

    /// The same fault, with a victim.
    fn of(self, dice: &mut Dice) -> Self {
        const DAY_MS: i64 = 86_400_000;
        const SHIFTS_MS: [i64; 8] = [500, -500, 5_000, -5_000, 90_000, -90_000, DAY_MS, -DAY_MS];
        const DELAYS_MS: [u64; 3] = [40, 120, 250];
        let who = dice.index(REPLICAS);
        match self {
            Self::Kill(_) => Self::Kill(who),
            Self::KillGuardian(_) => Self::KillGuardian(who),
            Self::FreezeShortly(_) => Self::FreezeShortly(who),
            Self::Freeze(_) => Self::Freeze(who),
            Self::Drain(_) => Self::Drain(who),
            Self::Cut(_) => Self::Cut(who),
            Self::BlackHole(_) => Self::BlackHole(who),
            Self::LoseReplies(_) => Self::LoseReplies(who),
            Self::Slow(..) => Self::Slow(who, DELAYS_MS[dice.index(DELAYS_MS.len())]),
            Self::Stall(_) => Self::Stall(who),
            Self::BreakReply(_) => Self::BreakReply(who),
            Self::ShiftClock(..) => Self::ShiftClock(who, SHIFTS_MS[dice.index(SHIFTS_MS.len())]),
            of_all => of_all,
        }
    }

    /// The same, with a victim, from this time on.
    fn drawn(self, begins_ms: u64, dice: &mut Dice) -> Strike {
        let fault = self.of(dice);
        Strike {
            fault,
            begins_ms,
            ends_ms: begins_ms + dice.between(fault.lasts()),
        }
    }

    /// The shortest that it lasts and the longest, in milliseconds.
    fn lasts(self) -> (u64, u64) {
        match self {
            Self::KillHolder => (500, 1_000),
            Self::Kill(_) | Self::Drain(_) => (100, 2_000),
            Self::FreezeShortly(_) => (200, 2_000),
            Self::Freeze(_) => (3_300, 6_000),
            Self::FreezeHolder => (4_000, 5_000),
            Self::Cut(_) | Self::BlackHole(_) => (300, 5_000),
            Self::LoseReplies(_) | Self::Slow(..) | Self::Stall(_) => (500, 3_000),
            Self::BreakReply(_) => (500, 500),
            Self::ShiftClock(..) => (1_000, 6_000),
            Self::FreezeServerShortly => (200, 1_500),
            Self::FreezeServer => (3_300, 5_000),
            Self::KillServer => (100, 1_500),
            // Time to read it.
            Self::Reload => (800, 800),
            Self::KillGuardian(_) | Self::Flush | Self::ForgetScripts | Self::KillClients => (0, 0),
        }
    }

    /// How long its target is left alone after it. A server that just came back grants nothing for a
    /// while: were it killed again and again, nothing else would be seen.
    fn rest_ms(self) -> u64 {
        match self {
            Self::KillServer | Self::Flush | Self::FreezeServer => 9_000,
            Self::KillGuardian(_) | Self::Reload => 1_000,
            _ => 400,
        }
    }

    /// All that the ledger had is gone with it.
    pub(crate) fn loses_data(self, store: Store) -> bool {
        store == Store::Forgets && matches!(self, Self::KillServer | Self::Flush)
    }

    /// A replica starts when it is over.
    fn ends_with_a_start(self) -> bool {
        matches!(self, Self::Kill(_) | Self::KillHolder | Self::Drain(_))
    }

    /// Keeps a replica from knowing or telling anything.
    fn silences(self) -> Option<usize> {
        match self.target() {
            Target::Daemon(who) | Target::Link(who) => Some(who),
            _ => None,
        }
    }
}

/// A fault in the life of a fleet. Times are counted from when all replicas are ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strike {
    pub(crate) fault: Fault,
    pub(crate) begins_ms: u64,
    pub(crate) ends_ms: u64,
}

/// From one fault to the next.
const APART_MS: (u64, u64) = (150, 800);

/// The first comes when jobs run, and on a new ledger the first leases were granted.
const FIRST_MS: u64 = 1_500;

/// The first fault, and one each so often, is of somebody at work while nothing else is broken: only then
/// there is a bound on a takeover. So long after the last fault all is well, after one of the server so long, and so long it is left alone.
const ALONE_EVERY_MS: u64 = 10_000;
const WELL_MS: u64 = 2_600;
const SERVER_WELL_MS: u64 = 5_600;
const LEFT_ALONE_MS: u64 = 5_500;

/// How often to look for a fault that fits.
const DRAWS: usize = 12;

/// Around a loss of data, nobody may start: a replica that comes to a ledger that was just lost,
/// before those that lived through it, is what the guarantees exclude. Before it and after it.
const NO_START_MS: (u64, u64) = (2_500, 4_000);

/// After a loss at least so many replicas tell what they know, from before it until new grants.
const WITNESSES: usize = 2;
const TELLING_MS: (u64, u64) = (1_500, 5_000);

/// Draws faults that all are over after so long.
pub(crate) fn draw(seed: u64, length_ms: u64) -> Vec<Strike> {
    let store = Store::of(seed);
    let mut dice = Dice::new(seed);
    let mut plan: Vec<Strike> = Vec::new();
    let mut deck: Vec<Fault> = Vec::new();
    let mut at = FIRST_MS;
    let is_fit =
        |strike: &Strike, plan: &[Strike]| strike.ends_ms <= length_ms && fits(strike, plan, store);
    let mut alone_at = FIRST_MS;
    // Two of each kind of server begin otherwise.
    let mut alone_turns = usize::from((seed / 2).is_multiple_of(2));
    while at < length_ms {
        if at >= alone_at {
            let rest = |one: &Strike| one.fault.rest_ms().clamp(WELL_MS, SERVER_WELL_MS);
            let over = plan.iter().map(|one| one.ends_ms + rest(one));
            alone_turns += 1;
            let alone = [Fault::KillHolder, Fault::FreezeHolder][alone_turns % 2]
                .drawn(over.max().unwrap_or(at).max(at), &mut dice);
            at = alone.begins_ms + LEFT_ALONE_MS;
            alone_at = at + ALONE_EVERY_MS;
            if is_fit(&alone, &plan) {
                plan.push(alone);
            }
            continue;
        }
        // A kind that doesn't fit now comes later: all have had their turn before any has it again.
        if deck.is_empty() {
            deck = Fault::all(store);
            dice.shuffle(&mut deck);
        }
        let fitting = (0..DRAWS).find_map(|_| {
            let place = dice.index(deck.len());
            let strike = deck[place].drawn(at, &mut dice);
            is_fit(&strike, &plan).then_some((Some(place), strike))
        });
        // Where none of those that are left fits, any of a replica's may have another turn.
        let fitting = fitting.or_else(|| {
            let mut all = Fault::all(store);
            all.retain(|fault| fault.target() != Target::Server);
            let strike = all[dice.index(all.len())].drawn(at, &mut dice);
            is_fit(&strike, &plan).then_some((None, strike))
        });
        if let Some((place, strike)) = fitting {
            place.map(|place| deck.swap_remove(place));
            plan.push(strike);
        }
        at += dice.between(APART_MS);
    }
    plan
}

fn fits(strike: &Strike, plan: &[Strike], store: Store) -> bool {
    let is_free = plan.iter().all(|other| {
        other.fault.target() != strike.fault.target()
            || other.ends_ms + other.fault.rest_ms() <= strike.begins_ms
    });
    let mut with_it = plan.to_vec();
    with_it.push(strike.clone());
    is_free && losses_have_witnesses(&with_it, store)
}

/// What the guarantees assume of a loss of data.
fn losses_have_witnesses(plan: &[Strike], store: Store) -> bool {
    let losses = plan.iter().filter(|one| one.fault.loses_data(store));
    losses.into_iter().all(|loss| {
        let around = |(before, after): (u64, u64)| {
            loss.begins_ms.saturating_sub(before)..=loss.ends_ms + after
        };
        let (no_start, telling) = (around(NO_START_MS), around(TELLING_MS));
        let starts = plan
            .iter()
            .any(|one| one.fault.ends_with_a_start() && no_start.contains(&one.ends_ms));
        let is_silenced = |who: usize| {
            plan.iter().any(|one| {
                one.fault.silences() == Some(who)
                    && one.begins_ms <= *telling.end()
                    && one.ends_ms >= *telling.start()
            })
        };
        let witnesses = (0..REPLICAS).filter(|who| !is_silenced(*who)).count();
        !starts && witnesses >= WITNESSES
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const MINUTE_MS: u64 = 60_000;

    #[test]
    fn a_seed_draws_the_same_faults_again_and_another_draws_others() {
        assert_eq!(draw(7, MINUTE_MS), draw(7, MINUTE_MS));
        assert_ne!(draw(7, MINUTE_MS), draw(9, MINUTE_MS));
    }

    #[test]
    fn two_minutes_have_every_kind_and_many_at_a_time() {
        for seed in 0..20 {
            let plan = draw(seed, 2 * MINUTE_MS);
            let drawn: BTreeSet<&str> = plan.iter().map(|one| one.fault.kind()).collect();
            for fault in Fault::all(Store::of(seed)) {
                assert!(drawn.contains(fault.kind()), "{seed}: no {}", fault.kind());
            }
            let at_a_time = |at: u64| {
                let strikes = plan.iter();
                strikes.filter(move |one| one.begins_ms <= at && at <= one.ends_ms)
            };
            let most = plan.iter().map(|one| at_a_time(one.begins_ms).count());
            assert!(most.max() >= Some(4), "{seed}");
        }
    }

    #[test]
    fn no_target_is_struck_twice_at_a_time_and_all_is_over_in_time() {
        for seed in 0..50 {
            let plan = draw(seed, MINUTE_MS);
            for (number, one) in plan.iter().enumerate() {
                assert!(one.ends_ms <= MINUTE_MS);
                let same = |other: &&Strike| other.fault.target() == one.fault.target();
                for other in plan[..number].iter().filter(same) {
                    assert!(other.ends_ms < one.begins_ms, "{seed}: {other:?} {one:?}");
                }
            }
        }
    }

    #[test]
    fn a_start_beside_a_loss_of_data_and_one_without_witnesses_are_refused() {
        let loss = Strike {
            fault: Fault::Flush,
            begins_ms: 10_000,
            ends_ms: 10_000,
        };
        let strike = |fault, begins_ms, ends_ms| Strike {
            fault,
            begins_ms,
            ends_ms,
        };
        let fits = |plan: &[Strike]| losses_have_witnesses(plan, Store::Forgets);
        let kill = |ends_ms| strike(Fault::Kill(1), 5_000, ends_ms);
        assert!(fits(&[loss.clone(), kill(7_000)]));
        assert!(!fits(&[loss.clone(), kill(9_000)]));
        let cut = |who| strike(Fault::BlackHole(who), 9_500, 12_000);
        assert!(fits(&[loss.clone(), cut(0), cut(1), cut(2)]));
        assert!(!fits(&[loss, cut(0), cut(1), cut(2), cut(3)]));
    }
}
