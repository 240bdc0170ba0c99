//! One server that is well, and connections to it that are not.
//!
//! Must never: let a replica that reaches the server stand still because another one doesn't.

use std::time::{Duration, Instant};

use test_support::redis::RedisServer;
use test_support::relay::Relay;

use crate::Scenario;
use crate::scene::{Law, Scene};
use crate::table::TTL;

const SERVER: &str = "one server, bad links";

pub(crate) const ALL: &[Scenario] = &[
    Scenario {
        law: "clients_that_are_killed_come_back_at_once",
        deployment: SERVER,
        fault: "`CLIENT KILL` of all",
        run: killed,
    },
    Scenario {
        law: "clients_that_are_paused_lose_nothing",
        deployment: SERVER,
        fault: "`CLIENT PAUSE`",
        run: paused,
    },
    Scenario {
        law: "a_replica_that_is_cut_off_is_taken_over_and_the_others_go_on",
        deployment: SERVER,
        fault: "one replica cut off, silently",
        run: cut_off,
    },
    Scenario {
        law: "replies_that_are_cut_short_double_nothing",
        deployment: SERVER,
        fault: "replies cut short, all the time",
        run: cut_short,
    },
];

fn killed(scenario: &'static Scenario) {
    let server = RedisServer::start();
    let mut scene = Scene::begin(scenario, &server.url());
    scene.strike(|| {
        for kind in ["normal", "pubsub"] {
            let killed = server.command(&["CLIENT", "KILL", "TYPE", kind]);
            assert_ne!(killed, "0", "{kind}");
        }
    });
    scene.end(Law::at_once());
}

fn paused(scenario: &'static Scenario) {
    const TIME: Duration = Duration::from_secs(1);
    let server = RedisServer::start();
    let mut scene = Scene::begin(scenario, &server.url());
    let time = TIME.as_millis().to_string();
    scene.strike(|| assert_eq!(server.command(&["CLIENT", "PAUSE", &time, "ALL"]), "OK"));
    scene.hold(TIME);
    scene.lift(|| {});
    scene.end(Law::at_once().still_for(TIME - Duration::from_millis(50)));
}

fn cut_off(scenario: &'static Scenario) {
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let mut scene = Scene::begin_with(scenario, &server.url(), &relay.url(), "");
    scene.strike(|| relay.cut());
    // What it ran was ended and taken over long ago when it comes back; for the others nothing
    // lasted.
    scene.hold(TTL * 2);
    relay.mend();
    scene.end(Law::at_once().with_takeovers());
}

fn cut_short(scenario: &'static Scenario) {
    let server = RedisServer::start();
    let relay = Relay::to(server.port());
    let url = relay.url();
    let mut scene = Scene::begin_with(scenario, &url, &url, "");
    scene.strike(|| {});
    let end = Instant::now() + TTL;
    let mut cut = 0;
    while Instant::now() < end || cut <= 5 {
        relay.break_reply_to("EVALSHA");
        relay.wait_until_cut();
        cut += 1;
        // Some calls come through in between.
        std::thread::sleep(Duration::from_millis(100));
    }
    relay.mend();
    scene.lift(|| {});
    // A lease of which all renewals met with it runs out.
    scene.end(Law::at_once().with_takeovers());
}
