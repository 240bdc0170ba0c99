//! What follows from the answers of the store.
//!
//! Must never: trust a lease from when its answer was heard; it counts from before it was asked for.

use std::time::Duration;

use uuid::Uuid;

use super::{
    Granted, Holds, Kind, NEAR_THE_FRONT, Patience, RETRY, SHORT_GRACE, State, Trust, Word,
    kept_in_line, margins_of, retry, spread,
};
use crate::leases::AcquireError;
use crate::scheduler::lease::{Answered, Busy, FencingToken, HeldName, LeaseAnswer, LeaseRequest};
use crate::scheduler::time::{BootTime, Timestamp};
use crate::store::StoreError;

impl Holds {
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
                match answered.answer.contains(&LeaseAnswer::Expired) {
                    true => self.failures += 1,
                    false => self.failures = 0,
                }
                for (request, answer) in requests.iter().zip(answered.answer) {
                    self.heard(request, answer, sent, now);
                }
                if jumped {
                    self.disturbed();
                }
            }
            Err(error) => {
                self.healthy_since = None;
                self.failures += 1;
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
        let again = now + retry(RETRY, self.failures, id);
        let is_away = matches!(error, StoreError::Unreachable { .. });
        match &mut entry.state {
            State::Wanted { given_up: true, .. } | State::Held { leaves: true, .. } => {
                self.leave(id, now);
            }
            State::Wanted { patience, .. } => {
                let refused = AcquireError::Store(error.clone());
                if *patience == Patience::None || !is_away {
                    self.tell(id, Word::Refused(refused));
                    self.leave(id, now);
                } else {
                    self.plan(id, Some(again), now);
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
        if !matches!(answer, LeaseAnswer::Granted { .. })
            && let Some(entry) = self.entries.get_mut(&id)
            && let State::Wanted { asked_since, .. } = &mut entry.state
        {
            *asked_since = Some(sent);
        }
        match answer {
            LeaseAnswer::Granted {
                token,
                deadline,
                remaining,
                replayed,
            } => {
                let asked = self.asked(id, sent);
                let again = replayed.then_some(asked);
                self.granted(id, (token, deadline), (sent, remaining), again, now);
            }
            LeaseAnswer::Renewed {
                deadline,
                remaining,
            } => self.renewed(id, deadline, (sent, remaining), now),
            LeaseAnswer::Lost => self.heard_of_loss(id),
            LeaseAnswer::Released => {
                self.was_freed(&request.hold().names, now);
                self.forget(id, Some(Word::Released));
            }
            LeaseAnswer::Busy(busy) => self.not_yet(id, now, |holds| holds.wait_for(id, busy, now)),
            LeaseAnswer::Grace { wait } => {
                self.grace_until = self.grace_until.max(sent + wait);
                self.not_yet(id, now, |holds| holds.wait_out(id, wait, now));
            }
            LeaseAnswer::Expired => self.not_yet(id, now, |holds| {
                let again = retry(RETRY / 10, holds.failures, id);
                holds.plan(id, Some(now + again), now);
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
        self.knows_of(&busy.held);
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let State::Wanted { patience, late, .. } = &mut entry.state else {
            return;
        };
        match (*patience, *late) {
            (Patience::None, false) => {
                self.forget(id, Some(Word::Refused(AcquireError::Busy(busy))));
                return;
            }
            (Patience::None, true) => {
                // It stands in line.
                self.tell(id, Word::Refused(AcquireError::TimedOut(busy)));
                self.leave(id, now);
                return;
            }
            _ => {}
        }
        let mut before = std::mem::take(&mut entry.seen);
        for held in busy.held {
            let key = (held.name.clone(), held.hold);
            let known = before.remove(&key);
            let since = known.filter(|(known, _)| known.sighting == held.sighting);
            let since = since.map_or(now, |(_, since)| since);
            entry.seen.insert(key, (held, since));
        }
        let seldom = if busy.ahead > NEAR_THE_FRONT { 2 } else { 1 };
        let kept = now + kept_in_line(entry.hold.ttl) / 3 * seldom;
        let entry = &self.entries[&id];
        let watched = entry.seen.values();
        let dead = watched.map(|(held, since)| self.dead_at(held, *since));
        let dead = dead.max().filter(|_| busy.ahead == 0);
        // Far from the front it makes no difference which of those before goes.
        let near = busy.ahead_until.filter(|_| busy.ahead <= NEAR_THE_FRONT);
        let given_up = near.and_then(|until| {
            let after = until + Duration::from_millis(1);
            self.clock.boot_time_of(after)
        });
        let kept = Some(kept).filter(|_| !mutant!(WaitsForNews));
        let next = [kept, dead, given_up].into_iter().flatten().min();
        let soonest = now + Duration::from_millis(1);
        self.plan(id, next.map(|next| next.max(soonest)), now);
    }

    /// Grants to others, by which it is seen later that the store has lost them.
    pub(super) fn knows_of<'h>(&mut self, held: impl IntoIterator<Item = &'h HeldName>) {
        let tokens = held.into_iter().map(|held| held.sighting.token);
        self.token_floor = tokens.fold(self.token_floor, FencingToken::max);
    }

    /// Nothing is granted for a while.
    fn wait_out(&mut self, id: Uuid, wait: Duration, now: BootTime) {
        let Some(entry) = self.entries.get_mut(&id) else {
            return;
        };
        let kept = kept_in_line(entry.hold.ttl) / 3;
        let State::Wanted { patience, .. } = &mut entry.state else {
            return;
        };
        let next = match *patience {
            Patience::None if wait <= SHORT_GRACE => wait,
            Patience::None => {
                self.tell(id, Word::Refused(AcquireError::Grace { wait }));
                self.leave(id, now);
                return;
            }
            Patience::Until(_) | Patience::Endless => wait.min(kept),
        };
        self.plan(id, Some(now + next), now);
    }

    /// Before when it was not granted. What is left of a grant that nobody heard of the store tells by
    /// a clock that may have been set since, but it was not made before it was asked for.
    fn asked(&self, id: Uuid, sent: BootTime) -> BootTime {
        match self.entries.get(&id).map(|entry| &entry.state) {
            Some(State::Wanted {
                asked_since: Some(since),
                ..
            }) => *since,
            _ => sent,
        }
    }

    fn granted(
        &mut self,
        id: Uuid,
        (token, deadline): (FencingToken, Timestamp),
        (sent, remaining): (BootTime, Duration),
        told_again: Option<BootTime>,
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
        let margins = margins_of(ttl);
        let trust = margins.trust_until(counted_from(sent, now), remaining.min(ttl));
        let told_before = told_again.filter(|_| !mutant!(ToldAgainIsNew));
        let trust = told_before.map_or(trust, |asked| trust.min(margins.trust_until(asked, ttl)));
        if trust <= now {
            // It may not be renewed either: a ledger that fell back to an older state may show what
            // somebody else has since taken over.
            self.refuse(id, AcquireError::Late, now);
            return;
        }
        entry.seen.clear();
        let renew_at = match told_again {
            // Much of it may be over.
            Some(_) => now,
            None => sent + margins.renewal_interval(),
        };
        entry.state = State::Held {
            token,
            deadline,
            trust,
            renew_at,
            leaves: false,
        };
        let trust = Trust { until: trust };
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
        if *trust <= now && !*leaves {
            // Whoever asked since then was told that it is lost, and goes by that.
            self.lose(id, now);
            return;
        }
        *deadline = renewed;
        let from = counted_from(sent, now);
        *trust = (*trust).max(margins_of(ttl).trust_until(from, remaining.min(ttl)));
        *renew_at = sent + margins_of(ttl).renewal_interval();
        let (until, next) = (*trust, *renew_at);
        if *leaves {
            self.leave(id, now);
            return;
        }
        self.tell(id, Word::Trusted(Trust { until }));
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

/// From when on a lease counts.
fn counted_from(sent: BootTime, heard: BootTime) -> BootTime {
    match mutant!(TrustsTheAnswer) {
        true => heard,
        false => sent,
    }
}

#[cfg(test)]
mod tests;
