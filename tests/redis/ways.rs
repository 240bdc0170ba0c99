//! The ways to a server: hosts, sockets, databases, users.

use soloist::store::redis::RedisStore;
use soloist::store::{Store, StoreError};
use test_support::closed::ClosedPort;
use test_support::redis::{RedisServer, fresh_namespace};

use crate::world::{caller, claim, impatient, just_due, observe, persist, win};

/// A store at this URL does what stores do.
async fn works(url: &str) -> RedisStore {
    let store = RedisStore::open(url, &fresh_namespace()).expect("a server that answers");
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    win(
        &store,
        &caller("one"),
        &claim("job", just_due(&store).await),
    )
    .await;
    store.events();
    store
}

#[tokio::test]
async fn a_socket_of_this_host_is_a_way() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("my redis.sock");
    let path = socket.to_str().unwrap();
    let server = RedisServer::options().argument("--unixsocket", path);
    let server = server.start();
    server.command(&["ACL", "SETUSER", "me", "on", ">pa&ss", "~*", "&*", "+@all"]);
    let encoded = path.replace(' ', "%20");
    let store = works(&format!("unix://{encoded}?db=1")).await;
    assert_eq!(store.place(), format!("unix://{path}?db=1"));
    works(&format!("redis+unix://{encoded}?db=2&user=me&pass=pa%26ss")).await;
    let keyspace = server.command(&["INFO", "keyspace"]);
    assert!(keyspace.contains("db1:") && keyspace.contains("db2:") && !keyspace.contains("db0:"));
}

#[tokio::test]
async fn a_socket_that_there_is_not_is_named() {
    let store = RedisStore::open("unix:///run/there-is-none.sock", "x").unwrap();
    let error = store.ready().await.unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }));
    let said = error.to_string();
    assert!(
        said.contains("/run/there-is-none.sock") && said.contains("`unixsocket`"),
        "{said}"
    );
}

#[tokio::test]
async fn a_user_a_password_with_any_letters_and_a_database_are_taken_from_the_url() {
    let server = RedisServer::start();
    let password = "p@ss:w/o?r#d%1 ë";
    let rule = format!(">{password}");
    server.command(&[
        "ACL",
        "SETUSER",
        "close-orders",
        "on",
        &rule,
        "~*",
        "&*",
        "+@all",
    ]);
    let user = "close%2Dorders:p%40ss%3Aw%2Fo%3Fr%23d%251%20%C3%AB";
    let store = works(&format!("redis://{user}@localhost:{}/3", server.port())).await;
    assert_eq!(
        store.place(),
        format!("redis://localhost:{}/3", server.port())
    );
    assert!(server.command(&["INFO", "keyspace"]).contains("db3:"));
    assert!(
        server
            .command(&["CLIENT", "LIST"])
            .contains("user=close-orders")
    );
}

#[tokio::test]
async fn the_password_of_the_default_user_is_enough() {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "requirepass", "secret"]);
    works(&format!("redis://:secret@127.0.0.1:{}", server.port())).await;
}

#[tokio::test]
async fn a_name_that_nobody_has_and_a_port_where_nobody_listens_are_told_apart() {
    let closed = ClosedPort::take();
    for (url, words) in [
        (
            format!("redis://{}", closed.address()),
            "nothing listens there",
        ),
        (
            "redis://there-is-none.invalid".to_owned(),
            "its name can't be looked up",
        ),
    ] {
        let store = RedisStore::open(&url, "x").unwrap();
        let error = store.ready().await.unwrap_err();
        assert!(matches!(error, StoreError::Unreachable { .. }));
        assert!(error.to_string().contains(words), "{error}");
    }
}
