//! What chance hardly ever brings about: two steps that a minority each has taken, and a server that
//! has forgotten all.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::sleep;

use super::in_its_own_time;
use super::law::Law;
use super::replicas::Replica;
use super::servers::{Kept, Servers};
use crate::store::draft::Changes;
use crate::store::engine::{Room, Terms};
use crate::store::redis::quorum::Shared;
use crate::store::redis::request::Peace;
use crate::store::redis::{reply, request};

/// Longer than a call takes: who was frozen has answered, and its links are new.
const A_WHILE: Duration = Duration::from_secs(3);

/// Longer than the test.
const FOR_GOOD: Duration = Duration::from_secs(3600);

const TRIES: usize = 50;

/// Has these servers alone take a step that changes nothing, while others are frozen.
async fn take_alone(servers: &Servers, shared: &Shared, takers: &[usize], frozen: &[usize]) {
    frozen
        .iter()
        .for_each(|one| servers.all[*one].freeze(FOR_GOOD));
    let terms = Terms {
        jobs: Vec::new(),
        send_by: None,
        room: Room::Frees,
    };
    let round = shared
        .prepare(&terms, Peace::ForAStep(shared.pace.peace()))
        .await;
    let round = round.ok().expect("a majority promises");
    for view in round
        .views
        .iter()
        .filter(|view| takers.contains(&view.number))
    {
        let member = &shared.members[view.number];
        let ballots = [round.formed.ballot.as_str(), round.ballot.as_str()];
        let changes = Changes::default();
        let request = request::accept(&member.keys, &terms, &view.shown, &changes, ballots);
        let taken = member.keeping.run(request).await.expect("it answers");
        assert!(reply::taken(&taken), "server {}", view.number);
    }
    frozen
        .iter()
        .for_each(|one| servers.all[*one].freeze(Duration::ZERO));
    sleep(A_WHILE).await;
}

#[test]
fn what_a_server_that_forgot_adopts_is_newer_than_all_that_a_minority_took() {
    in_its_own_time(1, async {
        let servers = Servers::start(5);
        let first = Replica::new(0, &servers, &Rc::new(Law::default()));
        first.open_the_ledger().await.expect("all are there");
        let store = servers.store();
        let shared = &store.shared;
        take_alone(&servers, shared, &[1, 2], &[0, 4]).await;
        take_alone(&servers, shared, &[4], &[1, 2]).await;
        assert!(servers.all[4].ballot() > servers.all[1].ballot());
        servers.all[4].freeze(FOR_GOOD);
        servers.all[0].restart(Kept::Nothing);
        let mut tries = 0..TRIES;
        // With it those two would be a majority, and its step be taken for one that counts.
        while !servers.all[0].counts() {
            tries.next().expect("it catches up");
            if let Ok(Some(approached)) = shared.approach(0).await {
                let _ = shared.join(0, &approached).await;
            }
            sleep(A_WHILE).await;
        }
        assert!(servers.all[0].ballot() > servers.all[4].ballot());
    });
}
