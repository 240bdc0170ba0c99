//! One server that keeps its data, whatever becomes of it: nothing overlaps, nothing is lost.
//!
//! Must never: use a server without an append-only file: that is another promise.

use std::time::Duration;

use test_support::acl;
use test_support::redis::RedisServer;

use crate::Scenario;
use crate::scene::{Law, Scene};
use crate::table::TTL;

const SERVER: &str = "one server";

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        law: "a_server_that_is_frozen_for_less_than_a_lease_stops_no_job",
        deployment: SERVER,
        fault: "frozen for 1 s",
        run: |scenario| frozen(scenario, Duration::from_secs(1)),
    },
    Scenario {
        law: "a_server_that_is_frozen_for_more_than_a_lease_overlaps_nothing",
        deployment: SERVER,
        fault: "frozen for 4.5 s",
        run: |scenario| frozen(scenario, TTL * 3 / 2),
    },
    Scenario {
        law: "a_server_that_is_killed_and_has_its_data_loses_nothing",
        deployment: SERVER,
        fault: "killed, started with its data",
        run: killed,
    },
    Scenario {
        law: "a_full_server_stops_no_job_and_loses_nothing",
        deployment: SERVER,
        fault: "`maxmemory` reached",
        run: full,
    },
    Scenario {
        law: "a_server_that_was_made_a_replica_and_a_master_again_loses_nothing",
        deployment: SERVER,
        fault: "`REPLICAOF`, and back",
        run: demoted,
    },
    Scenario {
        law: "a_user_without_permissions_for_a_while_loses_nothing",
        deployment: SERVER,
        fault: "permissions revoked",
        run: revoked,
    },
];

fn keeping() -> RedisServer {
    RedisServer::options().appendonly().start()
}

fn says_ok(server: &RedisServer, command: &[&str]) {
    assert_eq!(server.command(command), "OK", "{command:?}");
}

fn frozen(scenario: &'static Scenario, time: Duration) {
    let server = keeping();
    let mut scene = Scene::begin(scenario, &server.url());
    scene.strike(|| server.freeze());
    scene.hold(time);
    scene.lift(|| server.thaw());
    let law = Law::at_once().still_for(time);
    scene.end(if time > TTL {
        law.with_takeovers()
    } else {
        law
    });
}

fn killed(scenario: &'static Scenario) {
    let mut server = keeping();
    let mut scene = Scene::begin(scenario, &server.url());
    scene.strike(|| server.kill());
    scene.hold(Duration::from_secs(1));
    scene.lift(|| server.restart());
    scene.end(Law::after_a_grace());
}

fn full(scenario: &'static Scenario) {
    const TIME: Duration = Duration::from_secs(4);
    let server = keeping();
    let mut scene = Scene::begin(scenario, &server.url());
    scene.strike(|| says_ok(&server, &["CONFIG", "SET", "maxmemory", "1"]));
    scene.hold(TIME);
    scene.lift(|| says_ok(&server, &["CONFIG", "SET", "maxmemory", "0"]));
    // Longer than a lease, and yet no lease was lost.
    scene.end(Law::at_once().still_for(TIME));
}

fn demoted(scenario: &'static Scenario) {
    const TIME: Duration = Duration::from_secs(1);
    let server = keeping();
    let mut scene = Scene::begin(scenario, &server.url());
    // Of a master that isn't there: it keeps its data.
    scene.strike(|| says_ok(&server, &["REPLICAOF", "127.0.0.1", "1"]));
    scene.hold(TIME);
    scene.lift(|| says_ok(&server, &["REPLICAOF", "NO", "ONE"]));
    // It is the same server, and nobody wrote to it meanwhile; but that can't be known.
    scene.end(Law::after_a_grace().still_for(TIME));
}

fn revoked(scenario: &'static Scenario) {
    const TIME: Duration = Duration::from_secs(1);
    let server = keeping();
    let rule = acl::rule("default");
    let url = acl::set_user(&server, "shop", &rule);
    let mut scene = Scene::begin(scenario, &url);
    scene.strike(|| says_ok(&server, &["ACL", "SETUSER", "shop", "-@all"]));
    scene.hold(TIME);
    scene.lift(|| acl::set_user(&server, "shop", &rule));
    scene.end(Law::at_once().still_for(TIME));
}
