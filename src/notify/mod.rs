//! Tells people how jobs go: by webhook, by mail, and by pings to dead-man's switches.
//!
//! ```text
//!  store ─ closing, with what people are to be told ─▶ scheduler ─▶ Notice::Over ─▶ Teller
//!                                                                    Notice::Slow ─▶  │
//!        ◀─ told (or: it takes longer) ─ News ◀─ Courier: queue, try, wait, try again ◀┘
//!        ── untold: its teller vanished ─────────────▶ any other replica's Teller
//! ```
//!
//! What is news, the store decides with the end that it is news of, so that one replica tells it.
//! Nobody is told twice while that one lives; where it vanishes on the way, another goes on, and
//! may tell again what was told: by the same id.
//!
//! Must never: wait inside the loop of the driver, keep a job from running, or hold more than its
//! limits.

mod counts;
mod courier;
mod email;
mod message;
mod news;
mod orphans;
mod pings;
mod post;
mod queue;
mod trouble;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::watch;
use tracing::{info, warn};

pub(crate) use self::counts::{Channel, Counts};

use self::counts::Count;
use self::courier::{Courier, Parcel, Receiver};
use self::message::Message;
use self::news::{Ledger, News};
use self::orphans::Orphans;
use crate::clock::Clock;
use crate::config::Config;
use crate::driver::{Moment, Observer};
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{
    AttemptDetail, Closing, Delivery, DeliveryStep, FencingToken, Outcome, Output, RunId, Topic,
    Untold,
};
use crate::scheduler::notify::Notify;
use crate::scheduler::{Event, Notice};
use crate::store::Store;

/// How many of the newest news are remembered, so that what is said twice is told once.
const REMEMBERED: usize = 1024;

/// What the time-out of a caller's requests is said to be; nothing hangs on it.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// What a replica needs to tell people.
pub(crate) struct Setting {
    pub(crate) config: watch::Receiver<Arc<Config>>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The name of this replica.
    pub(crate) replica: String,
    /// Where it is counted what came of them.
    pub(crate) counts: Arc<Counts>,
}

/// What is left to do when the driver has ended.
pub(crate) struct Rest(Arc<Courier>);

/// Looks on at a driver, and has people told. Its courier must be on a runtime.
pub(crate) struct Teller {
    courier: Arc<Courier>,
    store: Arc<dyn Store>,
    /// Who is told of which job: of one that the table has no more, too, as it may still run.
    routes: HashMap<JobName, Notify>,
    config: watch::Receiver<Arc<Config>>,
    told: HashSet<(RunId, Topic)>,
    order: VecDeque<(RunId, Topic)>,
    orphans: Orphans,
    /// Of attempts of this replica whose start a switch was told, or is to be: whether it counts.
    starts: HashMap<FencingToken, Arc<AtomicBool>>,
}

/// Begins to tell people.
pub(crate) fn start(setting: Setting) -> (Teller, Rest) {
    let Setting {
        mut config,
        store,
        clock,
        replica,
        counts,
    } = setting;
    let teller = message::Teller {
        namespace: config.borrow().scheduler.namespace.clone(),
        replica,
    };
    let courier = Arc::new(Courier::new(config.clone(), clock, teller, counts));
    config.mark_changed();
    let teller = Teller {
        courier: Arc::clone(&courier),
        store,
        routes: HashMap::new(),
        config,
        told: HashSet::new(),
        order: VecDeque::new(),
        orphans: Orphans::default(),
        starts: HashMap::new(),
    };
    (teller, Rest(courier))
}

impl Rest {
    /// Waits until all is delivered that was taken on, but not for longer than that.
    pub(crate) async fn finish(self, within: Duration) {
        self.0.closing.send_replace(true);
        let left = self.left(within).await;
        for channel in Channel::ALL {
            let count = self.0.counts.of(channel);
            if count != Count::default() {
                info!(
                    channel = channel.as_str(),
                    delivered = count.delivered,
                    failed = count.failed,
                    dropped = count.dropped,
                    "notifications until now"
                );
            }
        }
        match left {
            (0, 0) => {}
            (0, news) => warn!(
                news,
                "ends before the store knows that people were told: another replica tells them again"
            ),
            (open, _) => warn!(
                open,
                "ends with notifications that nobody took: another replica goes on with them, but for pings and what takes long"
            ),
        }
    }

    /// How many notifications nobody took by then, and of how many news the ledger has not heard.
    async fn left(&self, within: Duration) -> (usize, usize) {
        let mut open = self.0.open.subscribe();
        let mut unwritten = self.0.unwritten.subscribe();
        let all = async {
            // Both senders are here.
            let _ = open.wait_for(|open| *open == 0).await;
            let _ = unwritten.wait_for(|news| *news == 0).await;
        };
        let _ = tokio::time::timeout(within, all).await;
        (*self.0.open.borrow(), *self.0.unwritten.borrow())
    }
}

impl Teller {
    /// Who is told of a job, by the newest table that has it.
    fn route(&mut self, job: &JobName) -> Option<&Notify> {
        if self.config.has_changed().unwrap_or(false) {
            let config = Arc::clone(&self.config.borrow_and_update());
            for job in &config.jobs {
                self.routes.insert(job.name.clone(), job.notify.clone());
            }
        }
        self.routes.get(job).filter(|route| !route.is_nobody())
    }

    /// Whether this is said for the first time.
    fn is_new(&mut self, by: RunId, topic: Topic) -> bool {
        if !self.told.insert((by, topic)) {
            return false;
        }
        self.order.push_back((by, topic));
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.told.remove(&oldest);
        }
        true
    }

    fn ledger(&self, moment: Moment<'_>) -> Ledger {
        Ledger {
            store: Arc::clone(&self.store),
            caller: moment.scheduler.caller(moment.boot, CALL_LIMIT),
        }
    }

    fn over(&mut self, closing: &Closing, output: &Output, moment: Moment<'_>) {
        self.ping_end(closing, output);
        let Some(message) = Message::of(closing, output) else {
            return;
        };
        let Some(to) = self
            .route(&message.job)
            .map(|route| route.telling.to.clone())
        else {
            return;
        };
        if !self.is_new(message.by, message.topic) {
            return;
        }
        let ledger = self.ledger(moment);
        tokio::spawn(tell(Arc::clone(&self.courier), ledger, message, to));
    }

    /// An attempt takes long. Whether that is news, the ledger says: another replica may have told
    /// people of an earlier one.
    fn slow(&mut self, message: Message, moment: Moment<'_>) {
        let Some(route) = self.route(&message.job) else {
            return;
        };
        let telling = route.telling.clone();
        if telling.to.is_empty() || !telling.topics.has(Topic::Slow) {
            return;
        }
        let delivery = Delivery {
            job: message.job.clone(),
            by: message.by,
            topic: Topic::Slow,
            step: DeliveryStep::Slow {
                repeat: telling.repeat,
            },
        };
        let (ledger, courier) = (self.ledger(moment), Arc::clone(&self.courier));
        tokio::spawn(async move {
            if ledger.is_news(&delivery).await {
                hand_over(&courier, message, &telling.to);
            }
        });
    }

    /// Who is told of news whose teller vanished: by this table, or else by the one that was in
    /// force when they came about. The job may be gone since.
    fn heirs(&mut self, untold: &Untold) -> Arc<[String]> {
        let route = self.route(&untold.occurrence.job);
        match route.filter(|route| !route.telling.to.is_empty()) {
            Some(route) => route.telling.to.clone(),
            None => untold.to.clone().into(),
        }
    }

    /// News whose teller vanished; or those of this replica, of which the ledger has not heard.
    fn untold(&mut self, untold: &Untold, moment: Moment<'_>) {
        if self.told.contains(&(untold.by, untold.told.topic)) {
            return self.remind(untold, moment);
        }
        let to = self.heirs(untold);
        let all_known = {
            let config = self.config.borrow();
            to.iter().all(|name| config.targets.contains_key(name))
        };
        if !all_known && !self.orphans.is_nobodys(untold, moment.boot) {
            return;
        }
        if !self.courier.take_up(untold.by, untold.told.topic) {
            return;
        }
        let (ledger, courier) = (self.ledger(moment), Arc::clone(&self.courier));
        let untold = untold.clone();
        tokio::spawn(async move {
            match ledger.take_over(&untold).await {
                Some(message) => tell(courier, ledger, message, to).await,
                None => courier.finish(untold.by, untold.told.topic),
            }
        });
    }
}

impl Teller {
    /// Tells the ledger how it goes with news that this replica tells, or has told.
    fn remind(&self, untold: &Untold, moment: Moment<'_>) {
        let is_open = self.courier.is_open(untold.by, untold.told.topic);
        let delivery = Delivery {
            job: untold.occurrence.job.clone(),
            by: untold.by,
            topic: untold.told.topic,
            step: match is_open {
                true => DeliveryStep::GoesOn,
                false => DeliveryStep::Done,
            },
        };
        let ledger = self.ledger(moment);
        tokio::spawn(async move { ledger.remind(&delivery).await });
    }
}

impl Observer for Teller {
    fn event(&mut self, event: &Event, moment: Moment<'_>) {
        if let Event::Observed {
            result: Ok(answered),
            ..
        } = event
        {
            self.orphans.retain(&answered.answer.untold);
            for untold in &answered.answer.untold {
                self.untold(untold, moment);
            }
        }
    }

    fn notice(&mut self, notice: &Notice, moment: Moment<'_>) {
        match notice {
            Notice::Started {
                occurrence,
                grant,
                run_id,
                shard: 0,
                ..
            } => {
                let run_id = Some(*run_id).filter(|_| grant.shards <= 1);
                self.ping_start(&occurrence.job, run_id, grant.token);
            }
            Notice::Ended {
                token,
                outcome,
                retry_after,
                ..
            } => {
                let goes_on = *outcome == Outcome::HandedOver || retry_after.is_some();
                self.attempt_over(*token, goes_on);
            }
            Notice::Superseded { token, .. } | Notice::Unreleased { token, .. } => {
                self.attempt_over(*token, true);
            }
            Notice::Over { closing, output } => self.over(closing, output, moment),
            Notice::Slow {
                occurrence,
                attempt,
                run_id,
                warn_after,
                ..
            } => {
                let message = Message {
                    topic: Topic::Slow,
                    job: occurrence.job.clone(),
                    by: *run_id,
                    scheduled_at: occurrence.scheduled_at,
                    after: None,
                    outcome: None,
                    attempt: *attempt,
                    run_id: Some(*run_id),
                    replica: self.courier.teller.replica.clone(),
                    ended_at: moment.store(),
                    ran_for: None,
                    detail: AttemptDetail::default(),
                    since: occurrence.scheduled_at,
                    count: 1,
                    warn_after: Some(*warn_after),
                    stdout: None,
                    stderr: None,
                };
                self.slow(message, moment);
            }
            _ => {}
        }
    }
}

/// Has people told, and the ledger that they were.
async fn tell(courier: Arc<Courier>, ledger: Ledger, message: Message, to: Arc<[String]>) {
    let delivery = Delivery {
        job: message.job.clone(),
        by: message.by,
        topic: message.topic,
        step: DeliveryStep::GoesOn,
    };
    courier.unwritten.send_modify(|news| *news += 1);
    courier.take_up(delivery.by, delivery.topic);
    let news = hand_over(&courier, message, &to);
    ledger.attend(&delivery, &news).await;
    courier.finish(delivery.by, delivery.topic);
    courier.unwritten.send_modify(|news| *news -= 1);
}

fn hand_over(courier: &Arc<Courier>, message: Message, to: &[String]) -> Arc<News> {
    let (message, news) = (Arc::new(message), Arc::new(News::new(to.len())));
    for name in to {
        let (message, news) = (Arc::clone(&message), Arc::clone(&news));
        courier.take(
            Receiver::Target(name.clone()),
            Parcel::News { message, news },
        );
    }
    news
}

#[cfg(test)]
mod tests;
