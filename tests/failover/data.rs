//! One server that forgets: what is known only to the replicas has to do.
//!
//! Must never: demand the lines that went with the ledger.

use std::time::Duration;

use test_support::redis::RedisServer;

use crate::Scenario;
use crate::scene::{Law, Scene};

const SERVER: &str = "one server, data lost";

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        law: "a_server_that_comes_back_empty_overlaps_nothing",
        deployment: SERVER,
        fault: "killed, started without data",
        run: emptied,
    },
    Scenario {
        law: "a_server_that_comes_back_older_reruns_only_what_may_rerun",
        deployment: SERVER,
        fault: "killed, started with data 2.5 s old",
        run: older,
    },
    Scenario {
        law: "a_flush_overlaps_nothing",
        deployment: SERVER,
        fault: "`FLUSHALL`",
        run: flushed,
    },
    Scenario {
        law: "keys_that_are_deleted_overlap_nothing",
        deployment: SERVER,
        fault: "`DEL` of all our keys",
        run: deleted,
    },
];

fn emptied(scenario: &'static Scenario) {
    let mut server = RedisServer::start();
    let mut scene = Scene::begin(scenario, &server.url());
    scene.strike(|| server.kill());
    scene.hold(Duration::from_secs(1));
    scene.lift(|| server.restart());
    scene.end(Law::after_a_grace().with_the_ledger_lost());
}

fn older(scenario: &'static Scenario) {
    const AGE: Duration = Duration::from_millis(2500);
    let mut server = RedisServer::start();
    let mut scene = Scene::begin(scenario, &server.url());
    assert_eq!(server.command(&["SAVE"]), "OK");
    std::thread::sleep(AGE);
    scene.strike(|| server.kill());
    scene.hold(Duration::from_millis(500));
    scene.lift(|| server.restart());
    // What was running then is taken over, though it has ended since.
    scene.end(Law::after_a_grace().with_takeovers().forgetting(AGE));
}

fn flushed(scenario: &'static Scenario) {
    let server = RedisServer::start();
    let mut scene = Scene::begin(scenario, &server.url());
    scene.strike(|| assert_eq!(server.command(&["FLUSHALL"]), "OK"));
    scene.end(Law::after_a_grace().with_the_ledger_lost());
}

fn deleted(scenario: &'static Scenario) {
    let server = RedisServer::start();
    let mut scene = Scene::begin(scenario, &server.url());
    let keys = server.command(&["KEYS", "soloist:*"]);
    let command: Vec<&str> = std::iter::once("DEL").chain(keys.lines()).collect();
    scene.strike(|| assert_ne!(server.command(&command), "0"));
    scene.end(Law::after_a_grace().with_the_ledger_lost());
}
