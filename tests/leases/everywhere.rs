//! The same on every kind of store.

use std::time::Duration;

use soloist::leases::AcquireError;

use crate::places::Place;
use crate::{LONG, has, is_busy, until_so_many_wait};

/// What users of Redisson know by other names: a lock, a fair one, a read-write one, a MultiLock.
async fn holds_what_is_promised(place: Place) {
    let (one, two) = (place.client().await, place.client().await);

    // Alone, and free again once it is given back.
    let first = has(one.lease("stock:42")).await;
    assert!(is_busy(two.lease("stock:42")).await);
    assert!(
        is_busy(one.lease("stock:42")).await,
        "a client is no holder"
    );
    first.check().expect("it is held");
    let token = first.token();
    first.release().await;
    let second = has(two.lease("stock:42")).await;
    assert!(second.token() > token);

    // Who waits is woken, and who waits for too long is told so.
    let soon = one
        .lease("stock:42")
        .acquire_within(Duration::from_millis(50));
    let late = soon.await.expect_err("another one has it");
    assert!(matches!(late, AcquireError::TimedOut(_)), "{late}");
    let waiting = tokio::spawn(one.lease("stock:42").acquire_within(LONG));
    until_so_many_wait(&two, 1).await;
    drop(second);
    let third = waiting.await.expect("no panic").expect("it was given back");
    third.release().await;

    // Shared by those who share.
    let read = has(one.lease("catalogue").shared()).await;
    let also = has(two.lease("catalogue").shared()).await;
    assert!(is_busy(two.lease("catalogue")).await);
    read.release().await;
    also.release().await;

    // Several, all or none.
    let both = has(one.all(["b", "a", "b"])).await;
    assert!(is_busy(two.all(["b", "c"])).await);
    assert!(
        !is_busy(two.lease("c")).await,
        "none of what could not be had"
    );

    // Let in again.
    let again = has(one.lease("a").held_by(&both.holder())).await;
    assert_eq!(again.token(), both.token());
    both.release().await;
    assert!(is_busy(two.lease("a")).await, "the inner one has it still");
    assert!(!is_busy(two.lease("b")).await);
    again.release().await;

    let left = two.names().await.expect("it answers");
    assert_eq!(left, [], "nothing is left behind");
    one.close().await;
    two.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_one_server() {
    holds_what_is_promised(Place::redis()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_file() {
    holds_what_is_promised(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_majority_of_independent_servers() {
    holds_what_is_promised(Place::quorum()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_sentinels() {
    holds_what_is_promised(Place::sentinel()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_cluster() {
    holds_what_is_promised(Place::cluster()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_closed_gives_back_what_it_has() {
    let place = Place::redis();
    let (one, two) = (place.client().await, place.client().await);
    let lease = has(one.lease("a")).await;
    let waiting = tokio::spawn(one.lease("a").acquire());
    one.close().await;
    lease.lost().await;
    lease.check().expect_err("it was given back");
    let refused = waiting
        .await
        .expect("no panic")
        .expect_err("nobody asks any more");
    assert!(matches!(refused, AcquireError::Closed), "{refused}");
    has(two.lease("a")).await.release().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_no_longer_makes_way() {
    let place = Place::redis();
    let client = place.client().await;
    let lease = has(client.lease("a")).await;
    let mut first = Box::pin(client.lease("a").acquire());
    let waits = tokio::time::timeout(Duration::from_millis(100), &mut first).await;
    assert!(waits.is_err(), "it is held");
    let second = tokio::spawn(client.lease("a").acquire_within(LONG));
    drop(first);
    lease.release().await;
    let second = second.await.expect("no panic");
    second.expect("who was before it has gone").release().await;
    assert_eq!(client.names().await.expect("it answers"), []);
}
