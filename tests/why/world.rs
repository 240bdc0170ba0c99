//! A store in memory with a clock that tests move, and replicas that claim by hand.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::tz::TimeZone;
use soloist::clock::Clock;
use soloist::scheduler::job::{Job, JobName, Program};
use soloist::scheduler::lease::{
    Answered, AttemptDetail, Caller, Claim, ClaimAnswer, Definition, Dependents, Enrolment,
    FencingToken, Grant, Occurrence, Order, OrderAnswer, OrderKind, Outcome, Output,
    PublishedTable, Registration, Release, Renewal, RenewalAnswer, Replica, RunId, ScheduleChange,
    Scope, Seen,
};
use soloist::scheduler::policy::Tags;
use soloist::scheduler::schedule::{DstFold, DstGap, Schedule};
use soloist::scheduler::time::{BootTime, Timestamp};
use soloist::store::memory::MemoryStore;
use soloist::store::{AttemptRecord, ReplicaInfo, Snapshot, Store};
use soloist::why::{self, Answer, View, Written};
use uuid::Uuid;

/// The day of most tests.
const DAY: &str = "2026-11-20";

#[derive(Debug)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn boot(&self) -> BootTime {
        unreachable!("a store has no boot clock")
    }
}

/// An instant: RFC 3339, or a time of [`DAY`] in UTC.
pub(crate) fn at(text: &str) -> Timestamp {
    let day = match text.contains('T') {
        true => String::new(),
        false => format!("{DAY}T"),
    };
    let zulu = if text.ends_with('Z') { "" } else { "Z" };
    let instant: jiff::Timestamp = format!("{day}{text}{zulu}").parse().expect("an instant");
    instant.into()
}

pub(crate) fn name(text: &str) -> JobName {
    JobName::new(text).expect("a name")
}

/// A job in UTC.
pub(crate) fn job(name: &str, schedule: &str) -> Job {
    job_in(name, schedule, "UTC", DstGap::default(), DstFold::default())
}

pub(crate) fn job_in(called: &str, schedule: &str, zone: &str, gap: DstGap, fold: DstFold) -> Job {
    let zone = TimeZone::get(zone).expect("a zone");
    let schedule = Schedule::parse(schedule, called, zone, gap, fold).expect("a schedule");
    Job::new(
        name(called),
        schedule,
        Program::Command(vec!["true".to_owned()]),
    )
}

/// A lease that a test holds.
pub(crate) struct Lease {
    claim: Claim,
    grant: Grant,
}

pub(crate) struct World {
    clock: Arc<TestClock>,
    store: MemoryStore,
    /// The table; none where there is none.
    pub(crate) table: Option<Vec<Job>>,
    runtime: tokio::runtime::Runtime,
    drawn: u128,
    /// Set where the state is read before what follows, and the lines after it.
    pub(crate) read_before: Option<Answered<Snapshot>>,
    /// Lines beside the store's, newest first: what this engine has no reason to write.
    pub(crate) lines: Vec<AttemptRecord>,
}

impl World {
    /// At 21:00, with jobs that the ledger has known since.
    pub(crate) fn new(table: impl IntoIterator<Item = Job>) -> Self {
        let world = Self::unregistered(table);
        let jobs = world.table.clone().unwrap_or_default();
        for job in &jobs {
            world.register(job, None);
        }
        world
    }

    /// At 21:00, with a table of which the ledger knows nothing.
    pub(crate) fn unregistered(table: impl IntoIterator<Item = Job>) -> Self {
        let clock = Arc::new(TestClock(AtomicI64::new(at("21:00:00").as_millis())));
        let runtime = tokio::runtime::Builder::new_current_thread();
        Self {
            store: MemoryStore::new(clock.clone()),
            clock,
            table: Some(table.into_iter().collect()),
            runtime: { runtime }.build().expect("a runtime"),
            drawn: 0,
            read_before: None,
            lines: Vec::new(),
        }
    }

    pub(crate) fn set(&self, time: &str) {
        self.clock.0.store(at(time).as_millis(), Ordering::SeqCst);
    }

    fn caller(replica: &str) -> Caller {
        let id = replica
            .bytes()
            .fold(0, |id, byte| id * 256 + u128::from(byte));
        Caller {
            replica: Replica {
                id: Uuid::from_u128(id),
                name: replica.to_owned(),
            },
            quarantine: Duration::from_secs(30),
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        }
    }

    fn draw(&mut self) -> RunId {
        self.drawn += 1;
        RunId::new(Uuid::from_u128(self.drawn))
    }

    pub(crate) fn register(&self, job: &Job, change: Option<ScheduleChange>) -> Registration {
        let enrolment = Enrolment {
            job: job.name.clone(),
            schedule: job.schedule.identity(),
            enabled: job.enabled,
            definition: job.definition.clone(),
            over: None,
            change,
            retention: job.retention,
            again: false,
            seen: Seen::default(),
        };
        self.enrol(&enrolment)
    }

    /// A replica that has lived through a loss tells what it has seen settled.
    pub(crate) fn tell_again(&self, job: &Job, settled_until: &str) -> Registration {
        let enrolment = Enrolment {
            again: true,
            seen: Seen {
                settled_until: Some(at(settled_until)),
                pause: None,
                force: None,
            },
            ..Enrolment::of(job)
        };
        self.enrol(&enrolment)
    }

    /// The store loses all that it has.
    pub(crate) fn lose_data(&self) {
        let empty = MemoryStore::new(self.clock.clone());
        self.store.fall_back_to(empty.image());
    }

    fn enrol(&self, enrolment: &Enrolment) -> Registration {
        let caller = Self::caller("r1");
        let asked = self
            .store
            .register(&caller, std::slice::from_ref(enrolment));
        first(self.runtime.block_on(asked))
    }

    /// A claim as the table would have it made.
    pub(crate) fn prepare(&mut self, job: &Job, scheduled_at: &str) -> Claim {
        let scheduled_at = at(scheduled_at);
        let occurrence = Occurrence {
            job: job.name.clone(),
            scheduled_at,
        };
        Claim {
            shards: job.shards,
            on_crash: job.on_crash,
            max_attempts: job.max_attempts,
            concurrency: job.concurrency,
            claim_by: job.start_by(scheduled_at),
            start_by: job.start_by(scheduled_at),
            retention: job.retention,
            dependents: self.dependents(&job.name),
            ..Claim::new(occurrence, self.draw())
        }
    }

    fn dependents(&self, parent: &JobName) -> Dependents {
        let jobs = self.table.iter().flatten();
        let children = jobs.filter(|job| job.after.contains(parent));
        let dependent = |job: &Job| soloist::scheduler::lease::Dependent {
            job: job.name.clone(),
            after: job.after.clone(),
            enabled: job.enabled,
            starting_deadline: job.starting_deadline,
            retention: job.retention,
            dependents: Dependents::default(),
        };
        children.map(dependent).collect()
    }

    pub(crate) fn ask(&self, replica: &str, claim: &Claim) -> ClaimAnswer {
        let caller = Self::caller(replica);
        let asked = self.store.claim(&caller, std::slice::from_ref(claim));
        first(self.runtime.block_on(asked))
    }

    pub(crate) fn start(&self, replica: &str, claim: Claim) -> Lease {
        match self.ask(replica, &claim) {
            ClaimAnswer::Granted(grant) => Lease { claim, grant },
            other => panic!("{replica}: {other:?}"),
        }
    }

    /// Claims an occurrence of the schedule, and gets it.
    pub(crate) fn claim(&mut self, replica: &str, job: &Job, scheduled_at: &str) -> Lease {
        let claim = self.prepare(job, scheduled_at);
        self.start(replica, claim)
    }

    /// Ends an attempt; with `retry_after` another one follows.
    pub(crate) fn end(
        &self,
        replica: &str,
        lease: &Lease,
        outcome: Outcome,
        detail: AttemptDetail,
        retry_after: Option<Duration>,
    ) {
        let Lease { claim, grant } = lease;
        let release = Release {
            occurrence: claim.occurrence.clone(),
            origin: claim.origin,
            shard: claim.shard,
            shards: claim.shards,
            run_id: claim.run_id,
            token: grant.token,
            attempt: grant.attempt,
            failures: grant.failures + u32::from(outcome != Outcome::Succeeded),
            on_crash: claim.on_crash,
            outcome,
            retry_after,
            detail,
            output: Output::default(),
            retention: claim.retention,
            dependents: claim.dependents.clone(),
            telling: None,
        };
        let caller = Self::caller(replica);
        let asked = self.store.release(&caller, std::slice::from_ref(&release));
        first(self.runtime.block_on(asked));
    }

    /// Renews a lease, also one that this store never granted.
    pub(crate) fn renew(&self, replica: &str, lease: &Lease) {
        let renewal = Renewal::of(&lease.claim, &lease.grant);
        let caller = Self::caller(replica);
        let asked = self.store.renew(&caller, std::slice::from_ref(&renewal));
        let answer = first(self.runtime.block_on(asked));
        assert!(
            matches!(answer, RenewalAnswer::Renewed { .. }),
            "{answer:?}"
        );
    }

    pub(crate) fn succeed(&self, replica: &str, lease: &Lease) {
        let detail = AttemptDetail {
            exit_code: Some(0),
            ..AttemptDetail::default()
        };
        self.end(replica, lease, Outcome::Succeeded, detail, None);
    }

    pub(crate) fn order(&mut self, job: &Job, what: OrderKind) -> OrderAnswer {
        let order = Order {
            job: job.name.clone(),
            what,
            by: "ann".to_owned(),
            id: self.draw(),
            retention: job.retention,
            dependents: self.dependents(&job.name),
        };
        let caller = Self::caller("r1");
        let asked = self.store.order(&caller, std::slice::from_ref(&order));
        first(self.runtime.block_on(asked))
    }

    /// A replica says that it lives, for a minute.
    pub(crate) fn alive(&self, replica: &str, change: impl FnOnce(&mut ReplicaInfo)) {
        let mut info = ReplicaInfo {
            alive_ms: 60_000,
            ..ReplicaInfo::default()
        };
        change(&mut info);
        let caller = Self::caller(replica);
        let asked = self.store.observe(&caller, &info, Scope::Overdue);
        self.runtime.block_on(asked).expect("an answer");
    }

    /// A replica shows its table of one job.
    pub(crate) fn publish(&self, replica: &str, digest: &str, job: &Job) {
        let table = PublishedTable {
            table: Definition {
                digest: digest.to_owned(),
                revision: job.definition.revision,
            },
            jobs: [(job.name.clone(), job.definition.digest.clone())].into(),
        };
        let caller = Self::caller(replica);
        let asked = self.store.publish(&caller, &table);
        self.runtime.block_on(asked).expect("an answer");
    }

    pub(crate) fn snapshot(&self) -> Answered<Snapshot> {
        let asked = self.store.snapshot();
        self.runtime.block_on(asked).expect("an answer")
    }

    /// The ledger's lines of a job, newest first.
    pub(crate) fn lines_of(&self, job: &str) -> Vec<AttemptRecord> {
        let job = name(job);
        let asked = self.store.history(Some(&job), 1_000_000);
        let kept = self.runtime.block_on(asked).expect("an answer");
        self.lines.iter().cloned().chain(kept).collect()
    }

    pub(crate) fn answer(&self, job: &str, time: &str) -> Answer {
        let job = name(job);
        let read_before = self.read_before.clone();
        let snapshot = read_before.unwrap_or_else(|| self.snapshot());
        let lines = self.lines_of(job.as_str());
        let view = View {
            job: &job,
            table: self.table.as_deref(),
            snapshot: &snapshot.answer,
            now: snapshot.now,
            lines: &lines,
        };
        let written = Written::parse(time).expect("a time");
        why::answer(&view, &written.in_zone(&view.zone(), view.now))
    }

    /// What is told of a time of the day, or of any TIME, line by line.
    pub(crate) fn why(&self, job: &str, time: &str) -> Vec<String> {
        let is_time_of_day = !time.contains('-');
        let time = match is_time_of_day {
            true => at(time).to_string(),
            false => time.to_owned(),
        };
        let told = why::tell(&self.answer(job, &time));
        told.lines().map(str::to_owned).collect()
    }
}

fn first<T>(answered: Result<Answered<Vec<T>>, soloist::store::StoreError>) -> T {
    let mut answers = answered.expect("an answer").answer;
    answers.remove(0)
}

/// A failure with an exit code.
pub(crate) fn exit(code: i32) -> AttemptDetail {
    AttemptDetail {
        exit_code: Some(code),
        ..AttemptDetail::default()
    }
}

/// Tags, one pair.
pub(crate) fn tag(key: &str, value: &str) -> Tags {
    Tags::from([(key.to_owned(), value.to_owned())])
}
