//! Five independent servers, of which a majority holds the ledger: a minority fails unnoticed.
//!
//! Must never: strike more of them than it says.

use std::time::Duration;

use test_support::redis::RedisServer;

use crate::Scenario;
use crate::scene::{Law, Scene};
use crate::table::TTL;

const QUORUM: &str = "quorum of five";

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        law: "a_minority_that_loses_its_data_is_not_noticed",
        deployment: QUORUM,
        fault: "two killed, started without data",
        run: minority_emptied,
    },
    Scenario {
        law: "a_minority_that_is_frozen_is_not_noticed",
        deployment: QUORUM,
        fault: "two frozen for 4.5 s",
        run: |scenario| frozen(scenario, 2, Law::at_once()),
    },
    Scenario {
        law: "servers_that_lose_their_data_one_after_the_other_are_not_noticed",
        deployment: QUORUM,
        fault: "each killed in turn, started without data",
        run: each_in_turn,
    },
    Scenario {
        law: "without_a_majority_of_servers_nothing_starts",
        deployment: QUORUM,
        fault: "three frozen for 4.5 s",
        run: |scenario| frozen(scenario, 3, Law::at_once().with_takeovers()),
    },
    Scenario {
        law: "servers_that_all_lose_their_data_begin_anew_and_nothing_overlaps",
        deployment: "quorum of five, data lost",
        fault: "all killed, started without data",
        run: all_emptied,
    },
];

/// Longer than a lease lasts.
const LONGER: Duration = Duration::from_millis(4500);

fn five() -> (Vec<RedisServer>, String) {
    let servers: Vec<RedisServer> = (0..5).map(|_| RedisServer::start()).collect();
    let hosts = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()));
    let hosts: Vec<String> = hosts.collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    (servers, url)
}

fn minority_emptied(scenario: &'static Scenario) {
    let (mut servers, url) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers[..2].iter_mut().for_each(RedisServer::kill));
    scene.hold(TTL);
    servers[..2].iter_mut().for_each(RedisServer::restart);
    scene.end(Law::at_once());
}

fn frozen(scenario: &'static Scenario, count: usize, law: Law) {
    assert!(LONGER > TTL);
    let (servers, url) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers[..count].iter().for_each(RedisServer::freeze));
    scene.hold(LONGER);
    scene.lift(|| servers[..count].iter().for_each(RedisServer::thaw));
    scene.end(law);
}

fn each_in_turn(scenario: &'static Scenario) {
    let (mut servers, url) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers[0].restart());
    for (turn, server) in (1..).zip(&mut servers[1..]) {
        // Those before it have caught up by then.
        scene.hold(TTL * turn);
        server.restart();
    }
    scene.end(Law::at_once());
}

fn all_emptied(scenario: &'static Scenario) {
    let (mut servers, url) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers.iter_mut().for_each(RedisServer::kill));
    scene.hold(Duration::from_secs(1));
    scene.lift(|| servers.iter_mut().for_each(RedisServer::restart));
    scene.end(Law::after_a_grace().with_the_ledger_lost());
}
