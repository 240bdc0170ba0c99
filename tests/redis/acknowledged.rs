//! Grants that count only when replicas of the server have them (`min_replicas_ack`).

use soloist::scheduler::lease::{ClaimAnswer, Outcome, ReleaseAnswer};
use soloist::store::Store;
use soloist::store::redis::RedisStore;
use soloist::store_url::StoreOptions;
use test_support::acl::{rule, set_user};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::access::refused;
use crate::world::{ask, caller, claim, fails_as, impatient, just_due, observe, persist, release};

/// A server with a replica that follows it.
fn with_replica() -> (RedisServer, RedisServer) {
    let server = RedisServer::start();
    let address = format!("127.0.0.1 {}", server.port());
    let replica = RedisServer::options()
        .argument("--replicaof", &address)
        .argument("--repl-diskless-sync-delay", "0")
        .start();
    assert_eq!(server.command(&["SET", "x", "y"]), "OK");
    while server.command(&["WAIT", "1", "100"]) != "1" {}
    (server, replica)
}

async fn store(server: &RedisServer, min_replicas_ack: u32) -> RedisStore {
    let options = StoreOptions {
        min_replicas_ack,
        ..StoreOptions::default()
    };
    let store = RedisStore::open_with(&server.url(), &fresh_namespace(), &options);
    let store = store.expect("a URL");
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    store
}

#[tokio::test]
async fn a_grant_counts_when_a_replica_has_it_and_not_before() {
    let (server, replica) = with_replica();
    let store = store(&server, 1).await;
    let one = caller("one");
    let first = claim("first", just_due(&store).await);
    let granted = persist(|| store.claim(&one, std::slice::from_ref(&first))).await;
    let ClaimAnswer::Granted(grant) = &granted.answer[0] else {
        panic!("{granted:?}");
    };

    replica.freeze();
    let second = claim("second", first.occurrence.scheduled_at);
    let claims = std::slice::from_ref(&second);
    // What was written is there; asked again, it still does not count.
    for _ in 0..2 {
        let words = ["0 of the 1 replicas of `min_replicas_ack`"];
        fails_as(&words, || store.claim(&one, claims)).await;
    }
    let ended = release(&first, grant, Outcome::Succeeded);
    let ended = std::slice::from_ref(&ended);
    store
        .release(&one, ended)
        .await
        .expect_err("no replica has it");

    replica.thaw();
    let granted = persist(|| store.claim(&one, claims)).await;
    let granted = &granted.answer[0];
    assert!(
        matches!(granted, ClaimAnswer::Granted(grant) if grant.attempt == 1),
        "{granted:?}"
    );
    let released = persist(|| store.release(&one, ended)).await;
    assert_eq!(released.answer[0], ReleaseAnswer::Released);
}

#[tokio::test]
async fn whoever_does_not_ask_for_it_waits_for_no_replica() {
    let (server, replica) = with_replica();
    let store = store(&server, 0).await;
    replica.freeze();
    let claimed = claim("job", just_due(&store).await);
    let answer = ask(&store, &caller("one"), &claimed).await;
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    replica.thaw();
}

#[tokio::test]
async fn without_the_permission_to_wait_for_replicas_a_start_is_refused() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let url = set_user(&server, "me", &rule(&namespace));
    let options = StoreOptions {
        min_replicas_ack: 1,
        ..StoreOptions::default()
    };
    let store = RedisStore::open_with(&url, &namespace, &options).expect("a URL");
    let said = refused(|| store.ready()).await;
    assert!(said.contains("ACL SETUSER me +wait"), "{said}");
    server.command(&["ACL", "SETUSER", "me", "+wait"]);
    persist(|| store.ready()).await;
}
