//! What a sequence is made of: every call of the store with all that it carries, so that it can
//! be sent again word by word.

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Answered, Caller, Claim, ClaimAnswer, Delivery, Enrolment, JobDigests, Observation, Order,
    OrderAnswer, Output, PublishedTable, Registration, Release, ReleaseAnswer, Renewal,
    RenewalAnswer, RunId, Scope,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::{AttemptRecord, ReplicaInfo, Snapshot, Store, StoreError};

/// One step, at this time of the store's clock.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Timestamp,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Alone(Asked),
    /// Two calls at the same time, into one namespace by two ways.
    Together(Asked, Asked),
    Trouble(Trouble),
}

/// What happens to the store itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// All data of all namespaces are gone.
    Loss,
    /// Another server takes over, with all data.
    FailOver,
    /// The server is killed and starts again, with nothing.
    Restart,
}

/// A call of one replica.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) namespace: usize,
    /// Which of the ways into it.
    pub(crate) way: usize,
    pub(crate) caller: Caller,
    pub(crate) call: Call,
}

/// The calls of [`Store`].
#[derive(Clone, Debug)]
pub(crate) enum Call {
    Register(Vec<Enrolment>),
    Claim(Vec<Claim>),
    Renew(Vec<Renewal>),
    Release(Vec<Release>),
    Order(Vec<Order>),
    Deliver(Vec<Delivery>),
    Observe(Box<ReplicaInfo>, Scope),
    Publish(PublishedTable),
    Table(String),
    Depart,
    Sweep,
    Snapshot,
    History(Option<JobName>, usize),
    Output(JobName, RunId),
}

/// What a store says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Registered(Answered<Vec<Registration>>),
    Claimed(Answered<Vec<ClaimAnswer>>),
    Renewed(Answered<Vec<RenewalAnswer>>),
    Released(Answered<Vec<ReleaseAnswer>>),
    Ordered(Answered<Vec<OrderAnswer>>),
    Delivered(Answered<Vec<bool>>),
    Observed(Box<Answered<Observation>>),
    Published(Answered<()>),
    Table(Option<JobDigests>),
    Departed,
    Swept(Answered<Vec<JobName>>),
    Snapshot(Box<Answered<Snapshot>>),
    History(Vec<AttemptRecord>),
    Output(Option<Output>),
    /// It doesn't do it: why, and the cure.
    Refused(String, String),
}

/// The store was not asked after all, or nobody knows what came of it: it did not answer in time.
#[derive(Debug)]
pub(crate) struct Silent(pub(crate) String);

impl Asked {
    /// Asks a store.
    pub(crate) async fn of(&self, store: &dyn Store) -> Result<Reply, Silent> {
        let reply = self.asked(store).await;
        reply.or_else(|error| match error {
            StoreError::Unreachable { cause, .. } => Err(Silent(cause)),
            StoreError::Refused { cause, cure, .. }
            | StoreError::OtherVersion { cause, cure, .. }
            | StoreError::Unreadable { cause, cure, .. } => Ok(Reply::Refused(cause, cure)),
            StoreError::BadUrl { cause, .. } => Ok(Reply::Refused(cause, String::new())),
        })
    }

    async fn asked(&self, store: &dyn Store) -> Result<Reply, StoreError> {
        let caller = &self.caller;
        Ok(match &self.call {
            Call::Register(jobs) => Reply::Registered(store.register(caller, jobs).await?),
            Call::Claim(claims) => Reply::Claimed(store.claim(caller, claims).await?),
            Call::Renew(renewals) => Reply::Renewed(store.renew(caller, renewals).await?),
            Call::Release(releases) => Reply::Released(store.release(caller, releases).await?),
            Call::Order(orders) => Reply::Ordered(store.order(caller, orders).await?),
            Call::Deliver(deliveries) => Reply::Delivered(store.deliver(caller, deliveries).await?),
            Call::Observe(info, scope) => {
                let mut seen = store.observe(caller, info, *scope).await?;
                // A set: the order in which a store has the digests says nothing.
                seen.answer.published.sort();
                Reply::Observed(Box::new(seen))
            }
            Call::Publish(table) => Reply::Published(store.publish(caller, table).await?),
            Call::Table(digest) => Reply::Table(store.table(digest).await?),
            Call::Depart => {
                store.depart(caller).await?;
                Reply::Departed
            }
            Call::Sweep => Reply::Swept(store.sweep(caller).await?),
            Call::Snapshot => {
                let mut state = store.snapshot().await?;
                // Of a server's settings, which memory has not.
                state.answer.conditions.clear();
                Reply::Snapshot(Box::new(state))
            }
            Call::History(job, limit) => Reply::History(store.history(job.as_ref(), *limit).await?),
            Call::Output(job, run) => Reply::Output(store.output(job, *run).await?),
        })
    }
}

impl Call {
    /// All of it happens at one moment. What others show or tidy up takes several.
    pub(crate) fn is_one_step(&self) -> bool {
        matches!(
            self,
            Call::Register(_)
                | Call::Claim(_)
                | Call::Renew(_)
                | Call::Release(_)
                | Call::Order(_)
                | Call::Deliver(_)
        )
    }

    /// Leaves the first request of a batch. What another one of the batch was answered without
    /// writing may be older: each holds to what it has read for itself.
    pub(crate) fn leave_one(&mut self) {
        match self {
            Call::Register(batch) => batch.truncate(1),
            Call::Claim(batch) => batch.truncate(1),
            Call::Renew(batch) => batch.truncate(1),
            Call::Release(batch) => batch.truncate(1),
            Call::Order(batch) => batch.truncate(1),
            Call::Deliver(batch) => batch.truncate(1),
            _ => {}
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Call::Register(_) => "register",
            Call::Claim(_) => "claim",
            Call::Renew(_) => "renew",
            Call::Release(_) => "release",
            Call::Order(_) => "order",
            Call::Deliver(_) => "deliver",
            Call::Observe(..) => "observe",
            Call::Publish(_) => "publish",
            Call::Table(_) => "table",
            Call::Depart => "depart",
            Call::Sweep => "sweep",
            Call::Snapshot => "snapshot",
            Call::History(..) => "history",
            Call::Output(..) => "output",
        }
    }
}
