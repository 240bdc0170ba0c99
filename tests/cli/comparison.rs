//! `check --store`: a table beside the ledger, before any replica starts with it.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use soloist::clock::SystemClock;
use soloist::scheduler::lease::{Caller, Definition, FencingToken, PublishedTable, Replica, Scope};
use soloist::store::sqlite::SqliteStore;
use soloist::store::{ReplicaInfo, Store};
use uuid::Uuid;

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
        (
            "sweep",
            "another schedule: the ledger has `@hourly`, this table `@daily`; what both have is still run, what only the ledger's has and nobody claimed is recorded as missed",
        ),
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
fn the_store_of_the_environment_is_the_one_that_is_looked_at() {
    let place = place();
    for (args, env) in [
        (&["check", "--store"][..], "sqlite:other.db"),
        (&["--store", "sqlite:other.db", "check", "--store"], ""),
    ] {
        let ended = place.run_with(args, &[("SOLOIST_STORE", env)]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let (_, found) = ended
            .stdout
            .split_once("beside the ledger at ")
            .expect("a part");
        // As in the pods of the chart, where the table says nothing of a store.
        let (first, rest) = found.split_once('\n').expect("lines");
        assert!(first.ends_with("other.db:"), "{args:?}: {found}");
        assert!(rest.contains("sweep: new to the ledger"), "{found}");
    }
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

/// The table of that revision, with a job that runs this.
fn of_revision(revision: u64, script: &str) -> String {
    format!(
        "[scheduler]\nstore = \"sqlite:store.db\"\nrevision = {revision}\n[jobs.sweep]\nschedule = \"@hourly\"\nshell = \"{script}\"\n"
    )
}

/// Has a replica live with the table that is here.
fn live(place: &Place) {
    let config = soloist::config::load(&place.path("jobs.toml")).expect("a table");
    let table = PublishedTable {
        table: Definition {
            digest: config.digest(),
            revision: config.scheduler.revision,
        },
        jobs: config
            .jobs
            .iter()
            .map(|job| (job.name.clone(), job.definition.digest.clone()))
            .collect(),
    };
    let info = ReplicaInfo {
        digest: table.table.digest.clone(),
        revision: table.table.revision,
        alive_ms: 600_000,
        ..ReplicaInfo::default()
    };
    let caller = Caller {
        replica: Replica {
            id: Uuid::nil(),
            name: "web-1".to_owned(),
        },
        quarantine: Duration::ZERO,
        token_floor: FencingToken::default(),
        send_by: None,
        held_back: Duration::ZERO,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let path = place.path("store.db");
        let store = SqliteStore::open(&path, "default", Arc::new(SystemClock)).expect("a file");
        store.ready().await.expect("the file can be used");
        let seen = store.observe(&caller, &info, Scope::Overdue).await;
        seen.expect("an answer");
        store.publish(&caller, &table).await.expect("an answer");
    });
}

#[test]
fn a_job_that_runs_otherwise_is_told_and_a_table_that_others_would_outdo_fails() {
    let place = Place::with_table(of_revision(5, "new"));
    let ended = place.run(&["pause", "sweep"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    place.run(&["resume", "sweep"]);
    let beside = |revision, script: &str| {
        fs::write(place.path("jobs.toml"), of_revision(revision, script)).expect("written");
        place.run(&["check", "--store"])
    };
    let newer = beside(6, "newest");
    assert_eq!(newer.code, Some(0), "{newer:?}");
    let told = "  sweep: runs otherwise than what is in force, ";
    assert!(newer.stdout.contains(told), "{newer:?}");
    // Nobody lives who would go on with the newer one.
    let older = beside(4, "old");
    assert_eq!(older.code, Some(0), "{older:?}");
    assert!(older.stdout.contains("takes its place"), "{older:?}");
    beside(5, "new");
    live(&place);
    let same = beside(5, "new");
    assert_eq!(same.code, Some(0), "{same:?}");
    assert!(same.stdout.contains("knows the job as it is"), "{same:?}");
    let older = beside(4, "old");
    assert_eq!(older.code, Some(1), "{older:?}");
    for told in [
        "  sweep: outdated: web-1 would go on with ",
        "(revision 5), and replicas with this table leave it to them: its `revision`, 4, is less",
        "! this table is outdated",
    ] {
        assert!(older.stdout.contains(told), "{told}: {older:?}");
    }
    assert_eq!(beside(6, "newest").code, Some(0));
}
