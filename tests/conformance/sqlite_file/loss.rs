//! A file that is new, reopened, locked by others, removed, or from before a reboot; a clock
//! that steps.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use soloist::scheduler::lease::{ClaimAnswer, Origin, Outcome, RenewalAnswer, Scope};
use soloist::store::{StoreError, StoreEvent};
use tempfile::TempDir;

use super::{peer_at, peer_by};
use crate::bench::{anew, later, release, renewal};
use crate::fixtures::clock::TestClock;

const QUARANTINE: Duration = Duration::from_secs(30);

fn file() -> (TempDir, PathBuf) {
    let directory = TempDir::new().expect("a temporary directory can be made");
    let path = directory.path().join("soloist.db");
    (directory, path)
}

#[tokio::test]
async fn a_new_file_grants_at_once_and_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_directory, path) = file();
    let mut a = peer_at(&path, "a");
    a.caller.quarantine = QUARANTINE;
    let claim = a.first_claim("report").await;
    a.win(&claim).await;
    let mode = fs::metadata(&path)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_file_opened_again_knows_what_it_knew() {
    let (_directory, path) = file();
    let a = peer_at(&path, "a");
    let (over, running) = (a.first_claim("over").await, a.first_claim("running").await);
    a.run(&over, Outcome::Succeeded).await;
    let grant = a.win(&running).await;
    let before = a.store.snapshot().await.expect("the store answers").answer;
    let lines = a.history(None).await;
    let caller = a.caller.clone();
    drop(a);
    let mut b = peer_at(&path, "b");
    b.caller.quarantine = QUARANTINE;
    assert_eq!(
        b.store.snapshot().await.expect("the store answers").answer,
        before
    );
    assert_eq!(b.history(None).await, lines);
    assert_eq!(b.claim(&anew(&over)).await, ClaimAnswer::Finished);
    // The holder only lost its connection.
    b.caller = caller;
    let answer = b.renew(&renewal(&running, &grant)).await;
    assert!(matches!(answer, RenewalAnswer::Renewed { .. }));
}

#[tokio::test]
async fn a_file_removed_under_its_replicas_opens_a_grace_window_and_leases_are_written_anew() {
    let (_directory, path) = file();
    let (mut a, mut b) = (peer_at(&path, "a"), peer_at(&path, "b"));
    (a.caller.quarantine, b.caller.quarantine) = (QUARANTINE, QUARANTINE);
    let mut ear = b.store.events();
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    b.observe(Scope::All).await;
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        fs::remove_file(name).expect("it was there");
    }
    match b.claim(&anew(&claim)).await {
        ClaimAnswer::Grace { wait } => assert!(wait > QUARANTINE / 2, "{wait:?}"),
        other => panic!("a store that forgot its leases said {other:?}"),
    }
    assert_eq!(ear.try_recv(), Ok(StoreEvent::Reconnected));
    match a.renew(&renewal(&claim, &grant)).await {
        RenewalAnswer::Renewed { deadline, .. } => assert!(deadline > grant.deadline),
        RenewalAnswer::Lost => panic!("the holder is to be believed"),
    }
    assert!(matches!(b.claim(&anew(&claim)).await, ClaimAnswer::Held(_)));
    let seen = b.observe(Scope::All).await.answer;
    assert!(
        seen.grace > QUARANTINE / 2 && seen.leases.len() == 1,
        "{seen:?}"
    );
    a.release(&release(&claim, &grant, Outcome::Succeeded))
        .await;
    assert_eq!(b.claim(&anew(&claim)).await, ClaimAnswer::Finished);
}

#[tokio::test]
async fn a_file_removed_under_a_replica_that_only_looks_opens_a_grace_window_for_all() {
    let (_directory, path) = file();
    let (mut a, mut b) = (peer_at(&path, "a"), peer_at(&path, "b"));
    (a.caller.quarantine, b.caller.quarantine) = (QUARANTINE, QUARANTINE);
    let claim = a.first_claim("report").await;
    a.win(&claim).await;
    b.observe(Scope::All).await;
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        fs::remove_file(name).expect("it was there");
    }
    let seen = b.observe(Scope::All).await.answer;
    assert!(seen.grace > QUARANTINE / 2, "{seen:?}");
    // Who has only now come finds it in the file.
    let mut newcomer = peer_at(&path, "newcomer");
    newcomer.caller.quarantine = QUARANTINE;
    let answer = newcomer.claim(&anew(&claim)).await;
    assert!(matches!(answer, ClaimAnswer::Grace { .. }), "{answer:?}");
}

#[tokio::test]
async fn another_boot_of_the_host_clears_the_list_of_replicas_and_nothing_else() {
    let (_directory, path) = file();
    let a = peer_at(&path, "a");
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    a.observe(Scope::All).await;
    drop(a);
    let file = Connection::open(&path).expect("the file can be opened");
    let rows = file.execute("UPDATE host SET boot_id = 'an earlier one'", []);
    assert_eq!(rows.expect("the table is there"), 1);
    drop(file);
    let mut b = peer_at(&path, "b");
    b.caller.quarantine = QUARANTINE;
    let seen = b.observe(Scope::All).await.answer;
    assert_eq!(seen.grace, Duration::ZERO, "there is nobody to wait for");
    assert_eq!(
        seen.leases[0].held.sighting.token, grant.token,
        "to be watched as any other"
    );
    let listed = b
        .store
        .snapshot()
        .await
        .expect("the store answers")
        .answer
        .replicas;
    let names: Vec<_> = listed
        .iter()
        .map(|state| state.replica.name.as_str())
        .collect();
    assert_eq!(names, ["b"]);
    b.win(&b.first_claim("other").await).await;
}

#[tokio::test]
async fn a_clock_set_back_far_opens_a_grace_window_and_a_little_stands_still() {
    let (_directory, path) = file();
    let clock = Arc::new(TestClock::new());
    let mut a = peer_by(&path, "a", clock.clone());
    a.caller.quarantine = QUARANTINE;
    let claim = a.first_claim("report").await;
    clock.step_ms(1);
    let first = a.run(&claim, Outcome::Succeeded).await;
    let then = a.observe(Scope::All).await.now;
    clock.step_ms(-5_000);
    assert_eq!(a.observe(Scope::All).await.now, then);
    // What is due by then can be had, and tokens rise though time stands still.
    let mut other = a.first_claim("other").await;
    other.origin = Origin::RunOnce;
    other.occurrence.scheduled_at = then;
    let second = a.run(&other, Outcome::Succeeded).await;
    assert!(second.token > first.token);
    clock.step_ms(-3_600_000);
    let seen = a.observe(Scope::All).await;
    assert_eq!(seen.answer.grace, QUARANTINE);
    let third = a.first_claim("third").await;
    clock.step_ms(10);
    assert!(matches!(a.claim(&third).await, ClaimAnswer::Grace { .. }));
    clock.step_ms(30_000);
    let grant = a.win(&third).await;
    assert!(
        grant.token > second.token,
        "tokens rise whatever the clock does"
    );
    // An hour on, what was run before the step is still known.
    clock.step_ms(3_600_000);
    assert_eq!(a.claim(&anew(&claim)).await, ClaimAnswer::Finished);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_locked_by_another_process_is_waited_for_and_not_for_ever() {
    let (_directory, path) = file();
    let a = peer_at(&path, "a");
    let claim = a.first_claim("report").await;
    let grant = a.run(&claim, Outcome::Succeeded).await;
    let other = Connection::open(&path).expect("the file can be opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("it is free");
    // Who only reads needs no lock.
    assert_eq!(a.history(None).await[0].token, grant.token);
    let next = later(&claim, 1);
    let begun = Instant::now();
    let answer = a.store.claim(&a.caller, std::slice::from_ref(&next)).await;
    match answer {
        Err(StoreError::Unreachable { cause, .. }) => assert!(cause.contains("locked"), "{cause}"),
        other => panic!("{other:?}"),
    }
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    // The lock goes while a claim waits for it: nothing is the matter.
    let (answer, ()) = tokio::join!(a.claim(&next), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        other.execute_batch("ROLLBACK").expect("it was begun");
    });
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
}
