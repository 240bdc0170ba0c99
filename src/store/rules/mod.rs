//! The store's side of the lease protocol as a pure state machine: a record, a request and the
//! store's time in; an answer, the new record and the ledger's new lines out.
//!
//! Every engine asks in here, and keeps what comes of it. The invariants (protocol of the lease):
//!
//! - one grant per (job, occurrence, attempt); what is settled never falls
//!   ([`Record::settled_until`]);
//! - a token is above the previous one, above the store's time in microseconds and above what
//!   the caller has seen, so it rises even after the store lost its data;
//! - the deadline of one token rises strictly;
//! - a lease is taken over only by a caller that names the exact (token, deadline) it watched;
//! - nothing is granted in a grace window.
//!
//! Must never: read a clock, or believe expiry by itself.

use std::time::Duration;

use super::{Caller, Registration};

mod record;
mod text;

pub(super) use self::record::{Decision, Entry, Group, Life, Record, State};

use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{
    AttemptDetail, Claim, ClaimAnswer, FencingToken, Grant, Held, Origin, Outcome, Release,
    ReleaseAnswer, Renewal, RenewalAnswer, RunId,
};
use crate::scheduler::time::Timestamp;

/// A step back of the store's clock that is waited out in place; a longer one opens a grace
/// window.
pub(super) const STEP_BACK_TOLERATED_US: i64 = 60_000_000;

/// How long nothing is granted on a ledger that is most likely new: enough for holders that are
/// connected, as its birth is announced and they look at once.
const NEW_LEDGER_GRACE: Duration = Duration::from_secs(1);

/// The store's time in microseconds, where its clock says `clock_us`: after a small step back it
/// stands still.
pub(super) fn time_us(group: &Group, clock_us: i64) -> i64 {
    if is_large_step_back(group, clock_us) {
        clock_us
    } else {
        clock_us.max(group.clock_us)
    }
}

fn is_large_step_back(group: &Group, clock_us: i64) -> bool {
    group.clock_us - clock_us >= STEP_BACK_TOLERATED_US
}

/// One call: the state shared by all jobs, the store's time and the caller.
pub(super) struct Call<'a> {
    pub(super) group: &'a mut Group,
    pub(super) caller: &'a Caller,
    now_us: i64,
    now: Timestamp,
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
            Life::Process(id) if *id != group.process => reborn(group, caller, now, id),
            Life::AfterLoss => {
                group.grace_until = group.grace_until.max(now + caller.quarantine);
                group.born = group.born.max(now);
            }
            Life::Steady | Life::Process(_) => {}
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
        }
    }

    /// The store's time.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// What is left of a grace window.
    pub(super) fn grace(&self) -> Duration {
        self.group.grace_until.saturating_since(self.now)
    }

    fn expired(&self) -> bool {
        self.caller.send_by.is_some_and(|limit| self.now > limit)
    }

    /// See [`super::Store::register`].
    pub(super) fn register(&self, record: Option<&Record>) -> Decision<Registration> {
        if let Some(record) = record {
            return Decision::keep(Registration {
                settled_until: record.settled_until,
                new: false,
            });
        }
        let registration = Registration {
            settled_until: self.now,
            new: true,
        };
        Decision::write(registration, self.blank(), None)
    }

    /// See [`super::Store::claim`].
    pub(super) fn claim(
        &mut self,
        record: Option<&Record>,
        claim: &Claim,
    ) -> Decision<ClaimAnswer> {
        let due = claim.occurrence.scheduled_at;
        let same = record.filter(|record| record.scheduled_at == due && record.state != State::New);
        if let Some(record) = same.filter(|record| record.run_id == claim.run_id) {
            return Decision::keep(self.replay(record));
        }
        if self.expired() {
            return Decision::keep(ClaimAnswer::RequestExpired);
        }
        if due > self.now {
            return Decision::keep(ClaimAnswer::Early {
                wait: due.saturating_since(self.now),
            });
        }
        if let Some(record) = same {
            return self.claim_again(record, claim);
        }
        if let Some(record) = record {
            let scheduled = claim.origin == Origin::Schedule;
            if scheduled && due <= record.settled_until {
                return Decision::keep(ClaimAnswer::Finished);
            }
            if record.state.is_open() {
                return self.overlap(record, claim);
            }
        }
        self.claim_first(record, claim)
    }

    /// The same request once more: the same answer, with what is left by now.
    fn replay(&self, record: &Record) -> ClaimAnswer {
        if record.state != State::Running {
            return ClaimAnswer::Finished;
        }
        ClaimAnswer::Granted(Grant {
            token: record.token,
            attempt: record.attempt,
            deadline: record.deadline,
            remaining: record.deadline.saturating_since(self.now),
        })
    }

    /// A claim to an occurrence that was granted before.
    fn claim_again(&mut self, record: &Record, claim: &Claim) -> Decision<ClaimAnswer> {
        if !record.state.is_open() {
            return Decision::keep(ClaimAnswer::Finished);
        }
        let running = record.state == State::Running;
        if running && claim.watched != Some(record.into()) {
            return Decision::keep(ClaimAnswer::Held(held(record)));
        }
        if !self.grace().is_zero() {
            return Decision::keep(ClaimAnswer::Grace { wait: self.grace() });
        }
        let exhausted = record.attempt >= claim.max_attempts;
        let may_not = running && record.on_crash == OnCrash::Skip;
        let lost = running.then(|| self.lost_entry(record, may_not, exhausted));
        if may_not || exhausted {
            let closed = Record {
                state: State::Ended(Outcome::Lost),
                since: self.now,
                ..record.clone()
            };
            let entry = lost.unwrap_or_else(|| self.lost_entry(record, may_not, exhausted));
            return Decision::write(ClaimAnswer::Closed, closed, Some(entry));
        }
        let (answer, granted) = self.grant(Some(record), claim, record.attempt + 1);
        Decision::write(answer, granted, lost)
    }

    /// A claim to an occurrence while another one of the job is unfinished.
    fn overlap(&self, record: &Record, claim: &Claim) -> Decision<ClaimAnswer> {
        if claim.origin == Origin::Manual {
            return Decision::keep(ClaimAnswer::Held(held(record)));
        }
        let due = claim.occurrence.scheduled_at;
        let skipped = Record {
            settled_until: due,
            ..record.clone()
        };
        let reason = format!(
            "overlap: the occurrence of {} is unfinished",
            record.scheduled_at
        );
        let entry = self.unstarted_entry(claim, Outcome::Skipped, reason);
        Decision::write(ClaimAnswer::Overlap(held(record)), skipped, Some(entry))
    }

    /// A claim to an occurrence that nobody had yet.
    fn claim_first(&mut self, record: Option<&Record>, claim: &Claim) -> Decision<ClaimAnswer> {
        let due = claim.occurrence.scheduled_at;
        if !self.grace().is_zero() {
            return Decision::keep(ClaimAnswer::Grace { wait: self.grace() });
        }
        let once = claim.origin == Origin::Schedule && claim.on_crash == OnCrash::Skip;
        let before_birth = due <= self.group.born;
        let reason = if before_birth && record.is_none() {
            Some("the ledger began later and can't tell whether it ran")
        } else if before_birth && once {
            // A store that was started anew may have forgotten a grant that it acknowledged.
            Some("the store was restarted later and can't tell whether it ran")
        } else if claim.start_by == Claim::ONLY_ASKS {
            Some("a newer occurrence fell due before it could be claimed")
        } else if self.now > claim.start_by {
            Some("starting_deadline passed before a replica could claim it")
        } else {
            None
        };
        if let Some(reason) = reason {
            let base = record.cloned().unwrap_or_else(|| self.blank());
            let missed = Record {
                settled_until: base.settled_until.max(due),
                ..base
            };
            let entry = self.unstarted_entry(claim, Outcome::Missed, reason.to_owned());
            return Decision::write(ClaimAnswer::TooLate, missed, Some(entry));
        }
        let (answer, granted) = self.grant(record, claim, 1);
        Decision::write(answer, granted, None)
    }

    fn grant(
        &mut self,
        record: Option<&Record>,
        claim: &Claim,
        attempt: u32,
    ) -> (ClaimAnswer, Record) {
        let floor = self.group.token.max(self.caller.token_floor).get() + 1;
        // One that is past 53 bits is refused where it would be written.
        let token = FencingToken::new(floor.max(u64::try_from(self.now_us).unwrap_or(0)));
        self.group.token = token;
        self.group.clock_us = self.group.clock_us.max(self.now_us);
        let due = claim.occurrence.scheduled_at;
        let before = record.map_or(Timestamp::default(), |record| record.settled_until);
        let settled_until = match claim.origin {
            Origin::Schedule => before.max(due),
            Origin::Manual => before,
        };
        let deadline = self.now + claim.ttl;
        let granted = Record {
            scheduled_at: due,
            state: State::Running,
            holder: self.caller.replica.clone(),
            run_id: claim.run_id,
            token,
            deadline,
            attempt,
            ttl: claim.ttl,
            settled_until,
            on_crash: claim.on_crash,
            since: self.now,
        };
        (
            ClaimAnswer::Granted(Grant {
                token,
                attempt,
                deadline,
                remaining: claim.ttl,
            }),
            granted,
        )
    }

    /// See [`super::Store::renew`].
    pub(super) fn renew(
        &mut self,
        record: Option<&Record>,
        renewal: &Renewal,
    ) -> Decision<RenewalAnswer> {
        let due = renewal.occurrence.scheduled_at;
        let mine = record.is_some_and(|record| {
            record.scheduled_at == due
                && record.run_id == renewal.run_id
                && record.token == renewal.token
                && record.state == State::Running
        });
        if !mine && !self.may_reassert(record, renewal.token) {
            return Decision::keep(RenewalAnswer::Lost);
        }
        let base = match record.filter(|_| mine) {
            Some(record) => record.clone(),
            None => self.rewritten(record, renewal),
        };
        let last = base.deadline.max(renewal.last_deadline);
        let deadline = (self.now + renewal.ttl).max(last + Duration::from_millis(1));
        self.group.token = self.group.token.max(renewal.token);
        let renewed = Record {
            deadline,
            ttl: renewal.ttl,
            ..base
        };
        let answer = RenewalAnswer::Renewed {
            deadline,
            remaining: renewal.ttl,
        };
        Decision::write(answer, renewed, None)
    }

    /// Inside a grace window a holder may write a record anew that the store lost, or that it
    /// has only in an older form.
    fn may_reassert(&self, record: Option<&Record>, token: FencingToken) -> bool {
        !self.grace().is_zero() && record.is_none_or(|record| record.token < token)
    }

    fn rewritten(&self, record: Option<&Record>, renewal: &Renewal) -> Record {
        let settled = record.map_or(Timestamp::default(), |record| record.settled_until);
        let due = renewal.occurrence.scheduled_at;
        let settled_until = match renewal.origin {
            Origin::Schedule => settled.max(due),
            Origin::Manual => settled,
        };
        Record {
            scheduled_at: due,
            state: State::Running,
            run_id: renewal.run_id,
            token: renewal.token,
            attempt: renewal.attempt,
            on_crash: renewal.on_crash,
            settled_until,
            ..self.blank()
        }
    }

    /// See [`super::Store::release`].
    pub(super) fn release(
        &mut self,
        record: Option<&Record>,
        release: &Release,
    ) -> Decision<ReleaseAnswer> {
        let state = State::Ended(release.outcome);
        let mine = record.filter(|record| {
            record.scheduled_at == release.occurrence.scheduled_at
                && record.run_id == release.run_id
                && record.token == release.token
        });
        if mine.is_some_and(|record| record.state == state) {
            return Decision::keep(ReleaseAnswer::Released);
        }
        let running = mine.filter(|record| record.state == State::Running);
        if running.is_none() && !self.may_reassert(record, release.token) {
            return Decision::keep(ReleaseAnswer::Superseded);
        }
        let base = match running {
            Some(record) => record.clone(),
            None => self.rewritten(record, &as_renewal(release)),
        };
        let entry = Entry {
            outcome: release.outcome,
            detail: release.detail.clone(),
            ..self.entry(&base)
        };
        let ended = Record {
            state,
            deadline: self.now,
            since: self.now,
            ..base
        };
        self.group.token = self.group.token.max(release.token);
        Decision::write(ReleaseAnswer::Released, ended, Some(entry))
    }

    /// The record of a job that never ran.
    fn blank(&self) -> Record {
        Record {
            scheduled_at: Timestamp::default(),
            state: State::New,
            holder: self.caller.replica.clone(),
            run_id: RunId::new(uuid::Uuid::nil()),
            token: FencingToken::default(),
            deadline: Timestamp::default(),
            attempt: 0,
            ttl: Duration::ZERO,
            settled_until: self.now,
            on_crash: OnCrash::Rerun,
            since: self.now,
        }
    }

    /// The line of an attempt that ends now; its outcome is for the caller to fill in.
    fn entry(&self, record: &Record) -> Entry {
        Entry {
            scheduled_at: record.scheduled_at,
            attempt: record.attempt,
            run_id: record.run_id,
            token: record.token,
            replica: record.holder.name.clone(),
            started_at: record.since,
            ended_at: self.now,
            outcome: Outcome::Lost,
            detail: AttemptDetail::default(),
        }
    }

    fn lost_entry(&self, record: &Record, may_not: bool, exhausted: bool) -> Entry {
        let fate = match (may_not, exhausted) {
            (true, _) => "not run again, as on_crash = \"skip\" says",
            (_, true) => "not run again: max_attempts is used up",
            _ => "run again as the next attempt",
        };
        let reason = format!("its holder was not heard of until the lease ran out; {fate}");
        Entry {
            detail: AttemptDetail::reason(reason),
            ..self.entry(record)
        }
    }

    fn unstarted_entry(&self, claim: &Claim, outcome: Outcome, reason: String) -> Entry {
        Entry {
            scheduled_at: claim.occurrence.scheduled_at,
            attempt: 0,
            run_id: claim.run_id,
            token: FencingToken::default(),
            replica: self.caller.replica.name.clone(),
            started_at: self.now,
            ended_at: self.now,
            outcome,
            detail: AttemptDetail::reason(reason),
        }
    }
}

/// What another process of the store means: it may have lost what was acknowledged, so holders
/// get time to come back. A ledger that this store never had, and of which the caller knows no
/// grant, is most likely a first start.
fn reborn(group: &mut Group, caller: &Caller, now: Timestamp, process: &str) {
    let first_start = group.process.is_empty() && caller.token_floor == FencingToken::default();
    let grace = match first_start {
        true => caller.quarantine.min(NEW_LEDGER_GRACE),
        false => caller.quarantine,
    };
    group.grace_until = group.grace_until.max(now + grace);
    process.clone_into(&mut group.process);
    group.born = now;
}

fn held(record: &Record) -> Held {
    Held {
        scheduled_at: record.scheduled_at,
        sighting: record.into(),
        ttl: record.ttl,
    }
}

/// The renewal that a release stands for where the record has to be written anew first.
fn as_renewal(release: &Release) -> Renewal {
    Renewal {
        occurrence: release.occurrence.clone(),
        origin: release.origin,
        run_id: release.run_id,
        token: release.token,
        attempt: release.attempt,
        on_crash: release.on_crash,
        ttl: Duration::ZERO,
        last_deadline: Timestamp::default(),
    }
}
