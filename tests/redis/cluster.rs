//! A cluster: whichever node has the keys of a namespace, and wherever they move.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{ClaimAnswer, Outcome, ReleaseAnswer, RenewalAnswer};
use soloist::store::Store;
use soloist::store::redis::RedisStore;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::redis_many::Cluster;

use crate::world::{
    ask, caller, claim, impatient, just_due, now, observe, persist, release, renewal, win,
};

async fn store(url: &str, namespace: &str) -> RedisStore {
    let store = RedisStore::open(url, namespace).expect("a URL");
    store.ready().await.expect("it answers");
    observe(&store, &impatient()).await;
    store
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
    let store = store(&cluster.full_url(), &namespace).await;
    let (holder, rival) = (caller("holder"), caller("rival"));
    let claimed = claim("job", just_due(&store).await);
    let grant = win(&store, &holder, &claimed).await;
    let first = cluster.holder(&namespace);
    cluster.nodes[first].command(&["WAIT", "1", "5000"]);

    cluster.nodes[first].kill();
    let killed = Instant::now();
    let mine = renewal(&claimed, &grant);
    let renewed = persist(|| store.renew(&holder, std::slice::from_ref(&mine))).await;
    println!(
        "a renewal went through {:?} after the death of the node",
        killed.elapsed()
    );
    let answer = &renewed.answer[0];
    assert!(
        matches!(answer, RenewalAnswer::Renewed { .. }),
        "{answer:?}"
    );
    assert_ne!(cluster.wait_for_failover(&namespace, first), first);
    let other = claim("other", now(&store).await);
    let answer = ask(&store, &rival, &other).await;
    assert!(matches!(answer, ClaimAnswer::Grace { .. }), "{answer:?}");
    let released = release(&claimed, &grant, Outcome::Succeeded);
    let released = store
        .release(&holder, &[released])
        .await
        .expect("an answer");
    assert_eq!(released.answer[0], ReleaseAnswer::Released);
}

/// Moves a slot with all its keys, as `redis-cli --cluster reshard` does, and waits in between.
struct Move<'c> {
    from: &'c RedisServer,
    to: &'c RedisServer,
    all: &'c [RedisServer],
    slot: String,
}

impl Move<'_> {
    fn id(server: &RedisServer) -> String {
        server.command(&["CLUSTER", "MYID"])
    }

    fn begin(&self) {
        let (from, to) = (Self::id(self.from), Self::id(self.to));
        let answer = self
            .to
            .command(&["CLUSTER", "SETSLOT", &self.slot, "IMPORTING", &from]);
        assert_eq!(answer, "OK");
        let answer = self
            .from
            .command(&["CLUSTER", "SETSLOT", &self.slot, "MIGRATING", &to]);
        assert_eq!(answer, "OK");
    }

    fn keys(&self) {
        let keys = self
            .from
            .command(&["CLUSTER", "GETKEYSINSLOT", &self.slot, "100"]);
        let port = self.to.port().to_string();
        for key in keys.lines() {
            let answer = self
                .from
                .command(&["MIGRATE", "127.0.0.1", &port, key, "0", "5000"]);
            assert_eq!(answer, "OK", "{key}");
        }
    }

    fn end(&self) {
        let to = Self::id(self.to);
        for server in [self.to, self.from].into_iter().chain(self.all) {
            // Replicas don't take it.
            server.command(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &to]);
        }
    }
}

#[tokio::test]
async fn a_slot_that_moves_is_followed_and_its_leases_stay() {
    let cluster = Cluster::start();
    let namespace = fresh_namespace();
    let store = store(&cluster.url(), &namespace).await;
    let holder = caller("holder");
    let claimed = claim("job", just_due(&store).await);
    let grant = win(&store, &holder, &claimed).await;
    let mine = renewal(&claimed, &grant);
    let from = cluster.holder(&namespace);
    let is_master = |server: &RedisServer| server.command(&["ROLE"]).starts_with("master");
    let mut nodes = cluster.nodes.iter().enumerate();
    let (_, to) = nodes
        .find(|(number, node)| *number != from && is_master(node))
        .expect("three masters");
    let moving = Move {
        from: &cluster.nodes[from],
        to,
        all: &cluster.nodes,
        slot: cluster.slot(&namespace),
    };
    let renews = async |when: &str| {
        let began = Instant::now();
        let renewed = persist(|| store.renew(&holder, std::slice::from_ref(&mine))).await;
        let answer = &renewed.answer[0];
        assert!(
            matches!(answer, RenewalAnswer::Renewed { .. }),
            "{when}: {answer:?}"
        );
        println!("{when}: renewed after {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(5), "{when}");
    };
    moving.begin();
    renews("before the keys move").await;
    moving.keys();
    renews("between the keys and the slot").await;
    moving.end();
    renews("when the slot has moved").await;
    let released = release(&claimed, &grant, Outcome::Succeeded);
    let released = persist(|| store.release(&holder, std::slice::from_ref(&released))).await;
    assert_eq!(released.answer[0], ReleaseAnswer::Released);
    let key = format!("soloist:{{{namespace}}}:jobs");
    assert_eq!(to.command(&["HEXISTS", &key, "job"]), "1");
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
    let is_master = |node: &RedisServer| node.command(&["ROLE"]).starts_with("master");
    let mut others = cluster.nodes.iter().enumerate();
    let (_, other) = others
        .find(|(number, node)| *number != holder && is_master(node))
        .expect("three masters");
    let store = RedisStore::open(&other.url(), &namespace).expect("a URL");
    let error = store
        .ready()
        .await
        .expect_err("it has not our keys")
        .to_string();
    assert!(error.contains("redis+cluster://"), "{error}");
}
