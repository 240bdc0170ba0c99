//! Commands that only talk to the store, on a host whose table is broken: they do their work, say
//! so in a line, and never take another store for the one that is meant.

use std::fs;

use crate::soloist::{Ended, Place};

const SCHEDULER: &str = "[scheduler]\nstore = \"sqlite:store.db\"\nnamespace = \"shop\"\n";
const JOB: &str = "[jobs.report]\nschedule = \"@daily\"\nshell = \"x\"\n";

/// What only breaks a table elsewhere.
const BROKEN: [&str; 6] = [
    "[jobs.report]\nschedule = \"61 * * * *\"\nshell = \"x\"\n",
    "[jobs.report]\nschedule = \"@daily\"\nhttp = { url = \"http://h/${NOWHERE}\" }\n",
    "[jobs.report]\nschedule = \"@daily\nshell = \"x\"\n",
    "listen = \"here\"\ninclude = [\"none.toml\"]\n[jobs.report]\nschedule = \"@daily\"\nshell = \"x\"\n",
    "[calendars.c]\ndates = [\"30 February\"]\n[notify.n]\nwebhook = 5\n",
    "[jobs.report]\nretry = { max = -1 }\n[jobs.report]\n",
];

/// A place whose ledger knows a job, which waits for its turn.
fn place() -> Place {
    let place = Place::with_table(format!("{SCHEDULER}{JOB}"));
    let ended = place.run(&["trigger", "report", "--by", "alice"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place
}

/// That it did its work, and told in one line that the table can't be used.
fn assert_went_without(ended: &Ended, args: &[&str]) {
    assert_eq!(ended.code, Some(0), "{args:?}: {ended:?}");
    let told = ended.stderr.lines();
    let told = told.filter(|line| line.contains("warning") || line.contains("-->"));
    assert_eq!(told.count(), 1, "{args:?}: {ended:?}");
    assert!(
        ended.stderr.starts_with("warning: jobs.toml can't be used")
            && ended.stderr.contains("`soloist check` tells why\n"),
        "{args:?}: {ended:?}"
    );
}

#[test]
fn a_table_that_is_broken_elsewhere_stops_no_command_that_asks_the_store() {
    let place = place();
    for broken in BROKEN {
        fs::write(place.path("jobs.toml"), format!("{SCHEDULER}{broken}")).expect("written");
        let refused = place.run(&["check"]);
        assert_eq!(refused.code, Some(2), "{broken}: {refused:?}");
        let args = ["status", "--json"];
        let ended = place.run(&args);
        assert_went_without(&ended, &args);
        assert!(ended.stdout.contains("\"report\""), "{broken}: {ended:?}");
    }
    for args in [
        &["status"][..],
        &["history"],
        &["history", "report", "--json"],
        &["why", "report", "2026-11-20T22:00:00Z"],
        &["pause", "report"],
        &["resume", "report"],
        &["trigger", "report"],
        &["kill", "report"],
    ] {
        assert_went_without(&place.run(args), args);
    }
    let ended = place.run(&["logs", "report"]);
    assert!(
        ended.stderr.contains("no attempt of `report` has ended"),
        "{ended:?}"
    );
    // What the ledger doesn't know may be in the table that can't be read.
    let ended = place.run(&["trigger", "reprot"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("did you mean `report`?"), "{ended:?}");
}

#[test]
fn a_table_that_does_not_say_where_the_store_is_stops_them_until_they_are_told() {
    let place = place();
    let store = format!("sqlite:{}", place.path("store.db").display());
    for broken in [
        "[scheduler]\nstore = \"redis://${NOWHERE}\"\n",
        "[scheduler]\nstroe = \"sqlite:store.db\"\n",
        "[scheduler\nstore = \"sqlite:store.db\"\n",
        "[scheduler]\nstore = \"sqlite:store.db\n",
        // Cut off, and slipped.
        "",
        "[scheduler]\nnamespace = \"shop\"\n",
        "[jobs.first]\nstore = \"sqlite:store.db\"\nnamespace = \"shop\"\n",
    ] {
        fs::write(
            place.path("jobs.toml"),
            format!("{broken}[jobs.x]\nshell = 5\n"),
        )
        .expect("written");
        for args in [&["status"][..], &["status", "--namespace", "shop"]] {
            let ended = place.run(args);
            assert_eq!(ended.code, Some(2), "{broken}: {ended:?}");
            assert!(ended.stderr.contains("--> jobs.toml:"), "{ended:?}");
            let cure = "help: without the table, name store and namespace: `--store URL --namespace NAME`\n";
            assert!(ended.stderr.ends_with(cure), "{broken}: {ended:?}");
        }
        let named = [("SOLOIST_STORE", &*store), ("SOLOIST_NAMESPACE", "shop")];
        let args = ["status"];
        let ended = place.run_with(&args, &named);
        assert_went_without(&ended, &args);
        assert!(ended.stdout.contains("report"), "{broken}: {ended:?}");
    }
    assert!(!place.path(".local").exists(), "no other store was made");
}

#[test]
fn where_no_table_is_a_store_has_to_be_named() {
    let place = Place::empty();
    let ended = place.run(&["status"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let told = "error: there is no jobs.toml here, and no store is named\n";
    assert!(ended.stderr.starts_with(told), "{ended:?}");
    let ended = place.run(&["status", "--store", "memory:"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_store_that_is_named_takes_nothing_but_the_namespace_of_the_table() {
    let place = place();
    let table =
        format!("[scheduler]\nstore = \"redis://${{NOWHERE}}\"\nnamespace = \"shop\"\n{JOB}");
    fs::write(place.path("jobs.toml"), table).expect("written");
    let args = ["status", "--store", "sqlite:store.db"];
    let ended = place.run(&args);
    assert_went_without(&ended, &args);
    assert!(ended.stdout.contains("namespace shop"), "{ended:?}");
}

#[test]
fn a_table_that_is_not_there_stops_none_that_was_told_store_and_namespace() {
    let place = place();
    let named = [
        "--store",
        "sqlite:store.db",
        "--namespace",
        "shop",
        "--config",
        "none.toml",
    ];
    let ended = place.run(&[&["pause", "report"], &named[..]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stderr.starts_with("warning: none.toml can't be used"),
        "{ended:?}"
    );
    let ended = place.run(&[&["pause", "report"], &named[..2], &named[4..]].concat());
    assert_eq!(ended.code, Some(2), "{ended:?}");
}
