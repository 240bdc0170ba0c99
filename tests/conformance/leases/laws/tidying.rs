//! What is forgotten, what is not, and what is told of all of it.

use std::time::Duration;

use soloist::scheduler::lease::{BATCH_LIMIT, HeldName, Hold};
use soloist::store::StoreError;

use crate::leases::ground::Ground;
use crate::leases::scene::{Scene, TTL, hold, waits};

pub(crate) async fn a_name_is_forgotten_only_when_nobody_can_write_any_more_who_read_that_it_was_free<
    G: Ground,
>(
    scene: Scene<G>,
) {
    let first = hold(1, &["a"]);
    assert!(scene.is_granted(&first).await);
    scene.releases(&first).await;
    scene.tidies(&["a"], &[]).await;
    assert_eq!(scene.kept().await.len(), 1, "its token is still needed");
    scene.pass(Duration::from_secs(3));
    scene.tidies(&["a"], &[]).await;
    assert_eq!(scene.kept().await, []);
    // What was held for longer goes with its release.
    let second = hold(2, &["a"]);
    assert!(scene.is_granted(&second).await);
    scene.pass(Duration::from_secs(3));
    scene.releases(&second).await;
    assert_eq!(scene.kept().await, []);
}

pub(crate) async fn what_the_dead_had_is_taken_away_as_it_was_seen_and_what_was_renewed_stays<
    G: Ground,
>(
    scene: Scene<G>,
) {
    let holder = hold(1, &["a"]);
    let token = scene.token(&holder).await;
    let seen: Vec<HeldName> = scene.names().await.remove(0).held;
    assert!(scene.is_renewed(&holder, token).await);
    scene.tidies(&["a"], &seen).await;
    let seen: Vec<HeldName> = scene.names().await.remove(0).held;
    assert_eq!(seen.len(), 1, "it was renewed since");
    scene.pass(TTL * 2);
    scene.tidies(&["a"], &seen).await;
    assert_eq!(scene.kept().await, []);
}

/// So many that no call tells, or tidies, all of them.
fn many() -> Vec<String> {
    let numbers = 0..2 * BATCH_LIMIT + 1;
    numbers.map(|number| format!("n{number:03}")).collect()
}

fn hold_of(id: u128, names: &[String]) -> Hold {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    hold(id, &names)
}

pub(crate) async fn all_names_are_told_in_their_order_however_many_there_are<G: Ground>(
    scene: Scene<G>,
) {
    let names = many();
    // The last of them first.
    for (id, some) in (1..).zip(names.chunks(30).rev()) {
        assert!(scene.is_granted(&hold_of(id, some)).await);
    }
    let told = scene.names().await.into_iter();
    let told: Vec<String> = told.map(|state| state.name.as_str().to_owned()).collect();
    assert_eq!(told, names);
    scene.pass(TTL * 2);
    let dead = scene.names().await.into_iter().flat_map(|state| state.held);
    let dead: Vec<HeldName> = dead.collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    scene.tidies(&all, &dead).await;
    assert_eq!(scene.kept().await, []);
}

pub(crate) async fn a_call_that_names_too_many_is_refused_whole<G: Ground>(scene: Scene<G>) {
    let names = many();
    let chunks = names[..BATCH_LIMIT + 1].chunks(30);
    let mut requests: Vec<_> = (1..)
        .zip(chunks)
        .map(|(id, some)| waits(&hold_of(id, some), Vec::new()))
        .collect();
    let way = scene.way(crate::leases::scene::NAMESPACE).await;
    let refused = way.ask(&scene.caller, &requests).await;
    let is_refused = matches!(refused, Err(StoreError::Refused { .. }));
    assert!(is_refused, "{refused:?}");
    assert_eq!(scene.kept().await, [], "nothing of it was done");
    requests.pop();
    let answers = scene.ask_all(&requests).await.answer;
    assert_eq!(answers.len(), requests.len());
    assert_eq!(scene.names().await.len(), 120);
}
