//! Whatever is asked, in whatever order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a random walk asks.
#[derive(Clone, Debug)]
enum Ask {
    /// By one who has waited for so many milliseconds.
    Acquire(u128, u64),
    Release(u128),
    Bury(u128),
    Pass(u64),
}

fn so_far() -> impl Strategy<Value = u64> {
    0..30_000_u64
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let who = || (0..8_u32).prop_map(u128::from);
    let ask = prop_oneof![
        6 => (who(), so_far()).prop_map(|(who, so_far)| Ask::Acquire(who, so_far)),
        3 => who().prop_map(Ask::Release),
        1 => who().prop_map(Ask::Bury),
        2 => (0..9000_u64).prop_map(Ask::Pass),
    ];
    proptest::collection::vec(ask, 1..120)
}

/// Eight who want different sets of three names, some of them shared, two of one owner.
fn one_of(id: u128) -> Hold {
    let sets: [&[&str]; 8] = [
        &["a"],
        &["b"],
        &["a", "b"],
        &["b", "c"],
        &["c", "a"],
        &["a", "b", "c"],
        &["a"],
        &["a", "c"],
    ];
    let one = hold(id, sets[usize::try_from(id).unwrap()]);
    Hold {
        mode: if id % 3 == 1 {
            Mode::Shared
        } else {
            Mode::Exclusive
        },
        owner: Uuid::from_u128(if id == 6 { 0 } else { id }),
        ..one
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_asked_nobody_has_what_another_has_alone_and_all_come_to_an_end(
        asks in asks(),
        waited in proptest::collection::vec(so_far(), 8),
    ) {
        let scene = Scene::new();
        let mut highest = FencingToken::default();
        let mut held: BTreeMap<u128, FencingToken> = BTreeMap::new();
        for ask in asks {
            match ask {
                Ask::Pass(millis) => scene.pass(Duration::from_millis(millis)),
                Ask::Release(id) => {
                    scene.releases(&one_of(id));
                    held.remove(&id);
                }
                Ask::Acquire(id, _) | Ask::Bury(id) => {
                    let one = one_of(id);
                    let so_far = match ask {
                        Ask::Acquire(_, so_far) => Duration::from_millis(so_far),
                        _ => Duration::ZERO,
                    };
                    let dead = match scene.tries(&one) {
                        LeaseAnswer::Busy(busy) if matches!(ask, Ask::Bury(_)) => busy.held,
                        _ => Vec::new(),
                    };
                    held.retain(|_, token| dead.iter().all(|dead| dead.sighting.token != *token));
                    if let LeaseAnswer::Granted { token, .. } = scene.ask(has_waited(&one, so_far, dead)) {
                        let again = held.insert(id, token).is_some();
                        let own = held.iter().any(|(other, theirs)| {
                            *other != id && one_of(*other).owner == one.owner && *theirs == token
                        });
                        // A try before may have been granted: that is the same one.
                        prop_assert!(again || own || token >= highest, "{token:?} {highest:?}");
                        highest = highest.max(token);
                    }
                }
            }
            for state in scene.names() {
                let alone = state.mode == Mode::Exclusive;
                let owners: BTreeSet<Uuid> = state.held.iter().map(|one| {
                    one_of(one.hold.as_u128()).owner
                }).collect();
                prop_assert!(!alone || owners.len() <= 1, "{state:?}");
            }
        }
        prop_assert_eq!(who_had_their_turn(&scene, &waited).len(), 8);
        prop_assert_eq!(scene.names(), vec![]);
    }
}

/// All want something, and have waited for so long: each has its turn once all before it are done.
fn who_had_their_turn(scene: &Scene, waited: &[u64]) -> BTreeSet<u128> {
    let mut had = BTreeSet::new();
    for id in 0..8 {
        scene.releases(&one_of(id));
    }
    for (id, so_far) in (0..).zip(waited) {
        let so_far = Duration::from_millis(*so_far);
        scene.ask(has_waited(&one_of(id), so_far, Vec::new()));
    }
    for _ in 0..8 {
        for id in 0..8 {
            if scene.is_granted(&one_of(id)) {
                had.insert(id);
            }
        }
        for id in &had {
            scene.releases(&one_of(*id));
        }
        if had.len() == 8 {
            break;
        }
    }
    had
}
