//! News in a cluster: where they are published, how soon they are heard, and what becomes of those
//! who listen when the slot moves, a node dies, or nobody may listen.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use soloist::scheduler::lease::{Claim, Grant, Outcome};
use soloist::store::redis::RedisStore;
use soloist::store::{Caller, Store, StoreEvent};
use test_support::acl::{rule_in_cluster, set_user};
use test_support::fleet::{Fleet, SOON};
use test_support::redis::{RedisServer, fresh_namespace};
use test_support::redis_many::{Cluster, Move};

use crate::access::{refused, use_all_of, warned};
use crate::world::{
    caller, claim, impatient, just_due, observe, persist, release, renewal, until, win,
};

/// Two replicas of one fleet: what the first one does, the second one hears of.
struct Scene {
    cluster: Cluster,
    namespace: String,
    teller: RedisStore,
    caller: Caller,
    hearer: RedisStore,
    /// What is held from the beginning: after a failover nothing is granted for long.
    held: RefCell<Vec<(Claim, Grant)>>,
}

impl Scene {
    async fn begin() -> Self {
        let (cluster, namespace) = (Cluster::start(), fresh_namespace());
        let open = async || {
            let store = RedisStore::open(&cluster.full_url(), &namespace).expect("a URL");
            persist(|| store.ready()).await;
            store
        };
        let (teller, hearer) = (open().await, open().await);
        observe(&teller, &impatient()).await;
        let caller = caller("teller");
        let due = just_due(&teller).await;
        let mut held = Vec::new();
        for number in 0..18 {
            let claimed = claim(&format!("job-{number}"), due);
            let grant = win(&teller, &caller, &claimed).await;
            held.push((claimed, grant));
        }
        let scene = Self {
            caller,
            hearer,
            teller,
            cluster,
            namespace,
            held: RefCell::new(held),
        };
        scene.listen_at(scene.holder(), "2").await;
        scene
    }

    fn holder(&self) -> usize {
        self.cluster.holder(&self.namespace)
    }

    fn channel(&self) -> String {
        format!("soloist:{{{}}}:events", self.namespace)
    }

    fn listeners_at(&self, node: usize) -> String {
        let node = &self.cluster.nodes[node];
        let told = node.command(&["PUBSUB", "SHARDNUMSUB", &self.channel()]);
        told.lines().last().unwrap_or_default().to_owned()
    }

    async fn listen_at(&self, node: usize, count: &str) {
        let so_many = async || (self.listeners_at(node) == count).then_some(());
        until("so many listen at that node", so_many).await;
    }

    async fn renew(&self) {
        let first = self
            .held
            .borrow()
            .first()
            .map(|(claim, grant)| renewal(claim, grant));
        let renewals = [first.expect("something is held")];
        persist(|| self.teller.renew(&self.caller, &renewals)).await;
    }

    /// Hands something over, and answers how long it took until that was heard.
    async fn tell(&self) -> Duration {
        let held = self.held.borrow_mut().pop();
        let (claimed, grant) = held.expect("something is held");
        let ended = [release(&claimed, &grant, Outcome::HandedOver)];
        let mut heard = self.hearer.events();
        let began = Instant::now();
        persist(|| self.teller.release(&self.caller, &ended)).await;
        loop {
            let event = tokio::time::timeout(SOON, heard.recv()).await;
            if event.expect("news").expect("the store is there") == StoreEvent::Opening {
                return began.elapsed();
            }
        }
    }

    /// Nothing but news makes it heard at all; how soon, is for people.
    async fn news_come(&self, when: &str) {
        let mut took = Vec::new();
        for _ in 0..9 {
            took.push(self.tell().await);
        }
        took.sort();
        println!("{when}: heard after {took:?}");
        assert!(took[4] < Duration::from_secs(1), "{when}: {took:?}");
    }
}

#[tokio::test]
async fn news_are_heard_at_once_and_leave_the_rest_of_the_cluster_in_peace() {
    let scene = Scene::begin().await;
    scene.news_come("by shard").await;
    let holder = scene.holder();
    for (number, node) in scene.cluster.nodes.iter().enumerate() {
        let listened_to = node.command(&["PUBSUB", "SHARDCHANNELS"]);
        let expected = if number == holder {
            scene.channel()
        } else {
            String::new()
        };
        assert_eq!(listened_to, expected, "node {number}");
        assert_eq!(node.command(&["PUBSUB", "CHANNELS"]), "");
        let stats = node.commandstats();
        assert!(!stats.contains_key("publish"), "{stats:?}");
        assert_eq!(
            stats.contains_key("spublish"),
            number == holder,
            "{stats:?}"
        );
    }
}

#[tokio::test]
async fn news_follow_the_slot_while_it_moves() {
    let scene = Scene::begin().await;
    let from = scene.holder();
    let to = scene.cluster.other_master(from);
    let moving = Move::of(&scene.cluster, &scene.namespace, to);
    moving.begin();
    moving.keys();
    // Whoever is sent to the new node asks to listen there; the other one was told nothing yet.
    scene.renew().await;
    scene.listen_at(to, "1").await;
    scene.listen_at(from, "1").await;
    moving.end();
    scene.listen_at(to, "2").await;
    scene.news_come("after the slot moved").await;
}

#[tokio::test]
async fn news_come_again_after_a_failover() {
    let mut scene = Scene::begin().await;
    let first = scene.holder();
    scene.cluster.nodes[first].command(&["WAIT", "1", "5000"]);
    scene.cluster.nodes[first].kill();
    let second = scene.cluster.wait_for_failover(&scene.namespace, first);
    scene.listen_at(second, "2").await;
    scene.news_come("after a failover").await;
}

/// Nobody closes the connections to a node that is frozen.
#[tokio::test]
async fn nobody_goes_on_listening_to_a_node_that_is_frozen() {
    let scene = Scene::begin().await;
    let first = scene.holder();
    scene.cluster.nodes[first].freeze();
    let second = scene.cluster.wait_for_failover(&scene.namespace, first);
    scene.listen_at(second, "2").await;
    scene.news_come("after a freeze").await;
    scene.cluster.nodes[first].thaw();
}

/// A cluster of one node.
async fn lone_node() -> (RedisServer, String) {
    let server = RedisServer::options().cluster();
    let server = server.start();
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    until("a cluster that is up", async || {
        let told = server.command(&["CLUSTER", "INFO"]);
        told.contains("cluster_state:ok").then_some(())
    })
    .await;
    (server, fresh_namespace())
}

fn set_user_of_cluster(server: &RedisServer, rule: &[String]) -> String {
    set_user(server, "me", rule).replace("redis://", "redis+cluster://")
}

#[tokio::test]
async fn the_rule_for_clusters_in_the_manual_is_enough() {
    let (server, namespace) = lone_node().await;
    let rule = rule_in_cluster(&namespace);
    assert!(rule.contains(&"+ssubscribe".to_owned()), "{rule:?}");
    let spared = ["+publish", "+subscribe", "+select"];
    let rule: Vec<String> = rule
        .into_iter()
        .filter(|word| !spared.contains(&word.as_str()))
        .collect();
    let url = set_user_of_cluster(&server, &rule);
    use_all_of(&RedisStore::open(&url, &namespace).unwrap()).await;
    assert_eq!(server.command(&["ACL", "LOG"]), "");
    let tried = [
        "+cluster|keyslot",
        "+cluster|nodes",
        "+asking",
        "+spublish",
        "+ssubscribe",
    ];
    for missing in tried {
        let rest: Vec<String> = rule
            .iter()
            .filter(|rule| **rule != missing)
            .cloned()
            .collect();
        let url = set_user_of_cluster(&server, &rest);
        let store = RedisStore::open(&url, &namespace).unwrap();
        let said = match missing {
            "+spublish" | "+ssubscribe" => warned(&store).await,
            _ => refused(|| store.ready()).await,
        };
        let (_, told) = said.split_once("ACL SETUSER me ").unwrap();
        let (told, _) = told.split_once(';').unwrap_or((told, ""));
        assert!(told.contains(missing), "{missing}: {said}");
    }
}

/// A fleet in which a job runs when it is asked for, and is looked for each sixth of a lease.
fn fleet(url: &str, namespace: &str, lease_ttl: &str) -> Fleet {
    let table = format!(
        "[scheduler]\nnamespace = \"{namespace}\"\nlisten = \"off\"\nlease_ttl = \"{lease_ttl}\"\n\
         [jobs.asked-for]\nschedule = \"@manual\"\nconcurrency_policy = \"queue\"\n\
         command = [PROBE, \"0\"]\n"
    );
    Fleet::new(url, &table)
}

/// Asks for the job; answers how long it took from then until it ran for the `count`th time.
fn ask_for(fleet: &Fleet, count: usize, within: Duration) -> Duration {
    let (code, _, stderr) = fleet.output(&["trigger", "asked-for"]);
    assert_eq!(code, Some(0), "{stderr}");
    let asked = Instant::now();
    fleet.wait_for_runs(within, |runs| (runs.len() == count).then_some(()));
    asked.elapsed()
}

#[test]
fn a_replica_is_woken_long_before_it_would_look() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, namespace) = runtime.block_on(lone_node());
    let url = set_user_of_cluster(&server, &rule_in_cluster(&namespace));
    // They look each 10 s.
    let fleet = fleet(&url, &namespace, "60s");
    let [_one, _two] = fleet.start_ready(["one", "two"]);
    // Until the first one has run, a new ledger may hold it back.
    ask_for(&fleet, 1, SOON);
    let mut took: Vec<Duration> = (2..=6).map(|count| ask_for(&fleet, count, SOON)).collect();
    took.sort();
    println!("ran after {took:?}");
    assert!(took[2] < Duration::from_secs(1), "{took:?}");
    assert_eq!(server.command(&["ACL", "LOG"]), "");
}

#[test]
fn without_news_all_happens_by_looking() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (server, namespace) = runtime.block_on(lone_node());
    let rule = rule_in_cluster(&namespace).into_iter();
    let rule: Vec<String> = rule.filter(|rule| !rule.starts_with('&')).collect();
    let url = set_user_of_cluster(&server, &rule);
    // They look each 0.5 s.
    let fleet = fleet(&url, &namespace, "3s");
    let [one, _two] = fleet.start_ready(["one", "two"]);
    one.wait_for_line(&["news to other replicas don't travel", "+ssubscribe"]);
    for count in 1..=3 {
        ask_for(&fleet, count, SOON);
    }
    assert_eq!(server.command(&["PUBSUB", "SHARDCHANNELS"]), "");
}
