//! News that are on their way, and what the ledger is told of them: that it takes longer, and that
//! people were told. Where it hears neither, another replica tells them.
//!
//! Must never: call news told that are still to be tried.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tracing::debug;

use super::message::Message;
use crate::scheduler::lease::{
    Caller, Closing, Delivery, DeliveryStep, Occurrence, TELLING_TTL, Untold,
};
use crate::store::{Store, StoreError};

/// How long a call to the store may take; nothing hangs on it.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// How often the ledger is told that people were told, where it can't be reached.
const TRIES: u32 = 60;

/// From one of these to the next, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How many of a job's lines are looked through for the one that news are of.
const LINES_SEARCHED: usize = 200;

/// How many receivers have still to be told.
pub(super) struct News(watch::Sender<usize>);

impl News {
    /// News for so many.
    pub(super) fn new(receivers: usize) -> Self {
        Self(watch::Sender::new(receivers))
    }

    /// One of them was told, or never will be.
    pub(super) fn one_less(&self) {
        self.0.send_modify(|left| *left = left.saturating_sub(1));
    }

    async fn told(&self) {
        let mut left = self.0.subscribe();
        // The sender lives as long as this does.
        let _ = left.wait_for(|left| *left == 0).await;
    }
}

/// The ledger, as far as news go.
pub(super) struct Ledger {
    pub(super) store: Arc<dyn Store>,
    pub(super) caller: Caller,
}

impl Ledger {
    /// Keeps others from telling the same until all are told, and says so then.
    pub(super) async fn attend(&self, delivery: &Delivery, news: &News) {
        let goes_on = Delivery {
            step: DeliveryStep::GoesOn,
            ..delivery.clone()
        };
        loop {
            tokio::select! {
                () = news.told() => break,
                () = tokio::time::sleep(TELLING_TTL / 3) => {
                    if let Err(cause) = self.tell(&goes_on).await {
                        debug!("the ledger was not told that people are being notified: {cause}");
                    }
                }
            }
        }
        let done = Delivery {
            step: DeliveryStep::Done,
            ..delivery.clone()
        };
        for again in 1..=TRIES {
            match self.tell(&done).await {
                Ok(_) => return,
                Err(cause) => debug!("the ledger was not told that people know: {cause}"),
            }
            let wait = Duration::from_secs(1) * again;
            tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
        }
    }

    /// Whether people are to be told that an attempt takes long. Where the ledger can't say, they
    /// are: rather twice than never.
    pub(super) async fn is_news(&self, slow: &Delivery) -> bool {
        self.tell(slow).await.unwrap_or(true)
    }

    /// Says how it goes, where the ledger seems not to know.
    pub(super) async fn remind(&self, delivery: &Delivery) {
        if let Err(cause) = self.tell(delivery).await {
            debug!("the ledger was not told how it goes with a notification: {cause}");
        }
    }

    /// Takes over news whose teller vanished; none where another replica was faster.
    pub(super) async fn take_over(&self, untold: &Untold) -> Option<Message> {
        let take = Delivery {
            job: untold.occurrence.job.clone(),
            by: untold.by,
            topic: untold.told.topic,
            step: DeliveryStep::TakenOver { due: untold.due },
        };
        if !self.tell(&take).await.unwrap_or(false) {
            return None;
        }
        Some(self.message(untold).await)
    }

    /// News as the ledger has them.
    async fn message(&self, untold: &Untold) -> Message {
        let Occurrence { job, scheduled_at } = &untold.occurrence;
        let lines = self.store.history(Some(job), LINES_SEARCHED);
        let lines = tokio::time::timeout(CALL_LIMIT, lines).await;
        let lines = lines.ok().and_then(Result::ok).unwrap_or_default();
        let line = lines
            .iter()
            .find(|line| line.scheduled_at == *scheduled_at && line.detail.is_final());
        let output = match line.filter(|line| line.attempt > 0) {
            Some(line) => self.store.output(job, line.run_id).await.ok().flatten(),
            None => None,
        };
        let closing = Closing {
            by: untold.by,
            occurrence: untold.occurrence.clone(),
            after: line.and_then(|line| line.detail.since),
            outcome: untold.outcome,
            attempt: line.map_or(0, |line| line.attempt),
            run_id: line.filter(|line| line.attempt > 0).map(|line| line.run_id),
            replica: line.map_or_else(String::new, |line| line.replica.clone()),
            started_at: line.map_or(*scheduled_at, |line| line.started_at),
            ended_at: line.map_or(*scheduled_at, |line| line.ended_at),
            detail: line.map(|line| line.detail.clone()).unwrap_or_default(),
            told: Some(untold.told),
        };
        Message::told(&closing, untold.told, &output.unwrap_or_default())
    }

    async fn tell(&self, delivery: &Delivery) -> Result<bool, String> {
        let deliveries = std::slice::from_ref(delivery);
        let call = self.store.deliver(&self.caller, deliveries);
        match tokio::time::timeout(CALL_LIMIT, call).await {
            Ok(Ok(answered)) => Ok(answered.answer.first().copied().unwrap_or(false)),
            Ok(Err(error)) => Err(StoreError::to_string(&error)),
            Err(_) => Err(format!("no answer within {CALL_LIMIT:?}")),
        }
    }
}
