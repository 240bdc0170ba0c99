//! What people read, and what becomes of a self-test that does not come to its end.

use rustix::process::Signal;

use test_support::machine::alone;

use crate::scene::{Place, dump, server_with_data};

#[test]
fn one_that_is_interrupted_says_that_it_has_no_verdict_and_cleans_up() {
    let (place, server) = (Place::new(), server_with_data());
    let before = dump(&server);
    let started = place.start(&server.url(), &["--duration", "60s", "--replicas", "3"]);
    // Itself, and three replicas with their guardians.
    place.wait_for_processes(7);
    started.signal(Signal::INT);
    let ended = started.wait();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for said in [
        "soloist verify: 3 replicas for 1m 0s on redis://127.0.0.1:",
        "  writes     the namespace soloist-verify-",
        "  hurts      only these replicas: kill -9 of a replica",
        "--seed ",
        "INTERRUPTED",
        "nothing is left: no process, no file, no key",
    ] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("HELD"), "{}", ended.stdout);
    assert_eq!(dump(&server), before);
    assert_eq!(place.files(), [""; 0]);
    assert_eq!(place.processes(), []);
}

#[test]
fn of_one_that_is_killed_no_process_is_left() {
    let (place, server) = (Place::new(), server_with_data());
    let started = place.start(&server.url(), &["--duration", "60s", "--replicas", "3"]);
    place.wait_for_processes(7);
    // They start before there is a key of theirs.
    place.wait_for_lines(1);
    started.signal(Signal::KILL);
    started.wait();
    place.wait_until_empty();
    // What the manual says is left: the keys of one namespace, and a directory.
    let left = dump_names(&server);
    let foreign = ["mine", "soloist-verify-mine", "soloist:{shop}:jobs"];
    for key in left.iter().filter(|key| !foreign.contains(&key.as_str())) {
        assert!(key.starts_with("soloist:{soloist-verify-"), "{key}");
    }
    assert!(left.len() > foreign.len(), "{left:?}");
    assert_eq!(place.files().len(), 1, "{:?}", place.files());
}

fn dump_names(server: &test_support::redis::RedisServer) -> Vec<String> {
    let keys = server.command(&["KEYS", "*"]);
    keys.lines().map(str::to_owned).collect()
}

#[test]
fn a_store_that_forgets_is_told_and_its_losses_are_nobody_elses() {
    let _alone = alone();
    let (place, server) = (Place::new(), server_with_data());
    let words = ["--duration", "12s", "--replicas", "3", "--json"];
    let started = place.start(&server.url(), &words);
    place.wait_for_processes(7);
    // All are at work, and what has run is to be forgotten.
    place.wait_for_lines(400);
    server.command(&["FLUSHALL"]);
    let ended = started.wait();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let json = ended.json();
    assert_eq!(json["outcome"], "store_forgot", "{json:#}");
    assert_eq!(json["laws"]["lost"], 0, "{json:#}");
    assert!(
        json["because"]
            .as_str()
            .is_some_and(|why| why.contains("began anew")),
        "{json:#}"
    );
    let said = "writes     the namespace soloist-verify-";
    assert!(ended.stderr.contains(said), "{ended:?}");
    assert_eq!(dump(&server), []);
}

#[test]
fn a_store_that_goes_away_is_told_and_what_may_be_left_there_is_named() {
    let (place, mut server) = (Place::new(), server_with_data());
    let started = place.start(&server.url(), &["--duration", "20s", "--replicas", "2"]);
    place.wait_for_processes(5);
    server.kill();
    let ended = started.wait();
    assert_eq!(ended.code, Some(3), "{ended:?}");
    for said in [
        "STORE LOST",
        "these may be left",
        ":jobs",
        ":history:long-a",
        ":plain:apart:long-a",
    ] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("nothing is left"));
    assert_eq!(place.files(), [""; 0]);
    assert_eq!(place.processes(), []);
}
