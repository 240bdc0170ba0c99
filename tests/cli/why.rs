//! What `why` tells through the program. What it tells of each fate is in `tests/why`.

use crate::soloist::Place;

/// No store of any other command: nothing has run.
const NOTHING_RAN: &str = "--store=memory:";

const TABLE: &str = r#"
[jobs.close-expired-orders]
schedule = "0 22 * * *"
timezone = "Asia/Shanghai"
command = ["true"]

[jobs.by-hand]
schedule = "@manual"
command = ["true"]
"#;

#[test]
fn why_tells_of_an_instant_and_of_a_local_time_alike() {
    let place = Place::with_table(TABLE);
    let times = [
        &["2099-11-20T14:00:00Z"][..],
        &["2099-11-20 22:00"],
        &["2099-11-20", "22:00"],
        &["2099-11-20T22:00:00+08:00"],
    ];
    for time in times {
        let args = [&[NOTHING_RAN, "why", "close-expired-orders"], time].concat();
        let ended = place.run(&args);
        assert_eq!(ended.code, Some(0), "{time:?}: {}", ended.stderr);
        let head = "close-expired-orders at 2099-11-20T14:00:00Z (2099-11-20 22:00:00 in Asia/Shanghai) is still to come.\n";
        assert!(ended.stdout.starts_with(head), "{time:?}: {}", ended.stdout);
        assert_eq!(ended.stderr, "");
    }
}

#[test]
fn why_gives_programs_fields() {
    let place = Place::with_table(TABLE);
    let time = "2099-11-20T14:00:00Z";
    let ended = place.run(&[NOTHING_RAN, "why", "close-expired-orders", time, "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let json: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(json["accounts"][0]["fate"], "to_come", "{json:#}");
    assert_eq!(json["accounts"][0]["scheduled_at"], time, "{json:#}");
}

#[test]
fn why_of_what_was_never_due_can_tell_and_ends_well() {
    let place = Place::with_table(TABLE);
    let ended = place.run(&[NOTHING_RAN, "why", "by-hand", "02:30"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = "is not an occurrence.\nThe job runs only when somebody says so: its schedule is `@manual`.\n";
    assert!(ended.stdout.ends_with(told), "{}", ended.stdout);
}

#[test]
fn why_of_an_unknown_job_names_the_nearest() {
    let place = Place::with_table(TABLE);
    let ended = place.run(&[NOTHING_RAN, "why", "close-expired-order", "02:30"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let told = "error: neither the table nor the ledger at memory: has a job `close-expired-order`\n  = help: did you mean `close-expired-orders`?\n";
    assert_eq!(ended.stderr, told);
    let ended = Place::empty().run(&[NOTHING_RAN, "why", "x", "02:30"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    let told = "error: no table that can be read is here, and the ledger at memory: does not have a job `x`\n  = help: `soloist status` lists the jobs that are known\n";
    assert_eq!(ended.stderr, told);
}

#[test]
fn why_at_no_time_says_how_to_write_one() {
    let place = Place::with_table(TABLE);
    for (time, told) in [
        (
            "yesterday",
            "error: `yesterday`: it is no instant, date and time, or time of day\n  = help: write `2026-11-20T22:00:00Z`, `2026-11-20 02:30` in the job's zone, or `02:30` for the newest one up to now\n",
        ),
        (
            "2026-11-20",
            "error: `2026-11-20`: it says which day and not what time\n  = help: add the time of day: `2026-11-20 02:30`, in the job's zone\n",
        ),
    ] {
        let ended = place.run(&[NOTHING_RAN, "why", "by-hand", time]);
        assert_eq!(ended.code, Some(2), "{time}: {}", ended.stdout);
        assert_eq!(ended.stderr, told);
    }
    let ended = place.run(&[NOTHING_RAN, "why", "by-hand"]);
    assert_eq!(ended.code, Some(2), "{}", ended.stdout);
}

#[test]
fn why_without_a_store_ends_with_3() {
    let place = Place::with_table(TABLE);
    let ended = place.run(&["--store=redis://127.0.0.1:1", "why", "by-hand", "02:30"]);
    assert_eq!(ended.code, Some(3), "{}", ended.stdout);
}

#[test]
fn why_tells_of_what_ran_by_hand_from_the_time_that_history_shows() {
    let place = Place::with_table(TABLE);
    let store = format!("--store=sqlite:{}", place.path("soloist.db").display());
    let ran = place.run(&[&store, "run-once", "by-hand", "--replica", "laptop"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let history = place.run(&[&store, "history", "--json"]);
    let lines: serde_json::Value = serde_json::from_str(&history.stdout).expect("JSON");
    let time = lines[0]["scheduled_at"].as_str().expect("an instant");
    let ended = place.run(&[&store, "why", "by-hand", time]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(told[0], format!("by-hand at {time} succeeded."));
    assert_eq!(told[1], "It was run by hand, by `run-once`.");
    let attempt = format!("under token {}, and succeeded.", lines[0]["token"]);
    assert!(told[2].ends_with(&attempt), "{told:#?}");
}
