//! A cluster: whichever node has the keys of a namespace, and wherever they move.

use std::time::Duration;

use soloist::store::Store;
use soloist::store::redis::RedisStore;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::redis_many::{Cluster, Move};

use crate::held::Held;
use crate::world::{caller, claim, impatient, just_due, observe, persist, win};

async fn store(url: &str, namespace: &str) -> RedisStore {
    let store = RedisStore::open(url, namespace).expect("a URL");
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    store
}

/// A lease that is held in a cluster.
async fn held() -> (Cluster, String, Held) {
    let cluster = Cluster::start();
    let namespace = fresh_namespace();
    let store = RedisStore::open(&cluster.url(), &namespace).expect("a URL");
    let held = Held::in_store(store).await;
    (cluster, namespace, held)
}

#[tokio::test]
async fn namespaces_lie_on_different_nodes_and_are_found_from_any() {
    let cluster = Cluster::start();
    let mut holders = std::collections::BTreeSet::new();
    for number in 0..6 {
        let namespace = format!("shop-{number}");
        let store = store(&cluster.url(), &namespace).await;
        let claimed = claim("job", just_due(&store).await);
        win(&store, &caller("one"), &claimed).await;
        let holder = cluster.holder(&namespace);
        let key = format!("soloist:{{{namespace}}}:jobs");
        let there = cluster.nodes[holder].command(&["HEXISTS", &key, "job"]);
        assert_eq!(there, "1");
        holders.insert(holder);
    }
    assert!(holders.len() > 1, "six namespaces on one node");
}

#[tokio::test]
async fn the_slot_is_followed_through_a_failover_and_nothing_is_granted_twice() {
    let mut cluster = Cluster::start();
    let namespace = fresh_namespace();
    let store = RedisStore::open(&cluster.full_url(), &namespace).expect("a URL");
    let held = Held::in_store(store).await;
    let first = cluster.holder(&namespace);
    cluster.nodes[first].command(&["WAIT", "1", "5000"]);
    cluster.nodes[first].kill();
    held.goes_on("after the death of the node").await;
    assert_ne!(cluster.wait_for_failover(&namespace, first), first);
    held.alone_is_granted().await;
    held.ends().await;
}

#[tokio::test]
async fn a_slot_that_moves_is_followed_and_its_leases_stay() {
    let (cluster, namespace, held) = held().await;
    let to = cluster.other_master(cluster.holder(&namespace));
    let moving = Move::of(&cluster, &namespace, to);
    let goes_on = async |when: &str| {
        let took = held.goes_on(when).await;
        assert!(took < Duration::from_secs(5), "{when}: {took:?}");
    };
    moving.begin();
    goes_on("before the keys move").await;
    moving.keys();
    goes_on("between the keys and the slot").await;
    moving.end();
    goes_on("when the slot has moved").await;
    held.ends().await;
    let key = format!("soloist:{{{namespace}}}:jobs");
    let there = cluster.nodes[to].command(&["HEXISTS", &key, "job"]);
    assert_eq!(there, "1");
}

/// The stream of a history is made by its first line: in a slot that moves, that is elsewhere.
#[tokio::test]
async fn a_line_that_is_written_while_its_slot_moves_is_not_lost() {
    let (cluster, namespace, held) = held().await;
    let to = cluster.other_master(cluster.holder(&namespace));
    let moving = Move::of(&cluster, &namespace, to);
    moving.begin();
    // It may have to wait for the end of the move.
    held.ends_early("released while the slot moves").await;
    moving.keys();
    held.ends_early("released when its keys have moved").await;
    moving.end();
    held.ends().await;
    let lines = persist(|| held.store.history(None, 10)).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
}

#[tokio::test]
async fn a_server_that_is_in_no_cluster_is_told_with_a_cure() {
    let server = RedisServer::start();
    let url = server.url().replace("redis://", "redis+cluster://");
    let store = RedisStore::open(&url, "shop").expect("a URL");
    let error = store.ready().await.expect_err("no cluster").to_string();
    assert!(error.contains("no node of a cluster"), "{error}");
}

#[tokio::test]
async fn a_node_that_is_named_alone_is_told_with_a_cure() {
    let cluster = Cluster::start();
    let namespace = fresh_namespace();
    let holder = cluster.holder(&namespace);
    let other = &cluster.nodes[cluster.other_master(holder)];
    let store = RedisStore::open(&other.url(), &namespace).expect("a URL");
    let error = store
        .ready()
        .await
        .expect_err("it has not our keys")
        .to_string();
    assert!(error.contains("redis+cluster://"), "{error}");
}
