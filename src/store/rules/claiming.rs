//! Claims: whose an occurrence is, and what becomes of one that can't be anybody's now.

use super::Call;
use super::record::{Current, Decision, News, Record, State, Waiting};
use super::step::{Step, Unstarted};
use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{
    AttemptDetail, Cause, Claim, ClaimAnswer, FencingToken, Grant, Origin, Outcome, StopFor,
    StopOrder,
};
use crate::scheduler::policy::Concurrency;
use crate::scheduler::time::Timestamp;

/// How many occurrences of a job wait at most, whatever its policies and people ask for: each
/// is a part of its record.
pub(super) const WAITING_LIMIT: usize = 2000;

pub(super) const NOBODY_CAME: &str = "no replica claimed it: all were away, or the store was";
const UNPLACED: &str = "no replica that has the tags of `run_on` was there to claim it in time";

/// How many occurrences wait at most behind those that are caught up with.
const BACKLOG_LIMIT: usize = 100;

impl Call<'_> {
    /// See [`super::super::Store::claim`].
    pub(in crate::store) fn claim(
        &mut self,
        record: Option<&Record>,
        claim: &Claim,
    ) -> Decision<ClaimAnswer> {
        let mut step = Step::begin(self, record);
        let answer = step.claim(claim);
        step.decide(answer)
    }
}

impl Claim {
    fn due(&self) -> Timestamp {
        self.occurrence.scheduled_at
    }

    fn shard_index(&self) -> usize {
        self.shard as usize
    }

    /// The occurrence as one that waits.
    fn waiting(&self, now: Timestamp) -> Waiting {
        Waiting {
            scheduled_at: self.due(),
            origin: self.origin,
            by: None,
            since: now,
            start_by: Some(self.start_by),
            queued: true,
        }
    }

    fn unstarted(&self) -> Unstarted<'static> {
        Unstarted {
            run_id: self.run_id,
            scheduled_at: self.due(),
            waiting: None,
        }
    }
}

impl Step<'_, '_> {
    fn claim(&mut self, claim: &Claim) -> ClaimAnswer {
        if let Some(answer) = self.replay(claim) {
            return answer;
        }
        if self.call.expired() {
            return ClaimAnswer::RequestExpired;
        }
        let now = self.now();
        if claim.due() > now {
            let wait = claim.due().saturating_since(now);
            return ClaimAnswer::Early { wait };
        }
        if self.current_at(claim.due()).is_some() {
            return self.claim_shard(claim);
        }
        let waiting = &self.record.waiting;
        let place = waiting
            .iter()
            .position(|one| one.scheduled_at == claim.due());
        if let Some(place) = place {
            return self.claim_waiting(claim, place);
        }
        match claim.origin {
            Origin::Schedule if self.known && claim.due() <= self.record.settled_until => {
                ClaimAnswer::Finished
            }
            Origin::Schedule => self.claim_new(claim),
            Origin::RunOnce => self.claim_here(claim),
            Origin::Trigger | Origin::After => ClaimAnswer::Finished,
        }
    }

    fn current_at(&self, due: Timestamp) -> Option<&Current> {
        let current = self.record.current.as_ref();
        current.filter(|current| current.scheduled_at == due)
    }

    /// The same request once more: the same answer, with what is left by now.
    fn replay(&self, claim: &Claim) -> Option<ClaimAnswer> {
        let current = self.current_at(claim.due())?;
        let slot = current
            .slots
            .iter()
            .find(|slot| slot.run_id == claim.run_id)?;
        if slot.state != State::Running {
            return Some(ClaimAnswer::Finished);
        }
        Some(ClaimAnswer::Granted(Grant {
            token: slot.token,
            attempt: slot.attempt,
            failures: slot.failures,
            deadline: slot.deadline,
            remaining: slot.deadline.saturating_since(self.now()),
        }))
    }

    fn in_grace(&self) -> Option<ClaimAnswer> {
        let wait = self.call.grace();
        (!wait.is_zero()).then_some(ClaimAnswer::Grace { wait })
    }

    /// A claim to a shard of the current occurrence.
    fn claim_shard(&mut self, claim: &Claim) -> ClaimAnswer {
        let shard = claim.shard_index();
        let Some(current) = self.record.current.clone() else {
            return ClaimAnswer::Finished;
        };
        let Some(slot) = current.slots.get(shard) else {
            return ClaimAnswer::Finished;
        };
        let now = self.now();
        match slot.state {
            State::Ended(_) => return ClaimAnswer::Finished,
            State::Again(_) if now < slot.deadline => {
                let wait = slot.deadline.saturating_since(now);
                return ClaimAnswer::Early { wait };
            }
            State::Running if claim.watched != Some(slot.sighting()) => {
                return match current.held(shard) {
                    Some(held) => ClaimAnswer::Held(held),
                    None => ClaimAnswer::Finished,
                };
            }
            State::Idle | State::Again(_) | State::Running => {}
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        let refusal = self
            .refusal(claim, now)
            .filter(|_| slot.state == State::Idle);
        if let Some((_, cause, words)) = refusal {
            self.end(shard, Outcome::Missed, AttemptDetail::policy(cause, words));
            return ClaimAnswer::TooLate;
        }
        self.attempt_again(claim, &current, shard)
    }

    /// A shard that was granted before, or not yet, and that nobody has now.
    fn attempt_again(&mut self, claim: &Claim, current: &Current, shard: usize) -> ClaimAnswer {
        let slot = &current.slots[shard];
        let lost = slot.state == State::Running;
        let exhausted = slot.attempt >= claim.max_attempts;
        let told = current.stop.as_ref().filter(|_| lost);
        let (cause, fate) = match (told, slot.on_crash) {
            (Some(order), _) => (Some(order.why.cause()), order.fate()),
            (None, OnCrash::Skip) if lost => {
                let fate = "not run again, as on_crash = \"skip\" says".to_owned();
                (Some(Cause::OnCrash), fate)
            }
            _ if exhausted => {
                let fate = "not run again: max_attempts is used up".to_owned();
                (Some(Cause::MaxAttempts), fate)
            }
            _ => (None, "run again as the next attempt".to_owned()),
        };
        let words = format!("its holder was not heard of until the lease ran out; {fate}");
        let detail = match cause {
            Some(cause) if lost => AttemptDetail::policy(cause, words),
            Some(cause) => AttemptDetail::policy(cause, fate),
            None => AttemptDetail {
                next_attempt_at: Some(self.now()),
                ..AttemptDetail::reason(words)
            },
        };
        if cause.is_some() {
            self.end(shard, Outcome::Lost, detail);
            return ClaimAnswer::Closed;
        }
        if lost {
            self.line(shard, Outcome::Lost, detail);
        }
        self.grant(claim)
    }

    /// A claim to an occurrence of the schedule that nobody claimed yet.
    fn claim_new(&mut self, claim: &Claim) -> ClaimAnswer {
        let (due, now) = (claim.due(), self.now());
        if claim.claim_by == Claim::ONLY_ASKS {
            return ClaimAnswer::Finished;
        }
        let paused = self.record.paused.as_ref();
        let suspended = paused
            .map(|paused| paused.since)
            .into_iter()
            .chain(self.record.disabled);
        if suspended.min().is_some_and(|since| due > since) {
            return ClaimAnswer::Suspended;
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        if let Some(until) = claim.missed_until {
            let (outcome, cause, words) = match claim.unplaced {
                true => (Outcome::Skipped, Cause::Placement, UNPLACED),
                false => (Outcome::Missed, Cause::CatchUp, NOBODY_CAME),
            };
            self.pass_over(claim.run_id, until, outcome, cause, words);
        }
        let refusal = self.refusal(claim, now);
        if let (Some((outcome, cause, words)), Some(until)) = (&refusal, claim.backlog.last()) {
            // What is too late for the newest is too late for those before it.
            self.pass_over(claim.run_id, *until, *outcome, *cause, *words);
        }
        let settled = self.record.settled_until;
        self.settle(due);
        if let Some((outcome, cause, words)) = refusal {
            self.never_started(claim.unstarted(), outcome, cause, words);
            return match outcome {
                Outcome::Skipped => ClaimAnswer::Skipped(cause),
                _ => ClaimAnswer::TooLate,
            };
        }
        let unsettled = claim
            .backlog
            .iter()
            .filter(|at| **at > settled && **at < due);
        let backlog: Vec<_> = unsettled
            .map(|at| Waiting {
                scheduled_at: *at,
                start_by: Some(*at + claim.start_by.saturating_since(due)),
                ..claim.waiting(now)
            })
            .collect();
        self.record.waiting.extend(backlog);
        let free = self.record.open().is_none();
        if self.record.waiting.len() >= WAITING_LIMIT {
            return self.skip(claim.unstarted(), Cause::QueueFull);
        }
        if free && self.record.waiting.is_empty() {
            self.open(&claim.waiting(now), claim.shards);
            return self.grant(claim);
        }
        if free {
            self.record.waiting.push(claim.waiting(now));
            self.tell(News::Opening);
            return ClaimAnswer::Waiting;
        }
        self.busy(claim)
    }

    /// Why an occurrence can't start any more, if it can't.
    fn refusal(&self, claim: &Claim, now: Timestamp) -> Option<(Outcome, Cause, &'static str)> {
        if claim.due() <= self.call.group.born && !self.known {
            let words = "the ledger began later and can't tell whether it ran";
            return Some((Outcome::Missed, Cause::Unknown, words));
        }
        if self.forgotten(claim) {
            // A store that was started anew may have forgotten a grant that it acknowledged.
            let words = "the store was restarted later and can't tell whether it ran";
            return Some((Outcome::Missed, Cause::Unknown, words));
        }
        if claim.unplaced {
            return Some((Outcome::Skipped, Cause::Placement, UNPLACED));
        }
        if now > claim.start_by {
            let words = "starting_deadline passed before a replica could claim it";
            return Some((Outcome::Missed, Cause::Deadline, words));
        }
        if now > claim.claim_by {
            let words = "no replica claimed it within 1 s, and catch_up = \"none\"";
            return Some((Outcome::Missed, Cause::CatchUp, words));
        }
        None
    }

    /// An occurrence that may run once only, of which the store may have forgotten the grant.
    fn forgotten(&self, claim: &Claim) -> bool {
        let once = claim.origin == Origin::Schedule && claim.on_crash == OnCrash::Skip;
        once && claim.due() <= self.call.group.born
    }

    /// A new occurrence of the schedule finds another one unfinished.
    fn busy(&mut self, claim: &Claim) -> ClaimAnswer {
        let now = self.now();
        let backlog = self
            .record
            .waiting
            .iter()
            .any(|one| one.origin == Origin::Schedule);
        match claim.concurrency {
            Concurrency::Queue { limit } if self.record.waiting.len() >= limit as usize => {
                self.skip(claim.unstarted(), Cause::QueueFull)
            }
            Concurrency::Queue { .. } => {
                self.record.waiting.push(claim.waiting(now));
                ClaimAnswer::Waiting
            }
            Concurrency::Replace => {
                self.replace(claim);
                self.record.waiting.push(claim.waiting(now));
                ClaimAnswer::Waiting
            }
            // Behind what is being caught up with, it is as late as that.
            Concurrency::Forbid if backlog && self.record.waiting.len() < BACKLOG_LIMIT => {
                self.record.waiting.push(claim.waiting(now));
                ClaimAnswer::Waiting
            }
            Concurrency::Forbid => self.skip(claim.unstarted(), Cause::Overlap),
        }
    }

    /// Records an occurrence as skipped because of the one that is unfinished.
    fn skip(&mut self, unstarted: Unstarted<'_>, cause: Cause) -> ClaimAnswer {
        let open = self.record.open();
        let unfinished = open.map(|current| current.scheduled_at).unwrap_or_default();
        let obstacle = open.and_then(Current::obstacle);
        let words = match cause {
            Cause::QueueFull => {
                format!("{} occurrences wait already", self.record.waiting.len())
            }
            _ => format!("overlap: the occurrence of {unfinished} is unfinished"),
        };
        self.never_started(unstarted, Outcome::Skipped, cause, words);
        match obstacle {
            Some(held) if cause == Cause::Overlap => ClaimAnswer::Overlap(held),
            _ => ClaimAnswer::Skipped(cause),
        }
    }

    /// Has the running occurrence ended, and drops those of the schedule that waited to take its
    /// place: only the newest does.
    fn replace(&mut self, claim: &Claim) {
        let due = claim.due();
        let overtaken =
            |one: &mut Waiting| one.origin == Origin::Schedule && one.scheduled_at < due;
        let dropped: Vec<_> = self.record.waiting.extract_if(.., overtaken).collect();
        for one in &dropped {
            let unstarted = Unstarted {
                run_id: claim.run_id,
                scheduled_at: one.scheduled_at,
                waiting: Some(one),
            };
            let words = format!("the occurrence of {due} took its place before it started");
            self.never_started(unstarted, Outcome::Skipped, Cause::Replaced, words);
        }
        let order = StopOrder {
            why: StopFor::Replaced,
            by: format!("the occurrence of {due}"),
            at: self.now(),
        };
        self.stop(order);
    }

    /// A claim to an occurrence that waits, in its place from 0.
    fn claim_waiting(&mut self, claim: &Claim, place: usize) -> ClaimAnswer {
        if claim.claim_by == Claim::ONLY_ASKS {
            return ClaimAnswer::Finished;
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        let now = self.now();
        let one = self.record.waiting[place].clone();
        if let Some((outcome, cause, words)) = self.no_more(&one, now) {
            self.record.waiting.remove(place);
            let unstarted = Unstarted {
                waiting: Some(&one),
                ..claim.unstarted()
            };
            self.never_started(unstarted, outcome, cause, words);
            return match outcome {
                Outcome::Skipped => ClaimAnswer::Skipped(cause),
                _ => ClaimAnswer::TooLate,
            };
        }
        if self.record.open().is_some() {
            return self.wait_its_turn(claim, place);
        }
        if place > 0 {
            // Those before it may be past their time, and then nobody would ask for them.
            return self.expire_before(claim, place);
        }
        self.record.waiting.remove(0);
        self.open(&one, claim.shards);
        self.grant(claim)
    }

    /// Why an occurrence that waited can't start any more, if it can't.
    fn no_more(&self, one: &Waiting, now: Timestamp) -> Option<(Outcome, Cause, &'static str)> {
        let paused = self.record.paused.is_some() && one.origin != Origin::Trigger;
        if paused {
            return Some((
                Outcome::Skipped,
                Cause::Paused,
                "the job was paused when its turn came",
            ));
        }
        if one.start_by.is_some_and(|until| now > until) {
            let words = "starting_deadline passed while it waited for its turn";
            return Some((Outcome::Missed, Cause::Deadline, words));
        }
        None
    }

    /// What the job's policy says to an occurrence that waits while another one is unfinished.
    fn wait_its_turn(&mut self, claim: &Claim, place: usize) -> ClaimAnswer {
        if self.record.waiting[place].queued {
            return ClaimAnswer::Waiting;
        }
        let refused = match claim.concurrency {
            Concurrency::Forbid => Some(Cause::Overlap),
            Concurrency::Queue { limit } if place >= limit as usize => Some(Cause::QueueFull),
            Concurrency::Queue { .. } => None,
            Concurrency::Replace => {
                self.replace(claim);
                None
            }
        };
        // Those before it may have gone.
        let due = claim.due();
        let place = self
            .record
            .waiting
            .iter()
            .position(|one| one.scheduled_at == due);
        let Some(place) = place else {
            return ClaimAnswer::Finished;
        };
        match refused {
            None => {
                self.record.waiting[place].queued = true;
                ClaimAnswer::Waiting
            }
            Some(cause) => {
                let one = self.record.waiting.remove(place);
                let unstarted = Unstarted {
                    waiting: Some(&one),
                    ..claim.unstarted()
                };
                self.skip(unstarted, cause)
            }
        }
    }

    /// Drops what waits before a place and is past its time, and asks again where that makes the
    /// claim the first.
    fn expire_before(&mut self, claim: &Claim, place: usize) -> ClaimAnswer {
        let now = self.now();
        let before: Vec<_> = self.record.waiting.drain(..place).collect();
        let mut kept = Vec::new();
        for one in before {
            match self.no_more(&one, now) {
                None => kept.push(one),
                Some((outcome, cause, words)) => {
                    let unstarted = Unstarted {
                        run_id: claim.run_id,
                        scheduled_at: one.scheduled_at,
                        waiting: Some(&one),
                    };
                    self.never_started(unstarted, outcome, cause, words);
                }
            }
        }
        let first = kept.is_empty();
        self.record.waiting.splice(..0, kept);
        match first {
            true => self.claim_waiting(claim, 0),
            // Still undecided, if it was: that is for when it is known what runs then.
            false => ClaimAnswer::Waiting,
        }
    }

    /// A claim of a person who waits for it, here and now.
    fn claim_here(&mut self, claim: &Claim) -> ClaimAnswer {
        if let Some(held) = self.record.open().and_then(Current::obstacle) {
            return ClaimAnswer::Held(held);
        }
        if let Some(answer) = self.in_grace() {
            return answer;
        }
        if self.now() > claim.start_by {
            return ClaimAnswer::TooLate;
        }
        self.open(&claim.waiting(self.now()), claim.shards);
        self.grant(claim)
    }

    /// Tells the holders of the current occurrence to end it; what only waits to be tried again
    /// is cancelled at once.
    pub(super) fn stop(&mut self, order: StopOrder) -> u32 {
        let Some(current) = self.record.current.as_mut() else {
            return 0;
        };
        let mut running = 0;
        let mut idle = Vec::new();
        for (shard, slot) in current.slots.iter().enumerate() {
            match slot.state {
                State::Running => running += 1,
                State::Idle | State::Again(_) => idle.push(shard),
                State::Ended(_) => {}
            }
        }
        // The first order stands: the holder may be at it already.
        let order = current.stop.get_or_insert(order).clone();
        for shard in idle {
            let detail = AttemptDetail::policy(order.why.cause(), order.fate());
            self.end(shard, Outcome::Cancelled, detail);
        }
        if running > 0 {
            self.tell(News::Stop);
        }
        running
    }

    fn grant(&mut self, claim: &Claim) -> ClaimAnswer {
        let call = &mut *self.call;
        let known = call.group.token.max(call.caller.token_floor);
        let floor = known.max(self.record.token).get() + 1;
        let token = FencingToken::new(floor.max(u64::try_from(call.now_us).unwrap_or(0)));
        assert!(
            token <= FencingToken::MAX,
            "the store's clock is past the year 2255"
        );
        call.group.token = token;
        call.group.clock_us = call.group.clock_us.max(call.now_us);
        let now = call.now;
        let deadline = now + claim.ttl;
        self.record.token = token;
        let holder = call.caller.replica.clone();
        let current = self.record.current.as_mut();
        let slot = current.and_then(|current| current.slots.get_mut(claim.shard_index()));
        let Some(slot) = slot else {
            return ClaimAnswer::Finished;
        };
        slot.state = State::Running;
        slot.attempt += 1;
        slot.run_id = claim.run_id;
        slot.token = token;
        slot.holder = holder;
        slot.deadline = deadline;
        slot.ttl = claim.ttl;
        slot.on_crash = claim.on_crash;
        slot.since = now;
        let grant = Grant {
            token,
            attempt: slot.attempt,
            failures: slot.failures,
            deadline,
            remaining: claim.ttl,
        };
        ClaimAnswer::Granted(grant)
    }
}

impl StopFor {
    fn cause(self) -> Cause {
        match self {
            StopFor::Replaced => Cause::Replaced,
            StopFor::Killed => Cause::Killed,
        }
    }
}

impl StopOrder {
    /// What it did, in words.
    fn fate(&self) -> String {
        match self.why {
            StopFor::Replaced => format!("{} took its place", self.by),
            StopFor::Killed => format!("killed by {} at {}", self.by, self.at),
        }
    }

    /// What the ledger says of an attempt that ended by it.
    pub(super) fn detail(&self) -> (Cause, String) {
        (self.why.cause(), self.fate())
    }
}
