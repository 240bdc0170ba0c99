//! A master under Sentinels: it changes, and the new one may not know what the old one promised.
//!
//! Must never: take a failover for done before the new master says so itself.

use std::time::Duration;

use test_support::redis::RedisServer;
use test_support::redis_many::{MASTER, Sentinels};

use crate::Scenario;
use crate::scene::{Law, Scene};
use crate::table::TTL;

const SENTINEL: &str = "Sentinel";

/// How long it may take until the replicas know a new master: they ask each half second, and an
/// answer may take 0.7 s.
const NOTICE: Duration = Duration::from_millis(1200);

/// How long the master goes on with nobody to follow it.
const ALONE: Duration = Duration::from_millis(2500);

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        law: "a_master_that_is_killed_is_replaced_and_nothing_overlaps",
        deployment: SENTINEL,
        fault: "master killed",
        run: killed,
    },
    Scenario {
        law: "a_master_that_wakes_up_after_its_replacement_overlaps_nothing",
        deployment: SENTINEL,
        fault: "master frozen, thawed after the failover",
        run: frozen,
    },
    Scenario {
        law: "a_failover_by_hand_overlaps_nothing",
        deployment: SENTINEL,
        fault: "`SENTINEL FAILOVER`",
        run: by_hand,
    },
    Scenario {
        law: "a_failover_that_forgets_grants_reruns_only_what_may_rerun",
        deployment: SENTINEL,
        fault: "writes of 2.5 s lost by the failover",
        run: |scenario| behind(scenario, "", failover().forgetting(ALONE)),
    },
    Scenario {
        law: "with_acknowledged_grants_a_failover_forgets_none",
        deployment: SENTINEL,
        fault: "the same with `min_replicas_ack = 1`",
        run: |scenario| behind(scenario, "min_replicas_ack = 1", failover()),
    },
    Scenario {
        law: "without_a_majority_of_sentinels_nothing_starts",
        deployment: SENTINEL,
        fault: "two of three Sentinels frozen for 7 s",
        run: minority,
    },
];

/// Another master, after a time without one in which leases run out. In the first moments the old
/// one may still be at work.
fn failover() -> Law {
    let law = Law::after_a_grace().still_for(Duration::ZERO);
    law.noticed_within(NOTICE).with_takeovers()
}

fn killed(scenario: &'static Scenario) {
    let mut servers = Sentinels::start();
    let mut scene = Scene::begin(scenario, &servers.full_url());
    scene.strike(|| servers.servers[0].kill());
    scene.lift(|| servers.wait_for_failover(0));
    scene.end(failover().still_for(TTL));
}

fn frozen(scenario: &'static Scenario) {
    let servers = Sentinels::start();
    let mut scene = Scene::begin(scenario, &servers.full_url());
    scene.strike(|| servers.servers[0].freeze());
    scene.lift(|| servers.wait_for_failover(0));
    servers.servers[0].thaw();
    // It takes itself for the master until it is told, and so may a replica that looks a moment
    // later: what it grants then is forgotten.
    scene.end(failover().forgetting(Duration::ZERO));
}

fn by_hand(scenario: &'static Scenario) {
    let servers = Sentinels::start();
    let mut scene = Scene::begin(scenario, &servers.full_url());
    scene.strike(|| {
        let told = servers.sentinels[0].command(&["SENTINEL", "FAILOVER", MASTER]);
        assert_eq!(told, "OK");
    });
    scene.lift(|| servers.wait_for_failover(0));
    scene.end(failover().forgetting(Duration::ZERO));
}

/// The replicas follow nobody for a while, and the master dies before they do again: what it wrote
/// meanwhile is gone.
fn behind(scenario: &'static Scenario, scheduler: &str, law: Law) {
    let mut servers = Sentinels::start();
    let url = servers.full_url();
    let mut scene = Scene::begin_with(scenario, &url, &url, scheduler);
    for server in &servers.servers[1..] {
        let told = server.command(&["REPLICAOF", "127.0.0.1", "1"]);
        assert_eq!(told, "OK");
    }
    std::thread::sleep(ALONE);
    let forgotten = |server: &RedisServer| offset(&servers.servers[0]) - offset(server);
    let missed = servers.servers[1..].iter().map(forgotten).min();
    assert!(missed > Some(0), "nothing was written");
    scene.strike(|| servers.servers[0].kill());
    scene.lift(|| servers.wait_for_failover(0));
    scene.end(law.still_for(TTL));
}

/// How much a server has of what the master wrote.
fn offset(server: &RedisServer) -> i64 {
    let told = server.question(&["INFO", "replication"]);
    let mut lines = told.lines();
    let line = lines.find_map(|line| line.strip_prefix("master_repl_offset:"));
    let offset = line.expect("an offset").trim();
    offset.parse().expect("a number")
}

fn minority(scenario: &'static Scenario) {
    const TIME: Duration = Duration::from_secs(7);
    // Two looks that fail, 2.4 s; what was granted by then has started; and what a busy machine takes.
    const TOLD: Duration = Duration::from_secs(4);
    let servers = Sentinels::start();
    let mut scene = Scene::begin(scenario, &servers.full_url());
    let asleep = || servers.sentinels[1..].iter();
    scene.strike(|| asleep().for_each(RedisServer::freeze));
    scene.hold(TIME);
    scene.lift(|| asleep().for_each(RedisServer::thaw));
    scene.told_after(TOLD);
    let law = Law::at_once().still_for(TIME - TOLD);
    scene.end(law.noticed_within(NOTICE).with_takeovers());
}
