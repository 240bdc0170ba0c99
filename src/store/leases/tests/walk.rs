//! Whatever is asked, in whatever order.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// What a random walk asks.
#[derive(Clone, Debug)]
enum Ask {
    Acquire(u128),
    Release(u128),
    Bury(u128),
    Pass(u64),
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let who = || (0..8_u32).prop_map(u128::from);
    let ask = prop_oneof![
        6 => who().prop_map(Ask::Acquire),
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
    fn whatever_is_asked_nobody_has_what_another_has_alone_and_all_come_to_an_end(asks in asks()) {
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
                Ask::Acquire(id) | Ask::Bury(id) => {
                    let one = one_of(id);
                    let dead = match scene.tries(&one) {
                        LeaseAnswer::Busy(busy) if matches!(ask, Ask::Bury(_)) => busy.held,
                        _ => Vec::new(),
                    };
                    held.retain(|_, token| dead.iter().all(|dead| dead.sighting.token != *token));
                    if let LeaseAnswer::Granted { token, .. } = scene.ask(waits(&one, dead)) {
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
        // Whoever waits has its turn once all before it are done.
        for id in 0..8 {
            scene.releases(&one_of(id));
        }
        for id in 0..8 {
            scene.acquires(&one_of(id));
        }
        for _ in 0..8 {
            for id in 0..8 {
                if scene.is_granted(&one_of(id)) {
                    held.insert(id, FencingToken::default());
                }
            }
            for id in held.keys() {
                scene.releases(&one_of(*id));
            }
            if held.len() == 8 {
                break;
            }
        }
        prop_assert_eq!(held.len(), 8);
        prop_assert_eq!(scene.names(), vec![]);
    }
}
