//! What becomes of a lease when its server, or the link to it, dies, stands still or forgets.

use std::time::{Duration, Instant};

use test_support::machine::while_it_runs_async;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;

use crate::{LONG, client, has, is_busy, is_kept, is_kept_alone, until_so_many_wait};

/// Long enough for a busy machine, and short enough to wait for.
const TTL: Duration = Duration::from_secs(3);

/// That of a lease of which nothing is said.
const DEFAULT_TTL: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_that_is_cut_off_has_stopped_before_another_one_begins() {
    while_it_runs_async(cut_a_holder_off).await;
}

async fn cut_a_holder_off() -> Result<(), String> {
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let namespace = fresh_namespace();
    let cut_off = client(&relay.url(), &namespace).await;
    let other = client(&server.url(), &namespace).await;
    let lease = has(cut_off.lease("a").ttl(TTL)).await;
    let waiting = tokio::spawn(other.lease("a").ttl(TTL).acquire_within(LONG));
    // It is renewed for as long as it can be.
    tokio::time::sleep(TTL * 2).await;
    is_kept(&lease)?;
    assert!(!waiting.is_finished());
    relay.lose_replies();
    lease.lost().await;
    let lost = Instant::now();
    let told = lease.check().expect_err("it is lost");
    assert_eq!(told.names(), lease.names());
    assert!(
        told.to_string().starts_with("the lease of `a` was lost"),
        "{told}"
    );
    let next = waiting.await.expect("no panic").expect("it ran out");
    let granted = Instant::now();
    println!("lost {:?} before another one had it", granted - lost);
    assert!(next.token() > lease.token());
    assert!(granted > lost);
    relay.mend();
    // What it gives back by then is not the other's.
    lease.release().await;
    next.check().expect("it is its own");
    assert!(is_busy(cut_off.lease("a")).await);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_is_waited_for_and_nobody_has_what_another_has() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let client = client(&server.url(), &namespace).await;
    let lease = has(client.lease("a").ttl(TTL)).await;
    let kept = has(client.lease("b").ttl(Duration::from_secs(60))).await;
    server.freeze();
    let waiting = tokio::spawn(client.lease("a").ttl(TTL).acquire_within(LONG));
    lease.lost().await;
    server.thaw();
    let next = waiting
        .await
        .expect("no panic")
        .expect("the server is back");
    assert!(next.token() > lease.token());
    kept.check().expect("its lease is longer than that");
    kept.release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_gives_nobody_what_another_has() {
    while_it_runs_async(forget).await;
}

async fn forget() -> Result<(), String> {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let url = server.url();
    gives_nobody_what_another_has(&url, &namespace, TTL, || {
        server.command(&["FLUSHALL"]);
    })
    .await?;
    // One that would not be renewed for seconds, and of which who asks then knows nothing.
    gives_nobody_what_another_has(&url, &namespace, DEFAULT_TTL, || {
        server.command(&["FLUSHALL"]);
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn so_do_several_servers_that_forget_as_one() {
    while_it_runs_async(forget_all).await;
}

async fn forget_all() -> Result<(), String> {
    let servers = [(); 3].map(|()| RedisServer::start());
    let hosts = servers
        .each_ref()
        .map(|server| format!("127.0.0.1:{}", server.port()));
    let url = format!("redis+quorum://{}", hosts.join(","));
    gives_nobody_what_another_has(&url, &fresh_namespace(), DEFAULT_TTL, || {
        for server in &servers {
            server.command(&["FLUSHALL"]);
        }
    })
    .await?;
    Ok(())
}

/// Somebody who was never there before asks for what was granted just before all is forgotten.
async fn gives_nobody_what_another_has(
    url: &str,
    namespace: &str,
    ttl: Duration,
    forget: impl FnOnce(),
) -> Result<(), String> {
    let (one, two) = (client(url, namespace).await, client(url, namespace).await);
    let lease = has(one.lease("a").ttl(ttl)).await;
    forget();
    let refused = two.lease("a").ttl(TTL).acquire_within(TTL * 2).await;
    is_kept_alone(&lease, refused.is_ok())?;
    let token = lease.token();
    lease.release().await;
    let next = has(two.lease("a").ttl(TTL)).await;
    assert!(next.token() > token);
    next.release().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_a_holder_that_is_cut_off_leaves_it_its_time_when_the_server_forgets() {
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let namespace = fresh_namespace();
    let cut_off = client(&relay.url(), &namespace).await;
    let other = client(&server.url(), &namespace).await;
    let lease = has(cut_off.lease("a")).await;
    let mut waiting = tokio::spawn(other.lease("a").acquire());
    until_so_many_wait(&cut_off, 1).await;
    relay.cut();
    server.command(&["FLUSHALL"]);
    // Far longer than on a server that is new.
    let granted = tokio::time::timeout(Duration::from_secs(6), &mut waiting).await;
    lease.check().expect("it lasts for 15 s");
    assert!(granted.is_err(), "{granted:?}");
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_again_empty_gives_nobody_what_another_has() {
    let mut server = RedisServer::start();
    let namespace = fresh_namespace();
    let client = client(&server.url(), &namespace).await;
    let lease = has(client.lease("a").ttl(Duration::from_secs(10))).await;
    server.kill();
    server.restart();
    assert!(
        client
            .lease("a")
            .acquire_within(Duration::from_secs(4))
            .await
            .is_err()
    );
    lease.check().expect("it was written anew");
}

/// A server that began anew counts again when it has caught up with the others.
async fn until_it_counts(server: &RedisServer, namespace: &str) {
    let key = format!("soloist:{{{namespace}}}:leases:jobs");
    let looking = async {
        while server.command(&["HEXISTS", &key, "#member"]) != "1" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let caught_up = tokio::time::timeout(LONG, looking).await;
    caught_up.expect("it catches up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minority_of_a_quorum_that_dies_costs_nobody_a_lease() {
    while_it_runs_async(let_a_minority_die).await;
}

async fn let_a_minority_die() -> Result<(), String> {
    let mut servers: Vec<RedisServer> = (0..3).map(|_| RedisServer::start()).collect();
    let hosts: Vec<String> = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()))
        .collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let namespace = fresh_namespace();
    let (one, two) = (
        client(&url, &namespace).await,
        client(&url, &namespace).await,
    );
    let lease = has(one.lease("a").ttl(TTL)).await;
    let waiting = tokio::spawn(two.lease("a").ttl(TTL).acquire_within(LONG));
    for server in servers.iter_mut().take(2) {
        server.kill();
        tokio::time::sleep(TTL).await;
        is_kept(&lease)?;
        assert!(!waiting.is_finished());
        server.restart();
        until_it_counts(server, &namespace).await;
    }
    is_kept(&lease)?;
    lease.release().await;
    let next = waiting.await.expect("no panic").expect("it was given back");
    assert_eq!(next.names()[0].as_str(), "a");
    Ok(())
}
