//! Clients of named leases in virtual time: the real core and the real rules, a network that
//! loses, delays and doubles, hosts that stand still, and a store that loses its data.
//!
//! Must never: let anything but the seed decide.

mod network;
mod users;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use soloist::clock::Clock;
use soloist::leases::holds::{Effect, Holds, Kind};
use soloist::scheduler::lease::{
    Answered, Caller, FencingToken, LeaseAnswer, LeaseRequest, NameState, Replica,
};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::store::memory::{Image, MemoryStore};
use soloist::store::{LeaseStore, StoreError, StoreEvent};
use tokio::sync::broadcast;
use uuid::Uuid;

use self::users::{User, UserState};
pub(super) use self::users::{Want, Who};
use crate::chance::Chance;

/// The store's clock.
#[derive(Debug)]
struct Hand(AtomicI64);

impl Hand {
    fn pass(&self, millis: i64) {
        self.0.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for Hand {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn boot(&self) -> BootTime {
        BootTime::default()
    }
}

/// What may go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Of a hundred messages, how many are lost.
    pub(super) lost: u64,
    /// How many are late by up to two seconds.
    pub(super) late: u64,
    /// How many arrive twice.
    pub(super) doubled: u64,
    /// Of a thousand steps, at how many a client stands still for up to forty seconds, or crashes.
    pub(super) frozen: u64,
    pub(super) crashed: u64,
    /// At how many the store loses its data, and its clock steps.
    pub(super) wiped: u64,
    pub(super) stepped: u64,
}

impl Faults {
    /// Nothing.
    pub(super) const NONE: Self = Self {
        lost: 0,
        late: 0,
        doubled: 0,
        frozen: 0,
        crashed: 0,
        wiped: 0,
        stepped: 0,
    };
}

enum Message {
    Request(Call),
    Answer(Call, Result<Answered<Vec<LeaseAnswer>>, StoreError>),
    /// The sender waits no longer.
    TimeOut(Call),
}

#[derive(Clone)]
struct Call {
    client: usize,
    life: u32,
    number: u64,
    kind: Kind,
    caller: Caller,
    requests: Vec<LeaseRequest>,
    sent: BootTime,
}

struct Client {
    holds: Holds,
    life: u32,
    /// It stands still until then.
    frozen_until: u64,
    /// Nothing that it sends arrives.
    cut_off: bool,
    cut_off_once_granted: bool,
    /// Nothing that it is sent arrives.
    deaf: bool,
    open: HashMap<Kind, u64>,
    events: broadcast::Receiver<StoreEvent>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    #[cfg(test)]
    pub(super) worlds: u64,
    pub(super) wanted: u64,
    pub(super) granted: u64,
    pub(super) lost: u64,
    pub(super) late: u64,
    /// Who would not wait, or not for so long, or may not have it alone.
    pub(super) refused: u64,
    /// Who waited no longer.
    pub(super) given_up: u64,
    /// Let in again.
    pub(super) again: u64,
    pub(super) crashes: u64,
    pub(super) wipes: u64,
    pub(super) tokens: Vec<FencingToken>,
    pub(super) order: Vec<Uuid>,
}

impl Seen {
    /// In another world.
    #[cfg(test)]
    pub(super) fn add(&mut self, other: &Self) {
        self.worlds += 1;
        self.wanted += other.wanted;
        self.granted += other.granted;
        self.lost += other.lost;
        self.late += other.late;
        self.refused += other.refused;
        self.given_up += other.given_up;
        self.again += other.again;
        self.crashes += other.crashes;
        self.wipes += other.wipes;
    }
}

/// The world.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) faults: Faults,
    pub(super) seen: Seen,
    /// What is not promised has happened: two have the same for a while.
    pub(super) overlaps: bool,
    pub(super) now_ms: u64,
    hand: Arc<Hand>,
    store: MemoryStore,
    empty: Image,
    saved: Image,
    clients: Vec<Client>,
    users: BTreeMap<Uuid, User>,
    /// Who had something, by which token.
    granted: Vec<(User, FencingToken)>,
    messages: BTreeMap<(u64, u64), Message>,
    number: u64,
}

/// At one instant nothing takes more steps than that.
const AT_ONCE: u32 = 10_000;

const START_MS: i64 = 1_800_000_000_000;

impl World {
    pub(super) fn new(seed: u64, clients: usize) -> Self {
        let hand = Arc::new(Hand(AtomicI64::new(START_MS)));
        let store = MemoryStore::new(Arc::clone(&hand) as Arc<dyn Clock>);
        let empty = store.image();
        let mut world = Self {
            chance: Chance::new(seed),
            faults: Faults::default(),
            seen: Seen::default(),
            overlaps: false,
            now_ms: 1000,
            hand,
            saved: empty.clone(),
            empty,
            store,
            clients: Vec::new(),
            users: BTreeMap::new(),
            granted: Vec::new(),
            messages: BTreeMap::new(),
            number: 0,
        };
        for number in 0..clients {
            let client = world.client(number, 0);
            world.clients.push(client);
        }
        world
    }

    fn client(&self, number: usize, life: u32) -> Client {
        let replica = Replica {
            id: Uuid::from_u128(u128::from(life) << 64 | number as u128),
            name: format!("client {number}"),
        };
        Client {
            holds: Holds::new(replica),
            life,
            frozen_until: 0,
            cut_off: false,
            cut_off_once_granted: false,
            deaf: false,
            open: HashMap::new(),
            events: LeaseStore::events(&self.store),
        }
    }

    fn boot(&self) -> BootTime {
        BootTime::since_boot(Duration::from_millis(self.now_ms))
    }

    /// Goes on by so long, a thing after the other.
    pub(super) fn run(&mut self, for_ms: u64) {
        let end = self.now_ms + for_ms;
        let mut at_once = 0;
        while let Some(next) = self.next_instant().filter(|next| *next <= end) {
            at_once = if next <= self.now_ms { at_once + 1 } else { 0 };
            assert!(
                at_once < AT_ONCE,
                "somebody does nothing else at {} ms",
                self.now_ms
            );
            self.pass_to(next.max(self.now_ms));
            self.mishap();
            self.happen();
        }
        self.pass_to(end);
    }

    fn pass_to(&mut self, at: u64) {
        let passed = at - self.now_ms;
        self.now_ms = at;
        self.hand
            .pass(i64::try_from(passed).expect("a short while"));
    }

    fn next_instant(&self) -> Option<u64> {
        let message = self.messages.keys().next().map(|(at, _)| *at);
        let timers = self.clients.iter().filter_map(|client| {
            let at = client.holds.next_wakeup()?.as_duration();
            let at = u64::try_from(at.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
            Some(at.max(client.frozen_until))
        });
        let users = self.users.values().filter_map(|user| {
            let next = user.acts_at()?;
            Some(next.max(self.clients[user.client].frozen_until))
        });
        message.into_iter().chain(timers).chain(users).min()
    }

    fn happen(&mut self) {
        while let Some(entry) = self
            .messages
            .first_entry()
            .filter(|one| one.key().0 <= self.now_ms)
        {
            let message = entry.remove();
            self.arrive(message);
        }
        for number in 0..self.clients.len() {
            if self.clients[number].frozen_until <= self.now_ms {
                self.hear_news(number);
                self.finish_users(number);
                self.settle(number);
            }
        }
    }

    fn mishap(&mut self) {
        let faults = self.faults;
        let of_thousand = |chance: &mut Chance, part: u64| chance.below(1000) < part;
        let client = self.chance.below(self.clients.len() as u64) as usize;
        if of_thousand(&mut self.chance, faults.frozen) {
            self.clients[client].frozen_until = self.now_ms + self.chance.below(40_000);
        }
        if of_thousand(&mut self.chance, faults.crashed) {
            self.crash(client);
        }
        if of_thousand(&mut self.chance, faults.wiped) {
            self.seen.wipes += 1;
            let image = match self.chance.percent(50) {
                true => self.empty.clone(),
                false => self.saved.clone(),
            };
            self.store.fall_back_to(image);
        } else if self.chance.percent(1) {
            self.saved = self.store.image();
        }
        if of_thousand(&mut self.chance, faults.stepped) {
            let by = self.chance.below(240_000) as i64 - 120_000;
            self.hand.pass(by);
        }
    }

    pub(super) fn crash(&mut self, number: usize) {
        self.seen.crashes += 1;
        let life = self.clients[number].life + 1;
        self.clients[number] = self.client(number, life);
        // What it did ends with it.
        self.users
            .retain(|_, user| user.client != number || user.state == UserState::Done);
    }

    fn hear_news(&mut self, number: usize) {
        let now = self.boot();
        let lost = self.faults.lost;
        loop {
            let event = self.clients[number].events.try_recv();
            let holds = &mut self.clients[number].holds;
            match event {
                Ok(_) if self.chance.percent(lost) => {}
                Ok(StoreEvent::Turn(id)) => holds.turn(id, now),
                Ok(StoreEvent::Opening) => holds.opening(now),
                Ok(_) | Err(broadcast::error::TryRecvError::Lagged(_)) => holds.disturbed(),
                Err(_) => return,
            }
        }
    }

    fn settle(&mut self, number: usize) {
        let now = self.boot();
        self.clients[number].holds.advance(now);
        while let Some(effect) = self.clients[number].holds.poll_effect() {
            match effect {
                Effect::Call {
                    kind,
                    caller,
                    requests,
                    timeout,
                } => {
                    self.number += 1;
                    let call = Call {
                        client: number,
                        life: self.clients[number].life,
                        number: self.number,
                        kind,
                        caller,
                        requests,
                        sent: now,
                    };
                    self.clients[number].open.insert(kind, call.number);
                    let timeout = u64::try_from(timeout.as_millis()).expect("short");
                    self.post(timeout, Message::TimeOut(call.clone()));
                    if !self.clients[number].cut_off {
                        self.carry(|| Message::Request(call.clone()));
                    }
                }
                Effect::Survey => {
                    let names = self.store.names().now_or_never().expect("no wait");
                    let names = names.expect("the memory store answers").answer;
                    self.clients[number].holds.surveyed(Some(names), now);
                }
                Effect::Tidy {
                    caller,
                    names,
                    dead,
                } => {
                    let tidied = self.store.tidy(&caller, &names, &dead).now_or_never();
                    tidied.expect("no wait").expect("the memory store answers");
                }
                Effect::Tell(id, word) => self.told(id, word),
            }
        }
    }

    /// Nothing that a client is sent arrives from now on (or again).
    pub(super) fn deafen(&mut self, number: usize, on: bool) {
        self.clients[number].deaf = on;
    }

    /// Nothing that a client sends arrives any more when it has heard of a grant.
    pub(super) fn cut_off_once_granted(&mut self, number: usize) {
        self.clients[number].cut_off_once_granted = true;
    }

    /// Nothing that a client sends arrives from now on.
    pub(super) fn cut_off(&mut self, number: usize) {
        self.clients[number].cut_off = true;
    }

    /// Nothing that any client sends arrives from now on (or again).
    pub(super) fn cut_all_off(&mut self, on: bool) {
        let all = self.clients.iter_mut();
        all.for_each(|client| client.cut_off = on);
    }

    /// The store's clock is set, by so many milliseconds.
    pub(super) fn set_clock(&mut self, by: i64) {
        self.hand.pass(by);
    }

    /// The store loses all that it holds.
    pub(super) fn lose_all(&mut self) {
        self.seen.wipes += 1;
        self.store.fall_back_to(self.empty.clone());
    }

    /// Nothing goes wrong from now on.
    pub(super) fn calm(&mut self) {
        self.faults = Faults::default();
        for client in &mut self.clients {
            client.frozen_until = client.frozen_until.min(self.now_ms);
        }
    }

    /// How many names are written down.
    pub(super) fn names(&self) -> usize {
        self.states().len()
    }

    /// Which of them somebody has, or waits for.
    pub(super) fn taken(&self) -> Vec<NameState> {
        let mut states = self.states();
        states.retain(|state| !state.held.is_empty() || !state.waiting.is_empty());
        states
    }

    fn states(&self) -> Vec<NameState> {
        let names = self.store.names().now_or_never().expect("no wait");
        names.expect("the memory store answers").answer
    }
}
