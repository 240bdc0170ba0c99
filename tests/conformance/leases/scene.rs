//! What laws of named leases are written with: holds, two ways into one place, and time that the law
//! lets pass.

use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::lease::{
    Busy, Caller, FencingToken, HeldName, Hold, LeaseAnswer, LeaseName, LeaseRequest, Mode,
    NameState, Replica, Wait,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::{Answered, LeaseStore, StoreEvent};
use tokio::sync::broadcast::Receiver;
use uuid::Uuid;

use super::ground::Ground;
use crate::bench::PATIENCE;
use crate::fixtures::persistent::Persistent;

pub(crate) const NAMESPACE: &str = "shop";

pub(crate) const TTL: Duration = Duration::from_secs(15);

/// How long who waits is kept in line.
pub(crate) const KEPT: Duration = Duration::from_secs(7);

/// Clocks of real servers run on while a law is played: what is left of a time is less by that at most.
pub(crate) const PLAYED: Duration = Duration::from_secs(3);

/// An empty place that grants at once.
pub(crate) struct Scene<G> {
    pub(crate) ground: G,
    ways: [Arc<dyn LeaseStore>; 2],
    pub(crate) caller: Caller,
}

impl<G: Ground> Scene<G> {
    pub(crate) async fn new() -> Self {
        let ground = G::new().await;
        let ways = [way(&ground, NAMESPACE).await, way(&ground, NAMESPACE).await];
        let caller = Caller {
            quarantine: TTL,
            ..caller("ann")
        };
        Self {
            ground,
            ways,
            caller,
        }
    }

    /// Another place, or another way into this one.
    pub(crate) async fn way(&self, namespace: &str) -> Arc<dyn LeaseStore> {
        way(&self.ground, namespace).await
    }

    pub(crate) fn pass(&self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).expect("a while");
        self.ground.step_ms(millis);
    }

    pub(crate) fn events(&self) -> Receiver<StoreEvent> {
        self.ways[0].events()
    }

    /// Clients take turns in asking, each by its own way.
    fn way_of(&self, request: &LeaseRequest) -> &dyn LeaseStore {
        match request.hold().id.as_u128() % 2 {
            0 => &*self.ways[0],
            _ => &*self.ways[1],
        }
    }

    pub(crate) async fn ask_all(&self, requests: &[LeaseRequest]) -> Answered<Vec<LeaseAnswer>> {
        let asked = self.way_of(&requests[0]).ask(&self.caller, requests).await;
        let answered = asked.expect("the store answers");
        assert_eq!(answered.answer.len(), requests.len());
        answered
    }

    pub(crate) async fn ask(&self, request: LeaseRequest) -> LeaseAnswer {
        self.ask_all(&[request]).await.answer.remove(0)
    }

    /// The store's time.
    pub(crate) async fn now(&self) -> Timestamp {
        let nothing = LeaseRequest::Release {
            hold: hold(u128::MAX, &["nothing"]),
        };
        self.ask_all(&[nothing]).await.now
    }

    pub(crate) async fn acquires(&self, hold: &Hold) -> LeaseAnswer {
        self.ask(waits(hold, Vec::new())).await
    }

    pub(crate) async fn tries(&self, hold: &Hold) -> LeaseAnswer {
        self.ask(LeaseRequest::Acquire {
            hold: hold.clone(),
            waits: None,
            dead: Vec::new(),
        })
        .await
    }

    pub(crate) async fn is_granted(&self, hold: &Hold) -> bool {
        matches!(self.acquires(hold).await, LeaseAnswer::Granted { .. })
    }

    pub(crate) async fn token(&self, hold: &Hold) -> FencingToken {
        match self.acquires(hold).await {
            LeaseAnswer::Granted { token, .. } => token,
            other => panic!("{hold:?} was not granted: {other:?}"),
        }
    }

    pub(crate) async fn busy(&self, hold: &Hold) -> Busy {
        match self.acquires(hold).await {
            LeaseAnswer::Busy(busy) => busy,
            other => panic!("{hold:?} should wait: {other:?}"),
        }
    }

    pub(crate) async fn renews(&self, hold: &Hold, token: FencingToken) -> LeaseAnswer {
        self.renews_after(hold, token, Timestamp::default()).await
    }

    /// Of a holder who has heard of this deadline.
    pub(crate) async fn renews_after(
        &self,
        hold: &Hold,
        token: FencingToken,
        last_deadline: Timestamp,
    ) -> LeaseAnswer {
        self.ask(LeaseRequest::Renew {
            hold: hold.clone(),
            token,
            last_deadline,
        })
        .await
    }

    pub(crate) async fn is_renewed(&self, hold: &Hold, token: FencingToken) -> bool {
        let answer = self.renews(hold, token).await;
        matches!(answer, LeaseAnswer::Renewed { .. })
    }

    pub(crate) async fn releases(&self, hold: &Hold) {
        let released = self.ask(LeaseRequest::Release { hold: hold.clone() }).await;
        assert_eq!(released, LeaseAnswer::Released);
    }

    /// Those that somebody has or wants.
    pub(crate) async fn names(&self) -> Vec<NameState> {
        let mut names = self.kept().await;
        names.retain(|name| !name.held.is_empty() || !name.waiting.is_empty());
        names
    }

    /// Also those that are only written down still.
    pub(crate) async fn kept(&self) -> Vec<NameState> {
        let names = self.ways[0].names().await;
        names.expect("the store answers").answer
    }

    pub(crate) async fn tidies(&self, names: &[&str], dead: &[HeldName]) {
        let names: Vec<LeaseName> = names.iter().map(|text| name(text)).collect();
        let tidied = self.ways[1].tidy(&self.caller, &names, dead).await;
        tidied.expect("the store answers");
    }
}

/// A way into a place that grants at once, and that a busy machine does not close: what it is new to opens a window without grants, of no length
/// for a caller that has nothing to wait for.
async fn way<G: Ground>(ground: &G, namespace: &str) -> Arc<dyn LeaseStore> {
    let way = Arc::new(Persistent(ground.way(namespace).await));
    way.ready().await.expect("the store can be used");
    let nothing = LeaseRequest::Release {
        hold: hold(u128::MAX, &["nothing"]),
    };
    let first = way.ask(&caller("first"), &[nothing]).await;
    first.expect("the store answers");
    way
}

pub(crate) fn caller(name: &str) -> Caller {
    Caller {
        replica: Replica {
            id: Uuid::from_u128(1),
            name: name.to_owned(),
        },
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    }
}

/// The next news, but for those of the beginning.
pub(crate) async fn hears(events: &mut Receiver<StoreEvent>) -> StoreEvent {
    loop {
        let next = tokio::time::timeout(PATIENCE, events.recv()).await;
        let next = next.expect("news come").expect("the store lives");
        if next != StoreEvent::Reconnected {
            return next;
        }
    }
}

pub(crate) fn waits(hold: &Hold, dead: Vec<HeldName>) -> LeaseRequest {
    has_waited(hold, Duration::ZERO, dead)
}

pub(crate) fn has_waited(hold: &Hold, so_far: Duration, dead: Vec<HeldName>) -> LeaseRequest {
    let kept = KEPT;
    LeaseRequest::Acquire {
        hold: hold.clone(),
        waits: Some(Wait { kept, so_far }),
        dead,
    }
}

pub(crate) fn name(text: &str) -> LeaseName {
    LeaseName::new(text).expect("laws use good names")
}

/// A hold of an owner of its own.
pub(crate) fn hold(id: u128, names: &[&str]) -> Hold {
    Hold {
        id: Uuid::from_u128(id),
        owner: Uuid::from_u128(id),
        names: names.iter().map(|text| name(text)).collect(),
        mode: Mode::Exclusive,
        ttl: TTL,
    }
}

pub(crate) fn shared(id: u128, names: &[&str]) -> Hold {
    Hold {
        mode: Mode::Shared,
        ..hold(id, names)
    }
}

/// Another one of the same owner.
pub(crate) fn again(id: u128, held: &Hold) -> Hold {
    Hold {
        id: Uuid::from_u128(id),
        ..held.clone()
    }
}
