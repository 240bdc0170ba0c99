//! The laws of the example, with real processes, a real database and a real Redis: each step runs
//! once, whoever dies, freezes or is told to stop.
//!
//! Must never: call the program's functions; a test kills what it starts.

mod hosts;

use std::time::Duration;

use hosts::{LONG, Scene};
use soloist::Lease;

/// Short enough to wait for, and long enough for a busy machine.
const TTL: &str = "3s";

/// As the program waits for it.
async fn lease_of(scene: &Scene) -> (soloist::Leases, Lease) {
    let leases = scene.leases().await;
    let asked = leases.lease("migrate:shop").ttl(Duration::from_secs(3));
    let lease = asked.acquire_within(LONG).await.expect("its turn comes");
    (leases, lease)
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hosts_at_once_run_each_step_once() {
    let scene = Scene::new();
    let hosts = [(); 5].map(|()| scene.host(&[]));
    let ended = hosts.map(hosts::Host::ends);
    assert!(ended.iter().all(|one| one.code == Some(0)), "{ended:?}");
    scene.assert_migrated_once();
    let busy = |one: &&hosts::Ended| one.said.contains("step 1: create products");
    assert_eq!(ended.iter().filter(busy).count(), 1, "{ended:?}");
    let tokens = scene.migrations().into_iter().map(|(_, token)| token);
    let mut tokens: Vec<i64> = tokens.collect();
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "one host did all of it");
    let newest = scene.number("SELECT token FROM schema_version");
    assert!(newest > tokens[0], "those who came later showed theirs");
    let left = scene.leases().await.names().await.expect("it answers");
    assert_eq!(left, [], "no lease is left behind");
}

#[test]
fn a_schema_that_is_up_to_date_is_left_alone() {
    let scene = Scene::new();
    assert_eq!(scene.host(&[]).ends().code, Some(0));
    let before = scene.migrations();
    let again = scene.host(&[]).ends();
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.said.contains("version 6 of 6"), "{again:?}");
    assert_eq!(scene.migrations(), before);
    scene.assert_migrated_once();
}

#[test]
fn what_a_killed_host_began_is_undone_and_another_host_goes_on() {
    let scene = Scene::new();
    let mut killed = scene.host(&["--ttl", TTL, "--ask-before", "commit"]);
    killed.says("step 1: before Commit");
    let other = scene.host(&["--ttl", TTL]);
    killed.enter(2);
    killed.says("step 3: before Commit");
    killed.signal("KILL");
    assert_eq!(killed.ends().code, None);

    let other = other.ends();
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(other.said.contains("version 2 of 6"), "{other:?}");
    scene.assert_migrated_once();
    let tokens = scene.migrations();
    assert!(tokens[1].1 < tokens[2].1, "it is another's: {tokens:?}");
}

#[test]
fn the_late_write_of_a_frozen_host_is_refused_by_its_token() {
    let scene = Scene::new();
    let mut frozen = scene.host(&["--ttl", TTL, "--ask-before", "write"]);
    frozen.enter(2);
    frozen.says("step 3: before Write");
    frozen.signal("STOP");

    // It takes over and waits at the very same step, so that the version would let both pass.
    let mut other = scene.host(&["--ttl", TTL, "--ask-before", "write"]);
    other.says("version 2 of 6");
    other.says("step 3: before Write");

    frozen.enter(4);
    frozen.signal("CONT");
    let frozen = frozen.ends();
    assert_eq!(frozen.code, Some(4), "{frozen:?}");
    assert!(frozen.said.contains("was shown token"), "{frozen:?}");
    assert_eq!(scene.migrations().len(), 2, "nothing was written");
    assert_eq!(scene.number("SELECT version FROM schema_version"), 2);

    other.enter(4);
    let other = other.ends();
    assert_eq!(other.code, Some(0), "{other:?}");
    scene.assert_migrated_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_lost_its_lease_stops_before_the_next_step() {
    let scene = Scene::new();
    let mut frozen = scene.host(&["--ttl", TTL, "--ask-before", "check"]);
    frozen.enter(2);
    frozen.says("step 3: before Check");
    frozen.signal("STOP");
    // Somebody else has it, who has shown no token to the database: the check alone helps.
    let (_leases, lease) = lease_of(&scene).await;
    frozen.enter(4);
    frozen.signal("CONT");
    let frozen = frozen.ends();
    assert_eq!(frozen.code, Some(4), "{frozen:?}");
    assert!(frozen.said.contains("lost before step 3"), "{frozen:?}");
    assert_eq!(scene.migrations().len(), 2);

    lease
        .check()
        .expect("what the other gave back was not this");
    lease.release().await;
    assert_eq!(scene.host(&[]).ends().code, Some(0));
    scene.assert_migrated_once();
}

#[test]
fn a_host_that_is_told_to_stop_gives_the_lease_back_at_once() {
    let scene = Scene::new();
    // Nobody could wait for that to run out.
    let mut stopped = scene.host(&["--ttl", "1h", "--ask-before", "commit"]);
    stopped.enter(1);
    stopped.says("step 2: before Commit");
    stopped.signal("TERM");
    let stopped = stopped.ends();
    assert_eq!(stopped.code, Some(5), "{stopped:?}");
    assert_eq!(scene.migrations().len(), 1);
    let next = scene.host(&["--ttl", "1h", "--wait", "50s"]).ends();
    assert_eq!(next.code, Some(0), "{next:?}");
    scene.assert_migrated_once();
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_too_long_or_is_told_to_stop_has_changed_nothing() {
    let scene = Scene::new();
    let (leases, lease) = lease_of(&scene).await;
    let late = scene.host(&["--wait", "100ms"]).ends();
    assert_eq!(late.code, Some(5), "{late:?}");
    assert!(late.said.contains("not to be had within"), "{late:?}");

    let stopped = scene.host(&[]);
    while leases.names().await.expect("it answers")[0]
        .waiting
        .is_empty()
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stopped.signal("TERM");
    let stopped = stopped.ends();
    assert_eq!(stopped.code, Some(5), "{stopped:?}");
    lease.release().await;
    let left = leases.names().await.expect("it answers");
    assert_eq!(left, [], "its place in line is given up");
}

#[test]
fn what_it_can_not_do_is_told_with_the_cure() {
    let scene = Scene::new();
    assert_eq!(scene.host(&[]).ends().code, Some(0));
    scene.execute("UPDATE schema_version SET version = 7");
    let older = scene.host(&[]).ends();
    assert_eq!(older.code, Some(3), "{older:?}");
    assert!(older.said.contains("Deploy a newer one"), "{older:?}");

    let nowhere = scene.host(&["--store", "redis://127.0.0.1:1"]).ends();
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
    assert!(nowhere.said.contains("127.0.0.1:1"), "{nowhere:?}");
    let bad = scene.host(&["--ttl", "1ms"]).ends();
    assert_eq!(bad.code, Some(3), "{bad:?}");
    assert!(bad.said.contains("from 1s to 1h"), "{bad:?}");
}
