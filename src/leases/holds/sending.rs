//! What the store is asked, and when what is ready goes out: one call of a kind at a time, with all
//! that waits for it.
//!
//! Must never: ask twice about one hold at a time.

use std::collections::VecDeque;
use std::time::Duration;

use uuid::Uuid;

use super::super::DEFAULT_TTL;
use super::{CALL_TIMEOUT, Effect, Entry, Holds, Kind, Patience, State, kept_in_line, margins_of};
use crate::scheduler::lease::{BATCH_LIMIT, Caller, FencingToken, HeldName, LeaseRequest, Wait};
use crate::scheduler::margins;
use crate::scheduler::time::BootTime;
use crate::scheduler::watch::{dead_at, watch_delay};

impl Holds {
    pub(super) fn send(&mut self, now: BootTime) {
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
                if let State::Wanted {
                    known, asked_since, ..
                } = &mut entry.state
                {
                    *known = true;
                    asked_since.get_or_insert(now);
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
                waits: (*patience != Patience::None).then(|| Wait {
                    kept: patience.bounds(kept_in_line(hold.ttl), now),
                    so_far: now.saturating_since(entry.since),
                }),
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
        let caller = self.caller(longest, timeout, now);
        self.effects.push_back(Effect::Call {
            kind,
            caller,
            requests,
            timeout,
        });
        true
    }

    /// Who asks, for holds that last for up to `longest`, by a call that may take `timeout`.
    pub(super) fn caller(&self, longest: Duration, timeout: Duration, now: BootTime) -> Caller {
        Caller {
            replica: self.replica.clone(),
            // Of what others hold it knows nothing.
            quarantine: match mutant!(ShortWindow) {
                true => longest,
                false => longest.max(DEFAULT_TTL) + margins_of(longest).call_timeout(),
            },
            token_floor: match mutant!(FloorUntold) {
                true => FencingToken::default(),
                false => self.token_floor,
            },
            send_by: self.clock.reached(now).map(|reached| reached + timeout),
            held_back: match mutant!(ForgetsTheWindow) {
                true => Duration::ZERO,
                false => self.grace_until.saturating_since(now),
            },
        }
    }

    /// What stands in the way of an entry, and has stood so for long enough.
    fn dead(&self, entry: &Entry, now: BootTime) -> Vec<HeldName> {
        let seen = entry.seen.values();
        let dead = seen.filter(|(held, since)| self.dead_at(held, *since) <= now);
        dead.map(|(held, _)| held.clone()).collect()
    }

    /// When a holder may be taken for dead, if it stays as it is.
    pub(super) fn dead_at(&self, held: &HeldName, since: BootTime) -> BootTime {
        if mutant!(TakesWhatItSees) {
            return since;
        }
        let dead = dead_at(held.sighting, held.ttl, since, &self.clock);
        match self.healthy_since {
            // Who has just come back from a partition looks before it takes.
            Some(healthy) => dead.max(healthy + held.ttl / 6 + watch_delay(held.ttl)),
            None => dead,
        }
    }
}
