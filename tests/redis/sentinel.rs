//! A master that Sentinels watch over, and that is another one from time to time.

use std::time::{Duration, Instant};

use soloist::store::Store;
use soloist::store::redis::RedisStore;
use test_support::redis::fresh_namespace;
use test_support::redis_many::Sentinels;

use crate::held::Held;
use crate::world::{caller, claim, fails_as, impatient, observe, persist, until};

async fn store(url: &str) -> RedisStore {
    let store = RedisStore::open(url, &fresh_namespace()).expect("a URL");
    persist(|| store.ready()).await;
    observe(&store, &impatient()).await;
    store
}

/// Looks until it fails in these words; until the majority has been missed, it goes on answering.
async fn fails(store: &RedisStore, words: &str) {
    until(words, async || {
        let error = store.ready().await.err()?;
        error.to_string().contains(words).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_master_is_followed_through_a_failover_and_nothing_is_granted_twice() {
    let mut servers = Sentinels::start();
    let store = RedisStore::open(&servers.url(), &fresh_namespace()).expect("a URL");
    let held = Held::in_store(store).await;
    // The replicas have it.
    servers.servers[0].command(&["WAIT", "2", "5000"]);
    servers.servers[0].kill();
    held.goes_on("after the master's death").await;
    servers.wait_for_failover(0);
    held.alone_is_granted().await;
    held.ends().await;
}

#[tokio::test]
async fn a_master_that_comes_back_from_a_freeze_is_left_alone_when_another_was_elected() {
    let servers = Sentinels::start();
    let store = store(&servers.full_url()).await;
    servers.servers[0].freeze();
    servers.wait_for_failover(0);
    let due = persist(|| store.snapshot()).await.now;
    servers.servers[0].thaw();
    let thawed = Instant::now();
    // It takes itself for the master until the Sentinels tell it otherwise.
    let old = &servers.servers[0];
    let has_jobs = || {
        let key = old.question(&["KEYS", "*:jobs"]);
        old.question(&["HKEYS", &key]).contains("job-")
    };
    let is_master = || old.question(&["ROLE"]).starts_with("master");
    let (mut asked, mut took_itself_for_the_master) = (0, 0);
    while asked < 20 || is_master() {
        let claimed = claim(&format!("job-{asked}"), due);
        let (caller, claims) = (caller("one"), [claimed]);
        persist(|| store.claim(&caller, &claims)).await;
        asked += 1;
        let written = has_jobs();
        if is_master() {
            took_itself_for_the_master += 1;
            assert!(!written, "a claim went to the old master");
        }
        assert!(
            thawed.elapsed() < Duration::from_secs(120),
            "nobody tells it"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("{asked} claims, {took_itself_for_the_master} while there were two masters");
}

#[tokio::test]
async fn with_a_minority_of_sentinels_the_master_is_left_alone() {
    let servers = Sentinels::start();
    let store = store(&servers.url()).await;
    for sentinel in &servers.sentinels[1..] {
        sentinel.freeze();
    }
    let frozen = Instant::now();
    fails(&store, "1 of 3 Sentinels answer").await;
    let left = frozen.elapsed();
    println!("left alone {left:?} after the majority of the Sentinels was cut off");
    for sentinel in &servers.sentinels[1..] {
        sentinel.thaw();
    }
    persist(|| store.snapshot()).await;
}

#[tokio::test]
async fn a_master_that_sentinels_do_not_know_is_told_with_a_cure() {
    let servers = Sentinels::start();
    let url = servers.url().replace("/main", "/mian");
    let store = RedisStore::open(&url, &fresh_namespace()).expect("a URL");
    fails_as(&["`mian`", "SENTINEL MASTERS"], || store.ready()).await;

    let url = format!(
        "redis+sentinel://127.0.0.1:{}/main",
        servers.servers[0].port()
    );
    let store = RedisStore::open(&url, &fresh_namespace()).expect("a URL");
    fails_as(&["or is none"], || store.ready()).await;
}
