//! Orders to a running attempt, on their way from whoever gives them to the task that owns it.
//! Only the latest counts, so nothing queues up; of signals that are passed on each kind counts once
//! until it is heard, as in the kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::watch;

use crate::clock::{Clock, SystemClock};
use crate::guardian::wire::Deadline;
use crate::scheduler::time::BootTime;

/// What is ordered at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standing {
    deadline: Deadline,
    /// By when it must be dead; none while it may run.
    kill_at: Option<BootTime>,
}

/// Gives orders. They never block, and are in vain once the attempt has ended.
#[derive(Clone, Debug)]
pub(super) struct OrderSender {
    standing: watch::Sender<Standing>,
    signals: Arc<AtomicU64>,
}

/// Hears orders.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    standing: watch::Receiver<Standing>,
    heard: Standing,
    /// Those that are to be passed on: a bit for each number.
    signals: Arc<AtomicU64>,
}

/// How what is ordered has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The lease was renewed.
    Extend(Deadline),
    /// End it by then, which is so far from now.
    Stop { kill_at: BootTime, grace: Duration },
    /// Pass this signal on to it.
    Signal(i32),
}

/// Both ends, for an attempt whose lease allows so much.
pub(super) fn channel(deadline: Deadline) -> (OrderSender, Orders) {
    let heard = Standing {
        deadline,
        kill_at: None,
    };
    let (sender, standing) = watch::channel(heard);
    let signals = Arc::new(AtomicU64::new(0));
    let orders = OrderSender {
        standing: sender,
        signals: Arc::clone(&signals),
    };
    let heard = Orders {
        standing,
        heard,
        signals,
    };
    (orders, heard)
}

impl OrderSender {
    /// End it: TERM now, KILL after `grace`. Again, it can shorten the grace, never lengthen it.
    pub(super) fn stop(&self, grace: Duration) {
        let kill_at = SystemClock.boot() + grace;
        self.standing.send_modify(|standing| {
            let first = standing.kill_at;
            standing.kill_at = Some(first.map_or(kill_at, |first| first.min(kill_at)));
        });
    }

    /// The lease was renewed, and allows as much.
    pub(super) fn extend(&self, deadline: Deadline) {
        self.standing
            .send_modify(|standing| standing.deadline = deadline);
    }

    /// Pass a signal on to it, by its number.
    pub(super) fn signal(&self, number: i32) {
        let bit = u32::try_from(number)
            .ok()
            .and_then(|by| 1_u64.checked_shl(by));
        self.signals
            .fetch_or(bit.unwrap_or_default(), Ordering::AcqRel);
        // Only to be looked at: nothing else has changed.
        self.standing.send_modify(|_| ());
    }
}

impl Orders {
    /// What the lease allows.
    pub(super) fn deadline(&mut self) -> Deadline {
        let standing = *self.standing.borrow();
        self.heard.deadline = standing.deadline;
        standing.deadline
    }

    /// Completes when a stop was ordered, which stays to be heard. Cancel safe.
    pub(super) async fn stopped(&mut self) {
        let stopped = |standing: &Standing| standing.kill_at.is_some();
        if self.standing.wait_for(stopped).await.is_err() {
            std::future::pending().await
        }
    }

    /// The next change; never, once nobody is left to order anything. Cancel safe.
    pub(super) async fn changed(&mut self) -> Change {
        loop {
            let standing = *self.standing.borrow_and_update();
            if let Some(kill_at) = standing.kill_at
                && self.heard.kill_at != Some(kill_at)
            {
                self.heard.kill_at = Some(kill_at);
                let grace = kill_at.saturating_since(SystemClock.boot());
                return Change::Stop { kill_at, grace };
            }
            if standing.deadline != self.heard.deadline {
                self.heard.deadline = standing.deadline;
                return Change::Extend(standing.deadline);
            }
            if let Some(number) = self.next_signal() {
                return Change::Signal(number);
            }
            if self.standing.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }

    /// One that is to be passed on, which is not told again.
    fn next_signal(&self) -> Option<i32> {
        let waiting = self.signals.load(Ordering::Acquire);
        let number = waiting.checked_ilog2()?;
        self.signals.fetch_and(!(1 << number), Ordering::AcqRel);
        i32::try_from(number).ok()
    }
}
