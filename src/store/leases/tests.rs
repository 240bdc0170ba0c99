//! Laws of named leases, asked of the memory store by a clock of the test's.

mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::clock::Clock;
use crate::scheduler::lease::{Busy, HeldName, Hold, Mode, Replica, WAITING_LIMIT};
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
    send_by: Option<Timestamp>,
}

impl Scene {
    fn new() -> Self {
        let hand = Arc::new(Hand::default());
        hand.0.store(1_800_000_000_000, Ordering::Relaxed);
        Self {
            store: MemoryStore::new(Arc::clone(&hand) as Arc<dyn Clock>),
            hand,
            runtime: Builder::new_current_thread().build().unwrap(),
            send_by: None,
        }
    }

    fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap();
        self.hand.0.fetch_add(millis, Ordering::Relaxed);
    }

    fn ask_all(&self, requests: &[LeaseRequest]) -> Vec<LeaseAnswer> {
        let caller = self.caller();
        let asked = self.store.ask(&caller, requests);
        self.runtime.block_on(asked).unwrap().answer
    }

    fn ask(&self, request: LeaseRequest) -> LeaseAnswer {
        self.ask_all(&[request]).remove(0)
    }

    fn acquires(&self, hold: &Hold) -> LeaseAnswer {
        self.ask(waits(hold, Vec::new()))
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

    fn token(&self, hold: &Hold) -> FencingToken {
        match self.acquires(hold) {
            LeaseAnswer::Granted { token, .. } => token,
            other => panic!("{hold:?} was not granted: {other:?}"),
        }
    }

    fn busy(&self, hold: &Hold) -> Busy {
        match self.acquires(hold) {
            LeaseAnswer::Busy(busy) => busy,
            other => panic!("{hold:?} should wait: {other:?}"),
        }
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
        let mut names = self.kept();
        names.retain(|name| !name.held.is_empty() || !name.waiting.is_empty());
        names
    }

    fn kept(&self) -> Vec<NameState> {
        let names = LeaseStore::names(&self.store);
        self.runtime.block_on(names).unwrap().answer
    }

    fn caller(&self) -> Caller {
        Caller {
            replica: Replica {
                id: Uuid::from_u128(1),
                name: "ann".to_owned(),
            },
            quarantine: TTL,
            token_floor: FencingToken::default(),
            send_by: self.send_by,
            held_back: Duration::ZERO,
        }
    }

    fn tidies(&self, names: &[&str], dead: &[HeldName]) {
        let names: Vec<LeaseName> = names
            .iter()
            .map(|name| LeaseName::new(name).unwrap())
            .collect();
        let caller = self.caller();
        let tidied = self.store.tidy(&caller, &names, dead);
        self.runtime.block_on(tidied).unwrap();
    }
}

fn waits(hold: &Hold, dead: Vec<HeldName>) -> LeaseRequest {
    LeaseRequest::Acquire {
        hold: hold.clone(),
        waits: Some(KEPT),
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

fn shared(id: u128, names: &[&str]) -> Hold {
    Hold {
        mode: Mode::Shared,
        ..hold(id, names)
    }
}

#[test]
fn who_came_first_goes_first_and_nobody_passes_who_waits() {
    let scene = Scene::new();
    let (first, second, third) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    assert!(scene.is_granted(&first));
    assert_eq!(scene.busy(&second).ahead, 0);
    assert_eq!(scene.busy(&third).ahead, 1);
    scene.releases(&first);
    assert!(!scene.is_granted(&third), "the second came before");
    assert!(matches!(
        scene.tries(&hold(4, &["a"])),
        LeaseAnswer::Busy(_)
    ));
    assert!(scene.is_granted(&second));
    scene.releases(&second);
    assert!(scene.is_granted(&third));
    scene.releases(&third);
    assert_eq!(
        scene.names(),
        [],
        "who has and wants nothing leaves nothing"
    );
}

#[test]
fn who_shares_goes_together_and_passes_nobody_who_wants_it_alone() {
    let scene = Scene::new();
    let (one, two) = (shared(1, &["a"]), shared(2, &["a"]));
    let (alone, late) = (hold(3, &["a"]), shared(4, &["a"]));
    assert!(scene.is_granted(&one));
    assert!(scene.is_granted(&two));
    assert_eq!(scene.busy(&alone).held.len(), 2);
    assert_eq!(scene.busy(&late).ahead, 1, "else it could wait for ever");
    scene.releases(&one);
    assert!(!scene.is_granted(&alone));
    scene.releases(&two);
    assert!(scene.is_granted(&alone));
    assert!(!scene.is_granted(&late));
    assert!(!scene.is_granted(&one));
    scene.releases(&alone);
    assert!(scene.is_granted(&late) && scene.is_granted(&one));
}

#[test]
fn all_names_or_none_and_a_ring_of_them_can_not_close() {
    let scene = Scene::new();
    let (ab, bc, ca) = (
        hold(1, &["a", "b"]),
        hold(2, &["b", "c"]),
        hold(3, &["c", "a"]),
    );
    let c = hold(4, &["c"]);
    assert!(scene.is_granted(&c));
    assert!(scene.is_granted(&ab));
    let busy = scene.busy(&bc);
    assert_eq!(busy.held.len(), 2, "{busy:?}");
    assert_eq!(scene.busy(&ca).ahead, 1);
    scene.releases(&c);
    assert!(!scene.is_granted(&ca), "c is free, and another's turn");
    assert!(!scene.is_granted(&bc), "b is not free");
    scene.releases(&ab);
    assert!(!scene.is_granted(&ca));
    assert!(scene.is_granted(&bc));
    scene.releases(&bc);
    assert!(scene.is_granted(&ca));
}

#[test]
fn an_owner_is_let_in_again_before_all_who_wait_and_keeps_its_token() {
    let scene = Scene::new();
    let outer = hold(1, &["a"]);
    let inner = Hold {
        id: Uuid::from_u128(2),
        ..outer.clone()
    };
    let token = scene.token(&outer);
    assert_eq!(scene.busy(&hold(3, &["a"])).held.len(), 1);
    assert_eq!(scene.token(&inner), token);
    scene.releases(&outer);
    assert!(!scene.is_granted(&hold(3, &["a"])), "the inner one has it");
    assert!(matches!(
        scene.renews(&inner, token),
        LeaseAnswer::Renewed { .. }
    ));
    assert_eq!(scene.renews(&outer, token), LeaseAnswer::Lost);
    scene.releases(&inner);
    assert!(scene.token(&hold(3, &["a"])) > token);
}

#[test]
fn who_shares_is_not_left_to_wait_for_others_who_share_and_wait_for_it() {
    let scene = Scene::new();
    let (one, two) = (shared(1, &["a"]), shared(2, &["a"]));
    assert!(scene.is_granted(&one) && scene.is_granted(&two));
    let alone = Hold {
        id: Uuid::from_u128(3),
        mode: Mode::Exclusive,
        ..one.clone()
    };
    let answer = scene.acquires(&alone);
    assert!(matches!(answer, LeaseAnswer::Upgrade { .. }), "{answer:?}");
    scene.releases(&two);
    assert!(scene.is_granted(&alone), "nobody else shares it now");
}

#[test]
fn a_request_that_is_sent_again_gets_the_same_answer_and_a_late_one_does_nothing() {
    let mut scene = Scene::new();
    let first = hold(1, &["a", "b"]);
    let token = scene.token(&first);
    scene.pass(Duration::from_secs(5));
    match scene.acquires(&first) {
        LeaseAnswer::Granted {
            token: again,
            remaining,
            ..
        } => assert_eq!((again, remaining), (token, Duration::from_secs(10))),
        other => panic!("{other:?}"),
    }
    scene.send_by = Some(scene.hand.wall() - Duration::from_millis(1));
    assert_eq!(scene.acquires(&hold(2, &["c"])), LeaseAnswer::Expired);
    assert_eq!(scene.names().len(), 2, "nobody waits for c");
}

#[test]
fn a_lease_is_taken_for_dead_only_as_it_was_watched() {
    let scene = Scene::new();
    let (holder, heir) = (hold(1, &["a"]), hold(2, &["a"]));
    let token = scene.token(&holder);
    let seen = scene.busy(&heir).held;
    scene.pass(TTL * 2);
    assert!(!scene.is_granted(&heir), "expiry alone decides nothing");
    assert!(matches!(
        scene.renews(&holder, token),
        LeaseAnswer::Renewed { .. }
    ));
    let early = scene.ask(waits(&heir, seen));
    assert!(
        matches!(early, LeaseAnswer::Busy(_)),
        "it was renewed since"
    );
    let seen = scene.busy(&heir).held;
    let taken = scene.ask(waits(&heir, seen));
    assert!(matches!(taken, LeaseAnswer::Granted { .. }), "{taken:?}");
    assert_eq!(scene.renews(&holder, token), LeaseAnswer::Lost);
}

#[test]
fn who_is_not_heard_of_loses_its_place_and_who_is_keeps_it() {
    let scene = Scene::new();
    let (holder, gone, there) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    assert!(scene.is_granted(&holder));
    assert_eq!(scene.busy(&gone).ahead, 0);
    scene.pass(KEPT / 2);
    let busy = scene.busy(&there);
    assert_eq!(
        (busy.ahead, busy.ahead_until),
        (1, Some(scene.hand.wall() - KEPT / 2 + KEPT))
    );
    scene.pass(KEPT / 2 + Duration::from_millis(1));
    assert_eq!(scene.busy(&there).ahead, 0);
    assert_eq!(scene.busy(&gone).ahead, 1, "it comes anew");
    scene.releases(&holder);
    assert!(scene.is_granted(&there));
    // After a far step back of the clock no place lasts for the time of the step.
    let last = hold(4, &["a"]);
    assert_eq!(scene.busy(&last).ahead, 1);
    scene.hand.0.fetch_sub(3_600_000, Ordering::Relaxed);
    scene.releases(&there);
    scene.pass(TTL);
    assert!(scene.is_granted(&last));
}

#[test]
fn those_whose_turn_it_is_are_told_and_nobody_else() {
    let scene = Scene::new();
    let mut events = LeaseStore::events(&scene.store);
    let told = |events: &mut broadcast::Receiver<StoreEvent>| {
        std::iter::from_fn(|| events.try_recv().ok()).collect::<Vec<_>>()
    };
    let turn = |id: u128| StoreEvent::Turn(Uuid::from_u128(id));
    let (holder, one, two) = (hold(1, &["a"]), shared(2, &["a"]), shared(3, &["a"]));
    let alone = hold(4, &["a"]);
    assert!(scene.is_granted(&holder));
    for waiting in [&one, &two, &alone] {
        assert_eq!(scene.busy(waiting).held.len(), 1);
    }
    assert_eq!(told(&mut events), []);
    scene.releases(&holder);
    assert_eq!(told(&mut events), [turn(2), turn(3)]);
    assert!(scene.is_granted(&one) && scene.is_granted(&two));
    scene.releases(&one);
    assert_eq!(told(&mut events), []);
    scene.releases(&two);
    assert_eq!(told(&mut events), [turn(4)]);
    // Who gives up waiting makes way.
    assert_eq!(scene.busy(&one).ahead, 1);
    scene.releases(&alone);
    assert_eq!(told(&mut events), [turn(2)]);
}

#[test]
fn a_line_has_an_end() {
    let scene = Scene::new();
    assert!(scene.is_granted(&hold(0, &["a"])));
    for id in 1..=WAITING_LIMIT as u128 {
        assert!(matches!(
            scene.acquires(&hold(id, &["a"])),
            LeaseAnswer::Busy(_)
        ));
    }
    let answer = scene.acquires(&hold(9999, &["a"]));
    assert!(matches!(answer, LeaseAnswer::Full { .. }), "{answer:?}");
    assert!(matches!(
        scene.acquires(&hold(1, &["a"])),
        LeaseAnswer::Busy(_)
    ));
}

#[test]
fn a_holder_writes_anew_what_was_lost_and_nothing_is_granted_meanwhile() {
    let scene = Scene::new();
    let (former, holder, other) = (hold(1, &["a"]), hold(2, &["a"]), hold(3, &["a"]));
    let empty = scene.store.image();
    let former_token = scene.token(&former);
    let older = scene.store.image();
    let seen = scene.busy(&holder).held;
    let LeaseAnswer::Granted { token, .. } = scene.ask(waits(&holder, seen)) else {
        panic!("it was watched");
    };
    scene.store.fall_back_to(older);
    assert!(matches!(scene.acquires(&other), LeaseAnswer::Grace { .. }));
    assert!(matches!(
        scene.renews(&holder, token),
        LeaseAnswer::Renewed { .. }
    ));
    assert_eq!(scene.renews(&former, former_token), LeaseAnswer::Lost);
    scene.pass(TTL);
    assert_eq!(scene.busy(&other).held[0].sighting.token, token);
    scene.releases(&holder);
    assert!(scene.token(&other) > token);
    // After the window it is too late.
    scene.store.fall_back_to(empty);
    assert!(matches!(scene.acquires(&holder), LeaseAnswer::Grace { .. }));
    scene.pass(TTL);
    assert_eq!(scene.renews(&other, token), LeaseAnswer::Lost);
}

#[test]
fn a_name_is_forgotten_only_when_nobody_can_write_any_more_who_read_that_it_was_free() {
    let scene = Scene::new();
    let first = hold(1, &["a"]);
    assert!(scene.is_granted(&first));
    scene.releases(&first);
    scene.tidies(&["a"], &[]);
    assert_eq!(scene.kept().len(), 1, "its token is still needed");
    scene.pass(Duration::from_secs(3));
    scene.tidies(&["a"], &[]);
    assert_eq!(scene.kept(), []);
    // What was held for longer goes with its release.
    let second = hold(2, &["a"]);
    assert!(scene.is_granted(&second));
    scene.pass(Duration::from_secs(3));
    scene.releases(&second);
    assert_eq!(scene.kept(), []);
}

#[test]
fn what_the_dead_had_is_taken_away_as_it_was_seen_and_what_was_renewed_stays() {
    let scene = Scene::new();
    let holder = hold(1, &["a"]);
    let token = scene.token(&holder);
    let seen: Vec<HeldName> = scene.names().remove(0).held;
    scene.renews(&holder, token);
    scene.tidies(&["a"], &seen);
    let seen: Vec<HeldName> = scene.names().remove(0).held;
    assert_eq!(seen.len(), 1, "it was renewed since");
    scene.pass(TTL * 2);
    scene.tidies(&["a"], &seen);
    assert_eq!(scene.kept(), []);
}

#[test]
fn who_does_not_wait_has_it_a_lease_after_one_was_refused_it_past_its_end() {
    let scene = Scene::new();
    let holder = hold(1, &["a"]);
    let token = scene.token(&holder);
    let busy = |id| matches!(scene.tries(&hold(id, &["a"])), LeaseAnswer::Busy(_));
    assert!(busy(2));
    scene.pass(TTL * 2);
    assert!(busy(3), "expiry alone decides nothing");
    scene.pass(TTL / 2);
    assert!(busy(4));
    // Whoever lives renews it.
    scene.renews(&holder, token);
    scene.pass(TTL);
    assert!(busy(5));
    scene.pass(TTL * 2);
    assert!(busy(6), "seen overdue now for the first time");
    scene.pass(TTL + Duration::from_secs(1));
    assert!(!busy(7));
}
