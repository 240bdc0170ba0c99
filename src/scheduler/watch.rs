//! Watching other replicas' leases, to take over those whose holder is gone.
//!
//! The store's clock alone decides nothing: it may jump. A lease is believed dead when
//!
//! - its (token, deadline) stood unchanged on *this* host's boot clock for its whole TTL plus a
//!   delay; or
//! - its deadline plus a delay has passed on the store's clock, and that clock has been seen to
//!   run true since before the lease's last renewal. This arm keeps takeover at TTL plus the
//!   delay in ordinary times.
//!
//! The first of the two asks that clock for nothing: after a step back it stands still for a while,
//! or a deadline lies ahead of it by as much, and no look at what ran out shows the lease. So when a
//! lease has stood unchanged for that long, all are looked at.
//!
//! Either way this replica's own connection must have been healthy for a while, so that one
//! that has just come back from a partition looks before it takes.
//!
//! Must never: poll. The next look is at a known instant: the next deadline, the instant at
//! which a watched lease may be taken, or the regular sign of life.

use std::collections::HashMap;
use std::time::Duration;

use super::job::JobName;
use super::lease::{
    ABANDONED_AFTER, Held, Observation, ObservedLease, Occurrence, Origin, Scope, Sighting,
};
use super::margins::Margins;
use super::store_clock::StoreClock;
use super::time::{BootTime, Timestamp};

/// The sign of life of a replica that has no jobs.
const IDLE_INTERVAL: Duration = Duration::from_millis(2500);

/// What this replica has seen of leases, and when it looks next.
#[derive(Debug)]
pub(super) struct Watch {
    seen: HashMap<(JobName, u32), Watched>,
    healthy_since: Option<BootTime>,
    interval: Duration,
    next_look: BootTime,
    scope: Scope,
    in_flight: bool,
    /// Asked for while a look was in flight.
    again: Option<Scope>,
}

#[derive(Clone, Debug)]
struct Watched {
    held: Held,
    first_seen: BootTime,
}

impl Watched {
    /// Until when it stands unchanged if nobody renews it in time: then it is over, whatever the
    /// store's clock says.
    fn unchanged_until(&self) -> BootTime {
        unchanged_until(self.held.ttl, self.first_seen)
    }
}

/// A lease that may be claimed.
#[derive(Debug)]
pub(super) struct Takeover {
    pub(super) occurrence: Occurrence,
    pub(super) origin: Origin,
    pub(super) shard: u32,
    pub(super) watched: Sighting,
}

impl Watch {
    /// Begins to watch; `shortest` is the shortest TTL in the table.
    pub(super) fn new(shortest: Option<Duration>, now: BootTime) -> Self {
        Self {
            seen: HashMap::new(),
            healthy_since: None,
            interval: interval(shortest),
            next_look: now,
            scope: Scope::All,
            in_flight: false,
            again: None,
        }
    }

    /// The table has another shortest TTL.
    pub(super) fn of_ttl(&mut self, shortest: Option<Duration>, now: BootTime) {
        self.interval = interval(shortest);
        self.next_look = self.next_look.min(now + self.interval);
    }

    /// From one sign of life to the next.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// The store answered something.
    pub(super) fn heard(&mut self, now: BootTime) {
        self.healthy_since.get_or_insert(now);
    }

    /// The store failed to answer something.
    pub(super) fn failed(&mut self) {
        self.healthy_since = None;
    }

    /// Looks as soon as possible.
    pub(super) fn look_now(&mut self, scope: Scope, now: BootTime) {
        if self.in_flight {
            self.again = Some(wider(scope, self.again));
        } else {
            self.scope = wider(scope, Some(self.scope).filter(|_| self.next_look <= now));
            self.next_look = now;
        }
    }

    /// The look that is due now, if one is.
    pub(super) fn begin_look(&mut self, now: BootTime) -> Option<Scope> {
        if self.in_flight || now < self.next_look {
            return None;
        }
        self.in_flight = true;
        Some(std::mem::replace(&mut self.scope, Scope::Overdue))
    }

    /// A look failed: the same again, after a while.
    pub(super) fn look_failed(&mut self, scope: Scope, now: BootTime) {
        self.in_flight = false;
        self.scope = wider(scope, self.again.take());
        self.next_look = now + self.interval;
    }

    /// Takes in what a look showed, at `store_now` by the store's clock, and says what of it
    /// may be claimed. `watched` tells which leases are any business of this replica.
    pub(super) fn looked(
        &mut self,
        observation: &Observation,
        scope: Scope,
        store_now: Timestamp,
        clock: &StoreClock,
        now: BootTime,
        watched: impl Fn(&ObservedLease) -> bool,
    ) -> Vec<Takeover> {
        self.in_flight = false;
        self.forget_settled(observation, scope, store_now);
        let mut takeovers = Vec::new();
        for lease in observation.leases.iter().filter(|lease| watched(lease)) {
            let seen = self.see(&lease.job, &lease.held, now);
            let ready_at = self.ready_at(&seen, clock);
            let over = seen.held.sighting.deadline < store_now
                || seen.unchanged_until() <= now
                || mutant!(TakesWhatItSees);
            if over && ready_at <= now {
                takeovers.push(takeover(&lease.job, &lease.held));
            }
        }
        takeovers.extend(self.out_of_sight(store_now, clock, now));
        self.plan(observation, store_now, clock, now);
        takeovers
    }

    /// Leases that ran out so long ago that no look shows them: every replica was away
    /// meanwhile. The answer to a claim told of them, and they stand in its job's way until
    /// somebody takes them over.
    fn out_of_sight(
        &mut self,
        store_now: Timestamp,
        clock: &StoreClock,
        now: BootTime,
    ) -> Vec<Takeover> {
        let free = |watched: &Watched| {
            is_abandoned(watched, store_now) && self.ready_at(watched, clock) <= now
        };
        let seen = self.seen.iter().filter(|(_, watched)| free(watched));
        let free: Vec<_> = seen
            .map(|((job, _), Watched { held, .. })| takeover(job, held))
            .collect();
        for one in &free {
            self.seen.remove(&(one.occurrence.job.clone(), one.shard));
        }
        free
    }

    /// Notes a lease that an answer told of, and looks when it may be taken over.
    pub(super) fn told_of(
        &mut self,
        job: &JobName,
        held: &Held,
        clock: &StoreClock,
        now: BootTime,
    ) {
        let seen = self.see(job, held, now);
        let ready_at = self.ready_at(&seen, clock);
        if ready_at > now {
            self.next_look = self.next_look.min(ready_at);
        }
    }

    /// Notes a lease: since when it is as it is.
    fn see(&mut self, job: &JobName, held: &Held, now: BootTime) -> Watched {
        let fresh = Watched {
            held: held.clone(),
            first_seen: now,
        };
        let key = (job.clone(), held.shard);
        let entry = self.seen.entry(key).or_insert_with(|| fresh.clone());
        if entry.held.sighting != held.sighting {
            *entry = fresh;
        }
        entry.clone()
    }

    /// Drops what a look at overdue leases no longer shows: renewed, ended or taken.
    fn forget_settled(&mut self, observation: &Observation, scope: Scope, store_now: Timestamp) {
        let all = scope == Scope::All;
        self.seen.retain(|(job, shard), watched| {
            let expected = all || watched.held.sighting.deadline < store_now;
            let shown = all || (expected && !is_abandoned(watched, store_now));
            let same = |lease: &ObservedLease| lease.job == *job && lease.held.shard == *shard;
            !shown || observation.leases.iter().any(same)
        });
    }

    /// When a lease may be taken over, if it stays as it is.
    fn ready_at(&self, watched: &Watched, clock: &StoreClock) -> BootTime {
        let Held { sighting, ttl, .. } = watched.held;
        if mutant!(TakesWhatItSees) {
            return watched.first_seen;
        }
        let dead = dead_at(sighting, ttl, watched.first_seen, clock);
        match self.healthy_since {
            Some(since) => dead.max(since + self.interval + watch_delay(ttl)),
            None => dead,
        }
    }

    /// Sets the next look: the sign of life, or the first instant at which there may be
    /// something to take.
    fn plan(
        &mut self,
        observation: &Observation,
        store_now: Timestamp,
        clock: &StoreClock,
        now: BootTime,
    ) {
        let regular = now + self.interval;
        let watched = self
            .seen
            .values()
            .map(|watched| self.ready_at(watched, clock));
        let ready = watched.filter(|at| *at > now).min();
        let agenda = observation.next_look.and_then(|at| clock.boot_time_of(at));
        let next = [ready, agenda]
            .into_iter()
            .flatten()
            .filter(|at| *at > now)
            .min();
        self.next_look = next.map_or(regular, |at| at.min(regular));
        let next_look = self.next_look;
        let hidden = |one: &Watched| {
            let lasts = one.held.sighting.deadline >= store_now;
            is_ahead(&one.held, store_now) || lasts && one.unchanged_until() <= next_look
        };
        if self.seen.values().any(hidden) {
            // A look at what ran out by the store's clock would not show them.
            self.scope = Scope::All;
        }
        if let Some(scope) = self.again.take() {
            self.scope = wider(scope, Some(self.scope));
            self.next_look = now;
        }
    }

    /// When the next look is due.
    pub(super) fn next_wakeup(&self) -> Option<BootTime> {
        (!self.in_flight).then_some(self.next_look)
    }
}

/// When a lease is dead that stands as it was first seen then: by either arm, see the module.
pub(crate) fn dead_at(
    sighting: Sighting,
    ttl: Duration,
    first_seen: BootTime,
    clock: &StoreClock,
) -> BootTime {
    let unchanged = unchanged_until(ttl, first_seen);
    let renewed_at = sighting.deadline - ttl;
    let trusted = clock
        .trusted_since()
        .is_some_and(|since| since <= renewed_at || mutant!(BelievesTheClock));
    let passed = clock
        .boot_time_of(sighting.deadline + watch_delay(ttl))
        .filter(|_| trusted);
    passed.map_or(unchanged, |passed| passed.min(unchanged))
}

fn unchanged_until(ttl: Duration, first_seen: BootTime) -> BootTime {
    first_seen + ttl + watch_delay(ttl)
}

/// The delay of any TTL that a record may hold, also of one that this version would refuse.
pub(crate) fn watch_delay(ttl: Duration) -> Duration {
    Margins::of(ttl.clamp(super::margins::SHORTEST_TTL, super::margins::LONGEST_TTL)).watch_delay()
}

/// Whether a lease ran out so long ago that a look may not show it. What hides a record is the earliest of
/// its instants, such as the end of a wait, which may be hours before that of its lease.
fn is_abandoned(watched: &Watched, store_now: Timestamp) -> bool {
    watched.held.sighting.deadline <= store_now - ABANDONED_AFTER / 2
}

/// Whether a lease lasts for longer than any that is granted or renewed now: the store's clock
/// has stepped back since. By that clock it would outlive its holder by as much.
fn is_ahead(held: &Held, store_now: Timestamp) -> bool {
    held.sighting.deadline > store_now + held.ttl + watch_delay(held.ttl)
}

fn takeover(job: &JobName, held: &Held) -> Takeover {
    let occurrence = Occurrence {
        job: job.clone(),
        scheduled_at: held.scheduled_at,
    };
    Takeover {
        occurrence,
        origin: held.origin,
        shard: held.shard,
        watched: held.sighting,
    }
}

/// From one sign of life to the next of a replica whose shortest TTL this is.
fn interval(shortest: Option<Duration>) -> Duration {
    shortest.map_or(IDLE_INTERVAL, |ttl| Margins::of(ttl).renewal_interval())
}

fn wider(one: Scope, other: Option<Scope>) -> Scope {
    if one == Scope::All || other == Some(Scope::All) {
        Scope::All
    } else {
        Scope::Overdue
    }
}
