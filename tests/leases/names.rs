//! What can't be a lease.

use std::time::Duration;

use soloist::leases::AcquireError;

use crate::has;
use crate::places::Place;

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_is_refused_before_anything_is_asked() {
    let client = Place::redis().client().await;
    let refused = client.lease("a b").acquire().await.expect_err("no name");
    let told = refused.to_string();
    assert!(
        told.contains("`a b` can't name a lease: ` ` can't stand here"),
        "{told}"
    );
    let refused = client.all([]).acquire().await.expect_err("nothing");
    assert!(matches!(refused, AcquireError::Names(0)), "{refused}");
    let many: Vec<String> = (0..33).map(|number| format!("n{number}")).collect();
    let many = client.all(many.iter().map(String::as_str)).acquire().await;
    assert!(matches!(many, Err(AcquireError::Names(33))), "{many:?}");
    for ttl in [Duration::from_millis(999), Duration::from_secs(3601)] {
        let refused = client.lease("a").ttl(ttl).acquire().await;
        assert!(matches!(refused, Err(AcquireError::Ttl(_))), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_shares_a_name_and_wants_it_alone_is_told_to_give_it_back_first() {
    let client = Place::redis().client().await;
    let holder = client.holder();
    let shared = has(client.lease("a").shared().held_by(&holder)).await;
    let other = has(client.lease("a").shared()).await;
    let refused = client.lease("a").held_by(&holder).acquire().await;
    assert!(
        matches!(refused, Err(AcquireError::Upgrade { .. })),
        "{refused:?}"
    );
    other.release().await;
    let alone = has(client.lease("a").held_by(&holder)).await;
    alone.release().await;
    shared.release().await;
}
