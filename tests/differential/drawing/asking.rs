//! What people ask for, and what tells them; what they read.

use std::time::Duration;

use soloist::scheduler::lease::{Delivery, DeliveryStep, Order, OrderKind, RunId, Topic};

use super::Drawing;
use crate::steps::Call;
use crate::words;

const KINDS: [OrderKind; 6] = [
    OrderKind::Trigger,
    OrderKind::Trigger,
    OrderKind::Trigger,
    OrderKind::Pause,
    OrderKind::Resume,
    OrderKind::Kill,
];

impl Drawing {
    pub(super) fn order(&mut self, of: usize) -> Call {
        let mut orders: Vec<Order> = Vec::new();
        for _ in 0..self.batch().min(8) {
            let one = self.one_order(of);
            self.put(&mut orders, one, |one| (&one.job, 0));
        }
        Call::Order(orders)
    }

    fn one_order(&mut self, of: usize) -> Order {
        if self.chance.one_in(5)
            && let Some(again) = self.chance.recent(&self.memories[of].orders)
        {
            return again.clone();
        }
        let job = self.job();
        Order {
            what: *self.chance.of(&KINDS).expect("there are some"),
            by: words::text(&mut self.chance),
            id: RunId::new(self.chance.uuid()),
            retention: self.retention(&job),
            dependents: self.dependents(&job, 3),
            job,
        }
    }

    pub(super) fn deliver(&mut self, of: usize) -> Call {
        let mut deliveries: Vec<Delivery> = Vec::new();
        for _ in 0..self.batch().min(8) {
            let one = self.one_delivery(of);
            self.put(&mut deliveries, one, |one| (&one.job, 0));
        }
        Call::Deliver(deliveries)
    }

    fn one_delivery(&mut self, of: usize) -> Delivery {
        let memories = &self.memories[of];
        if self.chance.one_in(6)
            && let Some(again) = self.chance.recent(&memories.deliveries)
        {
            return again.clone();
        }
        let repeat = Duration::from_secs(self.chance.below(100));
        let mut step = match self.chance.below(5) {
            0..2 => DeliveryStep::Done,
            2 => DeliveryStep::GoesOn,
            3 => DeliveryStep::Slow { repeat },
            _ => DeliveryStep::TakenOver { due: self.now },
        };
        let topic = *self.chance.of(&Topic::ALL).expect("there are some");
        if self.chance.one_in(2)
            && let Some(untold) = self.chance.recent(&memories.untold).cloned()
        {
            if matches!(step, DeliveryStep::TakenOver { .. }) {
                step = DeliveryStep::TakenOver { due: untold.due };
            }
            return Delivery {
                job: untold.occurrence.job,
                by: untold.by,
                topic: untold.told.topic,
                step,
            };
        }
        let told = |closing: &soloist::scheduler::lease::Closing| {
            (closing.occurrence.job.clone(), closing.by)
        };
        let closing = self.chance.recent(&memories.closings).map(told);
        let run = self.chance.recent(&memories.runs).cloned();
        let (job, by) = match self.chance.one_in(4) {
            true => run.or(closing),
            false => closing.or(run),
        }
        .unwrap_or_else(|| (self.jobs[0].clone(), RunId::new(self.chance.uuid())));
        Delivery {
            job,
            by,
            topic,
            step,
        }
    }

    pub(super) fn history(&mut self) -> Call {
        let limit = [0, 1, 2, 3, 5, 50, usize::MAX][self.chance.index(7)];
        let job = self.job();
        Call::History(self.chance.some(2, |_| job), limit)
    }

    pub(super) fn output(&mut self, of: usize) -> Call {
        let run = match self.chance.one_in(4) {
            true => self.chance.of(&self.memories[of].runs).cloned(),
            false => self.chance.recent(&self.memories[of].runs).cloned(),
        };
        let (job, run) = run.unwrap_or_else(|| (self.job(), RunId::new(self.chance.uuid())));
        match self.chance.one_in(10) {
            true => Call::Output(self.job(), run),
            false => Call::Output(job, run),
        }
    }
}
