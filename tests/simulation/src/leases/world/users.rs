//! Those who want names, have them for a while, and are done.
//!
//! Must never: let two have a name that excludes them, while both may use it.

use std::time::Duration;

use soloist::leases::AcquireError;
use soloist::leases::holds::{Patience, Trust, Word};
use soloist::scheduler::lease::{FencingToken, Hold, LeaseName, Mode};
use soloist::scheduler::time::BootTime;
use uuid::Uuid;

use super::World;
use crate::leases::LONGEST_USE_MS;

/// How long leases last, where they are not all the same: no longer than whoever notices a loss of data
/// has others wait, whatever the length of its own.
const TTLS: [u64; 3] = [2, 6, 15];

/// The usual.
const TTL: u64 = 6;

/// What somebody wants.
#[derive(Clone, Copy, Debug)]
pub(in crate::leases) struct Want<'n> {
    pub(in crate::leases) names: &'n [&'n str],
    pub(in crate::leases) mode: Mode,
    /// For how long.
    pub(in crate::leases) uses_ms: u64,
    pub(in crate::leases) ttl: Duration,
    pub(in crate::leases) patience: Patience,
    /// After how many milliseconds it wants it no more, and asks nobody first.
    pub(in crate::leases) gives_up_after: Option<u64>,
    pub(in crate::leases) who: Who,
}

/// Who wants it.
#[derive(Clone, Copy, Debug)]
pub(in crate::leases) enum Who {
    /// Nobody who has anything yet.
    Somebody,
    /// Whoever has this.
    TheHolderOf(Uuid),
}

impl<'n> Want<'n> {
    /// Alone, and as long as it takes.
    pub(in crate::leases) fn of(names: &'n [&'n str], uses_ms: u64) -> Self {
        Self {
            names,
            mode: Mode::Exclusive,
            uses_ms,
            ttl: Duration::from_secs(TTL),
            patience: Patience::Endless,
            gives_up_after: None,
            who: Who::Somebody,
        }
    }
}

/// Somebody who wants something, has it for a while, and is done.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) client: usize,
    hold: Hold,
    patience: Patience,
    gives_up_at: Option<u64>,
    uses_ms: u64,
    since: u64,
    pub(super) state: UserState,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum UserState {
    Waits,
    Has {
        trust: Trust,
        until: u64,
        token: FencingToken,
    },
    Done,
}

impl User {
    /// When it is done with what it has, or waits no longer.
    pub(super) fn acts_at(&self) -> Option<u64> {
        match self.state {
            UserState::Waits => self.gives_up_at,
            UserState::Has { until, .. } => Some(until),
            UserState::Done => None,
        }
    }

    fn may_use_it(&self, now: BootTime) -> bool {
        match self.state {
            UserState::Has { trust, .. } => trust.until > now,
            UserState::Waits | UserState::Done => false,
        }
    }

    /// Whether the two can't both have what they want.
    fn excludes(&self, other: &Self) -> bool {
        let (one, other) = (&self.hold, &other.hold);
        let both_share = one.mode == Mode::Shared && other.mode == Mode::Shared;
        let meet = one.names.iter().any(|name| other.names.contains(name));
        meet && !both_share && one.owner != other.owner
    }
}

impl World {
    /// Somebody wants something.
    pub(in crate::leases) fn wants(&mut self, client: usize, want: Want<'_>) -> Uuid {
        let id =
            Uuid::from_u128(u128::from(self.chance.draw()) << 64 | u128::from(self.chance.draw()));
        let names = want
            .names
            .iter()
            .map(|name| LeaseName::new(name).expect("a name"));
        let mut names: Vec<LeaseName> = names.collect();
        names.sort();
        let owner = match want.who {
            Who::Somebody => id,
            Who::TheHolderOf(other) => self.users.get(&other).map_or(id, |user| user.hold.owner),
        };
        let hold = Hold {
            id,
            owner,
            names: names.into(),
            mode: want.mode,
            ttl: want.ttl,
        };
        let user = User {
            client,
            hold: hold.clone(),
            patience: want.patience,
            gives_up_at: want.gives_up_after.map(|after| self.now_ms + after),
            uses_ms: want.uses_ms,
            since: self.now_ms,
            state: UserState::Waits,
        };
        self.users.insert(id, user);
        self.seen.wanted += 1;
        let now = self.boot();
        let holds = &mut self.clients[client].holds;
        holds.acquire(hold, want.patience, now, now);
        self.settle(client);
        id
    }

    /// Somebody wants something it draws.
    ///
    /// Where the store's clock is set all stay to watch: who doesn't has nothing but that clock to go by,
    /// and it may be set twice between two renewals.
    pub(in crate::leases) fn wants_anything(&mut self) {
        let sets: [&[&str]; 6] = [
            &["a"],
            &["b"],
            &["a", "b"],
            &["b", "c"],
            &["c", "a"],
            &["c"],
        ];
        let names = sets[self.chance.below(6) as usize];
        let client = self.chance.below(self.clients.len() as u64) as usize;
        let mut want = Want::of(names, self.chance.below(LONGEST_USE_MS));
        if self.chance.percent(30) {
            want.mode = Mode::Shared;
        }
        want.ttl = Duration::from_secs(TTLS[self.chance.below(3) as usize]);
        want.patience = match self.chance.below(10) {
            _ if self.faults.stepped > 0 => Patience::Endless,
            0 => Patience::None,
            1 | 2 => Patience::Until(self.boot() + Duration::from_millis(self.chance.below(9000))),
            _ => Patience::Endless,
        };
        if self.chance.percent(10) {
            want.gives_up_after = Some(self.chance.below(LONGEST_USE_MS));
        }
        let now = self.boot();
        let has = self.users.iter().filter(|(_, user)| user.may_use_it(now));
        let has: Vec<Uuid> = has.map(|(id, _)| *id).collect();
        if !has.is_empty() && self.chance.percent(15) {
            want.who = Who::TheHolderOf(has[self.chance.below(has.len() as u64) as usize]);
            self.seen.again += 1;
        }
        self.wants(client, want);
    }

    pub(super) fn finish_users(&mut self, number: usize) {
        let now = self.boot();
        let is_done = |user: &User| user.acts_at().is_some_and(|at| at <= self.now_ms);
        let users = self.users.iter();
        let done = users.filter(|(_, user)| user.client == number && is_done(user));
        let done: Vec<Uuid> = done.map(|(id, _)| *id).collect();
        for id in done {
            let user = self.users.get_mut(&id).expect("it is there");
            let state = std::mem::replace(&mut user.state, UserState::Done);
            self.seen.given_up += u64::from(state == UserState::Waits);
            self.clients[number].holds.release(id, now);
        }
    }

    pub(super) fn told(&mut self, id: Uuid, word: Word) {
        let now_ms = self.now_ms;
        let Some(user) = self.users.get_mut(&id) else {
            return;
        };
        match word {
            Word::Granted(granted) => {
                assert_eq!(user.state, UserState::Waits, "{id} is not wanted: {user:?}");
                user.state = UserState::Has {
                    trust: granted.trust,
                    until: now_ms + user.uses_ms,
                    token: granted.token,
                };
                let client = &mut self.clients[user.client];
                client.cut_off |= client.cut_off_once_granted;
                self.seen.granted += 1;
                self.seen.order.push(id);
                self.seen.tokens.push(granted.token);
                self.has_the_highest_token(id);
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
            Word::Refused(why) => {
                let is_late = matches!(why, AcquireError::Late);
                let may_be = match why {
                    // Whoever wants it comes anew; here it is done with.
                    AcquireError::Late => true,
                    AcquireError::Upgrade { .. } => user.hold.owner != id,
                    AcquireError::Busy(_) | AcquireError::Grace { .. } | AcquireError::Store(_) => {
                        user.patience != Patience::Endless
                    }
                    AcquireError::TimedOut(_) => matches!(user.patience, Patience::Until(_)),
                    _ => false,
                };
                assert!(may_be, "{id} was refused: {why}\n{user:?}");
                user.state = UserState::Done;
                self.seen.late += u64::from(is_late);
                self.seen.refused += u64::from(!is_late);
            }
            Word::Released => {}
        }
    }

    /// Whoever has something has it alone, for as long as it is trusted: its host may stand still,
    /// and then it is killed by that time.
    fn is_alone(&self, id: Uuid) {
        let now = self.boot();
        let one = &self.users[&id];
        if !one.may_use_it(now) || self.overlaps {
            return;
        }
        for (other, user) in self.users.iter().filter(|(other, _)| **other != id) {
            assert!(
                !user.may_use_it(now) || !one.excludes(user),
                "at {} ms {id} and {other} have the same\n{one:?}\n{user:?}",
                self.now_ms
            );
        }
    }

    /// Whoever has something has it by a higher token than all before whom it excludes.
    fn has_the_highest_token(&mut self, id: Uuid) {
        let one = &self.users[&id];
        let token = self.seen.tokens.last().expect("it was just granted");
        for (other, before) in &self.granted {
            assert!(
                !one.excludes(other) || token > before,
                "at {} ms a token after {before}: {token}\n{one:?}\n{other:?}",
                self.now_ms
            );
        }
        self.granted.push((one.clone(), *token));
    }

    /// Who still waits, the longest first, and since when.
    pub(in crate::leases) fn waiting(&self) -> Vec<(Uuid, u64)> {
        let waits = self
            .users
            .iter()
            .filter(|(_, user)| user.state == UserState::Waits);
        waits.map(|(id, user)| (*id, user.since)).collect()
    }

    /// Whether it may be used.
    pub(in crate::leases) fn has(&self, id: Uuid) -> bool {
        let now = self.boot();
        self.users.get(&id).is_some_and(|user| user.may_use_it(now))
    }

    /// Whether nobody has or wants it any more.
    pub(in crate::leases) fn is_done(&self, id: Uuid) -> bool {
        let user = self.users.get(&id);
        user.is_none_or(|user| user.state == UserState::Done)
    }
}
