//! Where a file is refused, with what is said of it, and that nothing of it is touched.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use rusqlite::Connection;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use soloist::scheduler::lease::{Outcome, RenewalAnswer, Scope};
use soloist::store::StoreError;
use tempfile::TempDir;

use super::{peer_at, refusal};
use crate::bench::{info, renewal};

fn directory() -> TempDir {
    TempDir::new().expect("a temporary directory can be made")
}

fn assert_said(said: &(String, String), cause: &str, cure: &str) {
    assert!(said.0.contains(cause), "cause: {said:?}");
    assert!(said.1.contains(cure), "cure: {said:?}");
}

/// Looks at a path without the right to pass over permissions, which root has and most don't:
/// rights are each thread's own, and the store's thread inherits those of the one that opens it.
async fn refusal_without_privileges(path: &Path) -> (String, String) {
    let path = path.to_owned();
    let looked = std::thread::spawn(move || {
        let mut rights = capabilities(None).expect("they can be read");
        rights.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
        set_capabilities(None, rights).expect("rights can be given up");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime
            .expect("a runtime can be made")
            .block_on(refusal(&path))
    });
    looked.join().expect("the look doesn't panic")
}

#[tokio::test]
async fn what_is_no_file_is_refused() {
    let directory = directory();
    let at = |name: &str| directory.path().join(name);
    let _socket = UnixListener::bind(at("socket")).expect("a socket can be made");
    fs::write(at("file"), "").expect("a file can be written");
    for (path, cause, cure) in [
        (
            directory.path().to_owned(),
            "is a directory",
            "name a file in it",
        ),
        (at("none/soloist.db"), "doesn't exist", "mkdir -p"),
        (at("file/soloist.db"), "is no directory", "another path"),
        (at("socket"), "a socket", "another path"),
        ("/dev/null".into(), "a device", "another path"),
    ] {
        assert_said(&refusal(&path).await, cause, cure);
    }
    assert!(
        !at("none").exists(),
        "a directory that somebody named is theirs to make"
    );
}

#[tokio::test]
async fn a_directory_that_can_not_be_written_to_is_refused() {
    let directory = directory();
    fs::set_permissions(directory.path(), Permissions::from_mode(0o555)).expect("it is ours");
    let path = directory.path().join("soloist.db");
    assert_said(
        &refusal_without_privileges(&path).await,
        "permission denied",
        "chmod",
    );
    assert!(!path.exists());
    // Mended, it is taken, by the same store too.
    let store = peer_at(&path, "a").store;
    fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("it is ours");
    store.ready().await.expect("nothing stands in its way now");
}

#[tokio::test]
async fn a_file_that_can_not_be_written_to_is_refused() {
    let directory = directory();
    let path = directory.path().join("soloist.db");
    peer_at(&path, "a")
        .store
        .ready()
        .await
        .expect("the file can be used");
    for mode in [0o444, 0o000] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("it is ours");
        assert_said(
            &refusal_without_privileges(&path).await,
            "permission denied",
            "chmod",
        );
    }
}

#[tokio::test]
async fn what_is_no_database_is_refused_and_left_as_it_is() {
    let directory = directory();
    let path = directory.path().join("notes.txt");
    let text = "not a database at all, and longer than the header of one would be, by far\n";
    fs::write(&path, text.repeat(100)).expect("a file can be written");
    assert_said(&refusal(&path).await, "no SQLite database", "another path");
    assert_eq!(fs::read_to_string(&path).ok(), Some(text.repeat(100)));
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_as_it_is() {
    let directory = directory();
    for (name, sql) in [
        (
            "tables.db",
            "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)",
        ),
        ("header.db", "PRAGMA application_id = 12345"),
        ("version.db", "PRAGMA user_version = 7"),
    ] {
        let path = directory.path().join(name);
        let theirs = Connection::open(&path).expect("a database can be made");
        theirs.execute_batch(sql).expect("it is plain SQL");
        drop(theirs);
        let before = fs::read(&path).expect("it is there");
        assert_said(&refusal(&path).await, "another program's", "another path");
        assert_eq!(fs::read(&path).ok(), Some(before), "{name}");
    }
}

#[tokio::test]
async fn a_file_of_another_layout_is_told_with_what_to_do() {
    for (layout, cause, cure) in [
        (1000, "version 1000", "newer soloist"),
        (1, "version 1", "move it away"),
    ] {
        let directory = directory();
        let path = directory.path().join("soloist.db");
        peer_at(&path, "a")
            .store
            .ready()
            .await
            .expect("the file can be used");
        let file = Connection::open(&path).expect("the file can be opened");
        file.pragma_update(None, "user_version", layout)
            .expect("it can be set");
        drop(file);
        assert_said(&refusal(&path).await, cause, cure);
    }
}

#[tokio::test]
async fn a_file_that_becomes_another_versions_under_a_replica_is_left_alone_until_it_is_ours() {
    for layout in [1000, 1] {
        let directory = directory();
        let path = directory.path().join("soloist.db");
        let a = peer_at(&path, "a");
        let held = a.first_claim("held").await;
        let grant = a.win(&held).await;
        let theirs = Connection::open(&path).expect("the file can be opened");
        let set = |layout: i32| theirs.pragma_update(None, "user_version", layout);
        set(layout).expect("it can be set");
        let renewals = [renewal(&held, &grant)];
        for _ in 0..2 {
            let renewed = a.store.renew(&a.caller, &renewals).await;
            let told = renewed.expect_err("it is another version's");
            assert!(matches!(told, StoreError::OtherVersion { .. }), "{told}");
            let seen = a.store.observe(&a.caller, &info(), Scope::All).await;
            assert!(matches!(seen, Err(StoreError::OtherVersion { .. })));
        }
        let listed: i64 = theirs
            .query_row("SELECT count(*) FROM replica", [], |row| row.get(0))
            .expect("the table is there");
        assert_eq!(listed, 0, "nothing was written");
        set(2).expect("it can be set");
        let renewed = a.renew(&renewals[0]).await;
        assert!(matches!(renewed, RenewalAnswer::Renewed { .. }));
    }
}

#[tokio::test]
async fn a_damaged_file_is_refused_with_a_way_out() {
    let directory = directory();
    let path = directory.path().join("soloist.db");
    let a = peer_at(&path, "a");
    for number in 0..200 {
        a.first_claim(&format!("job-{number}")).await;
    }
    a.run(&a.first_claim("run").await, Outcome::Succeeded).await;
    drop(a);
    // Everything into the file itself, and then junk over all pages but the first.
    let file = Connection::open(&path).expect("the file can be opened");
    file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("it is ours alone");
    drop(file);
    let mut bytes = fs::read(&path).expect("it is there");
    bytes[4096..].fill(0xA5);
    fs::write(&path, bytes).expect("it is ours");
    assert_said(&refusal(&path).await, "damaged", "move it away");
}
