//! A ledger with a replica or two, as those who order something meet it; its store can be away,
//! and can lose its answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;
use uuid::Uuid;

use super::sending::{Request, Said, Sender};
use crate::clock::Clock;
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::{
    Answered, AttemptDetail, Caller, Claim, ClaimAnswer, Delivery, Enrolment, FencingToken, Grant,
    JobDigests, Observation, Occurrence, Order, OrderAnswer, OrderKind, Origin, Outcome, Output,
    PublishedTable, Registration, Release, ReleaseAnswer, Renewal, RenewalAnswer, Replica, RunId,
    Scope,
};
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::time::{BootTime, Timestamp};
use crate::store::memory::MemoryStore;
use crate::store::{AttemptRecord, ReplicaInfo, Snapshot, Store, StoreError, StoreEvent};

/// A clock that stands until it is moved.
#[derive(Debug)]
struct Standing(AtomicI64);

impl Clock for Standing {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
    fn boot(&self) -> BootTime {
        BootTime::default()
    }
}

/// A store, its time, and what is wrong with it.
pub(crate) struct World {
    inner: MemoryStore,
    clock: Arc<Standing>,
    /// So many calls don't arrive.
    pub(crate) away: AtomicU32,
    /// So many orders are done, and their answers lost.
    pub(crate) mute: AtomicU32,
    /// How many calls came.
    pub(crate) calls: AtomicU32,
}

pub(crate) fn job(name: &str) -> Job {
    let schedule = Schedule::parse(
        "@daily",
        name,
        jiff::tz::TimeZone::UTC,
        DstGap::default(),
        DstFold::default(),
    );
    let name = JobName::new(name).unwrap();
    Job::new(name, schedule.unwrap(), Program::Shell("true".into()))
}

/// A shard that a replica has.
pub(crate) struct Lease {
    claim: Claim,
    grant: Grant,
    caller: Caller,
}

impl World {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(Standing(AtomicI64::new(1_795_250_760_250)));
        Self {
            inner: MemoryStore::new(clock.clone()),
            clock,
            away: AtomicU32::new(0),
            mute: AtomicU32::new(0),
            calls: AtomicU32::new(0),
        }
    }

    pub(crate) fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.clock.0.fetch_add(millis, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.wall()
    }

    /// Orders something of a job that the table has.
    pub(crate) async fn order(&self, what: OrderKind, job: &Job) -> Said {
        let request = Request {
            what,
            jobs: std::slice::from_ref(&job.name),
            by: "alice@db1",
            id: None,
        };
        let table = std::slice::from_ref(job);
        let said = Sender::new(self, table, "db1".to_owned())
            .send(request)
            .await
            .unwrap();
        said.into_iter().next().unwrap()
    }

    pub(crate) async fn trigger(&self, job: &Job) -> Timestamp {
        match self.order(OrderKind::Trigger, job).await.answer {
            OrderAnswer::Triggered { scheduled_at } => scheduled_at,
            other => panic!("{other:?}"),
        }
    }

    /// A replica of this name shows itself, for a minute.
    pub(crate) async fn live(&self, name: &str, info: ReplicaInfo) {
        let info = ReplicaInfo {
            alive_ms: 60_000,
            ..info
        };
        let caller = caller(name);
        let seen = self.inner.observe(&caller, &info, Scope::Overdue).await;
        seen.unwrap();
    }

    /// A claim to a triggered occurrence; `adjust` says what is special about it.
    pub(crate) async fn claim(
        &self,
        replica: &str,
        job: &Job,
        scheduled_at: Timestamp,
        adjust: impl FnOnce(&mut Claim),
    ) -> Result<Lease, ClaimAnswer> {
        let occurrence = Occurrence {
            job: job.name.clone(),
            scheduled_at,
        };
        let end = Timestamp::from_millis(i64::MAX);
        let mut claim = Claim {
            origin: Origin::Trigger,
            claim_by: end,
            start_by: end,
            retention: job.retention,
            ..Claim::new(occurrence, RunId::new(Uuid::new_v4()))
        };
        adjust(&mut claim);
        let caller = caller(replica);
        let claims = [claim.clone()];
        let answered = self.inner.claim(&caller, &claims).await.unwrap();
        match answered.answer.into_iter().next().unwrap() {
            ClaimAnswer::Granted(grant) => Ok(Lease {
                claim,
                grant,
                caller,
            }),
            refused => Err(refused),
        }
    }

    pub(crate) async fn release(
        &self,
        lease: Lease,
        outcome: Outcome,
        retry_after: Option<Duration>,
    ) {
        let Lease {
            claim,
            grant,
            caller,
        } = lease;
        let release = Release {
            occurrence: claim.occurrence,
            origin: claim.origin,
            shard: claim.shard,
            shards: claim.shards,
            run_id: claim.run_id,
            token: grant.token,
            attempt: grant.attempt,
            failures: u32::from(outcome != Outcome::Succeeded),
            on_crash: claim.on_crash,
            outcome,
            retry_after,
            detail: AttemptDetail {
                exit_code: Some(if outcome == Outcome::Succeeded { 0 } else { 3 }),
                ..AttemptDetail::default()
            },
            output: Output::default(),
            retention: claim.retention,
            dependents: claim.dependents,
            telling: None,
        };
        let released = self.inner.release(&caller, &[release]).await.unwrap();
        assert_eq!(released.answer, [ReleaseAnswer::Released]);
    }

    fn arrives(&self) -> Result<(), StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let fewer = |left: u32| left.checked_sub(1);
        let left = self
            .away
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        match left {
            Ok(_) => Err(self.unreachable("refused")),
            Err(_) => Ok(()),
        }
    }

    fn answers<T>(&self, answer: T) -> Result<T, StoreError> {
        let fewer = |left: u32| left.checked_sub(1);
        let left = self
            .mute
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer);
        match left {
            Ok(_) => Err(self.unreachable("no answer")),
            Err(_) => Ok(answer),
        }
    }

    fn unreachable(&self, cause: &str) -> StoreError {
        StoreError::Unreachable {
            place: self.place(),
            cause: cause.to_owned(),
        }
    }
}

fn caller(name: &str) -> Caller {
    Caller {
        replica: Replica {
            id: id_of(name),
            name: name.to_owned(),
        },
        quarantine: Duration::from_secs(16),
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}

/// An id for a short name, always the same.
fn id_of(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    for (byte, own) in bytes.iter_mut().zip(name.bytes()) {
        *byte = own;
    }
    Uuid::from_bytes(bytes)
}

#[async_trait]
impl Store for World {
    fn place(&self) -> String {
        "redis://shop".to_owned()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        self.arrives()
    }

    async fn register(
        &self,
        caller: &Caller,
        jobs: &[Enrolment],
    ) -> Result<Answered<Vec<Registration>>, StoreError> {
        self.inner.register(caller, jobs).await
    }

    async fn claim(
        &self,
        caller: &Caller,
        claims: &[Claim],
    ) -> Result<Answered<Vec<ClaimAnswer>>, StoreError> {
        self.inner.claim(caller, claims).await
    }

    async fn renew(
        &self,
        caller: &Caller,
        renewals: &[Renewal],
    ) -> Result<Answered<Vec<RenewalAnswer>>, StoreError> {
        self.inner.renew(caller, renewals).await
    }

    async fn release(
        &self,
        caller: &Caller,
        releases: &[Release],
    ) -> Result<Answered<Vec<ReleaseAnswer>>, StoreError> {
        self.inner.release(caller, releases).await
    }

    async fn order(
        &self,
        caller: &Caller,
        orders: &[Order],
    ) -> Result<Answered<Vec<OrderAnswer>>, StoreError> {
        let answered = self.inner.order(caller, orders).await?;
        self.answers(answered)
    }

    async fn deliver(
        &self,
        caller: &Caller,
        deliveries: &[Delivery],
    ) -> Result<Answered<Vec<bool>>, StoreError> {
        self.inner.deliver(caller, deliveries).await
    }

    async fn observe(
        &self,
        caller: &Caller,
        info: &ReplicaInfo,
        scope: Scope,
    ) -> Result<Answered<Observation>, StoreError> {
        self.inner.observe(caller, info, scope).await
    }

    async fn publish(
        &self,
        caller: &Caller,
        table: &PublishedTable,
    ) -> Result<Answered<()>, StoreError> {
        self.inner.publish(caller, table).await
    }

    async fn table(&self, digest: &str) -> Result<Option<JobDigests>, StoreError> {
        self.inner.table(digest).await
    }

    async fn depart(&self, caller: &Caller) -> Result<(), StoreError> {
        self.inner.depart(caller).await
    }

    async fn sweep(&self, caller: &Caller) -> Result<Answered<Vec<JobName>>, StoreError> {
        self.inner.sweep(caller).await
    }

    async fn snapshot(&self) -> Result<Answered<Snapshot>, StoreError> {
        self.arrives()?;
        self.inner.snapshot().await
    }

    async fn history(
        &self,
        job: Option<&JobName>,
        limit: usize,
    ) -> Result<Vec<AttemptRecord>, StoreError> {
        self.inner.history(job, limit).await
    }

    async fn output(&self, job: &JobName, run_id: RunId) -> Result<Option<Output>, StoreError> {
        self.inner.output(job, run_id).await
    }

    fn events(&self) -> broadcast::Receiver<StoreEvent> {
        self.inner.events()
    }
}
