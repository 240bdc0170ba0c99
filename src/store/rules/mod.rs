//! The store's side of the lease protocol as a pure state machine: a record, a request and the
//! store's time in; an answer, the new record and the ledger's new lines out.
//!
//! Every due instant of a job ends in one outcome:
//!
//! ```text
//!                                            ┌──────────── release: hand over, or a failure
//!                                            ▼             that is to be tried again
//!        claim                 grant      again ──────┐
//!   due ───────┬────────────▶ running ◀───────────────┘ claim: attempt + 1
//!    │         │                 │  ╲ deadline passed, watched: lost, and attempt + 1
//!    │         ▼                 │   ╲ (`on_crash = "skip"`, told to stop, no attempts left:
//!    │      waiting ── its turn ─┤    ╲  lost for good)
//!    │  queue, backlog,          │     ▼
//!    │  trigger, after           │    lost
//!    │         │                 ▼ release
//!    │         │   succeeded │ failed │ timed_out │ cancelled
//!    ▼         ▼
//!   skipped (overlap, queue_full, replaced, paused, disabled, placement, after)
//!   missed  (deadline, catch_up, schedule_changed, unknown)
//! ```
//!
//! An occurrence is consumed by its first claim: what is settled never falls
//! ([`Record::settled_until`]). What nobody claimed is consumed by the claim to a newer one, as
//! one line of the ledger for all of it. The invariants:
//!
//! - one grant per (job, occurrence, shard, attempt);
//! - a token is above the job's previous one, above the store's time in microseconds and above
//!   what the caller has seen, so it rises even after the store lost its data;
//! - the deadline of one token rises strictly;
//! - a lease is taken over only by a caller that names the exact (token, deadline) it watched;
//! - nothing is granted in a grace window;
//! - nothing is granted by another definition of a job than the one in force;
//! - nothing starts of which a ledger that has lost data was told that it may have run;
//! - no occurrence is granted while another one of its job is unfinished.
//!
//! Must never: read a clock, or believe expiry by itself.

use std::time::Duration;

use super::Caller;

mod agenda;
mod claiming;
mod defining;
mod due;
mod enrolling;
mod forgetting;
mod joining;
mod keeping;
mod ordering;
mod recalling;
mod record;
mod step;
mod stopping;
mod suspending;
mod telling;
mod text;
mod waiting;

pub(super) use self::forgetting::Verdict;
#[cfg(test)]
pub(super) use self::record::Waiting;
pub(super) use self::record::{Decision, Entry, Group, Life, News, Paused, Record, State};

use crate::scheduler::lease::FencingToken;
use crate::scheduler::time::Timestamp;

/// A step back of the store's clock that is waited out in place; a longer one opens a grace
/// window.
pub(super) const STEP_BACK_TOLERATED_US: i64 = 60_000_000;

/// How long nothing is granted on a ledger that is most likely new: enough for holders that are
/// connected, as its birth is announced and they look at once.
const NEW_LEDGER_GRACE: Duration = Duration::from_secs(1);

/// For how long at least replicas may go on to ask a process after another was elected: until they
/// are told by whoever elects.
const TWIN_LIVES: Duration = Duration::from_secs(3);

/// The store's time in microseconds, where its clock says `clock_us`: after a small step back it
/// stands still.
pub(super) fn time_us(group: &Group, clock_us: i64) -> i64 {
    if is_large_step_back(group, clock_us) {
        clock_us
    } else {
        clock_us.max(group.clock_us)
    }
}

/// Whether something that began at `since` did so before a step back of the clock that was not
/// waited out: it lies ahead of now by as much.
fn is_of_before(since: Timestamp, now: Timestamp) -> bool {
    let tolerated = Duration::from_micros(STEP_BACK_TOLERATED_US.unsigned_abs());
    since >= now + tolerated
}

fn is_large_step_back(group: &Group, clock_us: i64) -> bool {
    group.clock_us.saturating_sub(clock_us) >= STEP_BACK_TOLERATED_US
}

/// One call: the state shared by all jobs, the store's time and the caller.
pub(super) struct Call<'a> {
    pub(super) group: &'a mut Group,
    pub(super) caller: &'a Caller,
    now_us: i64,
    now: Timestamp,
    /// In a grace window another process may grant what this one doesn't.
    may_have_twin: bool,
}

impl<'a> Call<'a> {
    /// Begins a call at the store's time in microseconds. A small step back of the clock is
    /// waited out (time stands still); a large one opens a grace window. So do a store that may
    /// have lost data, and a caller that knows of a grant where the ledger has none.
    pub(super) fn begin(
        group: &'a mut Group,
        caller: &'a Caller,
        clock_us: i64,
        life: &Life,
    ) -> Self {
        let now_us = time_us(group, clock_us);
        let now = Timestamp::from_millis(now_us.div_euclid(1000));
        if is_large_step_back(group, clock_us) {
            group.clock_us = clock_us;
            group.grace_until = now + caller.quarantine;
        }
        match life {
            Life::Process(id) | Life::Elected(id) if *id != group.process => {
                reborn(group, caller, now, id);
            }
            Life::AfterLoss => {
                if !mutant!(NoGrace) {
                    group.grace_until = group.grace_until.max(now + caller.quarantine);
                }
                if !mutant!(BornStays) {
                    group.born = group.born.max(now);
                }
            }
            Life::New => {
                let grace = grace_of_birth(false, caller);
                group.grace_until = group.grace_until.max(now + grace);
                group.born = group.born.max(now);
            }
            Life::Steady | Life::Process(_) | Life::Elected(_) => {}
        }
        let lost = group.token == FencingToken::default() && caller.token_floor > group.token;
        if lost {
            group.token = caller.token_floor;
            group.grace_until = group.grace_until.max(now + caller.quarantine);
        }
        Self {
            group,
            caller,
            now_us,
            now,
            may_have_twin: matches!(life, Life::Elected(_)),
        }
    }

    /// The store's time.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// What is left of a grace window: by the store's clock, and by that of a caller who has seen
    /// it. A jump forward must not end it before holders had their time.
    pub(super) fn grace(&self) -> Duration {
        self.window().max(self.caller.held_back)
    }

    /// The same by the store's clock alone.
    fn window(&self) -> Duration {
        self.group.grace_until.saturating_since(self.now)
    }

    /// What was due by then may have been granted by a process of which this one knows nothing.
    fn unsure_until(&self) -> Timestamp {
        match self.may_have_twin {
            true => self.group.grace_until.max(self.group.born + TWIN_LIVES),
            false => self.group.born,
        }
    }

    /// The token of a grant: above `known`, all that was granted, and all that the caller has
    /// seen. One that is too large is not written down, and so not granted.
    pub(super) fn draw_token(&mut self, known: FencingToken) -> FencingToken {
        let group = &mut *self.group;
        let known = known.max(group.token).max(self.caller.token_floor);
        let time = u64::try_from(self.now_us).unwrap_or(0);
        let token = match mutant!(TokenCounts) {
            true => FencingToken::new(group.token.get() + 1),
            false => FencingToken::new((known.get() + 1).max(time)),
        };
        group.token = token;
        group.clock_us = group.clock_us.max(self.now_us);
        token
    }

    /// The request came after its own deadline.
    pub(super) fn expired(&self) -> bool {
        self.caller.send_by.is_some_and(|limit| self.now > limit)
    }
}

/// How long nothing is granted at the birth of a ledger. Where neither it nor the caller knows of
/// anything before, it is most likely a first start.
fn grace_of_birth(known: bool, caller: &Caller) -> Duration {
    match known || caller.token_floor > FencingToken::default() {
        true => caller.quarantine,
        false => caller.quarantine.min(NEW_LEDGER_GRACE),
    }
}

/// What another process of the store means: it may have lost what was acknowledged, so holders
/// get time to come back. A ledger that this store never had, and of which the caller knows no
/// grant, is most likely a first start.
fn reborn(group: &mut Group, caller: &Caller, now: Timestamp, process: &str) {
    let grace = grace_of_birth(!group.process.is_empty(), caller);
    group.grace_until = group.grace_until.max(now + grace);
    process.clone_into(&mut group.process);
    group.born = now;
}

/// Whoever asks, where tests don't mind who that is.
#[cfg(test)]
fn somebody() -> Caller {
    Caller {
        replica: crate::scheduler::lease::Replica {
            id: uuid::Uuid::nil(),
            name: "r1".to_owned(),
        },
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}
