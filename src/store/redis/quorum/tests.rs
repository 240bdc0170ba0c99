//! What one of several servers promises and takes, asked directly.

mod disorder;

use std::time::Duration;

use test_support::redis::{RedisServer, fresh_namespace};
use uuid::Uuid;

use super::super::RedisStore;
use super::super::reply::{self, Shown, Standing};
use super::super::request::{self, Peace, Wish};
use super::forming::ballot;
use crate::store::draft::Changes;
use crate::store::engine::{Room, Terms};

const PEACE: Duration = Duration::from_millis(30);
const FOR_A_STEP: Peace = Peace::ForAStep(PEACE);

struct Scene {
    server: RedisServer,
    store: RedisStore,
}

impl Scene {
    async fn new() -> Self {
        let server = RedisServer::start();
        let store = RedisStore::open(&server.url(), &fresh_namespace()).expect("a URL");
        // On a busy machine the first answer may take longer than is waited for one.
        let patience = std::time::Instant::now() + Duration::from_secs(20);
        while let Err(error) = store.keeping.server().await {
            assert!(std::time::Instant::now() < patience, "{error:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Self { server, store }
    }

    async fn prepare(&self, ballot: &str) -> (Shown, Standing) {
        let request = request::read(
            &self.store.keys,
            &[],
            Wish::Promise {
                ballot,
                peace: FOR_A_STEP,
            },
        );
        let reply = self.store.keeping.run(request).await.expect("it answers");
        reply::prepared(&reply, &[]).expect("it is understood")
    }

    async fn promises(&self, ballot: &str) -> bool {
        self.prepare(ballot).await.1.granted
    }

    /// Whether it takes a step of a ballot after that of another one.
    async fn takes(&self, shown: &Shown, after: &str, ballot: &str) -> bool {
        let terms = Terms {
            jobs: Vec::new(),
            send_by: None,
            room: Room::Frees,
        };
        let (keys, changes) = (&self.store.keys, Changes::default());
        let request = request::accept(keys, &terms, shown, &changes, [after, ballot]);
        let reply = self.store.keeping.run(request).await.expect("it answers");
        reply::taken(&reply)
    }
}

fn of(number: u64, proposer: u128) -> String {
    ballot(number, Uuid::from_u128(proposer))
}

#[tokio::test]
async fn a_step_is_taken_by_the_ballot_that_was_promised_last_alone() {
    let scene = Scene::new().await;
    let (shown, _) = scene.prepare(&of(1, 1)).await;
    assert!(scene.promises(&of(2, 1)).await);
    assert!(
        !scene.promises(&of(2, 1)).await,
        "no ballot is promised twice"
    );
    assert!(!scene.promises(&of(1, 9)).await, "nor one that is lower");
    assert!(!scene.takes(&shown, "", &of(1, 1)).await);
    assert!(!scene.takes(&shown, "", &of(3, 1)).await);
    assert!(scene.takes(&shown, "", &of(2, 1)).await);
    assert!(
        !scene.takes(&shown, "", &of(2, 1)).await,
        "nor is a step taken twice"
    );
}

#[tokio::test]
async fn a_step_is_taken_after_the_last_one_alone() {
    let scene = Scene::new().await;
    let (shown, _) = scene.prepare(&of(1, 1)).await;
    assert!(scene.takes(&shown, "", &of(1, 1)).await);
    let (shown, standing) = scene.prepare(&of(5, 1)).await;
    assert_eq!(standing.ballot, of(1, 1));
    assert_eq!(standing.member, shown.process);
    assert!(!scene.takes(&shown, "", &of(5, 1)).await);
    assert!(!scene.takes(&shown, &of(4, 1), &of(5, 1)).await);
    assert!(scene.takes(&shown, &of(1, 1), &of(5, 1)).await);
}

#[tokio::test]
async fn whoever_was_promised_a_ballot_is_left_in_peace_for_a_moment() {
    let scene = Scene::new().await;
    let (shown, _) = scene.prepare(&of(1, 1)).await;
    let began = std::time::Instant::now();
    assert!(
        scene.promises(&of(2, 1)).await,
        "who was promised it may go on"
    );
    let mut refused = 0;
    while !scene.promises(&of(3, 2)).await {
        refused += 1;
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "it lasts for ever"
        );
    }
    assert!(refused > 0 || began.elapsed() >= PEACE);
    assert!(!scene.takes(&shown, "", &of(2, 1)).await, "it is over");
    assert!(scene.takes(&shown, "", &of(3, 2)).await);
}

#[tokio::test]
async fn a_process_that_promised_nothing_takes_no_step() {
    let mut scene = Scene::new().await;
    let (shown, _) = scene.prepare(&of(1, 1)).await;
    scene.server.restart();
    // The link finds out by a call that fails.
    while scene.store.keeping.server().await.is_err()
        || scene.store.standing().await.is_err()
        || scene
            .store
            .keeping
            .send(redis::pipe().cmd("PING").clone())
            .await
            .is_err()
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(!scene.takes(&shown, "", &of(1, 1)).await);
}
