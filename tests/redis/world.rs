//! What the tests here share: stores, callers and requests with everything filled in.

use std::time::Duration;

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    Captured, Claim, ClaimAnswer, FencingToken, Grant, Occurrence, Outcome, Output, Release,
    Renewal, Replica, Retention, RunId, Scope,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, ReplicaInfo, Store, StoreError};
use test_support::redis::{RedisServer, fresh_namespace};
use uuid::Uuid;

/// How long leases here last: longer than any test.
pub(crate) const TTL: Duration = Duration::from_secs(60);

/// How long grants are held back after a loss, where a test doesn't say otherwise.
pub(crate) const QUARANTINE: Duration = Duration::from_secs(90);

pub(crate) const RETENTION: Retention = Retention {
    limit: 1000,
    age: Duration::from_secs(3600),
};

/// A store that holds nothing and is past its first grace window.
pub(crate) async fn fresh_store(server: &RedisServer) -> RedisStore {
    store_in(server, &fresh_namespace()).await
}

/// A store in a namespace, past its first grace window.
pub(crate) async fn store_in(server: &RedisServer, namespace: &str) -> RedisStore {
    let store = RedisStore::open(&server.url(), namespace).expect("a good URL");
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    store
}

/// Ends the first grace window of a ledger before it begins. It knows of a grant, so that the
/// ledger is none that was just lost to those who know of grants.
pub(crate) fn impatient() -> Caller {
    Caller {
        quarantine: Duration::ZERO,
        token_floor: FencingToken::new(1),
        ..caller("first")
    }
}

pub(crate) async fn observe(
    store: &RedisStore,
    caller: &Caller,
) -> soloist::store::Answered<soloist::store::Observation> {
    let info = info();
    persist(|| store.observe(caller, &info, Scope::Overdue)).await
}

pub(crate) fn info() -> ReplicaInfo {
    ReplicaInfo {
        version: "1.2.3".to_owned(),
        host: "a \"host\"".to_owned(),
        pid: 7,
        skew_ms: -3,
        running: 2,
        jobs: 5,
        ..ReplicaInfo::default()
    }
}

pub(crate) fn caller(name: &str) -> Caller {
    Caller {
        replica: Replica {
            id: Uuid::new_v4(),
            name: name.to_owned(),
        },
        quarantine: QUARANTINE,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}

pub(crate) fn job(name: &str) -> JobName {
    JobName::new(name).expect("a good name")
}

/// The store's time.
pub(crate) async fn now(store: &RedisStore) -> Timestamp {
    persist(|| store.snapshot()).await.now
}

/// An instant that has just passed by the store's clock, later than all that were settled.
pub(crate) async fn just_due(store: &RedisStore) -> Timestamp {
    let due = now(store).await + Duration::from_millis(1);
    while now(store).await <= due {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    due
}

pub(crate) fn claim(name: &str, scheduled_at: Timestamp) -> Claim {
    let occurrence = Occurrence {
        job: job(name),
        scheduled_at,
    };
    let start_by = scheduled_at + Duration::from_secs(3600);
    Claim {
        claim_by: start_by,
        start_by,
        ttl: TTL,
        retention: RETENTION,
        ..Claim::new(occurrence, RunId::new(Uuid::new_v4()))
    }
}

/// Claims one occurrence. A grant whose answer came too late is told when the run asks again.
pub(crate) async fn ask(store: &RedisStore, caller: &Caller, claim: &Claim) -> ClaimAnswer {
    let claims = std::slice::from_ref(claim);
    persist(|| store.claim(caller, claims))
        .await
        .answer
        .remove(0)
}

/// Claims one occurrence and gets it.
pub(crate) async fn win(store: &RedisStore, caller: &Caller, claim: &Claim) -> Grant {
    match ask(store, caller, claim).await {
        ClaimAnswer::Granted(grant) => grant,
        other => panic!("{claim:?}: {other:?}"),
    }
}

pub(crate) fn renewal(claim: &Claim, grant: &Grant) -> Renewal {
    Renewal::of(claim, grant)
}

pub(crate) fn release(claim: &Claim, grant: &Grant, outcome: Outcome) -> Release {
    Release::of(claim, grant, outcome)
}

pub(crate) fn printed(text: &[u8]) -> Output {
    Output {
        stdout: Captured {
            head: text.to_vec(),
            tail: Vec::new(),
            total: text.len() as u64,
        },
        stderr: Captured::default(),
    }
}

/// How long the tests here wait for a server that comes back. A Sentinel that a busy machine kept from
/// its work for two seconds does nothing for half a minute (its "tilt mode").
const RETURN_TIMEOUT: Duration = Duration::from_secs(120);

/// Sends again until the store can be reached. Refusals are no reason to send again.
pub(crate) async fn persist<T, F: Future<Output = Result<T, StoreError>>>(
    send: impl FnMut() -> F,
) -> T {
    let told = answered(send).await;
    told.unwrap_or_else(|error| panic!("{error}"))
}

/// What is told to who sends again until the store can be reached.
pub(crate) async fn answered<T, F: Future<Output = Result<T, StoreError>>>(
    mut send: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let patience = tokio::time::Instant::now() + RETURN_TIMEOUT;
    loop {
        match send().await {
            Err(StoreError::Unreachable { .. }) if tokio::time::Instant::now() < patience => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            told => return told,
        }
    }
}

/// Sends again until it fails in all these words: on a busy machine, it may fail for want of an answer
/// first. Nothing else is right.
pub(crate) async fn fails_as<T: std::fmt::Debug, F: Future<Output = Result<T, StoreError>>>(
    words: &[&str],
    mut send: impl FnMut() -> F,
) {
    until(&words.concat(), async || {
        let error = send().await.expect_err("it has to fail").to_string();
        words.iter().all(|word| error.contains(word)).then_some(())
    })
    .await;
}

/// Looks again and again, for as long as a server may take to come back.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(RETURN_TIMEOUT, looking).await;
    found.unwrap_or_else(|_| panic!("{what} within {RETURN_TIMEOUT:?}"))
}

/// What a call is refused with, once the server can be reached.
pub(crate) async fn refusal_of<T, F: Future<Output = Result<T, StoreError>>>(
    mut send: impl FnMut() -> F,
) -> StoreError {
    until("a refusal", async || match send().await {
        Err(error @ StoreError::Refused { .. }) => Some(error),
        _ => None,
    })
    .await
}
