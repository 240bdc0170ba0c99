//! Settings of the server that put the ledger at risk: who is told, and when.

use serde_json::Value;
use test_support::acl::{rule, set_user};
use test_support::redis::RedisServer;

use crate::fleet::Fleet;
use crate::together;

const TABLE: &str = r#"
[defaults]
lease_ttl = "2s"

[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1"]
"#;

fn kinds(fleet: &Fleet) -> Vec<String> {
    let status = fleet.json(&["status", "--json"]);
    let conditions = status["store_conditions"].as_array().cloned();
    let kinds = conditions.unwrap_or_default().into_iter();
    kinds
        .map(|one| one["kind"].as_str().expect("a word").to_owned())
        .collect()
}

#[test]
fn a_policy_that_evicts_is_told_at_the_start_when_it_is_changed_and_by_status() {
    let _machine = together();
    let redis = RedisServer::options().appendonly().start();
    let set = |policy: &str| {
        let answer = redis.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        assert_eq!(answer, "OK");
        // It is looked at with a new connection; else every few minutes.
        redis.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    };
    let fleet = Fleet::new(redis.url(), TABLE);
    let mut a = fleet.start("a");
    a.wait_until_ready();
    assert_eq!(kinds(&fleet), [""; 0]);
    assert_eq!(a.lines_with("maxmemory-policy"), 0);

    set("allkeys-lru");
    a.wait_for_line(&["WARN", "maxmemory-policy allkeys-lru", "noeviction"]);
    let mut b = fleet.start("b");
    b.wait_for_line(&["WARN", "maxmemory-policy allkeys-lru"]);
    assert_eq!(kinds(&fleet), ["evicts"]);
    let (_, text, _) = fleet.output(&["status"]);
    assert!(text.contains("! the server may delete leases"), "{text}");

    set("noeviction");
    for replica in [&mut a, &mut b] {
        replica.wait_for_line(&["no longer so", "allkeys-lru"]);
        assert_eq!(replica.lines_with("maxmemory-policy"), 2, "once each");
        replica.drain();
    }
    assert_eq!(kinds(&fleet), [""; 0]);
}

#[test]
fn a_server_that_keeps_nothing_is_told_and_who_may_not_ask_is_told_nothing() {
    let _machine = together();
    let redis = RedisServer::options().argument("--save", "").start();
    let fleet = Fleet::new(redis.url(), TABLE);
    let mut a = fleet.start("a");
    a.wait_for_line(&["INFO", "keeps nothing on disk", "appendonly"]);
    a.drain();
    assert_eq!(kinds(&fleet), ["keeps_nothing"]);
    for command in ["trigger", "kill", "pause", "resume", "run-once"] {
        let (code, _, stderr) = fleet.output(&[command, "tick"]);
        assert_eq!(code, Some(0), "{command}: {stderr}");
        assert!(!stderr.contains("keeps nothing"), "{command}: {stderr}");
        let tells = stderr.contains("INFO") && stderr.contains("attempt started");
        assert_eq!(tells, command == "run-once", "{command}: {stderr}");
    }
    let (_, _, stderr) = fleet.output(&["--log-level", "info", "trigger", "tick"]);
    assert!(
        stderr.contains("keeps nothing"),
        "it was asked for: {stderr}"
    );
    redis.command(&["CONFIG", "SET", "save", "3600 1"]);
    assert_eq!(kinds(&fleet), [""; 0]);

    redis.command(&["CONFIG", "SET", "save", ""]);
    let user = set_user(&redis, "minimal", &rule("default"));
    let fleet = Fleet::new(user, TABLE);
    let mut b = fleet.start("b");
    b.wait_until_ready();
    assert_eq!(kinds(&fleet), [""; 0]);
    assert_eq!(b.lines_with("keeps nothing"), 0);
    b.drain();
    let status: Value = fleet.json(&["status", "--json"]);
    assert!(status["jobs"].is_array());
}
