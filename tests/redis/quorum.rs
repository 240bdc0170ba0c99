//! A ledger in a majority of independent servers, of which a minority may do what it wants.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use soloist::scheduler::lease::{Claim, ClaimAnswer, FencingToken, Outcome, ReleaseAnswer};
use soloist::scheduler::time::Timestamp;
use soloist::store::redis::RedisStore;
use soloist::store::redis::quorum::QuorumStore;
use soloist::store::{Caller, Store, StoreError};
use soloist::store_url::StoreOptions;
use test_support::machine::{stood_still, while_it_runs_async};
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::relay::Relay;

use crate::world::{caller, claim, fails_as, impatient, info, persist, release, renewal};

pub(crate) fn servers(count: usize) -> Vec<RedisServer> {
    (0..count).map(|_| RedisServer::start()).collect()
}

pub(crate) fn store(servers: &[RedisServer], namespace: &str) -> QuorumStore {
    let hosts = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()));
    of_hosts(hosts, namespace)
}

fn of_hosts(hosts: impl Iterator<Item = String>, namespace: &str) -> QuorumStore {
    let hosts: Vec<String> = hosts.collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    QuorumStore::open(&url, namespace, &StoreOptions::default()).expect("a URL")
}

/// A store that is past its first grace window.
pub(crate) async fn fresh(servers: &[RedisServer], namespace: &str) -> QuorumStore {
    let store = store(servers, namespace);
    persist(|| store.ready()).await;
    let scope = soloist::scheduler::lease::Scope::Overdue;
    let (first, info) = (impatient(), info());
    persist(|| store.observe(&first, &info, scope)).await;
    store
}

pub(crate) async fn now(store: &QuorumStore) -> Timestamp {
    persist(|| store.snapshot()).await.now
}

async fn claimed(store: &QuorumStore, caller: &Caller, claim: &Claim) -> ClaimAnswer {
    let asked = persist(|| store.claim(caller, std::slice::from_ref(claim))).await;
    asked.answer.into_iter().next().expect("an answer to each")
}

/// The ballot of the last step that a server has taken.
fn ballot(server: &RedisServer, namespace: &str) -> String {
    let key = format!("soloist:{{{namespace}}}:jobs");
    server.command(&["HGET", &key, "#ballot"])
}

pub(crate) async fn wait_until_all_have_the_same(
    servers: &[RedisServer],
    namespace: &str,
    store: &QuorumStore,
) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let ballots: BTreeSet<String> = servers.iter().map(|one| ballot(one, namespace)).collect();
        if ballots.len() == 1 {
            return;
        }
        assert!(Instant::now() < deadline, "{ballots:?}");
        // Whoever comes next notices who is behind.
        let due = now(store).await;
        claimed(store, &caller("one"), &claim("other", due)).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_notices_that_a_minority_fails_and_what_it_lost_is_given_back() {
    let mut servers = servers(3);
    let namespace = fresh_namespace();
    let store = fresh(&servers, &namespace).await;
    let one = caller("one");
    let first = claim("job", now(&store).await);
    let ClaimAnswer::Granted(grant) = claimed(&store, &one, &first).await else {
        panic!("it is free");
    };
    for failed in 0..3 {
        servers[failed].kill();
        let (began, stood_before) = (Instant::now(), stood_still());
        let renewals = [renewal(&first, &grant)];
        let renewed = store.renew(&one, &renewals).await;
        if let Err(error) = renewed {
            let still = stood_still() - stood_before;
            assert!(!still.is_zero(), "two of three are there: {error}");
            persist(|| store.renew(&one, &renewals)).await;
        }
        println!(
            "renewed {:?} after server {failed} was killed",
            began.elapsed()
        );
        // It comes back without its data.
        servers[failed].restart();
        wait_until_all_have_the_same(&servers, &namespace, &store).await;
        let key = format!("soloist:{{{namespace}}}:jobs");
        assert_eq!(servers[failed].command(&["HEXISTS", &key, "job"]), "1");
    }
    let ended = release(&first, &grant, Outcome::Succeeded);
    let released = persist(|| store.release(&one, std::slice::from_ref(&ended))).await;
    assert_eq!(released.answer[0], ReleaseAnswer::Released);
    assert_eq!(
        claimed(&store, &caller("two"), &first).await,
        ClaimAnswer::Finished,
        "each server has lost its data once, and none of them what they hold together"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_majority_nothing_is_granted_and_with_it_all_goes_on() {
    let servers = servers(3);
    let namespace = fresh_namespace();
    let store = fresh(&servers, &namespace).await;
    let first = claim("job", now(&store).await);
    servers[0].freeze();
    servers[1].freeze();
    let (one, claims) = (caller("one"), std::slice::from_ref(&first));
    let words = ["1 of 3 servers answer, and 2 have to"];
    fails_as(&words, || store.claim(&one, claims)).await;
    servers[0].thaw();
    let answer = claimed(&store, &one, &first).await;
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    servers[1].thaw();
    wait_until_all_have_the_same(&servers, &namespace, &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_all_lost_their_data_are_a_loss_that_is_waited_out() {
    let mut servers = servers(3);
    let namespace = fresh_namespace();
    let store = fresh(&servers, &namespace).await;
    let one = caller("one");
    let first = claim("job", now(&store).await);
    let answer = claimed(&store, &one, &first).await;
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    servers.iter_mut().for_each(RedisServer::restart);
    let other = claim("other", now(&store).await);
    let answer = claimed(&store, &caller("two"), &other).await;
    assert!(matches!(answer, ClaimAnswer::Grace { .. }), "{answer:?}");
}

#[tokio::test]
async fn a_first_start_takes_all_servers() {
    let mut servers = servers(3);
    servers[2].kill();
    let store = store(&servers, "shop");
    let due = Timestamp::from_second(1_795_000_000);
    let (one, claims) = (caller("one"), [claim("job", due)]);
    let words = ["of 3 servers 0 have the ledger"];
    fails_as(&words, || store.claim(&one, &claims)).await;
}

/// Whether a server counts among those that have the ledger, by the run of it that it does so in.
fn has_caught_up(server: &RedisServer) -> bool {
    let info = server.command(&["INFO", "server"]);
    let run_id = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    // It has no key at first.
    let key = server.command(&["KEYS", "soloist:*:jobs"]);
    run_id.map(str::trim) == Some(server.command(&["HGET", &key, "#member"]).trim())
}

/// What happens to servers while replicas claim.
async fn mishaps(servers: &mut [RedisServer], until: Instant) {
    let mut dice = 7_u64;
    let mut throw = |sides: u64| {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (dice >> 33) % sides
    };
    while Instant::now() < until {
        // A minority at a time.
        let one = throw(5) as usize;
        let other = (one + 1 + throw(4) as usize) % 5;
        let pause = Duration::from_millis(50 + throw(700));
        match throw(3) {
            0 => {
                servers[one].kill();
                tokio::time::sleep(pause).await;
                servers[one].restart();
            }
            1 => {
                servers[one].freeze();
                servers[other].freeze();
                tokio::time::sleep(pause).await;
                servers[one].thaw();
                servers[other].thaw();
            }
            _ => {
                servers[one].freeze();
                servers[other].restart();
                tokio::time::sleep(pause).await;
                servers[one].thaw();
            }
        }
        // More than a minority would be gone else. They do so while somebody asks.
        crate::world::until("all have caught up", async || {
            let over = Instant::now() >= until;
            (over || servers.iter().all(has_caught_up)).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_minority_does_each_occurrence_is_granted_once_and_tokens_rise() {
    let mut servers = servers(5);
    let namespace = fresh_namespace();
    let first = fresh(&servers, &namespace).await;
    let until = Instant::now() + Duration::from_secs(20);
    let contenders: Vec<_> = (0..3)
        .map(|number| {
            let one = caller(&format!("replica-{number}"));
            let namespace = namespace.clone();
            let hosts: Vec<u16> = servers.iter().map(RedisServer::port).collect();
            tokio::spawn(contend(one, hosts, namespace, until))
        })
        .collect();
    mishaps(&mut servers, until).await;
    let mut granted: Vec<(Timestamp, FencingToken)> = Vec::new();
    for contender in contenders {
        granted.extend(contender.await.expect("no contender panics"));
    }
    granted.sort_by_key(|(due, _)| *due);
    let rounds = granted.len();
    for pair in granted.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{pair:?} was granted twice");
        assert!(pair[0].1 < pair[1].1, "{pair:?}: a token fell");
    }
    println!("{rounds} occurrences were granted to three replicas while servers failed");
    assert!(rounds > 20, "{rounds}");
    wait_until_all_have_the_same(&servers, &namespace, &first).await;
}

/// Claims one occurrence after another, and releases what it is granted.
async fn contend(
    one: Caller,
    ports: Vec<u16>,
    namespace: String,
    until: Instant,
) -> Vec<(Timestamp, FencingToken)> {
    let hosts: Vec<String> = ports
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    let store = QuorumStore::open(&url, &namespace, &StoreOptions::default()).expect("a URL");
    let mut granted = Vec::new();
    while Instant::now() < until {
        let Ok(seen) = store.snapshot().await else {
            continue;
        };
        // Of ten to a second all know the instants.
        let due = Timestamp::from_millis(seen.now.as_millis() / 100 * 100);
        let claim = claim("job", due);
        let claims = std::slice::from_ref(&claim);
        let mut answer: Result<_, StoreError> = store.claim(&one, claims).await;
        // A claim that was not answered may have been granted: it is sent again, as it was.
        while answer.is_err() && Instant::now() < until {
            answer = store.claim(&one, claims).await;
        }
        let Ok(answered) = answer else { break };
        if let ClaimAnswer::Granted(grant) = &answered.answer[0] {
            assert_eq!(grant.attempt, 1);
            granted.push((due, grant.token));
            let ended = release(&claim, grant, Outcome::Succeeded);
            let ended = std::slice::from_ref(&ended);
            while store.release(&one, ended).await.is_err() && Instant::now() < until {}
        }
    }
    granted
}

/// Whoever is quickest to ask again could keep those from their turn that are further away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_far_away_has_its_turn_beside_busy_ones() {
    const STEPS: usize = 20;
    let servers = servers(5);
    let relays: Vec<Relay> = servers.iter().map(|one| Relay::to(one.port())).collect();
    for relay in &relays {
        relay.delay(Duration::from_millis(20));
    }
    let namespace = fresh_namespace();
    let taken: Arc<AtomicUsize> = Arc::default();
    let mut near = Vec::new();
    for rival in 0..2 {
        let (store, taken) = (fresh(&servers, &namespace).await, Arc::clone(&taken));
        near.push(tokio::spawn(async move {
            let due = now(&store).await;
            for turn in 0.. {
                let free = claim(&format!("near-{rival}-{turn}"), due);
                claimed(&store, &caller("near"), &free).await;
                taken.fetch_add(1, Ordering::Relaxed);
            }
        }));
    }
    let hosts = relays
        .iter()
        .map(|relay| relay.url().replace("redis://", ""));
    let far = of_hosts(hosts, &namespace);
    persist(|| far.ready()).await;
    let due = now(&far).await;
    let mut longest = 0;
    for turn in 0..STEPS {
        let before = taken.load(Ordering::Relaxed);
        let free = claim(&format!("far-{turn}"), due);
        let answer = claimed(&far, &caller("far"), &free).await;
        assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
        longest = longest.max(taken.load(Ordering::Relaxed) - before);
    }
    near.iter().for_each(tokio::task::JoinHandle::abort);
    println!(
        "while one waited that was 20 ms away, two that were near took {longest} steps at most"
    );
    assert!(longest <= 400, "{longest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_server_under_two_names_is_refused() {
    let servers = servers(2);
    let relay = Relay::to(servers[0].port());
    let ports = servers
        .iter()
        .map(|one| format!("127.0.0.1:{}", one.port()));
    let hosts = ports.chain([relay.url().replace("redis://", "")]);
    let store = of_hosts(hosts, &fresh_namespace());
    let due = Timestamp::from_millis(1_700_000_000_000);
    let (one, claims) = (caller("one"), [claim("job", due)]);
    fails_as(&["one and the same"], || store.claim(&one, &claims)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_a_quorum_refuses_those_that_name_it_alone() {
    let servers = servers(3);
    let namespace = fresh_namespace();
    let store = fresh(&servers, &namespace).await;
    let first = claim("job", now(&store).await);
    let answer = claimed(&store, &caller("one"), &first).await;
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    let alone = RedisStore::open(&servers[0].url(), &namespace).expect("a URL");
    let other = [claim("other", first.occurrence.scheduled_at)];
    let two = caller("two");
    fails_as(&["redis+quorum://"], || alone.claim(&two, &other)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_minority_keeps_nobody_from_asking() {
    let servers = servers(5);
    let namespace = fresh_namespace();
    fresh(&servers, &namespace).await;
    servers[0].freeze();
    servers[3].freeze();
    let store = store(&servers, &namespace);
    // To wait for a frozen one takes 2 s.
    for what in ["ready", "snapshot", "history"] {
        while_it_runs_async(async || {
            let began = Instant::now();
            let asked = match what {
                "ready" => store.ready().await,
                "snapshot" => store.snapshot().await.map(|_| ()),
                _ => store.history(None, 10).await.map(|_| ()),
            };
            let took = began.elapsed();
            asked.map_err(|error| format!("{what}: {error}"))?;
            match took < Duration::from_millis(1500) {
                true => Ok(()),
                false => Err(format!("{what} took {took:?}: nobody waits for the others")),
            }
        })
        .await;
    }
}
