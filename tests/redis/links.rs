//! Links that die, stall, break off and dawdle, while leases hang on them.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{Claim, Grant, RenewalAnswer};
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store, StoreError};
use test_support::machine::while_it_runs_async;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;
use tokio::time::timeout;

use crate::world::{
    caller, claim, impatient, just_due, observe, persist, release, renewal, until, win,
};

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
        let url = relay.url();
        Self::of(server, relay, &url, ttl).await
    }

    /// One whose store goes by no relay.
    async fn direct() -> Self {
        let server = RedisServer::start();
        let (relay, url) = (Relay::to(server.port()), server.url());
        Self::of(server, relay, &url, crate::world::TTL).await
    }

    async fn of(server: RedisServer, relay: Relay, url: &str, ttl: Duration) -> Self {
        let store = RedisStore::open(url, &fresh_namespace()).expect("a URL");
        persist(|| store.ready()).await;
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

    /// The same, where the first call has to do.
    async fn renews(&self) -> Result<(), String> {
        self.renew().await.map_err(|error| error.to_string())
    }

    async fn until_cut(&self) {
        let cut = async || self.relay.is_cut().then_some(());
        until("the link is cut", cut).await;
    }
}

/// That something took less than that, as it does while the machine runs.
fn within(limit: Duration, what: &str, took: Duration) -> Result<(), String> {
    match took < limit {
        true => Ok(()),
        false => Err(format!("{what} took {took:?}, and not less than {limit:?}")),
    }
}

#[tokio::test]
async fn a_claim_that_hangs_holds_no_renewal_up() {
    while_it_runs_async(async || {
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
            scene.until_cut().await;
            for _ in 0..10 {
                scene.renews().await?;
            }
            Ok::<_, String>(began.elapsed())
        };
        let ((claimed, hung), renewed) = tokio::join!(hangs, renewals);
        assert!(
            matches!(claimed, Err(StoreError::Unreachable { .. })),
            "{claimed:?}"
        );
        // The next claim has a new connection.
        win(&scene.store, &scene.caller, &stuck).await;
        within(hung, "renewals beside it", renewed?)?;
        within(CALL + SLACK, "a claim", hung)
    })
    .await;
}

#[tokio::test]
async fn a_dead_link_costs_one_time_out_and_no_more() {
    while_it_runs_async(async || {
        let scene = Scene::new().await;
        scene.relay.stall_connection_at_request("held");
        let began = Instant::now();
        let error = scene.renew().await.unwrap_err();
        assert!(
            error.to_string().contains("no answer within 1000 ms"),
            "{error}"
        );
        scene.renews().await?;
        within(CALL + SLACK, "two calls", began.elapsed())
    })
    .await;
}

#[tokio::test]
async fn those_who_wait_for_a_dead_link_wait_no_longer_than_the_first_of_them() {
    while_it_runs_async(async || {
        let scene = Scene::new().await;
        scene.relay.stall_connection_at_request("held");
        let first = async { (scene.renew().await, Instant::now()) };
        let late = async {
            scene.until_cut().await;
            tokio::time::sleep(CALL / 2).await;
            (scene.renew().await, Instant::now())
        };
        let ((first, first_at), (late, late_at)) = tokio::join!(first, late);
        assert!(first.is_err());
        if late.is_ok() {
            return Err("it began when the first one's time was over".to_owned());
        }
        // For itself alone, it would wait for so much longer as it began later.
        let longer = late_at.saturating_duration_since(first_at);
        within(CALL / 4, "the wait after the first one's", longer)
    })
    .await;
}

#[tokio::test]
async fn a_caller_with_little_patience_has_a_new_link_for_its_next_call() {
    while_it_runs_async(async || {
        let scene = Scene::new().await;
        let patience = CALL / 10;
        scene.relay.stall_connection_at_request("held");
        assert!(timeout(patience, scene.renew()).await.is_err());
        scene.renews().await
    })
    .await;
}

#[tokio::test]
async fn a_short_lease_outlives_a_link_that_dies_again_and_again() {
    while_it_runs_async(async || {
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
            within(ttl, "from one renewal to the next", last.elapsed())?;
            last = Instant::now();
            tokio::time::sleep(ttl / 6).await;
        }
        match deaths > 3 {
            true => Ok(()),
            false => Err(format!("{deaths} deaths")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_hangs_while_it_is_made_is_overtaken_by_another() {
    while_it_runs_async(async || {
        let scene = Scene::new().await;
        scene.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        // The first thing that is said on a new connection.
        scene.relay.stall_connection_at_request("PING");
        let began = Instant::now();
        // At once, or after a call that found out that its connection was closed.
        persist(|| scene.renew()).await;
        within(Duration::from_millis(1900), "a renewal", began.elapsed())
    })
    .await;
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
    persist(|| scene.renew()).await;
    let over = [release(
        &wanted,
        &grant,
        soloist::scheduler::lease::Outcome::Succeeded,
    )];
    persist(|| scene.store.release(&scene.caller, &over)).await;
}

#[tokio::test]
async fn a_slow_link_is_slow_and_not_dead() {
    while_it_runs_async(async || {
        let scene = Scene::new().await;
        scene.relay.delay(Duration::from_millis(100));
        for _ in 0..3 {
            scene.renews().await?;
        }
        let other = claim("other", just_due(&scene.store).await);
        let asked = scene.store.claim(&scene.caller, &[other]).await;
        asked.map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_was_closed_while_idle_costs_no_call() {
    while_it_runs_async(async || {
        let scene = Scene::direct().await;
        for _ in 0..3 {
            scene.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
            // The end of the connection arrives before the answer to anything that is asked later.
            let another = RedisStore::open(&scene.server.url(), &fresh_namespace()).unwrap();
            persist(|| another.ready()).await;
            scene.renews().await?;
        }
        Ok(())
    })
    .await;
}
