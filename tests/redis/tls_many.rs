//! TLS to all of several servers: each has a certificate of its own, and those that are found on
//! the way are verified like the first.

use soloist::scheduler::lease::{ClaimAnswer, Scope};
use soloist::store::redis::RedisStore;
use soloist::store::redis::quorum::QuorumStore;
use soloist::store::{Store, StoreError};
use soloist::store_url::TlsFiles;
use test_support::redis::{RedisOptions, RedisServer, fresh_namespace};
use test_support::redis_many::{Cluster, Move, Sentinels};

use crate::held::Held;
use crate::tls::Certificates;
use crate::world::{answered, caller, claim, impatient, info, persist};

/// A CA, another one that signed nothing, and what a server of the first one is started with.
fn certificates() -> (Certificates, RedisOptions) {
    let certificates = Certificates::new();
    let ca = certificates.authority("ca");
    certificates.authority("other");
    certificates.sign(&ca, "server", |_| {});
    let options = certificates.options("server", "ca", "no");
    (certificates, options)
}

fn secure(url: &str) -> String {
    url.replacen("redis+", "rediss+", 1)
}

fn open(url: &str, namespace: &str, files: &TlsFiles) -> RedisStore {
    RedisStore::open_with(url, namespace, &files.clone().into()).expect("a URL")
}

/// Nobody speaks with this server but by TLS, the test itself apart.
fn is_spoken_to_by_tls_alone(server: &RedisServer) {
    let clients = server.command(&["CLIENT", "LIST"]);
    let (plain, secure) = (server.port(), server.announced_port());
    let at = |port: u16| clients.matches(&format!("laddr=127.0.0.1:{port} ")).count();
    assert!(at(secure) > 0 && at(plain) == 1, "{clients}");
}

async fn is_refused(store: &impl Store) {
    let error = answered(|| store.ready())
        .await
        .expect_err("nobody whom we trust signed it");
    assert!(matches!(error, StoreError::Refused { .. }), "{error}");
    for word in ["not signed by a CA that is trusted", "`tls_ca`"] {
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[tokio::test]
async fn sentinels_and_their_masters_are_verified_also_after_a_failover() {
    let (certificates, options) = certificates();
    let mut servers = Sentinels::start_as(&options.argument("--tls-replication", "yes"));
    let (url, namespace) = (secure(&servers.url()), fresh_namespace());
    let held = Held::in_store(open(&url, &namespace, &certificates.trusting("ca"))).await;
    is_spoken_to_by_tls_alone(&servers.servers[0]);
    let stranger = open(&url, &namespace, &certificates.trusting("other"));
    is_refused(&stranger).await;

    servers.servers[0].command(&["WAIT", "2", "5000"]);
    servers.servers[0].kill();
    let master = servers.wait_for_failover(0);
    held.goes_on("after a failover").await;
    is_spoken_to_by_tls_alone(&servers.servers[master]);
}

#[tokio::test]
async fn nodes_of_a_cluster_are_verified_also_where_the_slot_moves_to() {
    let (certificates, options) = certificates();
    let options = options.argument("--tls-cluster", "yes");
    let mut cluster = Cluster::start_as(&options.argument("--tls-replication", "yes"));
    let (url, namespace) = (secure(&cluster.full_url()), fresh_namespace());
    let held = Held::in_store(open(&url, &namespace, &certificates.trusting("ca"))).await;
    is_spoken_to_by_tls_alone(&cluster.nodes[cluster.holder(&namespace)]);
    let stranger = open(&url, &namespace, &certificates.trusting("other"));
    is_refused(&stranger).await;

    let to = cluster.other_master(cluster.holder(&namespace));
    let moving = Move::of(&cluster, &namespace, to);
    moving.begin();
    moving.keys();
    held.goes_on("sent by ASK").await;
    moving.end();
    held.goes_on("sent by MOVED").await;
    assert_eq!(cluster.holder(&namespace), to);
    is_spoken_to_by_tls_alone(&cluster.nodes[to]);

    cluster.nodes[to].command(&["WAIT", "1", "5000"]);
    cluster.nodes[to].kill();
    let next = cluster.wait_for_failover(&namespace, to);
    held.goes_on("after a failover").await;
    is_spoken_to_by_tls_alone(&cluster.nodes[next]);
}

#[tokio::test]
async fn each_server_of_a_quorum_is_verified() {
    let (certificates, options) = certificates();
    let mut servers: Vec<RedisServer> = (0..3).map(|_| options.start()).collect();
    let ports = servers.iter().map(RedisServer::announced_port);
    let hosts: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
    let (url, namespace) = (
        format!("rediss+quorum://{}", hosts.join(",")),
        fresh_namespace(),
    );
    let open = |ca: &str| {
        let options = certificates.trusting(ca).into();
        QuorumStore::open(&url, &namespace, &options).expect("a URL")
    };
    let store = open("ca");
    persist(|| store.ready()).await;
    let (first, info) = (impatient(), info());
    persist(|| store.observe(&first, &info, Scope::Overdue)).await;
    servers.iter().for_each(is_spoken_to_by_tls_alone);
    is_refused(&open("other")).await;

    servers[0].kill();
    let due = persist(|| store.snapshot()).await.now;
    let (caller, claims) = (caller("one"), [claim("job", due)]);
    let asked = persist(|| store.claim(&caller, &claims)).await;
    let granted = matches!(asked.answer[..], [ClaimAnswer::Granted(_)]);
    assert!(granted, "{:?}", asked.answer);
}
