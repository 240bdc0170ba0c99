//! Links that die, stall, break off and dawdle, while leases hang on them.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{Claim, Grant, RenewalAnswer};
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store, StoreError};
use test_support::machine::while_it_runs_async;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;
use tokio::time::timeout;

use crate::world::{caller, claim, impatient, just_due, observe, persist, release, renewal, win};

/// How long a call may take (`CALL_TIMEOUT`).
const CALL: Duration = Duration::from_secs(1);
/// On a busy machine.
const SLACK: Duration = Duration::from_secs(1);

/// A store behind a relay, with a lease on `held`.
struct Scene {
    server: RedisServer,
    relay: Relay,
    store: RedisStore,
    caller: Caller,
    held: Claim,
    grant: Grant,
}

impl Scene {
    async fn new() -> Self {
        Self::with_ttl(crate::world::TTL).await
    }

    async fn with_ttl(ttl: Duration) -> Self {
        let server = RedisServer::start();
        let relay = Relay::to(server.port());
        let store =
            RedisStore::open(&relay.url(), &fresh_namespace()).expect("a server that answers");
        store.ready().await.expect("a server that answers");
        observe(&store, &impatient()).await;
        let caller = caller("one");
        let held = Claim {
            ttl,
            ..claim("held", just_due(&store).await)
        };
        let grant = win(&store, &caller, &held).await;
        Self {
            server,
            relay,
            store,
            caller,
            held,
            grant,
        }
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let renewal = [renewal(&self.held, &self.grant)];
        let answer = self.store.renew(&self.caller, &renewal).await?.answer;
        let renewed = matches!(answer[..], [RenewalAnswer::Renewed { .. }]);
        assert!(renewed, "{answer:?}");
        Ok(())
    }
}

#[tokio::test]
async fn a_claim_that_hangs_holds_no_renewal_up() {
    let scene = Scene::new().await;
    let stuck = claim("stuck", just_due(&scene.store).await);
    scene.relay.stall_connection_at_request("stuck");
    let began = Instant::now();
    let hangs = async {
        let claims = [stuck.clone()];
        let result = scene.store.claim(&scene.caller, &claims).await;
        (result.map(|_| ()), began.elapsed())
    };
    let renewals = async {
        tokio::task::spawn_blocking({
            let relay = scene.relay.clone();
            move || relay.wait_until_cut()
        })
        .await
        .unwrap();
        for _ in 0..10 {
            scene.renew().await.unwrap();
        }
        began.elapsed()
    };
    let ((claimed, hung), renewed) = tokio::join!(hangs, renewals);
    assert!(
        matches!(claimed, Err(StoreError::Unreachable { .. })),
        "{claimed:?}"
    );
    assert!(renewed < hung, "{renewed:?} {hung:?}");
    assert!(hung < CALL + SLACK, "{hung:?}");
    // The next claim has a new connection.
    win(&scene.store, &scene.caller, &stuck).await;
}

#[tokio::test]
async fn a_dead_link_costs_one_time_out_and_no_more() {
    let scene = Scene::new().await;
    scene.relay.stall_connection_at_request("held");
    let began = Instant::now();
    let error = scene.renew().await.unwrap_err();
    assert!(
        error.to_string().contains("no answer within 1000 ms"),
        "{error}"
    );
    scene.renew().await.unwrap();
    assert!(began.elapsed() < CALL + SLACK, "{:?}", began.elapsed());
}

#[tokio::test]
async fn those_who_wait_for_a_dead_link_wait_no_longer_than_the_first_of_them() {
    let scene = Scene::new().await;
    scene.relay.stall_connection_at_request("held");
    let began = Instant::now();
    let late = async {
        tokio::time::sleep(CALL * 9 / 10).await;
        assert!(scene.renew().await.is_err());
        began.elapsed()
    };
    let (first, late) = tokio::join!(scene.renew(), late);
    assert!(first.is_err());
    assert!(late < CALL * 8 / 5, "{late:?}");
}

#[tokio::test]
async fn a_caller_with_little_patience_has_a_new_link_for_its_next_call() {
    let scene = Scene::new().await;
    let patience = CALL / 10;
    scene.relay.stall_connection_at_request("held");
    assert!(timeout(patience, scene.renew()).await.is_err());
    scene.renew().await.unwrap();
}

#[tokio::test]
async fn a_short_lease_outlives_a_link_that_dies_again_and_again() {
    let ttl = Duration::from_secs(2);
    let scene = Scene::with_ttl(ttl).await;
    let began = Instant::now();
    let mut last = Instant::now();
    let mut deaths = 0;
    while began.elapsed() < 3 * ttl {
        scene.relay.stall_connection_at_request("held");
        deaths += 1;
        // As a replica does that has such a lease: a time-out of a tenth, and then once more.
        assert!(timeout(ttl / 10, scene.renew()).await.is_err());
        persist(|| async {
            let renewed = timeout(ttl / 4, scene.renew()).await;
            renewed.unwrap_or_else(|_| {
                let (place, cause) = (String::new(), String::new());
                Err(StoreError::Unreachable { place, cause })
            })
        })
        .await;
        assert!(last.elapsed() < ttl, "{:?}", last.elapsed());
        last = Instant::now();
        tokio::time::sleep(ttl / 6).await;
    }
    assert!(deaths > 3, "{deaths}");
}

#[tokio::test]
async fn a_connection_that_hangs_while_it_is_made_is_overtaken_by_another() {
    let scene = Scene::new().await;
    scene.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    // The first thing that is said on a new connection.
    scene.relay.stall_connection_at_request("PING");
    // At once, or after a call that found out that its connection was closed.
    let renewed = persist(|| scene.renew());
    timeout(Duration::from_millis(1900), renewed).await.unwrap();
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_no_answer_and_its_request_is_asked_again() {
    let scene = Scene::new().await;
    let wanted = claim("wanted", just_due(&scene.store).await);
    scene.relay.break_reply_to("wanted");
    let claims = [wanted.clone()];
    let broken = scene.store.claim(&scene.caller, &claims).await;
    assert!(
        matches!(broken, Err(StoreError::Unreachable { .. })),
        "{broken:?}"
    );
    let grant = win(&scene.store, &scene.caller, &wanted).await;
    scene.relay.break_reply_to("held");
    assert!(scene.renew().await.is_err());
    scene.renew().await.unwrap();
    let over = [release(
        &wanted,
        &grant,
        soloist::scheduler::lease::Outcome::Succeeded,
    )];
    scene.store.release(&scene.caller, &over).await.unwrap();
}

#[tokio::test]
async fn a_slow_link_is_slow_and_not_dead() {
    while_it_runs_async(async || {
        let scene = Scene::new().await;
        scene.relay.delay(Duration::from_millis(100));
        for _ in 0..3 {
            let renewed = scene.renew().await;
            renewed.map_err(|error| error.to_string())?;
        }
        let other = claim("other", just_due(&scene.store).await);
        let asked = scene.store.claim(&scene.caller, &[other]).await;
        asked.map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_costs_no_call() {
    let scene = Scene::new().await;
    for _ in 0..3 {
        scene.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        // The end of the connection arrives before the answer to anything that is asked later.
        let another = RedisStore::open(&scene.relay.url(), &fresh_namespace()).unwrap();
        another.ready().await.unwrap();
        scene.renew().await.unwrap();
    }
}
