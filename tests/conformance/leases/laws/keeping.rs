//! Keeping a name, giving it back, and whose it is when its time is over.

use std::time::Duration;

use soloist::scheduler::lease::{FencingToken, LeaseAnswer};

use crate::leases::ground::Ground;
use crate::leases::scene::{Scene, TTL, again, hold, shared, waits};

pub(crate) async fn the_deadline_rises_strictly_at_every_renewal<G: Ground>(scene: Scene<G>) {
    let held = hold(1, &["a", "b"]);
    let token = scene.token(&held).await;
    let mut last = scene.names().await[0].held[0].sighting.deadline;
    // Faster than the clock ticks, and with a step back in between.
    for number in 0..20 {
        match scene.renews(&held, token).await {
            LeaseAnswer::Renewed {
                deadline,
                remaining,
            } => {
                assert!(deadline > last, "{deadline} after {last}");
                assert_eq!(remaining, TTL);
                last = deadline;
            }
            other => panic!("lost to nobody: {other:?}"),
        }
        if number == 10 {
            scene.ground.step_ms(-30_000);
        }
    }
    // Above what the holder heard of, whatever the store remembers.
    let far = last + Duration::from_secs(60);
    match scene.renews_after(&held, token, far).await {
        LeaseAnswer::Renewed { deadline, .. } => assert!(deadline > far),
        other => panic!("lost to nobody: {other:?}"),
    }
    let deadlines = scene.names().await.into_iter();
    let deadlines: Vec<_> = deadlines.map(|one| one.held[0].sighting.deadline).collect();
    assert!(
        deadlines[0] > far && deadlines[0] == deadlines[1],
        "all names alike"
    );
}

pub(crate) async fn a_renewal_that_does_not_match_is_lost_and_leaves_others_alone<G: Ground>(
    scene: Scene<G>,
) {
    let (held, other) = (hold(1, &["a"]), hold(2, &["b"]));
    let (token, theirs) = (scene.token(&held).await, scene.token(&other).await);
    let unknown = hold(3, &["a"]);
    assert_eq!(scene.renews(&unknown, token).await, LeaseAnswer::Lost);
    assert_eq!(
        scene.renews(&hold(3, &["c"]), token).await,
        LeaseAnswer::Lost
    );
    assert!(
        scene.is_renewed(&held, token).await,
        "another one's was lost"
    );
    // What is had of one name only is not had.
    let more = hold(2, &["b", "a"]);
    assert_eq!(scene.renews(&more, theirs).await, LeaseAnswer::Lost);
    assert!(
        scene.is_renewed(&held, token).await,
        "another one's was lost"
    );
    assert!(
        scene.is_granted(&hold(4, &["b"])).await,
        "part of it is nothing"
    );
    let wrong = FencingToken::new(token.get() + 1);
    assert_eq!(scene.renews(&held, wrong).await, LeaseAnswer::Lost);
    scene.releases(&held).await;
    let lost = scene.renews(&held, token).await;
    assert_eq!(lost, LeaseAnswer::Lost, "a release is for good");
}

pub(crate) async fn a_release_is_of_its_own_hold_alone_and_may_be_sent_again<G: Ground>(
    scene: Scene<G>,
) {
    let (one, two) = (shared(1, &["a", "b"]), shared(2, &["a", "b"]));
    let inner = again(3, &one);
    let token = scene.token(&one).await;
    scene.token(&two).await;
    assert_eq!(scene.token(&inner).await, token);
    let waiting = hold(4, &["b"]);
    assert_eq!(scene.busy(&waiting).await.held.len(), 3);
    for _ in 0..2 {
        scene.releases(&one).await;
        let seen = scene.busy(&waiting).await;
        assert_eq!(seen.held.len(), 2, "{seen:?}");
    }
    assert!(scene.is_renewed(&inner, token).await);
    scene.releases(&hold(9, &["a", "b"])).await;
    assert_eq!(scene.busy(&waiting).await.held.len(), 2);
    // Who waits gives up its place so.
    scene.releases(&waiting).await;
    assert!(scene.names().await.iter().all(|one| one.waiting.is_empty()));
}

pub(crate) async fn a_lease_that_ran_out_is_the_holders_until_somebody_takes_it<G: Ground>(
    scene: Scene<G>,
) {
    let (held, other) = (hold(1, &["a"]), hold(2, &["a"]));
    let token = scene.token(&held).await;
    scene.pass(TTL * 3);
    match scene.acquires(&held).await {
        LeaseAnswer::Granted {
            token: same,
            remaining,
            ..
        } => assert_eq!((same, remaining), (token, Duration::ZERO)),
        answer => panic!("the same request was told {answer:?}"),
    }
    assert!(
        !scene.is_granted(&other).await,
        "expiry alone decides nothing"
    );
    assert!(scene.is_renewed(&held, token).await);
    scene.pass(TTL * 3);
    scene.releases(&held).await;
    assert!(scene.token(&other).await > token);
}

pub(crate) async fn a_lease_is_taken_for_dead_only_as_it_was_watched<G: Ground>(scene: Scene<G>) {
    let (holder, heir) = (hold(1, &["a"]), hold(2, &["a"]));
    let token = scene.token(&holder).await;
    let seen = scene.busy(&heir).await.held;
    scene.pass(TTL * 2);
    assert!(
        !scene.is_granted(&heir).await,
        "expiry alone decides nothing"
    );
    assert!(scene.is_renewed(&holder, token).await);
    let early = scene.ask(waits(&heir, seen)).await;
    let is_busy = matches!(early, LeaseAnswer::Busy(_));
    assert!(is_busy, "it was renewed since");
    let seen = scene.busy(&heir).await.held;
    let taken = scene.ask(waits(&heir, seen)).await;
    assert!(matches!(taken, LeaseAnswer::Granted { .. }), "{taken:?}");
    assert_eq!(scene.renews(&holder, token).await, LeaseAnswer::Lost);
    scene.releases(&holder).await;
    let heirs = scene.names().await.remove(0).held;
    assert_eq!(
        heirs[0].hold, heir.id,
        "a late release is not of the heir's"
    );
}

pub(crate) async fn who_does_not_wait_has_it_a_lease_after_one_was_refused_it_past_its_end<
    G: Ground,
>(
    scene: Scene<G>,
) {
    let holder = hold(1, &["a"]);
    let token = scene.token(&holder).await;
    let busy = async |id| {
        let answer = scene.tries(&hold(id, &["a"])).await;
        matches!(answer, LeaseAnswer::Busy(_))
    };
    assert!(busy(2).await);
    scene.pass(TTL * 2);
    assert!(busy(3).await, "expiry alone decides nothing");
    scene.pass(TTL / 2);
    assert!(busy(4).await);
    // Whoever lives renews it.
    assert!(scene.is_renewed(&holder, token).await);
    scene.pass(TTL);
    assert!(busy(5).await);
    scene.pass(TTL * 2);
    assert!(busy(6).await, "seen overdue now for the first time");
    scene.pass(TTL + Duration::from_secs(1));
    assert!(!busy(7).await);
}
