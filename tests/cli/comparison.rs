//! `check --store`: a table beside the ledger, before any replica starts with it.

use std::fs;

use crate::soloist::Place;

const BEFORE: &str = "[scheduler]\nstore = \"sqlite:store.db\"\n[jobs.close-orders]\nschedule = \"0 22 * * *\"\nshell = \"x\"\n[jobs.sweep]\nschedule = \"@hourly\"\nshell = \"x\"\n";

const AFTER: &str = "[scheduler]\nstore = \"sqlite:store.db\"\n[jobs.close-order]\nschedule = \"0 22 * * *\"\nshell = \"x\"\n[jobs.sweep]\nschedule = \"@daily\"\nshell = \"x\"\n";

/// A place whose ledger knows the table as it was.
fn place() -> Place {
    let place = Place::with_table(BEFORE);
    let ended = place.run(&["pause", "close-orders", "sweep", "--by", "alice"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = place.run(&["resume", "close-orders"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    fs::write(place.path("jobs.toml"), AFTER).expect("written");
    place
}

#[test]
fn a_renamed_job_is_told_to_be_a_new_one_and_a_changed_schedule_is_told() {
    let place = place();
    let ended = place.run(&["check", "--store"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let (_, found) = ended
        .stdout
        .split_once("beside the ledger")
        .expect("a part");
    for (job, words) in [
        (
            "close-order",
            "if it was `close-orders`, which has this schedule: a renamed job is a new one",
        ),
        ("close-order", "never runs its past"),
        (
            "close-orders",
            "not in this table, it never ran; if it is `close-order` now",
        ),
        ("sweep", "another schedule: `@daily"),
        ("sweep", "paused since 2"),
    ] {
        let head = format!("  {job}: ");
        let mut lines = found.lines().filter(|line| line.starts_with(&head));
        assert!(
            lines.any(|line| line.contains(words)),
            "{head}{words}\n{found}"
        );
    }
    let again = place.run(&["check", "--store"]);
    assert_eq!(again.stdout, ended.stdout, "to look changes nothing");
}

#[test]
fn only_a_store_on_the_line_is_looked_at() {
    let place = place();
    let beside = |args: &[&str], env: &[(&str, &str)]| {
        let ended = place.run_with(args, env);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout.contains("beside the ledger at sqlite:")
    };
    assert!(!beside(&["check"], &[]));
    assert!(!beside(
        &["check"],
        &[("SOLOIST_STORE", "redis://127.0.0.1:1")]
    ));
    assert!(beside(&["check", "--store", "sqlite:store.db"], &[]));
    assert!(beside(
        &["check", "--store"],
        &[("SOLOIST_STORE", "sqlite:store.db")]
    ));
}

#[test]
fn a_ledger_that_knows_all_jobs_as_they_are_has_nothing_to_tell() {
    let place = place();
    fs::write(place.path("jobs.toml"), BEFORE).expect("written");
    place.run(&["resume", "sweep"]);
    let ended = place.run(&["check", "--store"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.ends_with("knows all 2 jobs as they are\n"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_store_that_is_away_is_3_after_the_table_and_a_bad_table_is_2() {
    let place = place();
    let away = ["check", "--store", "redis://127.0.0.1:1"];
    let ended = place.run(&away);
    assert_eq!(ended.code, Some(3), "{ended:?}");
    assert!(ended.stdout.contains("jobs.toml: 2 jobs"), "{ended:?}");
    fs::write(place.path("jobs.toml"), "[jobs.x]\n").expect("written");
    assert_eq!(place.run(&away).code, Some(2));
}
