//! Clients of named leases in virtual time: the real core and the real rules, a network that
//! loses, delays and doubles, hosts that stand still, and a store that loses its data.
//!
//! Must never: let anything but the seed decide.

mod network;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use soloist::clock::Clock;
use soloist::leases::AcquireError;
use soloist::leases::holds::{Effect, Holds, Kind, Patience, Trust, Word};
use soloist::scheduler::lease::{
    Answered, Caller, FencingToken, Hold, LeaseAnswer, LeaseName, LeaseRequest, Mode, Replica,
};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::store::memory::{Image, MemoryStore};
use soloist::store::{LeaseStore, StoreError, StoreEvent};
use tokio::sync::broadcast;
use uuid::Uuid;

use super::LONGEST_USE_MS;
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
    open: HashMap<Kind, u64>,
    events: broadcast::Receiver<StoreEvent>,
}

/// Somebody who wants something, has it for a while, and is done.
#[derive(Clone, Debug)]
struct User {
    client: usize,
    hold: Hold,
    uses_ms: u64,
    since: u64,
    state: UserState,
}

#[derive(Clone, Debug, PartialEq)]
enum UserState {
    Waits,
    Has {
        trust: Trust,
        until: u64,
        token: FencingToken,
    },
    Done,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    pub(super) granted: u64,
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) crashes: u64,
    pub(super) wipes: u64,
    pub(super) tokens: Vec<FencingToken>,
    pub(super) order: Vec<Uuid>,
}

/// The world.
pub(super) struct World {
    pub(super) chance: Chance,
    pub(super) faults: Faults,
    pub(super) seen: Seen,
    pub(super) now_ms: u64,
    hand: Arc<Hand>,
    store: MemoryStore,
    empty: Image,
    saved: Image,
    clients: Vec<Client>,
    users: BTreeMap<Uuid, User>,
    messages: BTreeMap<(u64, u64), Message>,
    number: u64,
}

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
            now_ms: 1000,
            hand,
            saved: empty.clone(),
            empty,
            store,
            clients: Vec::new(),
            users: BTreeMap::new(),
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
            open: HashMap::new(),
            events: LeaseStore::events(&self.store),
        }
    }

    fn boot(&self) -> BootTime {
        BootTime::since_boot(Duration::from_millis(self.now_ms))
    }

    /// Somebody wants names for so long.
    pub(super) fn wants(
        &mut self,
        client: usize,
        names: &[&str],
        mode: Mode,
        uses_ms: u64,
    ) -> Uuid {
        let id =
            Uuid::from_u128(u128::from(self.chance.draw()) << 64 | u128::from(self.chance.draw()));
        let names = names
            .iter()
            .map(|name| LeaseName::new(name).expect("a name"));
        let mut names: Vec<LeaseName> = names.collect();
        names.sort();
        let hold = Hold {
            id,
            owner: id,
            names: names.into(),
            mode,
            ttl: Duration::from_secs(6),
        };
        let user = User {
            client,
            hold: hold.clone(),
            uses_ms,
            since: self.now_ms,
            state: UserState::Waits,
        };
        self.users.insert(id, user);
        let now = self.boot();
        self.clients[client]
            .holds
            .acquire(hold, Patience::Endless, now);
        self.settle(client);
        id
    }

    /// Somebody wants something it draws.
    pub(super) fn wants_anything(&mut self) {
        let sets: [&[&str]; 6] = [
            &["a"],
            &["b"],
            &["a", "b"],
            &["b", "c"],
            &["c", "a"],
            &["c"],
        ];
        let names = sets[self.chance.below(6) as usize];
        let mode = match self.chance.percent(30) {
            true => Mode::Shared,
            false => Mode::Exclusive,
        };
        let client = self.chance.below(self.clients.len() as u64) as usize;
        let uses = self.chance.below(LONGEST_USE_MS);
        self.wants(client, names, mode, uses);
    }

    /// Goes on by so long, a thing after the other.
    pub(super) fn run(&mut self, for_ms: u64) {
        let end = self.now_ms + for_ms;
        while let Some(next) = self.next_instant().filter(|next| *next <= end) {
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
        let users = self.users.values().filter_map(|user| match user.state {
            UserState::Has { until, .. } => Some(until.max(self.clients[user.client].frozen_until)),
            _ => None,
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

    fn finish_users(&mut self, number: usize) {
        let now = self.boot();
        let done: Vec<Uuid> = self
            .users
            .iter()
            .filter_map(|(id, user)| match user.state {
                UserState::Has { until, .. } if user.client == number && until <= self.now_ms => {
                    Some(*id)
                }
                _ => None,
            })
            .collect();
        for id in done {
            self.users.get_mut(&id).expect("it is there").state = UserState::Done;
            self.clients[number].holds.release(id, now);
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
                    self.carry(|| Message::Request(call.clone()));
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

    fn told(&mut self, id: Uuid, word: Word) {
        let now_ms = self.now_ms;
        let Some(user) = self.users.get_mut(&id) else {
            return;
        };
        match word {
            Word::Granted(granted) => {
                user.state = UserState::Has {
                    trust: granted.trust,
                    until: now_ms + user.uses_ms,
                    token: granted.token,
                };
                self.seen.granted += 1;
                self.seen.order.push(id);
                self.seen.tokens.push(granted.token);
                self.is_alone(id);
            }
            Word::Trusted(renewed) => {
                if let UserState::Has { trust, .. } = &mut user.state {
                    *trust = renewed;
                }
                self.is_alone(id);
            }
            Word::Lost => {
                self.seen.lost += 1;
                user.state = UserState::Done;
            }
            // Whoever wants it comes anew; here it is done with.
            Word::Refused(AcquireError::Late) => {
                self.seen.late += 1;
                user.state = UserState::Done;
            }
            Word::Refused(why) => panic!("{id} was refused: {why}"),
            Word::Released => {}
        }
    }

    /// Whoever has something has it alone, for as long as it is trusted: its host may stand still,
    /// and then it is killed by that time.
    fn is_alone(&self, id: Uuid) {
        let now = self.boot();
        let has = |user: &User| match user.state {
            UserState::Has { trust, .. } => trust.until > now,
            _ => false,
        };
        let one = &self.users[&id];
        if !has(one) {
            return;
        }
        for (other, user) in self
            .users
            .iter()
            .filter(|(other, user)| **other != id && has(user))
        {
            let names = user
                .hold
                .names
                .iter()
                .any(|name| one.hold.names.contains(name));
            let both_share = user.hold.mode == Mode::Shared && one.hold.mode == Mode::Shared;
            assert!(
                !names || both_share,
                "at {} ms {id} and {other} have the same\n{one:?}\n{user:?}",
                self.now_ms
            );
        }
    }

    /// Who still waits, the longest first, and since when.
    pub(super) fn waiting(&self) -> Vec<(Uuid, u64)> {
        let waits = self
            .users
            .iter()
            .filter(|(_, user)| user.state == UserState::Waits);
        waits.map(|(id, user)| (*id, user.since)).collect()
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
        let names = self.store.names().now_or_never().expect("no wait");
        names.expect("the memory store answers").answer.len()
    }
}
