//! Who comes first is served first, and nobody sleeps through its turn.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use soloist::Leases;
use soloist::leases::Acquisition;
use test_support::machine::stood_still;
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;
use tokio::task::JoinSet;

use crate::places::Place;
use crate::{LONG, has, until_so_many_wait};

/// How often whoever waits asks, if it is not woken: by then a lost wake-up would show.
const ASKED_AGAIN: Duration = Duration::from_millis(3333);

/// Who has it so late was not woken.
const SLEPT: Duration = Duration::from_millis(3000);

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

/// A moment, from which what the machine stands still doesn't count.
#[derive(Clone, Copy)]
struct Since(Instant, Duration);

impl Since {
    fn now() -> Self {
        Self(Instant::now(), stood_still())
    }

    fn elapsed(self) -> Duration {
        let still = stood_still() - self.1;
        self.0.elapsed().saturating_sub(still)
    }
}

/// Has it so often, and tells how long each hand-over took: from just before it was given back by
/// one to when another had it.
async fn hand_overs(
    asked: Acquisition,
    times: usize,
    given_back: Arc<Mutex<Option<Since>>>,
) -> Vec<Duration> {
    let mut took = Vec::new();
    for _ in 0..times {
        let lease = asked.clone().acquire().await.expect("its turn comes");
        let since = given_back.lock().expect("no panic").take();
        took.extend(since.map(Since::elapsed));
        given_back.lock().expect("no panic").replace(Since::now());
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
    let slept = took.iter().filter(|took| **took >= SLEPT).count();
    assert_eq!(slept, 0, "turns that were not heard of");
}

/// Whoever wants two names is woken by whichever comes free last, and stands in the way of others at one
/// of them while it waits for the other.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_sleeps_through_its_turn_where_several_names_change_hands() {
    let place = Place::redis();
    let mut all = JoinSet::new();
    for names in [["a", "b"], ["b", "c"], ["c", "a"]] {
        let client = place.client().await;
        for _ in 0..2 {
            let asked = client.all(names).ttl(Duration::from_secs(600));
            all.spawn(async move {
                let mut longest = Duration::ZERO;
                for _ in 0..300 {
                    let since = Since::now();
                    drop(asked.clone().acquire().await.expect("its turn comes"));
                    longest = longest.max(since.elapsed());
                    if longest >= SLEPT {
                        break;
                    }
                }
                longest
            });
        }
    }
    let longest = all.join_all().await.into_iter().max().expect("six of them");
    println!("1800 times two of three names, waited for {longest:?} at most");
    assert!(longest < SLEPT, "a turn was not heard of: {longest:?}");
}

/// A new one may have asked, and been refused, before it hears of anything.
#[tokio::test(flavor = "multi_thread")]
async fn no_turn_is_slept_through_that_comes_while_a_client_begins_to_listen() {
    let place = Place::redis();
    let old = place.client().await;
    let mut longest = Duration::ZERO;
    for round in 0..200 {
        let lease = has(old.lease("a").ttl(Duration::from_secs(600))).await;
        let new = async {
            let new = place.client().await;
            let asked = new.lease("a").ttl(Duration::from_secs(600)).acquire();
            let lease = asked.await.expect("its turn comes");
            let had_at = Instant::now();
            lease.release().await;
            had_at
        };
        let given_back = async {
            until_so_many_wait(&old, 1).await;
            tokio::time::sleep(Duration::from_micros(10 * round)).await;
            let given_back = Since::now();
            lease.release().await;
            given_back
        };
        let (had_at, Since(given_back, stood_before)) = tokio::join!(new, given_back);
        let took = had_at.saturating_duration_since(given_back);
        let still = stood_still() - stood_before;
        assert!(took < ASKED_AGAIN / 2 + still, "round {round}: {took:?}");
        longest = longest.max(took);
    }
    println!("200 new clients had it after {longest:?} at most");
}

/// Its word that it waits no more may be late, or lost: that it would not wait for longer was said before.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_no_longer_holds_up_nobody_until_it_is_heard_of() {
    const PATIENCE: Duration = Duration::from_secs(4);
    /// Who is not heard of keeps its place for 10 s, if it waits for as long.
    const LATE: Duration = Duration::from_secs(8);
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let namespace = fresh_namespace();
    let client = async |url: String| {
        let opened = Leases::open(&url, &namespace).await;
        opened.expect("the store can be used")
    };
    let (cut_off, other) = (client(relay.url()).await, client(server.url()).await);
    let lease = has(other.lease("a").ttl(LONG)).await;
    let since = Instant::now();
    let impatient = cut_off.lease("a").ttl(LONG).acquire_within(PATIENCE);
    let impatient = tokio::spawn(impatient);
    until_so_many_wait(&other, 1).await;
    let patient = tokio::spawn(other.lease("a").ttl(LONG).acquire());
    let two = until_so_many_wait(&other, 2);
    let in_line = tokio::time::timeout(PATIENCE, two).await;
    in_line.expect("they wait");
    relay.cut();
    lease.release().await;
    let next = patient.await.expect("no panic").expect("its turn comes");
    let had_after = since.elapsed();
    println!("had {had_after:?} after who came first began to wait for {PATIENCE:?}");
    next.check().expect("it has it");
    assert!(had_after < LATE, "{had_after:?}");
    let refused = impatient.await.expect("no panic");
    refused.expect_err("its server is out of reach");
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
