//! Laws of named leases that memory alone is held to, by a clock of the test's: states of before, and what
//! takes many steps. All others are in `tests/conformance/leases`, and so every engine's.

mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::clock::Clock;
use crate::scheduler::lease::{HeldName, Hold, Mode, Replica, WAITING_LIMIT, Wait};
use crate::scheduler::time::{BootTime, Timestamp};
use crate::store::memory::MemoryStore;

const TTL: Duration = Duration::from_secs(15);
const KEPT: Duration = Duration::from_secs(7);

#[derive(Debug, Default)]
struct Hand(AtomicI64);

impl Clock for Hand {
    fn wall(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn boot(&self) -> BootTime {
        BootTime::default()
    }
}

struct Scene {
    hand: Arc<Hand>,
    store: MemoryStore,
    runtime: Runtime,
}

impl Scene {
    fn new() -> Self {
        let hand = Arc::new(Hand::default());
        hand.0.store(1_800_000_000_000, Ordering::Relaxed);
        Self {
            store: MemoryStore::new(Arc::clone(&hand) as Arc<dyn Clock>),
            hand,
            runtime: Builder::new_current_thread().build().unwrap(),
        }
    }

    fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.hand.0.fetch_add(millis, Ordering::Relaxed);
    }

    fn ask(&self, request: LeaseRequest) -> LeaseAnswer {
        let caller = Caller {
            replica: Replica {
                id: Uuid::from_u128(1),
                name: "ann".to_owned(),
            },
            quarantine: TTL,
            token_floor: FencingToken::default(),
            send_by: None,
            held_back: Duration::ZERO,
        };
        let requests = [request];
        let asked = self.store.ask(&caller, &requests);
        self.runtime.block_on(asked).unwrap().answer.remove(0)
    }

    fn acquires(&self, hold: &Hold) -> LeaseAnswer {
        self.ask(has_waited(hold, Duration::ZERO, Vec::new()))
    }

    fn tries(&self, hold: &Hold) -> LeaseAnswer {
        self.ask(LeaseRequest::Acquire {
            hold: hold.clone(),
            waits: None,
            dead: Vec::new(),
        })
    }

    fn is_granted(&self, hold: &Hold) -> bool {
        matches!(self.acquires(hold), LeaseAnswer::Granted { .. })
    }

    /// Takes over what somebody else has, having watched it.
    fn takes_over(&self, hold: &Hold) -> FencingToken {
        let LeaseAnswer::Busy(busy) = self.acquires(hold) else {
            panic!("nobody else has it");
        };
        token_of(&self.ask(has_waited(hold, Duration::ZERO, busy.held)))
    }

    fn renews(&self, hold: &Hold, token: FencingToken) -> LeaseAnswer {
        self.ask(LeaseRequest::Renew {
            hold: hold.clone(),
            token,
            last_deadline: Timestamp::default(),
        })
    }

    fn releases(&self, hold: &Hold) {
        let released = self.ask(LeaseRequest::Release { hold: hold.clone() });
        assert_eq!(released, LeaseAnswer::Released);
    }

    /// Those that somebody has or wants.
    fn names(&self) -> Vec<NameState> {
        let names = LeaseStore::names(&self.store);
        let mut names = self.runtime.block_on(names).unwrap().answer;
        names.retain(|name| !name.held.is_empty() || !name.waiting.is_empty());
        names
    }
}

fn has_waited(hold: &Hold, so_far: Duration, dead: Vec<HeldName>) -> LeaseRequest {
    let kept = KEPT;
    LeaseRequest::Acquire {
        hold: hold.clone(),
        waits: Some(Wait { kept, so_far }),
        dead,
    }
}

/// A hold of an owner of its own.
fn hold(id: u128, names: &[&str]) -> Hold {
    let names = names.iter().map(|name| LeaseName::new(name).unwrap());
    Hold {
        id: Uuid::from_u128(id),
        owner: Uuid::from_u128(id),
        names: names.collect(),
        mode: Mode::Exclusive,
        ttl: TTL,
    }
}

fn token_of(answer: &LeaseAnswer) -> FencingToken {
    match answer {
        LeaseAnswer::Granted { token, .. } => *token,
        other => panic!("{other:?}"),
    }
}

/// Whoever has it in the older state had lost it since.
#[test]
fn a_store_that_falls_back_is_put_right_by_whoever_has_the_higher_token() {
    let scene = Scene::new();
    let (former, holder, other) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    let former_token = token_of(&scene.acquires(&former));
    let older = scene.store.image();
    let token = scene.takes_over(&holder);
    scene.store.fall_back_to(older);
    assert!(matches!(scene.acquires(&other), LeaseAnswer::Grace { .. }));
    assert!(matches!(
        scene.renews(&holder, token),
        LeaseAnswer::Renewed { .. }
    ));
    assert_eq!(scene.renews(&former, former_token), LeaseAnswer::Lost);
    scene.pass(TTL);
    let held = &scene.names()[0].held;
    assert_eq!((held.len(), held[0].sighting.token), (1, token));
}

/// The other way round: who had lost it asks later than who has it.
#[test]
fn whoever_lost_a_name_before_the_store_fell_back_writes_it_over_nobody() {
    let scene = Scene::new();
    let (former, holder) = (hold(1, &["a"]), hold(2, &["a"]));
    let former_token = token_of(&scene.acquires(&former));
    let token = scene.takes_over(&holder);
    let now = scene.store.image();
    scene.store.fall_back_to(now);
    assert_eq!(scene.renews(&former, former_token), LeaseAnswer::Lost);
    assert!(matches!(
        scene.renews(&holder, token),
        LeaseAnswer::Renewed { .. }
    ));
}

/// The same holder is let in again by the token that it has, but not by one of an older state.
#[test]
fn a_hold_that_a_set_back_brought_back_lends_nobody_its_token() {
    let scene = Scene::new();
    // Longer than the grace window.
    let first = Hold {
        ttl: TTL * 10,
        ..hold(1, &["a"])
    };
    let other = hold(2, &["a"]);
    let inner = |id| Hold {
        id: Uuid::from_u128(id),
        ..first.clone()
    };
    let before = token_of(&scene.acquires(&first));
    // Also where a clock was set, and its time seems over.
    scene.pass(TTL * 20);
    assert_eq!(token_of(&scene.acquires(&inner(11))), before);
    let older = scene.store.image();
    scene.pass(Duration::from_millis(1));
    scene.releases(&inner(11));
    scene.releases(&first);
    let token = token_of(&scene.acquires(&other));
    scene.releases(&other);
    scene.store.fall_back_to(older);
    assert!(matches!(scene.acquires(&other), LeaseAnswer::Grace { .. }));
    scene.pass(TTL * 2);
    assert!(token_of(&scene.acquires(&inner(12))) > token.max(before));
}

#[test]
fn a_line_has_an_end() {
    let scene = Scene::new();
    assert!(scene.is_granted(&hold(0, &["a"])));
    let waits = |id| matches!(scene.acquires(&hold(id, &["a"])), LeaseAnswer::Busy(_));
    assert!((1..=WAITING_LIMIT as u128).all(waits));
    let answer = scene.acquires(&hold(9999, &["a"]));
    assert!(matches!(answer, LeaseAnswer::Full { .. }), "{answer:?}");
    assert!(waits(1), "who stands in line may go on to");
}
