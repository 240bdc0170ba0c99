//! What a look at the store leads to: what ran out is taken over, what anybody may claim is claimed,
//! and who lives with which table is known.
//!
//! Must never: take a lease for dead; that is what the watch is for.

use std::collections::HashSet;

use super::lease::{Answered, FencingToken, Late, Observation, Occurrence, Opening, Origin, Scope};
use super::table::{Entry, UNPLACED_DELAY};
use super::time::BootTime;
use super::watch::Takeover;
use super::{CallResult, Purpose, Scheduler};

impl Scheduler {
    pub(super) fn observed(
        &mut self,
        scope: Scope,
        sent: BootTime,
        result: CallResult<Observation>,
        now: BootTime,
    ) {
        let Some(Answered {
            now: store_now,
            answer,
            ..
        }) = self.heard(sent, now, result)
        else {
            self.held_up = Some(Late::Away);
            self.watch.look_failed(scope, now);
            return;
        };
        let highest = answer
            .leases
            .iter()
            .map(|lease| lease.held.sighting.token)
            .max();
        let known = answer.token.max(highest.unwrap_or_default());
        self.token_floor = self.token_floor.max(known);
        self.remember_grace(&answer, sent);
        self.remember_birth(answer.born, now);
        self.heard_of_grace(answer.grace);
        self.placement.learn(answer.peers.clone());
        self.look_at_tables(&answer, sent, now);
        let ours: HashSet<FencingToken> = self.held.tokens().collect();
        let table = &self.table;
        let takeovers = self
            .watch
            .looked(&answer, scope, store_now, &self.clock, now, |lease| {
                !ours.contains(&lease.held.sighting.token) && table.entry(&lease.job).is_some()
            });
        if self.draining || self.settings.purpose != Purpose::Table {
            return;
        }
        for takeover in takeovers {
            self.take_over(takeover, now);
        }
        let held_up = self.held_up.take();
        for opening in answer.openings {
            self.take_opening(opening, held_up, now);
        }
    }

    /// Notes until when nothing is granted. Of a window that began since this replica looked last,
    /// and that the store's clock jumped into, nobody knows how much is left: it may be all.
    fn remember_grace(&mut self, answer: &Observation, sent: BootTime) {
        let jumped = std::mem::take(&mut self.jumped);
        let is_new = self.born.is_some_and(|born| born != answer.born);
        let grace = match jumped && is_new {
            true => self.quarantine(),
            false => answer.grace,
        };
        self.grace_until = self.grace_until.max(sent + grace);
    }

    fn take_over(&mut self, takeover: Takeover, now: BootTime) {
        let Takeover {
            occurrence,
            origin,
            shard,
            watched,
        } = takeover;
        if self.claims.is_pending(&occurrence, shard) {
            return;
        }
        let entry = self.table.entry(&occurrence.job).cloned();
        let Some(entry) = entry.filter(|_| !self.drift.leaves(&occurrence.job)) else {
            return;
        };
        let at = occurrence.scheduled_at;
        let run_id = self.draw_run_id(at);
        let mut claim = entry.claim(at, origin, shard, run_id);
        claim.watched = Some(watched);
        // What may not run again is closed by whoever sees it, also where nothing of it may run.
        claim.unplaced |= !entry.job.enabled;
        claim.no_room = !self.has_room_for_more();
        self.claims.add(claim, now);
    }

    /// Claims what anybody may claim. A full replica leaves it: it looks again when there is
    /// room. `late` is what kept this replica from it before.
    pub(super) fn take_opening(&mut self, opening: Opening, late: Option<Late>, now: BootTime) {
        let Opening {
            occurrence,
            origin,
            shard,
            shards,
            failed_on,
            expired,
        } = opening;
        let entry = self.table.get(&occurrence.job).cloned();
        let Some(entry) = entry.filter(|_| !self.drift.leaves(&occurrence.job)) else {
            return;
        };
        if !entry.runs_here {
            if expired {
                self.close_unplaced(&entry, &occurrence, origin, now);
            }
            return;
        }
        // A retry, a hand-over, another shard: there is nothing to decide but who runs it.
        let granted_before = shards.is_some();
        let shards = match shards {
            Some(_) => shard..shard + 1,
            // None of them was granted yet.
            None => 0..entry.job.shards,
        };
        for shard in shards {
            if self.claims.is_pending(&occurrence, shard) {
                continue;
            }
            let has_room = self.has_room_for_more();
            if !has_room && granted_before {
                continue;
            }
            let at = occurrence.scheduled_at;
            let run_id = self.draw_run_id(at);
            let mut claim = entry.claim(at, origin, shard, run_id);
            claim.no_room = !has_room;
            claim.late = late;
            let wait = self
                .placement
                .wait(&entry.job, &occurrence, shard, failed_on);
            self.claims.add(claim, now + wait);
        }
    }

    /// Writes down that something may not start any more which could not start here: where those
    /// that have its tags are gone, nobody else does.
    fn close_unplaced(
        &mut self,
        entry: &Entry,
        occurrence: &Occurrence,
        origin: Origin,
        now: BootTime,
    ) {
        if self.claims.is_pending(occurrence, 0) {
            return;
        }
        let at = occurrence.scheduled_at;
        let run_id = self.draw_run_id(at);
        let claim = entry.claim(at, origin, 0, run_id);
        self.claims.add(claim, now + UNPLACED_DELAY);
    }
}
