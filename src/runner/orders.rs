//! Orders to a running attempt, on their way from whoever gives them to the task that owns it.
//! Only the latest counts, so nothing queues up.

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
}

/// Hears orders.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    standing: watch::Receiver<Standing>,
    heard: Standing,
}

/// How what is ordered has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The lease was renewed.
    Extend(Deadline),
    /// End it by then, which is so far from now.
    Stop { kill_at: BootTime, grace: Duration },
}

/// Both ends, for an attempt whose lease allows so much.
pub(super) fn channel(deadline: Deadline) -> (OrderSender, Orders) {
    let heard = Standing {
        deadline,
        kill_at: None,
    };
    let (sender, standing) = watch::channel(heard);
    (OrderSender { standing: sender }, Orders { standing, heard })
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
            if self.standing.changed().await.is_err() {
                std::future::pending().await
            }
        }
    }
}
