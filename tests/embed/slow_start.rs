//! A `JobScheduler` that calls while its singletons are being started, on a store that takes long.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Answered, Caller, Claim, ClaimAnswer, Delivery, Enrolment, JobDigests, Observation, Order,
    OrderAnswer, Output, PublishedTable, Registration, Release, ReleaseAnswer, Renewal,
    RenewalAnswer, RunId, Scope,
};
use soloist::store::memory::MemoryStore;
use soloist::store::{AttemptRecord, ReplicaInfo, Snapshot, Store, StoreError, StoreEvent};
use soloist::{
    Clock as _, Context, Error, Event, Job, Outcome, Scheduler, SharedStore, Singletons,
    SystemClock, Timestamp,
};
use tokio::sync::{Semaphore, broadcast, mpsc};
use tokio_cron_scheduler::{Job as Timed, JobScheduler};

use crate::world::{SOON, until};

/// One that is not ready before it is allowed to be.
struct SlowStore {
    inner: Arc<dyn Store>,
    may_be_ready: Arc<Semaphore>,
}

#[async_trait]
impl Store for SlowStore {
    fn place(&self) -> String {
        self.inner.place()
    }

    async fn ready(&self) -> Result<(), StoreError> {
        let _allowed = self.may_be_ready.acquire().await.expect("it stays open");
        self.inner.ready().await
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
        self.inner.order(caller, orders).await
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

/// A schedule that is due at this second, and next a year later.
fn once_at(at: Timestamp) -> String {
    let text = at.to_string();
    let field = |from: usize| -> u32 { text[from..from + 2].parse().expect("a number") };
    let [second, minute, hour, day, month] = [17, 14, 11, 8, 5].map(field);
    format!("{second} {minute} {hour} {day} {month} *")
}

fn job(name: &str, schedule: &str) -> Job {
    let run = |_: Context| async { Ok::<_, Error>(()) };
    Job::new(name, schedule, run)
}

/// Has a ledger hear of a job.
async fn make_known(store: &SharedStore, job: Job) {
    let builder = Scheduler::builder().store_in(store).job(job);
    let mut events = builder.events();
    let scheduler = builder.start().await.expect("started");
    until(&mut events, |event| matches!(event, Event::Ready { .. })).await;
    scheduler.shutdown().await.expect("drained");
}

#[tokio::test]
async fn what_falls_due_while_its_scheduler_is_started_runs_though_its_timer_never_calls_again() {
    let now = SystemClock.wall().as_second();
    let at = Timestamp::from_second(now + 5);
    let schedule = once_at(at);
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    make_known(
        &SharedStore::of(Arc::clone(&memory)),
        job("known", &schedule),
    )
    .await;
    let may_be_ready = Arc::new(Semaphore::new(0));
    let slow = SlowStore {
        inner: memory,
        may_be_ready: Arc::clone(&may_be_ready),
    };

    let timer = JobScheduler::new().await.unwrap();
    let builder = Scheduler::builder().store_in(&SharedStore::of(Arc::new(slow)));
    let mut events = builder.events();
    let mut singletons = Singletons::new(builder);
    for name in ["known", "new"] {
        let job = singletons.job(job(name, &schedule)).unwrap();
        timer.add(job).await.unwrap();
    }
    let (sender, mut called) = mpsc::unbounded_channel();
    let plain = Timed::new_async(schedule.as_str(), move |_, _| {
        sender.send(()).expect("heard");
        Box::pin(async {})
    });
    timer.add(plain.unwrap()).await.unwrap();
    timer.start().await.unwrap();
    let starting = tokio::spawn(singletons.start());
    let is_called = tokio::time::timeout(SOON, called.recv());
    assert_eq!(is_called.await.expect("the timer is at work"), Some(()));
    // Those of one tick come together: longer than one is apart from the next.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!starting.is_finished());
    may_be_ready.add_permits(1);
    let scheduler = starting.await.unwrap().unwrap();

    until(&mut events, |event| matches!(event, Event::Ended { .. })).await;
    let lines = scheduler.history(None, 10).await.unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line.job.as_str(), line.scheduled_at, line.outcome))
        .collect();
    assert_eq!(told, [("known", at, Outcome::Succeeded)], "{lines:#?}");
    scheduler.shutdown().await.unwrap();
}
