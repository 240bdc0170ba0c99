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

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use uuid::Uuid;

use super::error::AcquireError;
use crate::scheduler::lease::{
    Answered, BATCH_LIMIT, Busy, Caller, FencingToken, HeldName, Hold, LeaseAnswer, LeaseName,
    LeaseRequest, Replica,
};
use crate::scheduler::margins::{self, Margins};
use crate::scheduler::store_clock::StoreClock;
use crate::scheduler::time::{BootTime, Timestamp};
use crate::scheduler::watch::{dead_at, watch_delay};
use crate::store::StoreError;

/// How long somebody who waits is kept in line without being heard of: half of its lease, so that
/// one that has died holds up nobody for longer than a holder would.
fn kept_in_line(ttl: Duration) -> Duration {
    (ttl / 2).clamp(Duration::from_secs(1), Duration::from_secs(10))
}

/// How long after a call that failed who waits asks again.
const RETRY: Duration = Duration::from_millis(250);

/// A grace window that even who doesn't wait waits for: that of a ledger which is new.
const SHORT_GRACE: Duration = Duration::from_millis(1200);

/// For how long a store that is away is told what is held no more. Then that runs out by itself.
const LEAVING_LIMIT: Duration = Duration::from_secs(5);

/// What was renewed so lately is not renewed for news alone, which may come often.
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
    /// How long it lasts from one renewal to the next.
    pub ttl: Duration,
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

#[derive(Debug)]
enum State {
    Wanted {
        patience: Patience,
        /// The store may have it in line, or have granted it.
        known: bool,
        /// Nobody wants it any more.
        given_up: bool,
        why: Option<AcquireError>,
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
    token_floor: FencingToken,
    grace_until: BootTime,
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
            token_floor: FencingToken::default(),
            grace_until: BootTime::default(),
            effects: VecDeque::new(),
        }
    }

    /// Somebody wants a hold.
    pub fn acquire(&mut self, hold: Hold, patience: Patience, now: BootTime) {
        let id = hold.id;
        let entry = Entry {
            hold,
            state: State::Wanted {
                patience,
                known: false,
                given_up: false,
                why: None,
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
        self.look(|state, ttl| match state {
            State::Held { renew_at, .. } => {
                let renewed = *renew_at - margins_of(ttl).renewal_interval();
                now >= renewed + RENEWED_LATELY
            }
            State::Wanted { .. } | State::Leaving { .. } => true,
        });
    }

    /// What was heard of others may have been missed: all is asked and renewed anew.
    pub fn disturbed(&mut self) {
        self.look(|_, _| true);
    }

    fn look(&mut self, is_concerned: impl Fn(&State, Duration) -> bool) {
        let concerned = self.entries.iter();
        let concerned = concerned.filter(|(_, one)| is_concerned(&one.state, one.hold.ttl));
        let ids: Vec<Uuid> = concerned.map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.act(id));
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
    }

    /// When the time alone has something follow.
    pub fn next_wakeup(&self) -> Option<BootTime> {
        self.timers.first().map(|(at, _)| *at)
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
                patience: Patience::Until(until),
                given_up: false,
                why,
                ..
            } if *until <= now => {
                let why = why.take().unwrap_or(AcquireError::TimedOut);
                self.tell(id, Word::Refused(why));
                self.release(id, now);
                // Its release is nobody's news.
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
        entry.again |= entry.busy;
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

    fn send(&mut self, now: BootTime) {
        if !self.asking {
            let asked = self.batch(Kind::Asking, now);
            self.asking = self.call(Kind::Asking, asked, now);
        }
        if !self.keeping {
            let asked = self.batch(Kind::Keeping, now);
            self.keeping = self.call(Kind::Keeping, asked, now);
        }
    }

    /// The next requests of a kind: as many as one call takes.
    fn batch(&mut self, kind: Kind, now: BootTime) -> Vec<LeaseRequest> {
        let mut requests = Vec::new();
        let mut names = 0;
        let mut later = VecDeque::new();
        while let Some(id) = self.queue(kind).pop_front() {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            names += entry.hold.names.len();
            if names > BATCH_LIMIT {
                later.push_back(id);
                break;
            }
            entry.queued = false;
            entry.again = false;
            let Some(request) = self.request(kind, id, now) else {
                // It has come to want something else meanwhile.
                self.act(id);
                continue;
            };
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.busy = true;
                if let State::Wanted { known, .. } = &mut entry.state {
                    *known = true;
                }
            }
            self.plan(id, None, now);
            requests.push(request);
        }
        later.append(self.queue(kind));
        *self.queue(kind) = later;
        requests
    }

    fn queue(&mut self, kind: Kind) -> &mut VecDeque<Uuid> {
        match kind {
            Kind::Asking => &mut self.asks,
            Kind::Keeping => &mut self.keeps,
        }
    }

    fn request(&self, kind: Kind, id: Uuid, now: BootTime) -> Option<LeaseRequest> {
        let entry = self.entries.get(&id)?;
        let hold = entry.hold.clone();
        match (&entry.state, kind) {
            (State::Wanted { patience, .. }, Kind::Asking) => Some(LeaseRequest::Acquire {
                waits: (*patience != Patience::None).then(|| kept_in_line(hold.ttl)),
                dead: self.dead(entry, now),
                hold,
            }),
            (
                State::Held {
                    token, deadline, ..
                },
                Kind::Keeping,
            ) => Some(LeaseRequest::Renew {
                hold,
                token: *token,
                last_deadline: *deadline,
            }),
            (State::Leaving { .. }, Kind::Keeping) => Some(LeaseRequest::Release { hold }),
            _ => None,
        }
    }

    fn call(&mut self, kind: Kind, requests: Vec<LeaseRequest>, now: BootTime) -> bool {
        if requests.is_empty() {
            return false;
        }
        let ttls = requests.iter().map(|one| one.hold().ttl);
        let (shortest, longest) = (ttls.clone().min(), ttls.max());
        let timeout = shortest.map_or(CALL_TIMEOUT, |ttl| {
            margins_of(ttl).call_timeout().min(CALL_TIMEOUT)
        });
        let longest = longest.unwrap_or(margins::SHORTEST_TTL);
        let caller = Caller {
            replica: self.replica.clone(),
            quarantine: longest + margins_of(longest).call_timeout(),
            token_floor: self.token_floor,
            send_by: self.clock.reached(now).map(|reached| reached + timeout),
            held_back: self.grace_until.saturating_since(now),
        };
        self.effects.push_back(Effect::Call {
            kind,
            caller,
            requests,
            timeout,
        });
        true
    }

    /// What stands in the way of an entry, and has stood so for long enough.
    fn dead(&self, entry: &Entry, now: BootTime) -> Vec<HeldName> {
        let seen = entry.seen.values();
        let dead = seen.filter(|(held, since)| self.dead_at(held, *since) <= now);
        dead.map(|(held, _)| held.clone()).collect()
    }

    /// When a holder may be taken for dead, if it stays as it is.
    fn dead_at(&self, held: &HeldName, since: BootTime) -> BootTime {
        let dead = dead_at(held.sighting, held.ttl, since, &self.clock);
        match self.healthy_since {
            // Who has just come back from a partition looks before it takes.
            Some(healthy) => dead.max(healthy + held.ttl / 6 + watch_delay(held.ttl)),
            None => dead,
        }
    }

    /// What came of a call.
    pub fn answered(
        &mut self,
        kind: Kind,
        requests: &[LeaseRequest],
        result: Result<Answered<Vec<LeaseAnswer>>, StoreError>,
        sent: BootTime,
        now: BootTime,
    ) {
        match kind {
            Kind::Asking => self.asking = false,
            Kind::Keeping => self.keeping = false,
        }
        for request in requests {
            if let Some(entry) = self.entries.get_mut(&request.hold().id) {
                entry.busy = false;
            }
        }
        self.take_in(requests, result, sent, now);
        for request in requests {
            let id = request.hold().id;
            let entry = self.entries.get_mut(&id);
            if entry.is_some_and(|entry| std::mem::take(&mut entry.again)) {
                self.act(id);
                self.plan(id, None, now);
            }
        }
    }

    fn take_in(
        &mut self,
        requests: &[LeaseRequest],
        result: Result<Answered<Vec<LeaseAnswer>>, StoreError>,
        sent: BootTime,
        now: BootTime,
    ) {
        match result {
            Ok(answered) => {
                self.healthy_since.get_or_insert(now);
                let jumped = self.clock.learn(sent, now, answered.now).is_some();
                for (request, answer) in requests.iter().zip(answered.answer) {
                    self.heard(request, answer, sent, now);
                }
                if jumped {
                    self.disturbed();
                }
            }
            Err(error) => {
                self.healthy_since = None;
                for request in requests {
                    self.failed(request.hold().id, &error, now);
                }
            }
        }
    }

    fn failed(&mut self, id: Uuid, error: &StoreError, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let ttl = entry.hold.ttl;
        let is_away = matches!(error, StoreError::Unreachable { .. });
        match &mut entry.state {
            State::Wanted { given_up: true, .. } | State::Held { leaves: true, .. } => {
                self.leave(id, now);
            }
            State::Wanted { patience, why, .. } => {
                let refused = AcquireError::Store(error.clone());
                if *patience == Patience::None || !is_away {
                    self.tell(id, Word::Refused(refused));
                    self.leave(id, now);
                } else {
                    *why = Some(refused);
                    self.plan(id, Some(now + spread(RETRY, id)), now);
                }
            }
            State::Held { .. } => {
                let next = now + margins_of(ttl).renewal_retry();
                self.plan(id, Some(next), now);
            }
            State::Leaving { until } if *until <= now => self.forget(id, Some(Word::Released)),
            State::Leaving { .. } => self.plan(id, Some(now + spread(RETRY, id)), now),
        }
    }

    fn heard(
        &mut self,
        request: &LeaseRequest,
        answer: LeaseAnswer,
        sent: BootTime,
        now: BootTime,
    ) {
        let id = request.hold().id;
        match answer {
            LeaseAnswer::Granted {
                token,
                deadline,
                remaining,
            } => self.granted(id, (token, deadline), (sent, remaining), now),
            LeaseAnswer::Renewed {
                deadline,
                remaining,
            } => self.renewed(id, deadline, (sent, remaining), now),
            LeaseAnswer::Lost => self.heard_of_loss(id),
            LeaseAnswer::Released => self.forget(id, Some(Word::Released)),
            LeaseAnswer::Busy(busy) => self.not_yet(id, now, |holds| holds.wait_for(id, busy, now)),
            LeaseAnswer::Grace { wait } => {
                self.grace_until = self.grace_until.max(sent + wait);
                self.not_yet(id, now, |holds| holds.wait_out(id, wait, now));
            }
            LeaseAnswer::Expired => self.not_yet(id, now, |holds| {
                holds.plan(id, Some(now + spread(RETRY / 10, id)), now);
            }),
            LeaseAnswer::Full { name } => self.refuse(id, AcquireError::Full { name }, now),
            LeaseAnswer::Upgrade { name } => self.refuse(id, AcquireError::Upgrade { name }, now),
        }
    }

    /// It is not granted: whoever gave up meanwhile leaves, all others go on.
    fn not_yet(&mut self, id: Uuid, now: BootTime, go_on: impl FnOnce(&mut Self)) {
        match self.entries.get(&id).map(|entry| &entry.state) {
            Some(State::Wanted { given_up: true, .. }) => self.leave(id, now),
            Some(State::Wanted { .. }) => go_on(self),
            Some(State::Held { .. } | State::Leaving { .. }) | None => {}
        }
    }

    fn refuse(&mut self, id: Uuid, why: AcquireError, now: BootTime) {
        self.not_yet(id, now, |holds| {
            holds.tell(id, Word::Refused(why));
            holds.leave(id, now);
        });
    }

    /// Somebody has it, or came first.
    fn wait_for(&mut self, id: Uuid, busy: Busy, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let State::Wanted { patience, why, .. } = &mut entry.state else {
            return;
        };
        if *patience == Patience::None {
            self.forget(id, Some(Word::Refused(AcquireError::Busy(busy))));
            return;
        }
        // What is told when its time is up.
        *why = None;
        let mut before = std::mem::take(&mut entry.seen);
        for held in busy.held {
            let key = (held.name.clone(), held.hold);
            let known = before.remove(&key);
            let since = known.filter(|(known, _)| known.sighting == held.sighting);
            let since = since.map_or(now, |(_, since)| since);
            entry.seen.insert(key, (held, since));
        }
        let kept = now + kept_in_line(entry.hold.ttl) / 3;
        let entry = &self.entries[&id];
        let watched = entry.seen.values();
        let dead = watched.map(|(held, since)| self.dead_at(held, *since));
        let dead = dead.max().filter(|_| busy.ahead == 0);
        let given_up = busy.ahead_until.and_then(|until| {
            let after = until + Duration::from_millis(1);
            self.clock.boot_time_of(after)
        });
        let next = [Some(kept), dead, given_up].into_iter().flatten().min();
        let soonest = now + Duration::from_millis(1);
        self.plan(id, next.map(|next| next.max(soonest)), now);
    }

    /// Nothing is granted for a while.
    fn wait_out(&mut self, id: Uuid, wait: Duration, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let kept = kept_in_line(entry.hold.ttl) / 3;
        let State::Wanted { patience, why, .. } = &mut entry.state else {
            return;
        };
        let next = match *patience {
            Patience::None if wait <= SHORT_GRACE => wait,
            Patience::None => {
                self.forget(id, Some(Word::Refused(AcquireError::Grace { wait })));
                return;
            }
            Patience::Until(_) | Patience::Endless => wait.min(kept),
        };
        *why = Some(AcquireError::Grace { wait });
        self.plan(id, Some(now + next), now);
    }

    fn granted(
        &mut self,
        id: Uuid,
        (token, deadline): (FencingToken, Timestamp),
        (sent, remaining): (BootTime, Duration),
        now: BootTime,
    ) {
        self.token_floor = self.token_floor.max(token);
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let State::Wanted { given_up, .. } = entry.state else {
            return;
        };
        if given_up {
            self.leave(id, now);
            return;
        }
        let ttl = entry.hold.ttl;
        let trust = margins_of(ttl).trust_until(sent, remaining);
        if trust <= now {
            // It may not be renewed either: a ledger that fell back to an older state may show what
            // somebody else has since taken over.
            self.refuse(id, AcquireError::Late, now);
            return;
        }
        entry.seen.clear();
        let renew_at = sent + margins_of(ttl).renewal_interval();
        entry.state = State::Held {
            token,
            deadline,
            trust,
            renew_at,
            leaves: false,
        };
        let trust = Trust { until: trust, ttl };
        self.tell(id, Word::Granted(Granted { token, trust }));
        self.plan(id, Some(renew_at), now);
    }

    fn renewed(
        &mut self,
        id: Uuid,
        renewed: Timestamp,
        (sent, remaining): (BootTime, Duration),
        now: BootTime,
    ) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let ttl = entry.hold.ttl;
        let State::Held {
            deadline,
            trust,
            renew_at,
            leaves,
            ..
        } = &mut entry.state
        else {
            // It was lost, or given back, meanwhile.
            self.act(id);
            return;
        };
        *deadline = renewed;
        *trust = (*trust).max(margins_of(ttl).trust_until(sent, remaining));
        *renew_at = sent + margins_of(ttl).renewal_interval();
        let (until, next) = (*trust, *renew_at);
        if *leaves {
            self.leave(id, now);
            return;
        }
        self.tell(id, Word::Trusted(Trust { until, ttl }));
        self.plan(id, Some(next), now);
    }

    /// The store says that it is somebody else's, or nobody's.
    fn heard_of_loss(&mut self, id: Uuid) {
        let Some(entry) = self.entries.get(&id) else {
            return;
        };
        match entry.state {
            State::Held { leaves: true, .. } | State::Leaving { .. } => {
                self.forget(id, Some(Word::Released));
            }
            State::Held { .. } => self.forget(id, Some(Word::Lost)),
            State::Wanted { .. } => {}
        }
    }
}

/// The margins of a hold, whose TTL is checked when it is wanted.
fn margins_of(ttl: Duration) -> Margins {
    Margins::of(ttl.clamp(margins::SHORTEST_TTL, margins::LONGEST_TTL))
}

/// Up to twice as long, by what an id happens to be: who failed together does not come together.
fn spread(wait: Duration, id: Uuid) -> Duration {
    let [.., part] = id.into_bytes();
    wait + wait * u32::from(part) / 256
}
