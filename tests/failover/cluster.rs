//! A cluster: the node that has our keys dies, hands over or gives the slot away.
//!
//! Must never: strike a node without knowing whether it has our keys.

use std::time::Duration;

use test_support::redis::RedisServer;
use test_support::redis_many::{Cluster, Move};

use crate::Scenario;
use crate::scene::{Law, Scene};

const CLUSTER: &str = "Cluster";

/// How long it may take until the replicas know the new node.
const NOTICE: Duration = Duration::from_secs(1);

/// The namespace of a table that names none.
const NAMESPACE: &str = "default";

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        law: "a_node_that_is_killed_is_replaced_and_nothing_overlaps",
        deployment: CLUSTER,
        fault: "the node with our keys killed",
        run: killed,
    },
    Scenario {
        law: "a_failover_of_the_cluster_by_hand_overlaps_nothing",
        deployment: CLUSTER,
        fault: "`CLUSTER FAILOVER`",
        run: by_hand,
    },
    Scenario {
        law: "a_slot_that_moves_under_load_loses_nothing",
        deployment: CLUSTER,
        fault: "our slot moved to another node",
        run: moved,
    },
    Scenario {
        law: "a_node_that_has_none_of_our_keys_may_die",
        deployment: CLUSTER,
        fault: "another node killed, `cluster-require-full-coverage no`",
        run: other_killed,
    },
    Scenario {
        law: "a_cluster_that_wants_all_slots_is_away_until_a_dead_nodes_are_served_again",
        deployment: CLUSTER,
        fault: "another node killed",
        run: other_killed_and_missed,
    },
];

fn killed(scenario: &'static Scenario) {
    let mut cluster = Cluster::start();
    let mut scene = Scene::begin(scenario, &cluster.full_url());
    let holder = cluster.holder(NAMESPACE);
    scene.strike(|| cluster.nodes[holder].kill());
    scene.lift(|| cluster.wait_for_failover(NAMESPACE, holder));
    let law = Law::after_a_grace().with_takeovers();
    scene.end(law.noticed_within(NOTICE));
}

fn by_hand(scenario: &'static Scenario) {
    let cluster = Cluster::start();
    let mut scene = Scene::begin(scenario, &cluster.full_url());
    let holder = cluster.holder(NAMESPACE);
    let replica = &cluster.nodes[cluster.replica_of(holder)];
    scene.strike(|| assert_eq!(replica.command(&["CLUSTER", "FAILOVER"]), "OK"));
    scene.lift(|| cluster.wait_for_failover(NAMESPACE, holder));
    scene.end(Law::after_a_grace().still_for(Duration::ZERO));
}

fn moved(scenario: &'static Scenario) {
    const STEP: Duration = Duration::from_millis(500);
    let cluster = Cluster::start();
    let mut scene = Scene::begin(scenario, &cluster.full_url());
    let from = cluster.holder(NAMESPACE);
    let moving = Move::of(&cluster, NAMESPACE, cluster.other_master(from));
    scene.strike(|| moving.begin());
    scene.hold(STEP);
    moving.keys();
    scene.hold(STEP * 2);
    scene.lift(|| moving.end());
    assert_ne!(cluster.holder(NAMESPACE), from);
    scene.end(Law::after_a_grace().still_for(Duration::ZERO));
}

fn other_killed(scenario: &'static Scenario) {
    let options = RedisServer::options().argument("--cluster-require-full-coverage", "no");
    let mut cluster = Cluster::start_as(&options);
    let mut scene = Scene::begin(scenario, &cluster.full_url());
    let other = cluster.other_master(cluster.holder(NAMESPACE));
    scene.strike(|| cluster.nodes[other].kill());
    scene.hold(Duration::from_secs(3));
    scene.end(Law::at_once());
}

/// By default a cluster answers nobody while any slot has no node, ours or not: that is an outage
/// like any other, from when the death is noticed until the election is over.
fn other_killed_and_missed(scenario: &'static Scenario) {
    let mut cluster = Cluster::start();
    let mut scene = Scene::begin(scenario, &cluster.full_url());
    let other = cluster.other_master(cluster.holder(NAMESPACE));
    let heir = cluster.replica_of(other);
    scene.strike(|| cluster.nodes[other].kill());
    scene.lift(|| cluster.wait_until_served_by(heir));
    scene.end(Law::at_once().with_takeovers());
}
