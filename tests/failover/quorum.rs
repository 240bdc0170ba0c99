//! Five independent servers, of which a majority holds the ledger: a minority fails unnoticed.
//!
//! Must never: strike more of them than it says.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use test_support::fleet::SOON;
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

/// Each step is a question to five servers: of these scenarios two cores bear one at a time beside
/// the others.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

pub(crate) fn is_of_quorum(scenario: &Scenario) -> bool {
    scenario.deployment.starts_with(QUORUM)
}

/// Longer than a lease lasts.
const LONGER: Duration = Duration::from_millis(4500);

/// Five servers, and the turn of this scenario.
fn five() -> (Vec<RedisServer>, String, MutexGuard<'static, ()>) {
    let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let servers: Vec<RedisServer> = (0..5).map(|_| RedisServer::start()).collect();
    let hosts = servers
        .iter()
        .map(|server| format!("127.0.0.1:{}", server.port()));
    let hosts: Vec<String> = hosts.collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    (servers, url, turn)
}

fn minority_emptied(scenario: &'static Scenario) {
    let (mut servers, url, _turn) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers[..2].iter_mut().for_each(RedisServer::kill));
    scene.hold(TTL);
    servers[..2].iter_mut().for_each(RedisServer::restart);
    scene.end(Law::at_once());
}

fn frozen(scenario: &'static Scenario, count: usize, law: Law) {
    assert!(LONGER > TTL);
    let (servers, url, _turn) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers[..count].iter().for_each(RedisServer::freeze));
    scene.hold(LONGER);
    scene.lift(|| servers[..count].iter().for_each(RedisServer::thaw));
    scene.end(law);
}

fn each_in_turn(scenario: &'static Scenario) {
    let (mut servers, url, _turn) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers[0].restart());
    for turn in 1..5 {
        wait_until_it_has_caught_up(&servers[turn - 1]);
        servers[turn].restart();
    }
    scene.end(Law::at_once());
}

/// Waits until a server that was started again counts among those that have the ledger.
fn wait_until_it_has_caught_up(server: &RedisServer) {
    let info = server.command(&["INFO", "server"]);
    let run_id = info.lines().find_map(|line| line.strip_prefix("run_id:"));
    let run_id = run_id.expect("a run id").trim();
    let deadline = Instant::now() + SOON;
    let member = || {
        // It has no key at first.
        let key = server.command(&["KEYS", "soloist:*:jobs"]);
        server.command(&["HGET", &key, "#member"])
    };
    while member() != run_id {
        assert!(Instant::now() < deadline, "it has not caught up");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn all_emptied(scenario: &'static Scenario) {
    let (mut servers, url, _turn) = five();
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| servers.iter_mut().for_each(RedisServer::kill));
    scene.hold(Duration::from_secs(1));
    scene.lift(|| servers.iter_mut().for_each(RedisServer::restart));
    scene.end(Law::after_a_grace().with_the_ledger_lost());
}
