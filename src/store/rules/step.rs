//! One decision in the making: the record as it becomes, and what goes with it.
//!
//! Must never: decide; it only keeps the books.

use std::time::Duration;

use uuid::Uuid;

use super::Call;
use super::due::NOBODY_CAME;
use super::enrolling::nobody;
use super::record::{
    Current, Decision, Entry, NeverStarted, News, Record, Slot, State, Suspension, Waiting,
};
use super::telling::Audience;
use crate::scheduler::job::OnCrash;
use crate::scheduler::lease::{
    AttemptDetail, Cause, Closing, FencingToken, Late, Origin, Outcome, Replica, RunId,
};
use crate::scheduler::time::Timestamp;

/// How many stretches of time a record keeps that may have an occurrence which never started.
const STRETCHES_KEPT: usize = 3;

/// A record that is being changed.
pub(super) struct Step<'s, 'c> {
    pub(super) call: &'s mut Call<'c>,
    pub(super) record: Record,
    /// The ledger had the record.
    pub(super) known: bool,
    before: Record,
    pub(super) lines: Vec<Entry>,
    pub(super) closed: Vec<(Timestamp, Outcome)>,
    news: Vec<News>,
    pub(super) audience: Option<Audience>,
    pub(super) closings: Vec<Closing>,
    pub(super) closings_again: Vec<Closing>,
}

/// Who never started something, and by which request.
#[derive(Clone, Copy)]
pub(super) struct Unstarted<'u> {
    pub(super) run_id: RunId,
    pub(super) scheduled_at: Timestamp,
    /// The occurrence, where it waited.
    pub(super) waiting: Option<&'u Waiting>,
}

impl<'s, 'c> Step<'s, 'c> {
    /// Begins with what the ledger has; a job that it doesn't know has nothing settled after now.
    pub(super) fn begin(call: &'s mut Call<'c>, record: Option<&Record>) -> Self {
        let blank = || Record {
            settled_until: call.now,
            ..Record::default()
        };
        let before = record.cloned().unwrap_or_else(blank);
        let mut record_now = before.clone();
        if let Some(alert) = &mut record_now.alert {
            alert.wake(call.now);
        }
        Self {
            call,
            record: record_now,
            known: record.is_some(),
            before,
            lines: Vec::new(),
            closed: Vec::new(),
            news: Vec::new(),
            audience: None,
            closings: Vec::new(),
            closings_again: Vec::new(),
        }
    }

    /// The store's time.
    pub(super) fn now(&self) -> Timestamp {
        self.call.now
    }

    /// Since when the ledger remembers everything.
    pub(super) fn born(&self) -> Timestamp {
        self.call.group.born
    }

    /// Ends with an answer.
    pub(super) fn decide<A>(mut self, answer: A) -> Decision<A> {
        let closings = self.take_closings();
        // A job with a line is a job that the ledger knows.
        let unknown = !self.known && !self.lines.is_empty();
        let changed = unknown || self.record != self.before;
        Decision {
            answer,
            record: changed.then_some(self.record),
            lines: self.lines,
            closed: self.closed,
            news: self.news,
            closings,
        }
    }

    /// Ends with an answer, and writes the record whether it changed or not.
    pub(super) fn decide_anew<A>(self, answer: A) -> Decision<A> {
        let record = self.record.clone();
        Decision {
            record: Some(record),
            ..self.decide(answer)
        }
    }

    /// How an occurrence ended that this step has written down.
    pub(super) fn fate_of(&self, scheduled_at: Timestamp) -> Option<(Outcome, Option<Cause>)> {
        let mut lines = self.lines.iter().rev();
        let line = lines.find(|line| line.scheduled_at == scheduled_at && line.attempt == 0)?;
        Some((line.outcome, line.detail.cause))
    }

    pub(super) fn tell(&mut self, news: News) {
        self.news.push(news);
    }

    /// Everything up to `at` is settled. Of what was not: what is due in a suspension is skipped.
    pub(super) fn settle(&mut self, at: Timestamp) {
        let before = |one: &Suspension| one.until < at;
        self.drop_settled_suspensions();
        while let Some(first) = self.record.suspensions.first().filter(|one| before(one)) {
            let until = first.until;
            self.pass_over(
                nobody(),
                until,
                Outcome::Missed,
                Cause::CatchUp,
                NOBODY_CAME,
            );
        }
        self.settle_all(at);
    }

    fn settle_all(&mut self, at: Timestamp) {
        let settled = self.record.settled_until.max(at);
        self.record.settled_until = settled;
        self.drop_settled_suspensions();
        self.record.lost_until.take_if(|lost| *lost <= settled);
    }

    /// Where they are passed over one by one, one that is settled would stay the first for ever.
    pub(super) fn drop_settled_suspensions(&mut self) {
        let settled = self.record.settled_until;
        self.record.suspensions.retain(|one| one.until > settled);
    }

    /// Writes the line of a shard's attempt that is over.
    pub(super) fn line(&mut self, shard: usize, outcome: Outcome, detail: AttemptDetail) {
        let Some(current) = &self.record.current else {
            return;
        };
        let Some(slot) = current.slots.get(shard) else {
            return;
        };
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let sharded = current.slots.len() > 1;
        let entry = Entry {
            scheduled_at: current.scheduled_at,
            attempt: slot.attempt,
            run_id: slot.run_id,
            token: slot.token,
            replica: match slot.attempt {
                // Nobody had it: whoever settles it is named.
                0 => self.call.caller.replica.name.clone(),
                _ => slot.holder.name.clone(),
            },
            started_at: slot.since,
            ended_at: self.call.now,
            outcome,
            detail: AttemptDetail {
                origin: current.origin,
                by: current.by.clone(),
                shard: sharded.then(|| (number(shard), number(current.slots.len()))),
                late: slot.late.filter(|_| slot.attempt > 0),
                ..detail
            },
        };
        self.lines.push(entry);
    }

    /// Changes how a shard stands, from now on. With the last of them the occurrence is over.
    pub(super) fn set_state(&mut self, shard: usize, state: State, deadline: Timestamp) {
        let now = self.call.now;
        let Some(current) = &mut self.record.current else {
            return;
        };
        if let Some(slot) = current.slots.get_mut(shard) {
            slot.state = state;
            slot.deadline = deadline;
            slot.since = now;
        }
        let (scheduled_at, origin) = (current.scheduled_at, current.origin);
        if let Some(outcome) = current.outcome() {
            // What somebody ran by hand, here, brings nothing about elsewhere.
            if origin != Origin::RunOnce {
                self.closed_current(scheduled_at, outcome);
            }
            if !self.record.waiting.is_empty() {
                self.tell(News::Opening);
            }
        }
    }

    /// Ends a shard for good.
    pub(super) fn end(&mut self, shard: usize, outcome: Outcome, detail: AttemptDetail) {
        self.line(shard, outcome, detail);
        let now = self.call.now;
        self.set_state(shard, State::Ended(outcome), now);
    }

    /// Makes an occurrence the current one, in so many shards that nobody has yet.
    pub(super) fn open(&mut self, waiting: &Waiting, shards: u32) {
        let now = self.call.now;
        let newer = |one: &NeverStarted| one.scheduled_at > waiting.scheduled_at;
        self.record.unstarted.retain(newer);
        let idle = Slot {
            state: State::Idle,
            attempt: 0,
            failures: 0,
            run_id: RunId::new(Uuid::nil()),
            token: FencingToken::default(),
            holder: Replica {
                id: Uuid::nil(),
                name: String::new(),
            },
            deadline: now,
            ttl: Duration::ZERO,
            on_crash: OnCrash::default(),
            since: now,
            late: self.waited_for(waiting),
        };
        self.record.current = Some(Current {
            scheduled_at: waiting.scheduled_at,
            origin: waiting.origin,
            by: waiting.by.clone(),
            stop: None,
            slots: vec![idle; shards.max(1) as usize],
        });
        if shards > 1 {
            // The others' turn is now, also for replicas that did not have it fall due.
            self.tell(News::Opening);
        }
    }

    /// What an occurrence waited for whose turn it is now.
    fn waited_for(&self, waiting: &Waiting) -> Option<Late> {
        let before = self.record.current.iter();
        let over = before.flat_map(|current| {
            let behind = current.scheduled_at;
            current.slots.iter().map(move |slot| (slot.since, behind))
        });
        let last = over.max().filter(|(until, _)| *until > waiting.since);
        let turn = last.map(|(until, behind)| Late::Turn { behind, until });
        let after = (waiting.origin == Origin::After).then_some(Late::After {
            until: waiting.since,
        });
        turn.or(after).or(waiting.late)
    }

    /// Writes down that an occurrence never started.
    pub(super) fn never_started(
        &mut self,
        unstarted: Unstarted<'_>,
        outcome: Outcome,
        cause: Cause,
        words: impl Into<String>,
    ) {
        let Unstarted {
            run_id,
            scheduled_at,
            waiting,
        } = unstarted;
        let detail = AttemptDetail {
            origin: waiting.map(|one| one.origin).unwrap_or_default(),
            by: waiting.and_then(|one| one.by.clone()),
            ..AttemptDetail::policy(cause, words)
        };
        self.push_unstarted(run_id, scheduled_at, outcome, detail);
        self.remember(NeverStarted {
            scheduled_at,
            outcome,
            cause,
            within: None,
        });
        self.closed.push((scheduled_at, outcome));
        self.close_line(None, None);
    }

    /// Writes one line for all unsettled instants of the schedule in force up to `until`, and
    /// settles them; those of a suspension get a line of their own. That there are none costs a
    /// line which readers don't show.
    pub(super) fn pass_over(
        &mut self,
        run_id: RunId,
        until: Timestamp,
        outcome: Outcome,
        cause: Cause,
        words: impl Into<String>,
    ) {
        let words = words.into();
        for one in self.suspensions() {
            let (since, end) = (one.since.min(until), one.until.min(until));
            self.pass_stretch(run_id, since, outcome, cause, &words);
            self.pass_stretch(run_id, end, Outcome::Skipped, one.cause, &one.words);
        }
        self.pass_stretch(run_id, until, outcome, cause, &words);
    }

    fn pass_stretch(
        &mut self,
        run_id: RunId,
        until: Timestamp,
        outcome: Outcome,
        cause: Cause,
        words: &str,
    ) {
        let since = self.record.settled_until;
        if until <= since {
            return;
        }
        self.remember(NeverStarted {
            scheduled_at: until,
            outcome,
            cause,
            within: Some((since, self.record.schedule.clone())),
        });
        let detail = AttemptDetail {
            since: Some(since),
            schedule: Some(self.record.schedule.clone()).filter(|text| !text.is_empty()),
            ..AttemptDetail::policy(cause, words)
        };
        if !mutant!(NoLine) {
            self.push_unstarted(run_id, until, outcome, detail);
        }
        self.close_line(Some(since), None);
        self.settle_all(until);
    }

    /// Keeps what never started for those who ask how the job stands. What people wanted, by a
    /// pause, `enabled = false` or a `kill`, says nothing of that.
    fn remember(&mut self, one: NeverStarted) {
        if matches!(one.cause, Cause::Paused | Cause::Disabled | Cause::Killed) {
            return;
        }
        let kept = &mut self.record.unstarted;
        let older = |other: &NeverStarted| other.scheduled_at <= one.scheduled_at;
        let place = kept.iter().position(older).unwrap_or(kept.len());
        kept.insert(place, one);
        let certain = kept.iter().position(|one| one.within.is_none());
        kept.truncate(certain.map_or(kept.len(), |certain| certain + 1));
        if kept.len() > STRETCHES_KEPT + 1 {
            kept.remove(STRETCHES_KEPT);
        }
    }

    fn push_unstarted(
        &mut self,
        run_id: RunId,
        scheduled_at: Timestamp,
        outcome: Outcome,
        detail: AttemptDetail,
    ) {
        let now = self.call.now;
        self.lines.push(Entry {
            scheduled_at,
            attempt: 0,
            run_id,
            token: FencingToken::default(),
            replica: self.call.caller.replica.name.clone(),
            started_at: now,
            ended_at: now,
            outcome,
            detail,
        });
    }
}

#[cfg(test)]
mod tests;
