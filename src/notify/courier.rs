//! Takes notifications to their receivers: queued, tried until somebody takes them, given up when
//! nobody does for too long.
//!
//! ```text
//!  observer ─▶ queue of a target ─▶ 4 workers ─┬─▶ taken ────────────▶ counted, and so told
//!              queue of a job's ping ─▶ 1 ─────┤                          to the ledger
//!                                        ▲     ├─▶ refused, too late ─▶ logged, counted
//!                                        └ wait┴─ fails
//! ```
//! What this replica has to say of one job goes to a receiver one by one, in order: a recovery that
//! overtook its failure would leave an incident open for ever.
//!
//! Must never: hold up the scheduler, keep a job from running, or log an address beyond its host.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tracing::{debug, info, warn};

use super::counts::{Channel, Counts, Fate};
use super::message::{Message, Teller};
use super::news::News;
use super::queue::{OfJob, Queue};
use super::trouble::{PATIENCE, Reasons, Trouble};
use super::{email, post};
use crate::clock::Clock;
use crate::config::{Config, Target};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{RunId, Topic};
use crate::scheduler::request::Template;
use crate::scheduler::time::BootTime;

/// What waits for one target at most.
const TARGET_LIMIT: usize = 200;

/// What is on its way to one target at most.
const TARGET_WORKERS: usize = 4;

/// What waits for the switch of one job at most.
const PING_LIMIT: usize = 20;

/// How long a ping is tried: later ones say more.
const PING_PATIENCE: Duration = Duration::from_secs(120);

/// How long anything is tried at least, however long it has waited for its turn.
const LEAST_PATIENCE: Duration = Duration::from_secs(60);

/// The longest that one try may take, whatever the receiver does.
const TRY_LIMIT: Duration = Duration::from_secs(60);

/// Tries under way at once, over all receivers: each has a thread, of which others need some.
const TRIES_AT_ONCE: usize = 32;

/// How long a wait may be while the replica is about to end.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// Something to be delivered.
pub(super) enum Parcel {
    /// News, for the target of that name.
    News {
        message: Arc<Message>,
        news: Arc<News>,
    },
    Ping(Ping),
}

/// A ping of a job.
pub(super) struct Ping {
    pub(super) job: JobName,
    pub(super) url: Template,
    pub(super) step: Option<String>,
    pub(super) run_id: Option<String>,
    pub(super) output: Option<String>,
    /// False once nobody should hear of it any more.
    pub(super) counts: Arc<AtomicBool>,
}

impl Parcel {
    fn is_of_use(&self) -> bool {
        match self {
            Self::News { .. } => true,
            Self::Ping(ping) => ping.counts.load(Ordering::Relaxed),
        }
    }
}

/// A parcel, and since when it is to be delivered.
struct Taken {
    parcel: Parcel,
    since: BootTime,
}

impl OfJob for Taken {
    fn job(&self) -> &JobName {
        match &self.parcel {
            Parcel::News { message, .. } => &message.job,
            Parcel::Ping(ping) => &ping.job,
        }
    }
}

/// Who a queue is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Receiver {
    Target(String),
    Switch(JobName),
}

/// See the module.
pub(super) struct Courier {
    pub(super) config: watch::Receiver<Arc<Config>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) teller: Teller,
    pub(super) counts: Arc<Counts>,
    /// How many parcels are not delivered yet.
    pub(super) open: watch::Sender<usize>,
    /// Of how many news the ledger has not heard yet that people know them.
    pub(super) unwritten: watch::Sender<usize>,
    /// The replica is about to end.
    pub(super) closing: watch::Sender<bool>,
    queues: Mutex<HashMap<Receiver, Arc<Queue<Taken>>>>,
    /// News of which the ledger has not been told that people know them.
    news: Mutex<HashSet<(RunId, Topic)>>,
    tries: Arc<Semaphore>,
    /// Why something was given up of late, and when that was logged.
    given_up: Mutex<HashMap<(Receiver, Fate), Reasons>>,
    /// Receivers that took nothing the last time: people were told in the log.
    ailing: Mutex<HashMap<Receiver, u64>>,
}

impl Courier {
    pub(super) fn new(
        config: watch::Receiver<Arc<Config>>,
        clock: Arc<dyn Clock>,
        teller: Teller,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            config,
            clock,
            teller,
            counts,
            open: watch::Sender::new(0),
            unwritten: watch::Sender::new(0),
            closing: watch::Sender::new(false),
            queues: Mutex::default(),
            news: Mutex::default(),
            tries: Arc::new(Semaphore::new(TRIES_AT_ONCE)),
            given_up: Mutex::default(),
            ailing: Mutex::default(),
        }
    }

    /// News are on their way, or about to be; false where they were already.
    pub(super) fn take_up(&self, by: RunId, topic: Topic) -> bool {
        self.news().insert((by, topic))
    }

    /// They are told, and the ledger was told so, or will be.
    pub(super) fn finish(&self, by: RunId, topic: Topic) {
        self.news().remove(&(by, topic));
    }

    pub(super) fn is_open(&self, by: RunId, topic: Topic) -> bool {
        self.news().contains(&(by, topic))
    }

    fn news(&self) -> MutexGuard<'_, HashSet<(RunId, Topic)>> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes something on. Must be called on a runtime.
    pub(super) fn take(self: &Arc<Self>, receiver: Receiver, parcel: Parcel) {
        self.open.send_modify(|open| *open += 1);
        let queue = self.queue(&receiver);
        let since = self.clock.boot();
        if let Some(dropped) = queue.push(Taken { parcel, since }) {
            let why = "too many wait for it";
            self.end(&receiver, &dropped.parcel, Fate::Dropped, why);
        }
    }

    fn queue(self: &Arc<Self>, receiver: &Receiver) -> Arc<Queue<Taken>> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = queues.get(receiver) {
            return Arc::clone(queue);
        }
        let (limit, workers) = match receiver {
            Receiver::Target(_) => (TARGET_LIMIT, TARGET_WORKERS),
            Receiver::Switch(_) => (PING_LIMIT, 1),
        };
        let queue = Arc::new(Queue::new(limit));
        queues.insert(receiver.clone(), Arc::clone(&queue));
        for _ in 0..workers {
            let (courier, queue) = (Arc::clone(self), Arc::clone(&queue));
            let receiver = receiver.clone();
            tokio::spawn(async move {
                loop {
                    let taken = queue.pop().await;
                    let job = taken.job().clone();
                    courier.deliver(&receiver, taken).await;
                    queue.is_over(&job);
                }
            });
        }
        queue
    }

    /// Tries until somebody takes it, or it is of no use any more.
    async fn deliver(self: &Arc<Self>, receiver: &Receiver, taken: Taken) {
        let Taken { parcel, since } = taken;
        let patience = match parcel {
            Parcel::News { .. } => PATIENCE,
            Parcel::Ping(_) => PING_PATIENCE,
        };
        let parcel = Arc::new(parcel);
        let begun = self.clock.boot();
        let mut failures = 0;
        loop {
            if !parcel.is_of_use() {
                let why = "its attempt was over before anybody took it";
                return self.end(receiver, &parcel, Fate::Dropped, why);
            }
            let tried = self.once(receiver, &parcel).await;
            let Err(trouble) = tried else {
                return self.end(receiver, &parcel, Fate::Delivered, "");
            };
            let now = self.clock.boot();
            let left = patience.saturating_sub(now.saturating_since(since));
            let least = LEAST_PATIENCE.saturating_sub(now.saturating_since(begun));
            let dice = uuid::Uuid::new_v4().into_bytes()[0];
            let wait = trouble.wait(failures, dice, left.max(least));
            let Some(wait) = wait else {
                return self.end(receiver, &parcel, Fate::Failed, &trouble.cause);
            };
            self.fails(receiver, &trouble, wait);
            failures += 1;
            self.wait(wait).await;
        }
    }

    async fn wait(&self, wait: Duration) {
        let mut closing = self.closing.subscribe();
        let closing = async move { closing.wait_for(|closing| *closing).await.is_ok() };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = closing => {
                tokio::time::sleep(wait.min(LAST_WAIT)).await;
            }
        }
    }

    /// One try, on a thread that may block. A try that doesn't come back is left to itself.
    async fn once(
        self: &Arc<Self>,
        receiver: &Receiver,
        parcel: &Arc<Parcel>,
    ) -> Result<(), Trouble> {
        // It is never closed.
        let turn = Arc::clone(&self.tries).acquire_owned().await.ok();
        let (courier, receiver, parcel) = (Arc::clone(self), receiver.clone(), Arc::clone(parcel));
        let tried = tokio::task::spawn_blocking(move || {
            // One that nobody waits for any more has its thread all the same.
            let _turn = turn;
            courier.send(&receiver, &parcel)
        });
        match tokio::time::timeout(TRY_LIMIT, tried).await {
            Ok(Ok(sent)) => sent,
            Ok(Err(_)) => Err(Trouble::passing("the try broke off")),
            Err(_) => Err(Trouble::passing(format!(
                "no end of it within {TRY_LIMIT:?}"
            ))),
        }
    }

    fn send(&self, receiver: &Receiver, parcel: &Parcel) -> Result<(), Trouble> {
        let now = self.clock.wall();
        let (name, message) = match (receiver, parcel) {
            (Receiver::Target(name), Parcel::News { message, .. }) => (name, message),
            (_, Parcel::Ping(ping)) => {
                let (step, run_id) = (ping.step.as_deref(), ping.run_id.as_deref());
                return post::ping(&ping.url, &ping.job, step, run_id, ping.output.clone(), now);
            }
            (Receiver::Switch(_), Parcel::News { .. }) => return Ok(()),
        };
        // As the table has it now: a wrong one may have been set right since the last try.
        let target = self.config.borrow().targets.get(name).cloned();
        match target {
            Some(Target::Webhook(webhook)) => post::webhook(&webhook, message, &self.teller, now),
            Some(Target::Email(email)) => email::send(&email, message, &self.teller, now),
            None => Err(Trouble::lasting("the table has it no more")),
        }
    }

    fn channel(&self, receiver: &Receiver) -> Channel {
        match receiver {
            Receiver::Switch(_) => Channel::Ping,
            Receiver::Target(name) => match self.config.borrow().targets.get(name) {
                Some(Target::Email(_)) => Channel::Email,
                _ => Channel::Webhook,
            },
        }
    }

    /// A try failed, and another one follows: told once until one succeeds.
    fn fails(&self, receiver: &Receiver, trouble: &Trouble, wait: Duration) {
        let mut ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = ailing.entry(receiver.clone()).or_default();
        *failures += 1;
        let (name, cause) = (receiver.name(), &trouble.cause);
        match *failures {
            1 => warn!(
                target = name,
                "could not notify {receiver}, trying again: {cause}"
            ),
            _ => debug!(target = name, ?wait, "could not notify {receiver}: {cause}"),
        }
    }

    /// Logs that something was given up: for one reason once in a while.
    fn give_up(&self, receiver: &Receiver, fate: Fate, what: &str, why: &str) {
        let (name, now) = (receiver.name(), self.clock.boot());
        let mut told = self.given_up.lock().unwrap_or_else(PoisonError::into_inner);
        let reasons = told.entry((receiver.clone(), fate)).or_default();
        if !reasons.is_new(why, now) {
            debug!(
                target = name,
                "gave up notifying {receiver} of \"{what}\": {why}"
            );
            return;
        }
        warn!(
            target = name,
            "gave up notifying {receiver} of \"{what}\": {why}"
        );
    }

    /// A parcel is delivered, or never will be.
    fn end(&self, receiver: &Receiver, parcel: &Parcel, fate: Fate, why: &str) {
        self.counts.add(self.channel(receiver), fate);
        let name = receiver.name();
        let what = match parcel {
            Parcel::News { message, .. } => message.title(),
            Parcel::Ping(ping) => format!("a ping of {}", ping.job),
        };
        if fate == Fate::Delivered {
            let mut ailing = self.ailing.lock().unwrap_or_else(PoisonError::into_inner);
            match ailing.remove(receiver) {
                Some(failures) => info!(target = name, failures, "notified {receiver} again"),
                None => debug!(target = name, "notified {receiver}: {what}"),
            }
        } else {
            self.give_up(receiver, fate, &what, why);
        }
        if let Parcel::News { news, .. } = parcel {
            news.one_less();
        }
        self.open.send_modify(|open| *open -= 1);
    }
}

impl Receiver {
    fn name(&self) -> &str {
        match self {
            Self::Target(name) => name,
            Self::Switch(job) => job.as_str(),
        }
    }
}

impl std::fmt::Display for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Target(name) => write!(f, "[notify.{name}]"),
            Self::Switch(job) => write!(f, "the switch that {job} pings"),
        }
    }
}
