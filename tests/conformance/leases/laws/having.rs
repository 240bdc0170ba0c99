//! Who has a name, alone or with others, and by which token.

use std::time::Duration;

use soloist::scheduler::lease::{FencingToken, Hold, LeaseAnswer, Mode};

use crate::leases::ground::Ground;
use crate::leases::scene::{PLAYED, Scene, TTL, again, hold, shared, waits};

pub(crate) async fn who_shares_goes_together_and_passes_nobody_who_wants_it_alone<G: Ground>(
    scene: Scene<G>,
) {
    let (one, two) = (shared(1, &["a"]), shared(2, &["a"]));
    let (alone, late) = (hold(3, &["a"]), shared(4, &["a"]));
    assert!(scene.is_granted(&one).await);
    assert!(scene.is_granted(&two).await);
    assert_eq!(scene.busy(&alone).await.held.len(), 2);
    let ahead = scene.busy(&late).await.ahead;
    assert_eq!(ahead, 1, "else it could wait for ever");
    scene.releases(&one).await;
    assert!(!scene.is_granted(&alone).await);
    scene.releases(&two).await;
    assert!(scene.is_granted(&alone).await);
    assert!(!scene.is_granted(&late).await);
    assert!(!scene.is_granted(&one).await);
    scene.releases(&alone).await;
    assert!(scene.is_granted(&late).await && scene.is_granted(&one).await);
}

pub(crate) async fn all_names_or_none_and_a_ring_of_them_can_not_close<G: Ground>(scene: Scene<G>) {
    let ab = hold(1, &["a", "b"]);
    let (bc, ca) = (hold(2, &["b", "c"]), hold(3, &["c", "a"]));
    let c = hold(4, &["c"]);
    assert!(scene.is_granted(&c).await);
    assert!(scene.is_granted(&ab).await);
    let busy = scene.busy(&bc).await;
    assert_eq!(busy.held.len(), 2, "{busy:?}");
    assert_eq!(scene.busy(&ca).await.ahead, 1);
    scene.releases(&c).await;
    assert!(
        !scene.is_granted(&ca).await,
        "c is free, and another's turn"
    );
    assert!(!scene.is_granted(&bc).await, "b is not free");
    let states = scene.names().await;
    let had: Vec<usize> = states.iter().map(|state| state.held.len()).collect();
    assert_eq!(had, [1, 1, 0], "nothing is kept for who lacks something");
    scene.releases(&ab).await;
    assert!(!scene.is_granted(&ca).await);
    assert!(scene.is_granted(&bc).await);
    scene.releases(&bc).await;
    assert!(scene.is_granted(&ca).await);
}

pub(crate) async fn an_owner_is_let_in_again_before_all_who_wait_and_keeps_its_token<G: Ground>(
    scene: Scene<G>,
) {
    let outer = hold(1, &["a"]);
    let inner = again(2, &outer);
    let token = scene.token(&outer).await;
    assert_eq!(scene.busy(&hold(3, &["a"])).await.held.len(), 1);
    assert_eq!(scene.token(&inner).await, token);
    scene.releases(&outer).await;
    let other = hold(3, &["a"]);
    assert!(!scene.is_granted(&other).await, "the inner one has it");
    assert!(scene.is_renewed(&inner, token).await);
    assert_eq!(scene.renews(&outer, token).await, LeaseAnswer::Lost);
    scene.releases(&inner).await;
    assert!(scene.token(&other).await > token);
}

pub(crate) async fn who_shares_is_not_left_to_wait_for_others_who_share_and_wait_for_it<
    G: Ground,
>(
    scene: Scene<G>,
) {
    let (one, two) = (shared(1, &["a"]), shared(2, &["a"]));
    assert!(scene.is_granted(&one).await && scene.is_granted(&two).await);
    let alone = Hold {
        mode: Mode::Exclusive,
        ..again(3, &one)
    };
    let answer = scene.acquires(&alone).await;
    assert!(matches!(answer, LeaseAnswer::Upgrade { .. }), "{answer:?}");
    scene.releases(&two).await;
    assert!(scene.is_granted(&alone).await, "nobody else shares it now");
}

/// What one of the others does late by its token has to be refused.
pub(crate) async fn who_shared_a_name_has_it_alone_by_a_token_above_those_of_others<G: Ground>(
    scene: Scene<G>,
) {
    let (one, two) = (shared(1, &["a", "b"]), shared(2, &["b"]));
    let alone = |id, held: &Hold| Hold {
        mode: Mode::Exclusive,
        ..again(id, held)
    };
    let token = scene.token(&one).await;
    let others = scene.token(&two).await;
    assert!(others > token);
    let sharing = again(4, &one);
    assert_eq!(scene.token(&sharing).await, token);
    scene.releases(&two).await;
    let rises = alone(5, &one);
    let risen = scene.token(&rises).await;
    assert!(risen > others);
    assert_eq!(scene.token(&again(6, &rises)).await, risen);
}

pub(crate) async fn a_request_that_is_sent_again_gets_the_same_answer_and_a_late_one_does_nothing<
    G: Ground,
>(
    mut scene: Scene<G>,
) {
    let first = hold(1, &["a", "b"]);
    let token = scene.token(&first).await;
    let passed = Duration::from_secs(5);
    scene.pass(passed);
    match scene.acquires(&first).await {
        LeaseAnswer::Granted {
            token: again,
            remaining,
            replayed,
            ..
        } => {
            assert_eq!((again, replayed), (token, true));
            let left = TTL - passed;
            assert!(
                remaining <= left && remaining > left - PLAYED,
                "{remaining:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    scene.caller.send_by = Some(scene.now().await - Duration::from_millis(1));
    let late = scene.acquires(&hold(2, &["c"])).await;
    assert_eq!(late, LeaseAnswer::Expired);
    assert_eq!(scene.names().await.len(), 2, "nobody waits for c");
}

/// Each by a task of its own, over both ways.
pub(crate) async fn of_many_who_ask_at_once_one_has_it<G: Ground>(scene: Scene<G>) {
    let holds: Vec<Hold> = (1..=16).map(|id| hold(id, &["a", "b"])).collect();
    let asked = holds.iter().map(|hold| scene.acquires(hold));
    let answers = futures_util::future::join_all(asked).await;
    let granted = answers.iter().zip(&holds);
    let granted = granted.filter(|(answer, _)| matches!(answer, LeaseAnswer::Granted { .. }));
    let granted: Vec<&Hold> = granted.map(|(_, hold)| hold).collect();
    assert_eq!(granted.len(), 1, "{answers:?}");
    for state in scene.names().await {
        assert_eq!((state.held.len(), state.waiting.len()), (1, 15));
        assert_eq!(state.held[0].hold, granted[0].id);
    }
}

pub(crate) async fn tokens_rise_at_every_grant_of_a_name_and_above_what_the_caller_has_seen<
    G: Ground,
>(
    mut scene: Scene<G>,
) {
    let mut last = FencingToken::default();
    // Faster than a clock ticks, and with a step back in between.
    for id in 1..=20 {
        let one = hold(
            id,
            [&["a"][..], &["a", "b"], &["b", "a", "c"]][id as usize % 3],
        );
        let token = scene.token(&one).await;
        assert!(token > last, "{token} after {last}");
        last = token;
        scene.releases(&one).await;
        if id == 10 {
            scene.ground.step_ms(-30_000);
        }
    }
    let seen = FencingToken::new(last.get() + 1_000_000_000);
    scene.caller.token_floor = seen;
    let token = scene.token(&hold(30, &["d"])).await;
    assert!(token > seen, "{token} for who has seen {seen}");
}

pub(crate) async fn two_namespaces_never_meet<G: Ground>(scene: Scene<G>) {
    let other = scene.way("shop.b").await;
    let mine = hold(1, &["a"]);
    let token = scene.token(&mine).await;
    let theirs = hold(2, &["a"]);
    let asked = other
        .ask(&scene.caller, &[waits(&theirs, Vec::new())])
        .await;
    let answer = asked.expect("the store answers").answer.remove(0);
    assert!(matches!(answer, LeaseAnswer::Granted { .. }), "{answer:?}");
    assert_eq!(scene.renews(&theirs, token).await, LeaseAnswer::Lost);
    scene.releases(&mine).await;
    let seen = other.names().await.expect("the store answers").answer;
    assert_eq!((seen.len(), seen[0].held.len()), (1, 1));
}
