//! What one client holds and waits for, as a pure state machine: what happens and the time go in,
//! calls to the store and word to those who wait come out.
//!
//! ```text
//!   wanted ──granted──▶ held ──renewed, each TTL/6──▶ held
//!     │ ▲ busy: again       │        when it is its turn, when a holder is dead,
//!     │ └────────────       │        or to be kept in line
//!     │ time is up          │ given back, refused, or no longer to be trusted
//!     ▼                     ▼
//!   leaving ──────────▶ nothing
//! ```
//!
//! A hold is trusted by the arithmetic of all leases ([`Margins`]): from before its request was
//! sent, and not to its end. Another's is taken for dead as by [`crate::scheduler`].
//!
//! Must never: read a clock, wait, or send a release before the answer to what asked for it: the
//! two may overtake each other.

mod hearing;
mod sending;
mod sweeping;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use uuid::Uuid;

use self::sweeping::Sweep;

use super::error::AcquireError;
use crate::scheduler::lease::{
    Caller, FencingToken, HeldName, Hold, LeaseName, LeaseRequest, Replica,
};
use crate::scheduler::margins::{self, Margins};
use crate::scheduler::store_clock::StoreClock;
use crate::scheduler::time::{BootTime, Timestamp};

/// How long somebody who waits is kept in line without being heard of: half of its lease, so that
/// one that has died holds up nobody for longer than a holder would.
fn kept_in_line(ttl: Duration) -> Duration {
    (ttl / 2).clamp(Duration::from_secs(1), Duration::from_secs(10))
}

/// How long after a call that failed who waits asks again; twice as long after each further one that
/// failed, so that a store which can't keep up with all who ask gets on with those it has.
const RETRY: Duration = Duration::from_millis(250);

/// How often that is doubled.
const RETRY_DOUBLINGS: u32 = 2;

/// How many may stand before one that asks as often as it can. Behind them it asks as seldom as it may:
/// its turn doesn't come soon, and a line is written as a whole.
const NEAR_THE_FRONT: usize = 8;

/// A grace window that even who doesn't wait waits for: that of a ledger which is new.
const SHORT_GRACE: Duration = Duration::from_millis(1200);

/// For how long a store that is away is told what is held no more. Then that runs out by itself.
const LEAVING_LIMIT: Duration = Duration::from_secs(2);

/// What was renewed so lately is not renewed at once for news alone, which may come often.
const RENEWED_LATELY: Duration = Duration::from_millis(500);

/// How long a call may take; less where leases are short.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Which of two kinds of calls. They don't wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Acquisitions.
    Asking,
    /// Renewals and releases.
    Keeping,
}

/// What is wanted done.
#[derive(Debug)]
pub enum Effect {
    /// Ask the store, and bring the answer back.
    Call {
        /// Of the two, which.
        kind: Kind,
        /// Who asks.
        caller: Caller,
        /// What.
        requests: Vec<LeaseRequest>,
        /// How long it may take.
        timeout: Duration,
    },
    /// See how all names stand, and bring that back.
    Survey,
    /// Have names forgotten that nobody has or wants, and holders taken away that are dead.
    Tidy {
        /// Who asks.
        caller: Caller,
        /// Which names.
        names: Vec<LeaseName>,
        /// Whom.
        dead: Vec<HeldName>,
    },
    /// Let whoever has or wants a hold know.
    Tell(Uuid, Word),
}

/// What whoever has or wants a hold is told.
#[derive(Debug)]
pub enum Word {
    /// It is its.
    Granted(Granted),
    /// It was renewed.
    Trusted(Trust),
    /// It is not to be used any more.
    Lost,
    /// It is not to have it.
    Refused(AcquireError),
    /// It is given back, or will run out by itself.
    Released,
}

impl Patience {
    /// For how long a place is kept: not for who has given up by then, so that those behind it wait
    /// for no word of that.
    fn bounds(self, kept: Duration, now: BootTime) -> Duration {
        match self {
            Self::Until(until) => kept.min(until.saturating_since(now)),
            Self::None | Self::Endless => kept,
        }
    }

    fn is_over(self, now: BootTime) -> bool {
        matches!(self, Self::Until(until) if until <= now)
    }
}

/// What was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// Its token.
    pub token: FencingToken,
    /// Until when it may be used, at first.
    pub trust: Trust,
}

/// Until when a lease may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// Nothing may be done under it after that.
    pub until: BootTime,
}

/// For how long somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all.
    None,
    /// Until then.
    Until(BootTime),
    /// As long as it takes.
    Endless,
}

#[derive(Debug)]
struct Entry {
    hold: Hold,
    /// When it was wanted first.
    since: BootTime,
    state: State,
    /// What was seen of others in the way, and since when it has stood so.
    seen: HashMap<(LeaseName, Uuid), (HeldName, BootTime)>,
    /// A request of it is on its way.
    busy: bool,
    /// There was a reason to ask while it was: what its answer goes by may be older.
    again: bool,
    /// It waits for the next call.
    queued: bool,
    /// When there is something to do.
    at: Option<BootTime>,
}

impl Entry {
    /// Until when what is held counts as renewed lately: no later than it has something to do
    /// anyway. None of what isn't held, or is just being renewed.
    fn renewed_until(&self) -> Option<BootTime> {
        match self.state {
            State::Held { renew_at, .. } if !self.busy => {
                let renewed = renew_at - margins_of(self.hold.ttl).renewal_interval();
                let soon = renewed + RENEWED_LATELY;
                Some(self.at.map_or(soon, |at| at.min(soon)))
            }
            _ => None,
        }
    }
}

#[derive(Debug)]
enum State {
    Wanted {
        patience: Patience,
        /// The store may have it in line, or have granted it.
        known: bool,
        /// Nobody wants it any more.
        given_up: bool,
        /// The time to wait is over: it is asked once more, without waiting.
        late: bool,
        /// It was not granted before that: none, where nobody was asked yet.
        asked_since: Option<BootTime>,
    },
    Held {
        token: FencingToken,
        deadline: Timestamp,
        trust: BootTime,
        renew_at: BootTime,
        /// It is to be given back as soon as it can be.
        leaves: bool,
    },
    Leaving {
        until: BootTime,
    },
}

/// All holds of one client.
#[derive(Debug)]
pub struct Holds {
    replica: Replica,
    clock: StoreClock,
    entries: BTreeMap<Uuid, Entry>,
    /// When entries have something to do.
    timers: BTreeSet<(BootTime, Uuid)>,
    /// Those that are to be asked about next, in order.
    asks: VecDeque<Uuid>,
    keeps: VecDeque<Uuid>,
    asking: bool,
    keeping: bool,
    healthy_since: Option<BootTime>,
    /// Calls in a row that failed, or came too late.
    failures: u32,
    token_floor: FencingToken,
    grace_until: BootTime,
    sweep: Sweep,
    effects: VecDeque<Effect>,
}

impl Holds {
    /// None yet, of a client of this name.
    pub fn new(replica: Replica) -> Self {
        Self {
            replica,
            clock: StoreClock::default(),
            entries: BTreeMap::new(),
            timers: BTreeSet::new(),
            asks: VecDeque::new(),
            keeps: VecDeque::new(),
            asking: false,
            keeping: false,
            healthy_since: None,
            failures: 0,
            token_floor: FencingToken::default(),
            grace_until: BootTime::default(),
            sweep: Sweep::default(),
            effects: VecDeque::new(),
        }
    }

    /// Somebody wants a hold, `since` then: also under another id.
    pub fn acquire(&mut self, hold: Hold, patience: Patience, since: BootTime, now: BootTime) {
        let over = patience.is_over(now);
        let patience = if over { Patience::None } else { patience };
        let id = hold.id;
        let entry = Entry {
            hold,
            since,
            state: State::Wanted {
                patience,
                known: false,
                given_up: false,
                // Who never waited is told that it is busy, and no more.
                late: over && since < now,
                asked_since: None,
            },
            seen: HashMap::new(),
            busy: false,
            again: false,
            queued: false,
            at: None,
        };
        self.entries.insert(id, entry);
        self.act(id);
        self.plan(id, None, now);
    }

    /// A hold is needed, or wanted, no more.
    pub fn release(&mut self, id: Uuid, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            self.tell(id, Word::Released);
            return;
        };
        if mutant!(LeavesUnheard) {
            entry.busy = false;
        }
        match &mut entry.state {
            State::Wanted { given_up, .. } if entry.busy => *given_up = true,
            State::Wanted { known: false, .. } => self.forget(id, Some(Word::Released)),
            State::Held { leaves, .. } if entry.busy => *leaves = true,
            State::Wanted { .. } | State::Held { .. } => self.leave(id, now),
            State::Leaving { .. } => {}
        }
    }

    /// It is the turn of one that waits.
    pub fn turn(&mut self, id: Uuid, now: BootTime) {
        let waits = |entry: &Entry| matches!(entry.state, State::Wanted { .. });
        if self.entries.get(&id).is_some_and(waits) {
            self.act(id);
            self.plan(id, None, now);
        }
    }

    /// It may be the turn of any that waits, or the ledger be another one, into which what is held
    /// has to be written anew.
    pub fn opening(&mut self, now: BootTime) {
        for id in self.ids() {
            match self.entries.get(&id).and_then(Entry::renewed_until) {
                Some(soon) if now < soon => self.plan(id, Some(soon), now),
                _ => self.act(id),
            }
        }
    }

    /// What was heard of others may have been missed: all is asked and renewed anew.
    pub fn disturbed(&mut self) {
        self.ids().into_iter().for_each(|id| self.act(id));
    }

    /// Nothing is held or wanted.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All that there are.
    pub fn ids(&self) -> Vec<Uuid> {
        self.entries.keys().copied().collect()
    }

    /// What follows from the time.
    pub fn advance(&mut self, now: BootTime) {
        while let Some((at, id)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, id));
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.at = None;
            }
            self.due(id, now);
        }
        self.send(now);
        self.sweep(now);
    }

    /// When the time alone has something follow.
    pub fn next_wakeup(&self) -> Option<BootTime> {
        let timer = self.timers.first().map(|(at, _)| *at);
        timer.into_iter().chain(self.sweep.next_at()).min()
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// An instant of an entry has come.
    fn due(&mut self, id: Uuid, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        match &mut entry.state {
            State::Held { trust, .. } if *trust <= now => self.lose(id, now),
            State::Wanted {
                patience,
                given_up: false,
                late,
                ..
            } if patience.is_over(now) => {
                *patience = Patience::None;
                *late = true;
                if !entry.busy {
                    self.act(id);
                }
                self.plan(id, None, now);
            }
            State::Leaving { until } if *until <= now && !entry.busy => {
                self.forget(id, Some(Word::Released));
            }
            _ => {
                self.act(id);
                self.plan(id, None, now);
            }
        }
    }

    /// Its lease can't be trusted any more.
    fn lose(&mut self, id: Uuid, now: BootTime) {
        self.tell(id, Word::Lost);
        self.leave(id, now);
    }

    fn leave(&mut self, id: Uuid, now: BootTime) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.state = State::Leaving {
                until: now + LEAVING_LIMIT,
            };
            self.act(id);
            self.plan(id, None, now);
        }
    }

    fn forget(&mut self, id: Uuid, word: Option<Word>) {
        if let Some(entry) = self.entries.remove(&id)
            && let Some(at) = entry.at
        {
            self.timers.remove(&(at, id));
        }
        if let Some(word) = word {
            self.tell(id, word);
        }
    }

    fn tell(&mut self, id: Uuid, word: Word) {
        self.effects.push_back(Effect::Tell(id, word));
    }

    /// Has the store asked what there is to ask of an entry.
    fn act(&mut self, id: Uuid) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        entry.again |= entry.busy && !mutant!(MissesItsTurn);
        if entry.busy || std::mem::replace(&mut entry.queued, true) {
            return;
        }
        match entry.state {
            State::Wanted { .. } => self.asks.push_back(id),
            State::Held { .. } | State::Leaving { .. } => self.keeps.push_back(id),
        }
    }

    /// Sets when an entry has something to do: at `next`, or when its time is up.
    fn plan(&mut self, id: Uuid, next: Option<BootTime>, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let end = match &entry.state {
            State::Wanted {
                patience: Patience::Until(until),
                given_up: false,
                ..
            } => Some(*until),
            State::Wanted { .. } => None,
            State::Held { trust, .. } => Some(*trust),
            State::Leaving { until } => (*until > now).then_some(*until),
        };
        let at = next.into_iter().chain(end).min();
        if let Some(before) = std::mem::replace(&mut entry.at, at) {
            self.timers.remove(&(before, id));
        }
        if let Some(at) = at {
            self.timers.insert((at, id));
        }
    }
}

/// The margins of a hold, whose TTL is checked when it is wanted.
fn margins_of(ttl: Duration) -> Margins {
    Margins::of(ttl.clamp(margins::SHORTEST_TTL, margins::LONGEST_TTL))
}

/// How long after so many failures in a row it is tried again.
fn retry(first: Duration, failures: u32, id: Uuid) -> Duration {
    let doublings = failures.saturating_sub(1).min(RETRY_DOUBLINGS);
    spread(first * (1 << doublings), id)
}

/// Up to twice as long, by what an id happens to be: who failed together does not come together.
fn spread(wait: Duration, id: Uuid) -> Duration {
    let [.., part] = id.into_bytes();
    wait + wait * u32::from(part) / 256
}
