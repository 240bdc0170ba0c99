//! What laws are written with: replicas of a fresh ledger, claims of theirs, and waits for what
//! the store says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Caller, Claim, ClaimAnswer, Enrolment, FencingToken, Grant, Held, Observation, Occurrence,
    Outcome, Release, ReleaseAnswer, Renewal, RenewalAnswer, Replica, Retention, RunId, Scope,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::{Answered, AttemptRecord, ReplicaInfo, Store, StoreError};
use uuid::Uuid;

use crate::fixtures::Fixture;

/// How long a law waits for what has to come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The lease of a law that doesn't want it to run out.
pub(crate) const LONG_TTL: Duration = Duration::from_secs(60);
/// The lease of a law that waits for its end.
pub(crate) const SHORT_TTL: Duration = Duration::from_secs(1);
/// One step of a schedule whose instants are a millisecond apart, so that laws need not wait.
pub(crate) const STEP: Duration = Duration::from_millis(1);

/// More lines of history than a law writes.
const MANY_LINES: usize = 10_000;

/// The namespace of the laws that need but one.
pub(crate) const NAMESPACE: &str = "shop";

/// A fresh ledger.
pub(crate) struct Bench<F> {
    pub(crate) fixture: F,
}

impl<F: Fixture> Bench<F> {
    pub(crate) async fn new() -> Self {
        Self {
            fixture: F::new().await,
        }
    }

    /// A replica with a way of its own into the ledger.
    pub(crate) async fn replica(&self, name: &str) -> Peer {
        self.replica_in(NAMESPACE, name).await
    }

    pub(crate) async fn replica_in(&self, namespace: &str, name: &str) -> Peer {
        Peer::new(self.fixture.store(namespace).await, name)
    }

    pub(crate) async fn replicas(&self, count: usize) -> Vec<Peer> {
        let mut peers = Vec::new();
        for number in 0..count {
            peers.push(self.replica(&format!("r{number}")).await);
        }
        peers
    }
}

/// A replica.
#[derive(Clone)]
pub(crate) struct Peer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) caller: Caller,
}

impl Peer {
    pub(crate) fn new(store: Arc<dyn Store>, name: &str) -> Self {
        let replica = Replica {
            id: Uuid::new_v4(),
            name: name.to_owned(),
        };
        let caller = Caller {
            replica,
            quarantine: Duration::ZERO,
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        Self { store, caller }
    }

    /// Makes a job known; its first occurrence may be due right after the answer.
    pub(crate) async fn first_due(&self, job: &JobName) -> Timestamp {
        let enrolments = [enrolment(job)];
        let answered = self.store.register(&self.caller, &enrolments).await;
        let registration = answered.expect("the store answers").answer.remove(0);
        // Where its first answer was lost, it is no longer new.
        registration.settled_until + STEP
    }

    /// A claim to the first occurrence of a job that is new.
    pub(crate) async fn first_claim(&self, name: &str) -> Claim {
        let job = job(name);
        let due = self.first_due(&job).await;
        claim(&job, due)
    }

    /// The answer to a claim as it stands.
    pub(crate) async fn claim(&self, claim: &Claim) -> ClaimAnswer {
        let claims = std::slice::from_ref(claim);
        let asked = persist(|| self.store.claim(&self.caller, claims)).await;
        let mut answers = asked.expect("the store answers").answer;
        assert_eq!(answers.len(), 1, "one answer a claim");
        answers.remove(0)
    }

    /// The answer to a claim once it is due.
    pub(crate) async fn claim_when_due(&self, claim: &Claim) -> ClaimAnswer {
        loop {
            match self.claim(claim).await {
                ClaimAnswer::Early { wait } => tokio::time::sleep(wait).await,
                answer => return answer,
            }
        }
    }

    /// Claims, once it is due, what has to be granted.
    pub(crate) async fn win(&self, claim: &Claim) -> Grant {
        match self.claim_when_due(claim).await {
            ClaimAnswer::Granted(grant) => grant,
            other => panic!("{} was not granted: {other:?}", claim.occurrence),
        }
    }

    pub(crate) async fn renew(&self, renewal: &Renewal) -> RenewalAnswer {
        let renewals = std::slice::from_ref(renewal);
        let renewed = persist(|| self.store.renew(&self.caller, renewals)).await;
        renewed.expect("the store answers").answer.remove(0)
    }

    pub(crate) async fn release(&self, release: &Release) -> ReleaseAnswer {
        let releases = std::slice::from_ref(release);
        let released = persist(|| self.store.release(&self.caller, releases)).await;
        released.expect("the store answers").answer[0]
    }

    /// Wins, and releases at once.
    pub(crate) async fn run(&self, claim: &Claim, outcome: Outcome) -> Grant {
        let grant = self.win(claim).await;
        let answer = self.release(&release(claim, &grant, outcome)).await;
        assert_eq!(answer, ReleaseAnswer::Released);
        grant
    }

    pub(crate) async fn observe(&self, scope: Scope) -> Answered<Observation> {
        let info = info();
        let seen = persist(|| self.store.observe(&self.caller, &info, scope)).await;
        seen.expect("the store answers")
    }

    /// The lease of a job, once its time is over.
    pub(crate) async fn when_overdue(&self, job: &JobName) -> Held {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let seen = self.observe(Scope::Overdue).await;
            let mut leases = seen.answer.leases.into_iter();
            if let Some(lease) = leases.find(|lease| lease.job == *job) {
                return lease.held;
            }
            let next = seen.answer.next_look.expect("its lease is there");
            tokio::time::sleep(next.saturating_since(seen.now) + STEP).await;
        }
        panic!("the lease of {job} never ran out");
    }

    pub(crate) async fn history(&self, job: Option<&JobName>) -> Vec<AttemptRecord> {
        let lines = persist(|| self.store.history(job, MANY_LINES)).await;
        lines.expect("the store answers")
    }

    /// The outcomes in a job's history, newest first.
    pub(crate) async fn outcomes(&self, job: &JobName) -> Vec<Outcome> {
        let lines = self.history(Some(job)).await;
        lines.iter().map(|line| line.outcome).collect()
    }
}

/// So soon nobody was waited for in vain.
const QUICK: Duration = Duration::from_millis(300);

/// Sends again what a busy server was too slow to answer, as replicas do: it is done once. A server that is
/// well and is said to be away at once is none of these; where many write the same, one may have to be
/// asked again.
pub(crate) async fn persist<T, F>(mut send: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let begun = Instant::now();
    loop {
        let sent = Instant::now();
        let told = send().await;
        let Err(error @ StoreError::Unreachable { .. }) = &told else {
            return told;
        };
        let crossed = error.to_string().contains("kept changing");
        let was_slow = crossed || sent.elapsed() > QUICK;
        if !was_slow || begun.elapsed() > PATIENCE {
            return told;
        }
        tokio::time::sleep(STEP).await;
    }
}

pub(crate) fn job(name: &str) -> JobName {
    JobName::new(name).expect("laws use good names")
}

/// A job of each second, as a table would tell of it.
pub(crate) fn enrolment(job: &JobName) -> Enrolment {
    Enrolment {
        job: job.clone(),
        schedule: "* * * * * *".to_owned(),
        enabled: true,
        definition: Default::default(),
        over: None,
        change: None,
        retention: RETENTION,
        again: false,
        seen: Default::default(),
    }
}

pub(crate) const RETENTION: Retention = Retention {
    limit: 1000,
    age: Duration::from_secs(30 * 24 * 3600),
};

pub(crate) fn run_id() -> RunId {
    RunId::new(Uuid::now_v7())
}

/// A claim by the schedule, with everything else as it is by default.
pub(crate) fn claim(job: &JobName, scheduled_at: Timestamp) -> Claim {
    let occurrence = Occurrence {
        job: job.clone(),
        scheduled_at,
    };
    let start_by = scheduled_at + Duration::from_secs(3600);
    Claim {
        claim_by: start_by,
        start_by,
        ttl: LONG_TTL,
        ..Claim::new(occurrence, run_id())
    }
}

/// The same as another replica would ask it, or the same one with a new mind.
pub(crate) fn anew(claim: &Claim) -> Claim {
    Claim {
        run_id: run_id(),
        ..claim.clone()
    }
}

/// The same for an occurrence `steps` later.
pub(crate) fn later(claim: &Claim, steps: u32) -> Claim {
    let mut later = anew(claim);
    later.occurrence.scheduled_at = claim.occurrence.scheduled_at + STEP * steps;
    later
}

/// The renewal of what a claim was granted.
pub(crate) fn renewal(claim: &Claim, grant: &Grant) -> Renewal {
    Renewal::of(claim, grant)
}

/// The release of what a claim was granted.
pub(crate) fn release(claim: &Claim, grant: &Grant, outcome: Outcome) -> Release {
    Release::of(claim, grant, outcome)
}

pub(crate) fn info() -> ReplicaInfo {
    ReplicaInfo {
        version: "1.2.3".to_owned(),
        host: "h".to_owned(),
        pid: 7,
        skew_ms: -3,
        running: 1,
        jobs: 2,
        ..ReplicaInfo::default()
    }
}
