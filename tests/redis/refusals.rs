//! Servers that answer with an error, each really made to: what is told, and that all is well
//! when the server is.

use std::fs;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::Arc;

use soloist::scheduler::lease::{Claim, Grant, RenewalAnswer};
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store, StoreError};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::world::{
    caller, claim, fresh_store, impatient, just_due, observe, persist, refusal_of, renewal, win,
};

/// What a refusal is to the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// As if it were away.
    Away,
    Refused,
}

fn assert_told<T: std::fmt::Debug>(result: Result<T, StoreError>, kind: Kind, words: &[&str]) {
    let error = result.expect_err("a refusal");
    let told = match error {
        StoreError::Unreachable { .. } => Kind::Away,
        StoreError::Refused { .. } => Kind::Refused,
        _ => panic!("{error}"),
    };
    assert_eq!(told, kind, "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error}: {word}");
    }
}

/// A server with a store that holds a lease.
struct Scene {
    server: Arc<RedisServer>,
    store: RedisStore,
    caller: Caller,
    held: Claim,
    grant: Grant,
    wanted: [Claim; 1],
}

impl Scene {
    async fn on(server: RedisServer) -> Self {
        let store = fresh_store(&server).await;
        let caller = caller("one");
        let due = just_due(&store).await;
        let (held, wanted) = (claim("held", due), [claim("wanted", due)]);
        let grant = win(&store, &caller, &held).await;
        let server = Arc::new(server);
        Self {
            server,
            store,
            caller,
            held,
            grant,
            wanted,
        }
    }

    fn set(&self, name: &str, value: &str) {
        assert_eq!(self.server.command(&["CONFIG", "SET", name, value]), "OK");
    }

    async fn claim(&self) -> Result<(), StoreError> {
        self.store
            .claim(&self.caller, &self.wanted)
            .await
            .map(|_| ())
    }

    async fn renew(&self) -> Result<(), StoreError> {
        let renewal = [renewal(&self.held, &self.grant)];
        let answer = self.store.renew(&self.caller, &renewal).await?.answer;
        let renewed = matches!(answer[..], [RenewalAnswer::Renewed { .. }]);
        assert!(renewed, "{answer:?}");
        Ok(())
    }

    async fn is_refused(&self, kind: Kind, words: &[&str]) {
        assert_told(self.claim().await, kind, words);
        assert_told(self.renew().await, kind, words);
    }

    async fn is_well_again(&self) {
        persist(|| self.renew()).await;
        win(&self.store, &self.caller, &self.wanted[0]).await;
        persist(|| self.store.ready()).await;
    }
}

async fn until(condition: impl Fn() -> bool) {
    crate::world::until("the server is so", async || condition().then_some(())).await;
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_waited_for() {
    let server = RedisServer::options().argument("--enable-debug-command", "yes");
    let scene = Scene::on(server.start()).await;
    scene.server.command(&["DEBUG", "POPULATE", "2000"]);
    // It loads for some seconds.
    scene.set("key-load-delay", "2000");
    scene.set("loading-process-events-interval-bytes", "1024");
    let server = Arc::clone(&scene.server);
    let reload = std::thread::spawn(move || server.command(&["DEBUG", "RELOAD"]));
    until(|| scene.server.command(&["PING"]).starts_with("LOADING")).await;
    scene
        .is_refused(Kind::Away, &["still loading", "LOADING"])
        .await;
    assert_told(scene.store.ready().await, Kind::Away, &["still loading"]);
    assert_eq!(reload.join().unwrap(), "OK");
    scene.is_well_again().await;
}

#[tokio::test]
async fn a_server_that_can_not_save_is_told_to_be_mended() {
    let scene = Scene::on(RedisServer::start()).await;
    // A file can't take the place of a directory.
    let obstacle = scene.server.dir().join("dump.rdb");
    fs::create_dir(&obstacle).unwrap();
    scene.set("save", "3600 1000");
    let info = |word: &str| {
        scene
            .server
            .command(&["INFO", "persistence"])
            .contains(word)
    };
    scene.server.command(&["BGSAVE"]);
    until(|| info("rdb_last_bgsave_status:err")).await;
    scene
        .is_refused(Kind::Refused, &["can't save", "MISCONF", "disk"])
        .await;
    assert_told(scene.store.ready().await, Kind::Refused, &["MISCONF"]);
    fs::remove_dir(&obstacle).unwrap();
    scene.server.command(&["BGSAVE"]);
    until(|| info("rdb_last_bgsave_status:ok")).await;
    scene.is_well_again().await;
}

#[tokio::test]
async fn a_server_without_its_replicas_is_waited_for() {
    let scene = Scene::on(RedisServer::start()).await;
    scene.set("min-replicas-to-write", "1");
    let words = ["too few replicas", "NOREPLICAS", "min-replicas-to-write"];
    scene.is_refused(Kind::Away, &words).await;
    scene.set("min-replicas-to-write", "0");
    scene.is_well_again().await;
}

#[tokio::test]
async fn a_server_that_forgets_its_scripts_gets_them_again_unnoticed() {
    let scene = Scene::on(RedisServer::start()).await;
    scene.server.command(&["SCRIPT", "FLUSH"]);
    scene.renew().await.unwrap();
    scene.server.command(&["SCRIPT", "FLUSH"]);
    scene.claim().await.unwrap();
}

#[tokio::test]
async fn a_server_whose_cluster_is_down_is_waited_for() {
    let server = RedisServer::options().cluster();
    let server = server.start();
    let store = RedisStore::open(&server.url(), &fresh_namespace()).unwrap();
    assert_told(
        store.ready().await,
        Kind::Away,
        &["cluster is down", "CLUSTER INFO"],
    );
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    win(
        &store,
        &caller("one"),
        &claim("job", just_due(&store).await),
    )
    .await;
}

#[tokio::test]
async fn a_server_that_is_full_of_clients_says_so() {
    let server = RedisServer::start();
    let _takes_the_only_place = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    until(|| {
        server
            .command(&["INFO", "clients"])
            .contains("connected_clients:2")
    })
    .await;
    server.command(&["CONFIG", "SET", "maxclients", "1"]);
    let store = RedisStore::open(&server.url(), &fresh_namespace()).unwrap();
    let first = store.ready().await;
    assert_told(
        first,
        Kind::Away,
        &["no room for another client", "maxclients"],
    );
}

#[tokio::test]
async fn a_database_that_there_is_not_is_refused_at_once() {
    let server = RedisServer::shared();
    let url = format!("{}/99", server.url());
    let store = RedisStore::open(&url, &fresh_namespace()).unwrap();
    for _ in 0..2 {
        let words = ["no database 99", "`databases`"];
        assert_told(store.ready().await, Kind::Refused, &words);
    }
}

#[tokio::test]
async fn a_password_that_nobody_asked_for_is_refused() {
    let server = RedisServer::shared();
    let url = format!("redis://:secret@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url, &fresh_namespace()).unwrap();
    let told = store.ready().await;
    assert!(!format!("{told:?}").contains("secret"));
    assert_told(told, Kind::Refused, &["leave the password out"]);
}

#[tokio::test]
async fn a_password_that_is_set_later_is_asked_for() {
    let scene = Scene::on(RedisServer::start()).await;
    scene.server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    scene.set("requirepass", "secret");
    let told = refusal_of(|| scene.renew()).await;
    assert_told(
        Err::<(), _>(told),
        Kind::Refused,
        &["asks for a password", "NOAUTH"],
    );
}

/// An address of this host under which it is no neighbour of itself, if it has one. Nothing is
/// sent; the address is one of those for documents (RFC 5737).
fn address_from_outside() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then_some(address)
}

#[tokio::test]
async fn a_server_in_protected_mode_is_refused_until_it_has_a_password() {
    let Some(address) = address_from_outside() else {
        println!("this host has no address but its own: nothing was tried");
        return;
    };
    let server = RedisServer::options()
        .argument("--bind", &format!("127.0.0.1 {address}"))
        .argument("--protected-mode", "yes")
        .start();
    let open = |user: &str| {
        let url = format!("redis://{user}{address}:{}", server.port());
        RedisStore::open(&url, &fresh_namespace()).unwrap()
    };
    let store = open("");
    for _ in 0..2 {
        let words = ["protected mode", "DENIED", "`requirepass`"];
        assert_told(store.ready().await, Kind::Refused, &words);
    }
    server.command(&["CONFIG", "SET", "requirepass", "secret"]);
    open(":secret@").ready().await.expect("the cure cures");
}

#[tokio::test]
async fn keys_of_another_kind_are_named_by_every_call() {
    let scene = Scene::on(RedisServer::start()).await;
    let jobs = scene.server.command(&["KEYS", "*:jobs"]);
    scene.server.command(&["SET", &jobs, "theirs"]);
    scene
        .is_refused(Kind::Refused, &["holds something else", "WRONGTYPE"])
        .await;
    assert_told(
        scene.store.ready().await,
        Kind::Refused,
        &["another namespace"],
    );
    assert_eq!(scene.server.command(&["GET", &jobs]), "theirs");
}

#[tokio::test]
async fn what_is_no_redis_is_told_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 64]);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let store = RedisStore::open(&format!("redis://127.0.0.1:{port}"), "x").unwrap();
    assert_told(
        store.ready().await,
        Kind::Away,
        &["no Redis", "host and port"],
    );
}
