//! Servers that don't answer, answer late, or refuse.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{Claim, ClaimAnswer, Outcome, ReleaseAnswer, RenewalAnswer, Scope};
use soloist::store::redis::RedisStore;
use soloist::store::{Store, StoreError};
use test_support::machine::while_it_runs_async;
use test_support::redis::{RedisServer, fresh_namespace};

use crate::world::{
    answered, ask, caller, claim, fresh_store, info, just_due, now, persist, printed, release,
    renewal, store_in, until, win,
};

/// No call takes longer, whatever the server does: the time to connect and that of a call.
const LONGEST_CALL: Duration = Duration::from_secs(3);
/// On a busy machine.
const SLACK: Duration = Duration::from_secs(2);

/// Sends until it is told so in this word: on a busy machine, there may be no answer first.
async fn is_unreachable<T: std::fmt::Debug, F>(word: &str, mut send: impl FnMut() -> F)
where
    F: Future<Output = Result<T, StoreError>>,
{
    until(word, async || match send().await {
        Err(error @ StoreError::Unreachable { .. }) => {
            error.to_string().contains(word).then_some(())
        }
        other => panic!("{other:?}"),
    })
    .await;
}

fn assert_other_version<T: std::fmt::Debug>(result: Result<T, StoreError>, word: &str) {
    match result {
        Err(error @ StoreError::OtherVersion { .. }) => {
            assert!(error.to_string().contains(word), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T, StoreError>, word: &str) {
    match result {
        Err(error @ StoreError::Refused { .. }) => {
            assert!(error.to_string().contains(word), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_frozen_server_holds_no_call_up_for_long_and_is_found_again() {
    while_it_runs_async(async || {
        let server = RedisServer::start();
        let store = fresh_store(&server).await;
        let (caller, info) = (caller("one"), info());
        server.freeze();
        let mut took = Vec::new();
        for _ in 0..3 {
            let began = Instant::now();
            let calls = (0..20).map(|_| store.observe(&caller, &info, Scope::Overdue));
            let results = futures_util::future::join_all(calls).await;
            assert!(results.iter().all(Result::is_err));
            took.push(began.elapsed());
        }
        server.thaw();
        persist(|| store.observe(&caller, &info, Scope::Overdue)).await;
        in_time(LONGEST_CALL + SLACK, &took)
    })
    .await;
}

/// That each took less than that, as it does while the machine runs.
fn in_time(limit: Duration, took: &[Duration]) -> Result<(), String> {
    match took.iter().all(|took| *took < limit) {
        true => Ok(()),
        false => Err(format!("{took:?}, and not less than {limit:?}")),
    }
}

#[tokio::test]
async fn a_stuck_connection_is_given_up_even_when_its_callers_gave_up_first() {
    let server = RedisServer::start();
    let store = fresh_store(&server).await;
    let caller = caller("one");
    server.freeze();
    let info = info();
    let hasty = store.observe(&caller, &info, Scope::Overdue);
    let hasty = tokio::time::timeout(Duration::from_millis(50), hasty);
    assert!(hasty.await.is_err());
    // The next one meets a connection that is being made, and not the old one.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let next = store.observe(&caller, &info, Scope::Overdue).await;
    match next {
        Err(error @ StoreError::Unreachable { .. }) => {
            assert!(
                error.to_string().contains("not connected within"),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    server.thaw();
    persist(|| store.observe(&caller, &info, Scope::Overdue)).await;
}

#[tokio::test]
async fn a_server_that_is_away_fails_calls_at_once_and_is_found_when_it_is_back() {
    while_it_runs_async(async || {
        let mut server = RedisServer::start();
        let store = fresh_store(&server).await;
        let (caller, info) = (caller("one"), info());
        server.kill();
        let began = Instant::now();
        for _ in 0..100 {
            match store.observe(&caller, &info, Scope::Overdue).await {
                Err(StoreError::Unreachable { .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        let failed = began.elapsed();
        server.restart();
        let began = Instant::now();
        persist(|| store.observe(&caller, &info, Scope::Overdue)).await;
        in_time(SLACK, &[failed, began.elapsed()])
    })
    .await;
}

#[tokio::test]
async fn a_wrong_password_is_told_without_being_shown() {
    let server = RedisServer::start();
    server.command(&[
        "ACL",
        "SETUSER",
        "me",
        "on",
        ">right-one",
        "~*",
        "&*",
        "+@all",
    ]);
    let url = |password: &str| format!("redis://me:{password}@127.0.0.1:{}", server.port());
    let wrong = RedisStore::open(&url("wrong-one"), &fresh_namespace()).unwrap();
    for _ in 0..2 {
        let error = answered(|| wrong.ready()).await.unwrap_err();
        let text = format!("{error} {error:?} {}", wrong.place());
        assert!(!text.contains("wrong-one"), "{text}");
        assert_refused(Err::<(), _>(error), "password");
    }
    let right = RedisStore::open(&url("right-one"), &fresh_namespace()).unwrap();
    persist(|| right.ready()).await;
    assert!(!right.place().contains("right-one"));
}

#[tokio::test]
async fn a_password_that_is_missing_is_asked_for() {
    let server = RedisServer::start();
    server.command(&["CONFIG", "SET", "requirepass", "secret"]);
    let store = RedisStore::open(&server.url(), &fresh_namespace()).unwrap();
    assert_refused(answered(|| store.ready()).await, "password");
}

#[tokio::test]
async fn a_server_without_memory_refuses_claims_and_keeps_running_jobs_alive() {
    let server = RedisServer::start();
    let store = fresh_store(&server).await;
    let caller = caller("one");
    let running = claim("running", just_due(&store).await);
    let grant = win(&store, &caller, &running).await;
    server.command(&["CONFIG", "SET", "maxmemory", "1mb"]);
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);

    let fresh = [claim("fresh", just_due(&store).await)];
    assert_refused(answered(|| store.claim(&caller, &fresh)).await, "maxmemory");
    // Nor does it take memory to connect, or to be given the scripts.
    server.command(&["SCRIPT", "FLUSH"]);
    server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    persist(|| store.ready()).await;
    let renewed = store.renew(&caller, &[renewal(&running, &grant)]).await;
    assert!(matches!(
        renewed.unwrap().answer[0],
        RenewalAnswer::Renewed { .. }
    ));
    store.observe(&caller, &info(), Scope::All).await.unwrap();
    let mut release = release(&running, &grant, Outcome::Succeeded);
    release.output = printed(b"done");
    let released = store.release(&caller, &[release]).await.unwrap();
    assert_eq!(released.answer, [ReleaseAnswer::Released]);
    assert_eq!(store.history(None, 10).await.unwrap().len(), 1);
    let jobs = store.snapshot().await.unwrap().answer.jobs;
    assert_eq!(jobs.len(), 1, "a refused claim leaves nothing behind");

    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    win(&store, &caller, &fresh[0]).await;
}

#[tokio::test]
async fn a_read_only_replica_grants_nothing_until_it_is_promoted() {
    let (master, replica) = (RedisServer::start(), RedisServer::start());
    let namespace = fresh_namespace();
    let store = store_in(&replica, &namespace).await;
    let caller = caller("one");
    let claims = [claim("job", now(&store).await)];
    let port = master.port().to_string();
    replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    until("it follows", async || {
        let info = replica.command(&["INFO", "replication"]);
        info.contains("master_link_status:up").then_some(())
    })
    .await;
    for _ in 0..3 {
        let words = "read-only replica";
        is_unreachable(words, || store.claim(&caller, &claims)).await;
        is_unreachable(words, || store.ready()).await;
    }
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    persist(|| store.ready()).await;
    // It holds what the other one held, which is nothing.
    let answer = ask(&store, &caller, &claims[0]).await;
    assert!(matches!(answer, ClaimAnswer::Grace { .. }), "{answer:?}");
}

#[tokio::test]
async fn a_replica_without_its_master_is_no_store() {
    let server = RedisServer::start();
    let store = fresh_store(&server).await;
    server.command(&["CONFIG", "SET", "replica-serve-stale-data", "no"]);
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let claims = [claim("job", soloist::scheduler::time::Timestamp::default())];
    let caller = caller("one");
    is_unreachable("replica", || store.claim(&caller, &claims)).await;
}

#[tokio::test]
async fn a_server_that_is_busy_with_somebodys_script_is_used_again_afterwards() {
    let server = std::sync::Arc::new(RedisServer::start());
    let store = fresh_store(&server).await;
    let caller = caller("one");
    server.command(&["CONFIG", "SET", "busy-reply-threshold", "10"]);
    let endless = std::thread::spawn({
        let server = server.clone();
        move || server.command(&["EVAL", "while true do end", "0"])
    });
    while !server.command(&["PING"]).starts_with("BUSY") {
        std::thread::yield_now();
    }
    let (info, words) = (info(), "busy with somebody's script");
    is_unreachable(words, || store.observe(&caller, &info, Scope::Overdue)).await;
    server.command(&["SCRIPT", "KILL"]);
    assert!(endless.join().unwrap().contains("killed"));
    persist(|| store.observe(&caller, &info, Scope::Overdue)).await;
}

#[tokio::test]
async fn whoever_may_not_publish_has_still_released() {
    let server = RedisServer::start();
    let namespace = fresh_namespace();
    let _ = store_in(&server, &namespace).await;
    server.command(&[
        "ACL",
        "SETUSER",
        "quiet",
        "on",
        "nopass",
        "~*",
        "+@all",
        "-publish",
        "resetchannels",
    ]);
    let url = format!("redis://quiet:any@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url, &namespace).unwrap();
    store.ready().await.unwrap();
    let caller = caller("one");
    let claim = claim("job", just_due(&store).await);
    let grant = win(&store, &caller, &claim).await;
    let handed_over = release(&claim, &grant, Outcome::HandedOver);
    let released = store.release(&caller, &[handed_over]).await.unwrap();
    assert_eq!(released.answer, [ReleaseAnswer::Released]);
    let seen = store
        .observe(&caller, &info(), Scope::Overdue)
        .await
        .unwrap();
    assert_eq!(seen.answer.openings[0].occurrence, claim.occurrence);
}

#[tokio::test]
async fn a_user_who_may_not_write_is_found_when_the_store_is_opened() {
    let server = RedisServer::start();
    server.command(&[
        "ACL", "SETUSER", "reader", "on", "nopass", "~*", "&*", "+@all", "-@write",
    ]);
    let url = format!("redis://reader:any@127.0.0.1:{}", server.port());
    let store = RedisStore::open(&url, &fresh_namespace()).unwrap();
    assert_refused(answered(|| store.ready()).await, "ACL SETUSER");
}

#[tokio::test]
async fn keys_of_somebody_else_are_left_alone() {
    let server = RedisServer::shared();
    let namespace = fresh_namespace();
    let key = format!("soloist:{{{namespace}}}:jobs");
    server.command(&["SET", &key, "theirs"]);
    let store = RedisStore::open(&server.url(), &namespace).unwrap();
    assert_refused(answered(|| store.ready()).await, "another namespace");
    let claims = [claim("job", soloist::scheduler::time::Timestamp::default())];
    let caller = caller("one");
    assert_refused(
        answered(|| store.claim(&caller, &claims)).await,
        "another namespace",
    );
    assert_eq!(server.command(&["GET", &key]), "theirs");
}

#[tokio::test]
async fn a_ledger_of_another_layout_is_left_as_it_is_until_it_is_ours_again() {
    let server = RedisServer::shared();
    for (layout, cure) in [("3", "upgrade"), ("1", "delete the keys")] {
        let namespace = fresh_namespace();
        let store = store_in(server, &namespace).await;
        let caller = caller("one");
        let (claims, info) = ([claim("job", just_due(&store).await)], info());
        let key = |part: &str| format!("soloist:{{{namespace}}}:{part}");
        server.command(&["HSET", &key("jobs"), "#layout", layout]);
        server.command(&["DEL", &key("replicas")]);
        assert_other_version(answered(|| store.ready()).await, cure);
        assert_other_version(answered(|| store.claim(&caller, &claims)).await, cure);
        assert_other_version(
            answered(|| store.observe(&caller, &info, Scope::All)).await,
            cure,
        );
        assert_other_version(answered(|| store.snapshot()).await, cure);
        assert_eq!(server.command(&["HGET", &key("jobs"), "job"]), "");
        assert_eq!(server.command(&["EXISTS", &key("replicas")]), "0");
        server.command(&["HSET", &key("jobs"), "#layout", "2"]);
        win(&store, &caller, &claims[0]).await;
    }
}

#[tokio::test]
async fn an_entry_of_the_agenda_that_its_record_does_not_have_is_dropped() {
    let server = RedisServer::shared();
    let namespace = fresh_namespace();
    let store = store_in(server, &namespace).await;
    let caller = caller("one");
    let due = just_due(&store).await;
    let (over, running) = (claim("over", due), claim("running", due));
    let grant = win(&store, &caller, &over).await;
    let done = [release(&over, &grant, Outcome::Succeeded)];
    store.release(&caller, &done).await.unwrap();
    win(&store, &caller, &running).await;
    let agenda = format!("soloist:{{{namespace}}}:agenda");
    let soon = (due + Duration::from_secs(1)).as_millis().to_string();
    for stray in ["over", "gone"] {
        server.command(&["ZADD", &agenda, &soon, stray]);
    }
    let seen = store.observe(&caller, &info(), Scope::All).await.unwrap();
    let shown: Vec<&str> = seen
        .answer
        .leases
        .iter()
        .map(|lease| lease.job.as_str())
        .collect();
    assert_eq!(shown, ["running"]);
    assert_eq!(server.command(&["ZRANGE", &agenda, "0", "-1"]), "running");
}

#[tokio::test]
async fn a_record_that_can_not_be_read_is_an_error_and_never_a_win() {
    let server = RedisServer::shared();
    let namespace = fresh_namespace();
    let store = store_in(server, &namespace).await;
    let key = format!("soloist:{{{namespace}}}:jobs");
    let due = just_due(&store).await;
    server.command(&["HSET", &key, "job", "1|running|torn"]);
    let claims: Vec<Claim> = ["good", "job"].map(|name| claim(name, due)).into();
    let claimed = store.claim(&caller("one"), &claims).await;
    let Err(StoreError::Unreadable { cause, cure, .. }) = claimed else {
        panic!("{claimed:?}");
    };
    assert_eq!(cause, "the record of job has another form");
    assert!(cure.contains("upgrade this one"), "{cure}");
    assert_eq!(
        server.command(&["HGET", &key, "good"]),
        "",
        "all or nothing"
    );
    assert_eq!(server.command(&["HGET", &key, "job"]), "1|running|torn");
    let snapshot = store.snapshot().await;
    assert!(matches!(snapshot, Err(StoreError::Unreadable { .. })));
}

#[tokio::test]
async fn a_history_that_can_not_be_written_does_not_undo_a_release() {
    let server = RedisServer::shared();
    let namespace = fresh_namespace();
    let store = store_in(server, &namespace).await;
    server.command(&[
        "SET",
        &format!("soloist:{{{namespace}}}:history:job"),
        "theirs",
    ]);
    let caller = caller("one");
    let claim = claim("job", just_due(&store).await);
    let grant = win(&store, &caller, &claim).await;
    let release = [release(&claim, &grant, Outcome::Succeeded)];
    let released = store.release(&caller, &release).await.unwrap();
    assert_eq!(released.answer, [ReleaseAnswer::Released]);
    assert_eq!(ask(&store, &caller, &claim).await, ClaimAnswer::Finished);
}
