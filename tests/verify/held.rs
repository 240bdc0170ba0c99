//! A self-test that is passed: its figures, and that nothing is left of it.

use std::fs;

use serde_json::Value;
use test_support::machine::alone;

use crate::scene::{Place, dump, server_with_data};

fn count(json: &Value, path: &str) -> u64 {
    let found = json.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("no {path} in {json:#}"))
}

/// What holds of each that was passed.
fn hold_to_its_word(json: &Value) {
    assert_eq!(json["outcome"], "held", "{json:#}");
    assert_eq!(json["violations"], serde_json::json!([]), "{json:#}");
    let laws = json["laws"].as_object().expect("laws");
    assert_eq!(laws.len(), 8, "{laws:?}");
    assert!(laws.values().all(|count| *count == 0), "{laws:?}");
    let faults = json["faults"].as_object().expect("faults");
    let of_all: u64 = faults.values().filter_map(Value::as_u64).sum();
    assert!(of_all >= 5, "{faults:?}");
    // Four short jobs and six long ones, for eight seconds.
    let due = count(json, "/occurrences/due");
    assert!(due >= 30, "{due}");
    let fates = ["succeeded", "skipped", "missed", "closed"];
    let told: u64 = fates
        .iter()
        .map(|fate| count(json, &format!("/occurrences/{fate}")))
        .sum();
    assert_eq!(told, due, "each has one fate: {json:#}");
    assert!(count(json, "/occurrences/succeeded") > due / 3, "{json:#}");
    assert!(count(json, "/runs/attempts") >= count(json, "/occurrences/succeeded"));
    assert!(count(json, "/answers/count") > 10, "{json:#}");
    assert_eq!(json["cleanup"]["processes_gone"], true);
    assert_eq!(json["cleanup"]["left"], serde_json::json!([]));
    // The plain lock whose clocks are apart: that is what they were spared.
    let apart = &json["plain_locks"][1];
    assert_eq!(apart["clocks_apart_seconds"], 1.0);
    assert!(count(apart, "/findings/ran_twice") > 0, "{json:#}");
}

#[test]
fn on_a_server_with_data_of_others_all_holds_and_nothing_of_it_is_left() {
    let _alone = alone();
    let (place, server) = (Place::new(), server_with_data());
    let before = dump(&server);
    assert_eq!(before.len(), 3);
    let words = ["--duration", "8s", "--seed", "11", "--json"];
    let ended = place.run(&server.url(), &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    hold_to_its_word(&json);
    assert_eq!(json["seed"], 11);
    assert_eq!(json["plain_locks"][1]["in_memory"], false);
    assert!(count(&json, "/faults/cut_link") > 0, "{json:#}");
    assert_eq!(dump(&server), before);
    assert_eq!(place.files(), [""; 0]);
    assert_eq!(place.processes(), []);
    // What a replica does, and the plain lock; nothing that would hurt a server.
    let commands = server.commandstats();
    for (command, stat) in &commands {
        let hurts = [
            "flush",
            "debug",
            "shutdown",
            "client|kill",
            "config|set",
            "scan",
        ];
        let hurts = hurts.iter().any(|word| command.starts_with(word));
        assert!(!hurts, "{command}: {stat:?}");
    }
    assert!(
        commands["set"].calls > 10,
        "the plain lock was on the server"
    );
}

#[test]
fn on_a_file_all_holds_beside_the_users_own_which_is_not_touched() {
    let _alone = alone();
    let place = Place::new();
    let data = Place::new();
    let file = data.path().join("mine.db");
    fs::write(&file, "no database at all").expect("written");
    let url = format!("sqlite:{}", file.display());
    let words = ["--duration", "8s", "--seed", "12", "--json"];
    let ended = place.run(&url, &words);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let json = ended.json();
    hold_to_its_word(&json);
    assert_eq!(json["plain_locks"][1]["in_memory"], true);
    assert!(json["faults"].get("cut_link").is_none(), "{json:#}");
    assert!(json["not_tried"].to_string().contains("cut links"));
    assert_eq!(data.files(), ["mine.db"]);
    let text = fs::read_to_string(&file).expect("still there");
    assert_eq!(text, "no database at all");
    assert_eq!(place.files(), [""; 0]);
    assert_eq!(place.processes(), []);
}
