//! What can't be tested, and what is asked for wrongly.

use test_support::acl;
use test_support::machine::alone;
use test_support::redis::RedisServer;

use crate::scene::{Place, dump};

#[test]
fn a_store_that_is_not_there_is_told_at_once() {
    let place = Place::new();
    // Nobody listens on the port of TCP's port multiplexer (RFC 1078) on a host of today.
    let ended = place.run("redis://127.0.0.1:1", &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stderr.contains("can't be reached"), "{ended:?}");
    assert_eq!(ended.stdout, "");
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn a_server_whose_memory_is_short_is_left_alone() {
    for (policy, said) in [
        ("allkeys-lru", "would delete keys of others"),
        ("noeviction", "would refuse what others write"),
    ] {
        let (place, server) = (Place::new(), RedisServer::start());
        server.command(&["SET", "mine", "1"]);
        server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        server.command(&["CONFIG", "SET", "maxmemory", "30mb"]);
        let before = dump(&server);
        let ended = place.run(&server.url(), &[]);
        assert_eq!(ended.code, Some(3), "{ended:?}");
        assert!(ended.stderr.contains(said), "{ended:?}");
        assert!(!ended.stderr.contains("patterns"), "{ended:?}");
        assert_eq!((dump(&server), place.files().len()), (before, 0));
    }
}

#[test]
fn a_user_who_is_held_to_patterns_is_told_which_one_is_needed() {
    let (place, server) = (Place::new(), RedisServer::start());
    let url = acl::set_user(&server, "ann", &acl::rule("shop"));
    let before = dump(&server);
    let ended = place.run(&url, &[]);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let rule = "~soloist:{soloist-verify-* &soloist:{soloist-verify-*";
    assert!(ended.stderr.contains(rule), "{ended:?}");
    // Not how to allow a namespace that is there once.
    assert!(!ended.stderr.contains("SETUSER"), "{ended:?}");
    assert_eq!(dump(&server), before);
}

#[test]
fn a_user_who_may_do_what_replicas_do_is_not_compared_with_a_plain_lock() {
    let _alone = alone();
    let (place, server) = (Place::new(), RedisServer::start());
    let mut rule = acl::rule("shop");
    for word in &mut rule {
        *word = word.replace("{shop}:*", "{soloist-verify-*");
        *word = word.replace("{shop}:events", "{soloist-verify-*");
    }
    let url = acl::set_user(&server, "ann", &rule);
    let ended = place.run(&url, &["--duration", "8s", "--replicas", "3", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    assert_eq!(json["outcome"], "held", "{json:#}");
    let apart = &json["plain_locks"][1];
    assert!(apart.get("findings").is_none(), "{json:#}");
    let refused = apart["refused"].as_str().unwrap_or_default();
    assert!(refused.contains("NOPERM"), "{json:#}");
    assert_eq!(dump(&server), []);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_done() {
    let place = Place::new();
    for (store, words, said) in [
        ("memory:", &[][..], "no replicas can share it"),
        ("nonsense", &[], "no URL"),
        ("redis://h", &["--duration", "1s"], "it takes from 8s to 1h"),
        ("redis://h", &["--duration", "soon"], "a duration, such as"),
        ("redis://h", &["--duration", "-5s"], "a duration, such as"),
        ("redis://h", &["--replicas", "1"], "2..=20"),
        ("redis://h", &["--seed", "x"], "invalid"),
    ] {
        let ended = place.run(store, words);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.stderr.contains(said), "{said}: {}", ended.stderr);
        assert_eq!(place.files(), [""; 0]);
    }
}
