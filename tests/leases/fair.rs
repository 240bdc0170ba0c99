//! Who comes first is served first, and nobody sleeps through its turn.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use soloist::Leases;
use soloist::leases::Acquisition;
use tokio::task::JoinSet;

use crate::places::Place;
use crate::{LONG, has};

/// How often whoever waits asks, if it is not woken: by then a lost wake-up would show.
const ASKED_AGAIN: Duration = Duration::from_millis(3333);

async fn until_so_many_wait(client: &Leases, count: usize) {
    loop {
        let names = client.names().await.expect("it answers");
        if names.first().map_or(0, |name| name.waiting.len()) >= count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_who_wait_have_it_in_the_order_in_which_they_came() {
    let place = Place::redis();
    let mut clients = Vec::new();
    for _ in 0..5 {
        clients.push(place.client().await);
    }
    let first = has(clients[0].lease("a")).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut all = JoinSet::new();
    for number in 0..100 {
        let asked = clients[number % clients.len()].lease("a");
        let order = Arc::clone(&order);
        all.spawn(async move {
            let lease = asked.acquire().await.expect("its turn comes");
            order
                .lock()
                .expect("no panic")
                .push((number, lease.token()));
            lease.release().await;
        });
        until_so_many_wait(&clients[0], number + 1).await;
    }
    first.release().await;
    all.join_all().await;
    let order = order.lock().expect("no panic");
    let came: Vec<usize> = order.iter().map(|(number, _)| *number).collect();
    assert_eq!(came, (0..100).collect::<Vec<usize>>());
    assert!(order.is_sorted_by(|a, b| a.1 < b.1), "tokens rise");
}

/// Has it so often, and tells how long each hand-over took: from just before it was given back by
/// one to when another had it.
async fn hand_overs(
    asked: Acquisition,
    times: usize,
    given_back: Arc<Mutex<Option<Instant>>>,
) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..times {
        let lease = asked.clone().acquire().await.expect("its turn comes");
        let since = given_back.lock().expect("no panic").take();
        took.extend(since.map(|since| since.elapsed()));
        given_back.lock().expect("no panic").replace(Instant::now());
        drop(lease);
    }
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_sleeps_through_its_turn_in_ten_thousand_hand_overs() {
    let place = Place::redis();
    let given_back = Arc::new(Mutex::new(None));
    let mut all = JoinSet::new();
    for _ in 0..4 {
        let client = place.client().await;
        for _ in 0..2 {
            // A long one, so that nobody asks for another reason than that it is its turn.
            let asked = client.lease("a").ttl(Duration::from_secs(600));
            all.spawn(hand_overs(asked, 1251, Arc::clone(&given_back)));
        }
    }
    let mut took: Vec<Duration> = all.join_all().await.into_iter().flatten().collect();
    took.sort();
    let at = |percent: usize| took[took.len() * percent / 100];
    println!(
        "{} hand-overs among 8 in 4 clients: p50 {:?}, p99 {:?}, at most {:?}",
        took.len(),
        at(50),
        at(99),
        took[took.len() - 1]
    );
    assert_eq!(took.len(), 10_007, "each but the first followed on another");
    let slept = took.iter().filter(|took| **took >= ASKED_AGAIN).count();
    assert_eq!(slept, 0, "turns that were not heard of");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_clients_that_come_at_one_moment_all_have_it_one_after_the_other() {
    let place = Place::redis();
    let mut clients = Vec::new();
    for _ in 0..60 {
        clients.push(place.client().await);
    }
    let inside = Arc::new(Mutex::new((0, 0)));
    let mut all = JoinSet::new();
    for client in clients {
        let inside = Arc::clone(&inside);
        all.spawn(async move {
            let lease = client.lease("a").acquire_within(LONG * 3).await;
            let lease = lease.expect("its turn comes");
            let alone = {
                let mut inside = inside.lock().expect("no panic");
                inside.0 += 1;
                inside.1 += 1;
                inside.0 == 1
            };
            tokio::task::yield_now().await;
            inside.lock().expect("no panic").0 -= 1;
            lease.release().await;
            assert!(alone, "somebody else is in there");
        });
    }
    all.join_all().await;
    assert_eq!(*inside.lock().expect("no panic"), (0, 60));
}
