//! The store's side of named leases as a pure state machine: the records of a hold's names, a
//! request and the store's time in; an answer, and whose turn it is, out.
//!
//! ```text
//!            acquire: somebody has it, or came first
//!   nothing ───────────────▶ in line ◀─┐ acquire again: still there
//!      │                       │   └───┘
//!      │ acquire: free         │ acquire: it is its turn with all its names
//!      ▼                       ▼
//!     held ◀─ renew ─┐       held
//!      │  └──────────┘         ╲ deadline passed, watched: somebody else's
//!      ▼ release                ▼
//!   nothing
//! ```
//!
//! - All names of a hold are granted in one step, or none. Each line is in the order of since when they
//!   wait, and a hold takes its places in all of them in one step: of any two the same one comes first
//!   everywhere, so that nobody waits in a ring.
//! - Who came first to a name goes first, but that those who share go together. Whoever has a
//!   name already is let in again before all others, who wait for it.
//! - A token is above all that any of the names had, and above the store's time in microseconds.
//! - A hold is taken for dead only by somebody who names the exact (token, deadline) that it
//!   watched.
//! - Nothing is granted in a grace window; who held something writes it anew.
//!
//! Must never: read a clock, or believe expiry by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use uuid::Uuid;

use super::record::{Holder, Record, Waiting};
use crate::scheduler::lease::{
    Busy, FencingToken, HeldName, Hold, LeaseAnswer, LeaseName, LeaseRequest, Mode, WAITING_LIMIT,
    Wait,
};
use crate::scheduler::time::Timestamp;
use crate::store::rules::Call;

/// The records that a step touches, as it has left them so far.
pub(super) type Records = BTreeMap<LeaseName, Record>;

/// Decides one request. Those whose turn it is by what it changes are added to `turns`.
pub(super) fn decide(
    call: &mut Call<'_>,
    records: &mut Records,
    request: &LeaseRequest,
    turns: &mut BTreeSet<Uuid>,
) -> LeaseAnswer {
    let hold = request.hold();
    let mut step = Step {
        call,
        records,
        hold,
    };
    let before = step.turns();
    let answer = step.decide(request);
    let now = step.turns();
    let new = now.difference(&before).map(|(_, id)| *id);
    let new = new.filter(|_| !mutant!(TellsNobody));
    turns.extend(new.filter(|id| *id != hold.id));
    answer
}

struct Step<'s, 'c> {
    call: &'s mut Call<'c>,
    records: &'s mut Records,
    hold: &'s Hold,
}

impl Step<'_, '_> {
    /// Whose turn it is, by each name for itself: who had its turn with one may have it with all now.
    fn turns(&self) -> BTreeSet<(LeaseName, Uuid)> {
        let turns = |(name, one): (&LeaseName, &Record)| {
            let name = name.clone();
            let ids = one.turns().into_iter();
            ids.map(move |id| (name.clone(), id))
        };
        self.each().flat_map(turns).collect()
    }

    /// The names of the hold with their records.
    fn each(&self) -> impl Iterator<Item = (&LeaseName, &Record)> {
        let names = self.hold.names.iter();
        names.filter_map(|name| self.records.get_key_value(name))
    }

    fn change(&mut self, change: impl Fn(&LeaseName, &mut Record)) {
        for name in self.hold.names.iter() {
            change(name, self.records.entry(name.clone()).or_default());
        }
    }

    fn decide(&mut self, request: &LeaseRequest) -> LeaseAnswer {
        let now = self.call.now();
        self.change(|_, record| record.give_up(now));
        match request {
            LeaseRequest::Acquire { waits, dead, .. } => self.acquire(*waits, dead),
            LeaseRequest::Renew {
                token,
                last_deadline,
                ..
            } => self.renew(*token, *last_deadline),
            LeaseRequest::Release { hold } => {
                self.change(|_, record| record.remove(hold.id));
                LeaseAnswer::Released
            }
        }
    }

    fn acquire(&mut self, waits: Option<Wait>, dead: &[HeldName]) -> LeaseAnswer {
        if let Some(answer) = self.granted_before() {
            return answer;
        }
        if self.call.expired() && !mutant!(LateCounts) {
            return LeaseAnswer::Expired;
        }
        let wait = self.call.grace();
        // In a grace window whoever is taken for dead may come back.
        if wait.is_zero() {
            self.bury(dead);
            if waits.is_none() {
                self.bury_overdue();
            }
        }
        if let Some(answer) = self.refused(waits) {
            return answer;
        }
        if let Some(wait) = waits {
            self.stand_in_line(wait);
        }
        if !wait.is_zero() {
            return LeaseAnswer::Grace { wait };
        }
        match self.busy() {
            Some(busy) => {
                if mutant!(OneByOne) {
                    self.take_what_is_free();
                }
                LeaseAnswer::Busy(busy)
            }
            None => self.grant(),
        }
    }

    /// The same request once more: the same answer, with what is left by now.
    fn granted_before(&self) -> Option<LeaseAnswer> {
        let id = self.hold.id;
        let holders: Option<Vec<&Holder>> = self.each().map(|(_, one)| one.holder(id)).collect();
        let first = *holders?.first()?;
        Some(LeaseAnswer::Granted {
            token: first.token,
            deadline: first.deadline,
            remaining: first.deadline.saturating_since(self.call.now()),
            replayed: true,
        })
    }

    /// Takes away what the caller has watched for long enough, if it still is what it watched.
    fn bury(&mut self, dead: &[HeldName]) {
        self.change(|_, record| record.bury(dead));
    }

    /// Who doesn't wait has nobody watched: what others like it have seen overdue for long enough
    /// goes. A store's clock that is set twice between two renewals would take it from the living,
    /// which whoever watches by a clock of its own needn't fear.
    fn bury_overdue(&mut self) {
        let (now, owner) = (self.call.now(), self.hold.owner);
        self.change(|_, record| record.bury_overdue(now, owner));
    }

    fn refused(&self, waits: Option<Wait>) -> Option<LeaseAnswer> {
        let hold = self.hold;
        for (name, record) in self.each() {
            let rises = hold.mode == Mode::Exclusive && record.is_owned_by(hold.owner);
            let rises = rises && !mutant!(RisesAndWaits);
            if rises && record.holders.iter().any(|one| one.excludes(hold)) {
                return Some(LeaseAnswer::Upgrade { name: name.clone() });
            }
            let stands = record.line.iter().any(|one| one.id == hold.id);
            if waits.is_some() && !stands && record.line.len() >= WAITING_LIMIT {
                return Some(LeaseAnswer::Full { name: name.clone() });
            }
        }
        None
    }

    /// Keeps the place that it has, or takes that of who has waited for as long: for all of its names.
    fn stand_in_line(&mut self, wait: Wait) {
        let (id, now) = (self.hold.id, self.call.now());
        let own = |record: &Record| record.line.iter().find(|one| one.id == id).cloned();
        let own: Option<Vec<Waiting>> = self.each().map(|(_, record)| own(record)).collect();
        let since = own
            .as_ref()
            .and_then(|own| own.first())
            .map(|one| one.since);
        let waiting = Waiting {
            id,
            owner: self.hold.owner,
            by: self.call.caller.replica.name.clone(),
            mode: self.hold.mode,
            until: now + wait.kept,
            kept: wait.kept,
            since: since.unwrap_or(match mutant!(ComesLast) {
                true => now,
                false => now - wait.so_far,
            }),
        };
        self.change(|_, record| match since {
            Some(_) => {
                let own = record.line.iter_mut().filter(|one| one.id == id);
                own.for_each(|one| *one = waiting.clone());
            }
            None => {
                record.remove(id);
                record.line_up(waiting.clone());
            }
        });
    }

    /// What stands in the way of a grant, if anything.
    fn busy(&self) -> Option<Busy> {
        let mut busy = Busy::default();
        let mut ahead = BTreeMap::new();
        for (name, record) in self.each() {
            let others = record.holders.iter();
            let others = others.filter(|holder| holder.excludes(self.hold));
            busy.held.extend(others.map(|holder| holder.held(name)));
            let first = record.ahead_of(self.hold).into_iter();
            ahead.extend(first.map(|one| (one.id, one.until)));
        }
        busy.ahead = ahead.len();
        busy.ahead_until = ahead.into_values().min();
        (busy.ahead > 0 || !busy.held.is_empty()).then_some(busy)
    }

    fn grant(&mut self) -> LeaseAnswer {
        let token = self.token();
        let (now, hold) = (self.call.now(), self.hold);
        let deadline = now + hold.ttl;
        let holder = self.holder(token, deadline);
        self.change(|_, record| {
            record.remove(hold.id);
            record.token = record.token.max(token);
            record.holders.push(holder.clone());
        });
        LeaseAnswer::Granted {
            token,
            deadline,
            remaining: hold.ttl,
            replayed: false,
        }
    }

    /// A deliberate fault, `OneByOne`.
    fn take_what_is_free(&mut self) {
        let (token, hold) = (self.token(), self.hold);
        let holder = self.holder(token, self.call.now() + hold.ttl);
        self.change(|_, record| {
            let held = record.holders.iter();
            let mut in_the_way = held.filter(|one| one.id == hold.id || one.excludes(hold));
            if in_the_way.next().is_none() && record.ahead_of(hold).is_empty() {
                record.token = record.token.max(token);
                record.holders.push(holder.clone());
            }
        });
    }

    /// That of a grant. Whoever is let in again keeps the one that it has: with a higher one, what
    /// it goes on to write afterwards by the first would be refused. Who shared a name and has it alone
    /// now gets another one: what others who shared it do late has to be refused. So does whoever
    /// finds but what it held before a loss of data and never renewed since: it may have given it
    /// back before that, and others have had it.
    fn token(&mut self) -> FencingToken {
        let (hold, now, born) = (self.hold, self.call.now(), self.call.group.born);
        // After a far step back of the clock nobody can tell.
        let is_known = |one: &Holder| one.deadline - one.ttl >= born || born > now;
        let owned = self.each().map(|(_, record)| {
            let own = record.holders.iter();
            let own = own.filter(|one| one.owner == hold.owner && is_known(one));
            let is_no_rise = |one: &Holder| one.mode == Mode::Exclusive;
            let keeps = hold.mode == Mode::Shared || own.clone().any(is_no_rise);
            own.map(|holder| holder.token).max().filter(|_| keeps)
        });
        let owned: Option<Vec<FencingToken>> = owned.collect();
        let owned = owned.filter(|_| !mutant!(TokenOfItsOwn));
        if let Some(token) = owned.and_then(|tokens| tokens.into_iter().max()) {
            return token;
        }
        let known = self.each().map(|(_, record)| record.token).max();
        self.call.draw_token(known.unwrap_or_default())
    }

    fn holder(&self, token: FencingToken, deadline: Timestamp) -> Holder {
        Holder {
            id: self.hold.id,
            owner: self.hold.owner,
            by: self.call.caller.replica.name.clone(),
            mode: self.hold.mode,
            token,
            deadline,
            ttl: self.hold.ttl,
            overdue: None,
        }
    }

    fn renew(&mut self, token: FencingToken, last_deadline: Timestamp) -> LeaseAnswer {
        let id = self.hold.id;
        let is_held = |record: &Record| {
            let is_it = record.holder(id).is_some_and(|one| one.token == token);
            is_it || mutant!(RenewsAnybody)
        };
        let everywhere = self.each().all(|(_, record)| is_held(record));
        if !everywhere && !self.write_anew(token) {
            // Part of it is as good as nothing, and stands in the way of others.
            self.change(|_, record| record.remove(id));
            return LeaseAnswer::Lost;
        }
        let (now, ttl) = (self.call.now(), self.hold.ttl);
        let held = self.each().filter_map(|(_, record)| record.holder(id));
        let last = held.map(|holder| holder.deadline).max();
        let last = last.map_or(last_deadline, |last| last.max(last_deadline));
        let deadline = match mutant!(DeadlineStands) {
            true => now + ttl,
            false => (now + ttl).max(last + Duration::from_millis(1)),
        };
        self.change(|_, record| {
            if let Some(holder) = record.holder_mut(id) {
                holder.deadline = deadline;
                holder.ttl = ttl;
                holder.overdue = None;
            }
        });
        LeaseAnswer::Renewed {
            deadline,
            remaining: ttl,
        }
    }

    /// Inside a grace window a holder may write its names anew, which the store lost, or has in an
    /// older form: then who has them by a lower token had lost them.
    fn write_anew(&mut self, token: FencingToken) -> bool {
        if self.call.grace().is_zero() && !mutant!(WritesAnewAnytime) {
            return false;
        }
        let hold = self.hold;
        let is_newer = |one: &Holder| {
            one.id != hold.id
                && one.excludes(hold)
                && one.token > token
                && !mutant!(WritesOverNewer)
        };
        if self
            .each()
            .any(|(_, record)| record.holders.iter().any(is_newer))
        {
            return false;
        }
        self.call.group.token = self.call.group.token.max(token);
        let holder = self.holder(token, self.call.now());
        self.change(|_, record| {
            record.remove(hold.id);
            record.holders.retain(|one| !one.excludes(hold));
            record.token = record.token.max(token);
            record.holders.push(holder.clone());
        });
        true
    }
}
