//! A store that loses what it held.

use std::time::Duration;

use soloist::scheduler::lease::LeaseAnswer;

use crate::leases::ground::Ground;
use crate::leases::scene::{Scene, TTL, hold};

pub(crate) async fn a_holder_writes_anew_what_was_lost_and_nothing_is_granted_meanwhile<
    G: Ground,
>(
    mut scene: Scene<G>,
) {
    let (holder, other) = (hold(1, &["a", "b"]), hold(2, &["b"]));
    let token = scene.token(&holder).await;
    // Whoever lives has seen it.
    scene.caller.token_floor = token;
    scene.ground.lose();
    for one in [&other, &hold(3, &["c"])] {
        let answer = scene.acquires(one).await;
        assert!(matches!(answer, LeaseAnswer::Grace { .. }), "{answer:?}");
    }
    assert!(scene.is_renewed(&holder, token).await);
    scene.pass(TTL);
    let seen = scene.busy(&other).await;
    assert_eq!((seen.held.len(), seen.held[0].sighting.token), (1, token));
    let answer = scene.acquires(&hold(3, &["c"])).await;
    assert!(matches!(answer, LeaseAnswer::Granted { .. }), "{answer:?}");
    scene.releases(&holder).await;
    assert!(scene.token(&other).await > token);
}

pub(crate) async fn after_the_window_nothing_is_written_anew<G: Ground>(mut scene: Scene<G>) {
    let (holder, other) = (hold(1, &["a"]), hold(2, &["a"]));
    let token = scene.token(&holder).await;
    scene.caller.token_floor = token;
    scene.ground.lose();
    let answer = scene.acquires(&other).await;
    let LeaseAnswer::Grace { wait } = answer else {
        panic!("{answer:?}");
    };
    assert!(wait <= TTL && !wait.is_zero(), "{wait:?}");
    scene.pass(wait + Duration::from_millis(1));
    assert!(scene.token(&other).await > token, "it kept its place");
    assert_eq!(scene.renews(&holder, token).await, LeaseAnswer::Lost);
}

/// A jump of the store's clock must not end it before holders had their time.
pub(crate) async fn a_caller_who_has_seen_a_grace_window_is_granted_nothing_in_it<G: Ground>(
    mut scene: Scene<G>,
) {
    scene.caller.held_back = TTL;
    let answer = scene.acquires(&hold(1, &["a"])).await;
    assert_eq!(answer, LeaseAnswer::Grace { wait: TTL });
    scene.caller.held_back = Duration::ZERO;
    assert!(scene.is_granted(&hold(1, &["a"])).await);
}
