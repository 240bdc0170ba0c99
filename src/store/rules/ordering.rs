//! What people ask of a job: trigger, pause, resume, kill.

use std::time::Duration;

use super::Call;
use super::due::WAITING_LIMIT;
use super::record::{Decision, News, Paused, Record, Waiting};
use super::step::{Step, Unstarted};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    Cause, Order, OrderAnswer, OrderKind, Origin, Outcome, StopFor, StopOrder,
};
use crate::scheduler::time::Timestamp;

/// Of how many triggers it is remembered that they were given: sent again, they find the
/// occurrence that they made.
const TRIGGERS_REMEMBERED: usize = 8;

/// From one instant to the next that differs.
const TICK: Duration = Duration::from_millis(1);

impl Call<'_> {
    /// See [`super::super::Store::order`].
    pub(in crate::store) fn order(
        &mut self,
        record: Option<&Record>,
        order: &Order,
    ) -> Decision<OrderAnswer> {
        let mut step = Step::begin(self, record);
        let answer = match step.known {
            true => step.order(order),
            false => OrderAnswer::Unknown,
        };
        step.decide(answer)
    }
}

impl Step<'_, '_> {
    fn order(&mut self, order: &Order) -> OrderAnswer {
        match order.what {
            OrderKind::Trigger => self.trigger(order),
            OrderKind::Pause => self.pause(order),
            OrderKind::Resume => self.resume(&order.job),
            OrderKind::Kill => self.kill(order),
        }
    }

    fn trigger(&mut self, order: &Order) -> OrderAnswer {
        let known = self.record.triggered.iter().find(|(id, _)| *id == order.id);
        if let Some((_, scheduled_at)) = known.copied() {
            return OrderAnswer::Triggered { scheduled_at };
        }
        if self.record.disabled.is_some() {
            return OrderAnswer::Disabled;
        }
        if self.record.waiting.len() >= WAITING_LIMIT {
            return OrderAnswer::Full;
        }
        let scheduled_at = self.free_instant();
        self.record.waiting.push(Waiting {
            scheduled_at,
            origin: Origin::Trigger,
            by: Some(order.by.clone()),
            since: self.now(),
            start_by: None,
            queued: false,
            late: None,
        });
        self.record.triggered.push((order.id, scheduled_at));
        let surplus = self
            .record
            .triggered
            .len()
            .saturating_sub(TRIGGERS_REMEMBERED);
        self.record.triggered.drain(..surplus);
        self.tell(News::Opening);
        OrderAnswer::Triggered { scheduled_at }
    }

    /// An instant for a trigger: after all that were triggered before.
    fn free_instant(&self) -> Timestamp {
        let newest = self.record.triggered.last().map(|(_, at)| *at + TICK);
        let now = self.now();
        self.free_instant_from(newest.map_or(now, |newest| newest.max(now)))
    }

    /// The first instant from there on that no other occurrence of the job has: not a whole second,
    /// which only the schedule's are.
    pub(super) fn free_instant_from(&self, mut at: Timestamp) -> Timestamp {
        while at.as_millis().rem_euclid(1000) == 0 || self.is_taken(at) {
            at = at + TICK;
        }
        at
    }

    /// Whether an occurrence has that instant already, or may come to have it: what runs once by
    /// hand, and what follows others, are as little of the schedule as what is triggered.
    fn is_taken(&self, at: Timestamp) -> bool {
        let mut joins = self.record.joins.iter();
        self.origin_at(at).is_some() || joins.any(|join| join.scheduled_at == at)
    }

    /// What brought about the occurrence that has that instant.
    pub(super) fn origin_at(&self, at: Timestamp) -> Option<Origin> {
        let current = self.record.current.iter();
        let current = current.map(|one| (one.scheduled_at, one.origin));
        let waiting = self.record.waiting.iter();
        let waiting = waiting.map(|one| (one.scheduled_at, one.origin));
        let mut all = current.chain(waiting);
        all.find_map(|(taken, origin)| (taken == at).then_some(origin))
    }

    fn pause(&mut self, order: &Order) -> OrderAnswer {
        let now = self.now();
        if self.record.paused.is_none() {
            self.tell(News::PauseChanged);
        }
        let paused = self.record.paused.get_or_insert_with(|| Paused {
            since: now,
            by: order.by.clone(),
        });
        OrderAnswer::Paused {
            since: paused.since,
            by: paused.by.clone(),
        }
    }

    fn resume(&mut self, job: &JobName) -> OrderAnswer {
        let Some(paused) = self.record.paused.take() else {
            return OrderAnswer::Resumed { since: None };
        };
        let since = paused.since;
        self.tell(News::PauseChanged);
        self.end_suspension(job, paused.suspension());
        OrderAnswer::Resumed { since: Some(since) }
    }

    /// Nothing runs: what people asked for and nobody has started is withdrawn.
    fn withdraw(&mut self, order: &Order) -> OrderAnswer {
        let asked_for = |one: &mut Waiting| one.origin == Origin::Trigger;
        let withdrawn: Vec<_> = self.record.waiting.extract_if(.., asked_for).collect();
        for one in &withdrawn {
            let unstarted = Unstarted {
                run_id: order.id,
                scheduled_at: one.scheduled_at,
                waiting: Some(one),
            };
            let words = format!("withdrawn by {}", order.by);
            self.never_started(unstarted, Outcome::Cancelled, Cause::Killed, words);
        }
        match withdrawn.first() {
            None => OrderAnswer::Idle,
            Some(first) => OrderAnswer::Killed {
                scheduled_at: first.scheduled_at,
                running: 0,
                // They are limited to far fewer.
                withdrawn: u32::try_from(withdrawn.len()).unwrap_or(u32::MAX),
            },
        }
    }

    fn kill(&mut self, order: &Order) -> OrderAnswer {
        let Some(scheduled_at) = self.record.open().map(|current| current.scheduled_at) else {
            return self.withdraw(order);
        };
        let running = self.stop(StopOrder {
            why: StopFor::Killed,
            by: order.by.clone(),
            at: self.now(),
        });
        OrderAnswer::Killed {
            scheduled_at,
            running,
            withdrawn: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::scheduler::lease::{Dependents, Retention, RunId};
    use crate::store::rules::record::{Current, Join};
    use crate::store::rules::{Group, Life, somebody};

    /// The store's time may stand still, and two programs may ask in one of its milliseconds.
    #[test]
    fn a_trigger_has_an_instant_that_no_other_occurrence_has() {
        let caller = somebody();
        let now = Timestamp::from_millis(1_999);
        let after = |ticks| now + Duration::from_millis(ticks);
        let waits = |at| Waiting {
            scheduled_at: at,
            origin: Origin::After,
            by: None,
            since: now,
            start_by: None,
            queued: false,
            late: None,
        };
        // The second after now is whole, and the schedule's.
        let record = Record {
            current: Some(Current {
                scheduled_at: now,
                origin: Origin::RunOnce,
                by: None,
                stop: None,
                slots: Vec::new(),
            }),
            waiting: vec![waits(after(2))],
            joins: vec![Join {
                scheduled_at: after(3),
                arrived: Vec::new(),
                dead: false,
            }],
            ..Record::default()
        };
        let order = Order {
            job: JobName::new("a").unwrap(),
            what: OrderKind::Trigger,
            by: "ann".to_owned(),
            id: RunId::new(Uuid::nil()),
            retention: Retention {
                limit: 10,
                age: Duration::from_secs(60),
            },
            dependents: Dependents::default(),
        };
        let mut group = Group::default();
        let clock_us = now.as_millis() * 1000;
        let mut call = Call::begin(&mut group, &caller, clock_us, &Life::Steady);
        let decision = call.order(Some(&record), &order);
        let scheduled_at = after(4);
        assert_eq!(decision.answer, OrderAnswer::Triggered { scheduled_at });
    }
}
