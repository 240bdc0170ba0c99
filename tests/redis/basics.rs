//! The plain course of things.

use soloist::scheduler::job::OnCrash;
use soloist::scheduler::lease::{
    ClaimAnswer, FencingToken, Outcome, ReleaseAnswer, RenewalAnswer, Scope,
};
use soloist::store::redis::RedisStore;
use soloist::store::{OUTPUTS_KEPT, Standing, Store, StoreError, StoreEvent};
use test_support::redis::{RedisServer, fresh_namespace};

use crate::world::{
    ask, caller, claim, fresh_store, info, job, just_due, now, persist, printed, release, renewal,
    store_in, until, win,
};

#[tokio::test]
async fn an_occurrence_is_claimed_renewed_and_released_once() {
    let store = fresh_store(RedisServer::shared()).await;
    let (one, other) = (caller("one"), caller("other"));
    let claim = claim("job", just_due(&store).await);
    let grant = win(&store, &one, &claim).await;
    assert_eq!(grant.attempt, 1);

    let mut rival = claim.clone();
    rival.run_id = soloist::scheduler::lease::RunId::new(uuid::Uuid::new_v4());
    let ClaimAnswer::Held(held) = ask(&store, &other, &rival).await else {
        panic!("the occurrence is taken");
    };
    assert_eq!(held.sighting.token, grant.token);

    let renewed = store.renew(&one, &[renewal(&claim, &grant)]).await.unwrap();
    let RenewalAnswer::Renewed { deadline, .. } = renewed.answer[0] else {
        panic!("the lease is ours");
    };
    assert!(deadline > grant.deadline);

    let mut release = release(&claim, &grant, Outcome::Succeeded);
    release.output = printed(b"hello\0\xff");
    for _ in 0..2 {
        let released = store.release(&one, std::slice::from_ref(&release)).await;
        assert_eq!(released.unwrap().answer, [ReleaseAnswer::Released]);
    }
    assert_eq!(ask(&store, &other, &rival).await, ClaimAnswer::Finished);

    let lines = persist(|| store.history(None, 10)).await;
    assert_eq!(lines.len(), 1, "a repeated release writes no second line");
    assert_eq!(lines[0].outcome, Outcome::Succeeded);
    assert_eq!(lines[0].token, grant.token);
    let output = store.output(&job("job"), claim.run_id).await.unwrap();
    assert_eq!(output, Some(release.output));
}

#[tokio::test]
async fn a_token_is_above_the_clock_the_last_token_and_what_the_caller_has_seen() {
    let store = fresh_store(RedisServer::shared()).await;
    let mut caller = caller("one");
    let first = claim("a", just_due(&store).await);
    let before_us = now(&store).await.as_millis() * 1000;
    let first = win(&store, &caller, &first).await.token;
    assert!(first.get() >= u64::try_from(before_us).unwrap());

    caller.token_floor = FencingToken::new(FencingToken::MAX.get() - 2);
    let second = claim("b", just_due(&store).await);
    let second = win(&store, &caller, &second).await.token;
    assert_eq!(
        second.get(),
        FencingToken::MAX.get() - 1,
        "to the last digit"
    );

    caller.token_floor = FencingToken::default();
    let third = claim("c", just_due(&store).await);
    let third = win(&store, &caller, &third).await.token;
    assert_eq!(third, FencingToken::MAX);

    let fourth = claim("d", just_due(&store).await);
    let error = store.claim(&caller, &[fourth]).await.unwrap_err();
    assert!(error.to_string().contains("clock"), "{error}");
    let jobs = persist(|| store.snapshot()).await.answer.jobs;
    assert_eq!(jobs.len(), 3, "a claim that fails has done nothing");
}

#[tokio::test]
async fn nothing_to_ask_is_no_error() {
    let store = fresh_store(RedisServer::shared()).await;
    let answered = store.claim(&caller("one"), &[]).await.unwrap();
    assert!(answered.answer.is_empty());
    assert!(persist(|| store.history(None, 10)).await.is_empty());
}

#[tokio::test]
async fn two_namespaces_never_meet() {
    let server = RedisServer::shared();
    let (here, there) = (fresh_store(server).await, fresh_store(server).await);
    let caller = caller("one");
    let claim = claim("job", just_due(&here).await);
    let grant = win(&here, &caller, &claim).await;
    win(&there, &caller, &claim).await;

    let handed_over = release(&claim, &grant, Outcome::HandedOver);
    let mut news = there.events();
    here.release(&caller, &[handed_over]).await.unwrap();
    assert_eq!(persist(|| here.history(None, 10)).await.len(), 1);
    assert!(persist(|| there.history(None, 10)).await.is_empty());
    let jobs = persist(|| there.snapshot()).await.answer.jobs;
    let standing = jobs[0].last().unwrap().standing;
    assert!(matches!(standing, Standing::Running { .. }));
    assert!(news.try_recv().is_err());
}

#[tokio::test]
async fn a_namespace_that_is_no_name_is_refused() {
    for namespace in ["", "a b", "{x}", "a:b"] {
        let opened = RedisStore::open("redis://127.0.0.1", namespace);
        assert!(
            matches!(opened, Err(StoreError::BadUrl { .. })),
            "{namespace}"
        );
    }
}

#[tokio::test]
async fn outputs_are_kept_of_the_newest_attempts_only() {
    let store = fresh_store(RedisServer::shared()).await;
    let caller = caller("one");
    let mut runs = Vec::new();
    for n in 0..OUTPUTS_KEPT + 5 {
        let claim = claim("job", just_due(&store).await);
        let grant = win(&store, &caller, &claim).await;
        let mut release = release(&claim, &grant, Outcome::Succeeded);
        release.output = printed(n.to_string().as_bytes());
        store.release(&caller, &[release]).await.unwrap();
        runs.push(claim.run_id);
    }
    for (n, run_id) in runs.into_iter().enumerate() {
        let output = store.output(&job("job"), run_id).await.unwrap();
        assert_eq!(output.is_some(), n >= 5, "{n}");
    }
}

#[tokio::test]
async fn a_hand_over_is_told_to_the_other_replicas() {
    let server = RedisServer::shared();
    let namespace = fresh_namespace();
    let (here, there) = (
        store_in(server, &namespace).await,
        store_in(server, &namespace).await,
    );
    let mut news = there.events();
    subscribed(server, &namespace, 2).await;
    let (one, other) = (caller("one"), caller("other"));
    let mut claim = claim("job", just_due(&here).await);
    claim.on_crash = OnCrash::Skip;
    let grant = win(&here, &one, &claim).await;
    let handed_over = release(&claim, &grant, Outcome::HandedOver);
    here.release(&one, &[handed_over]).await.unwrap();
    assert_eq!(news.recv().await.unwrap(), StoreEvent::Opening);

    let seen = there
        .observe(&other, &info(), Scope::Overdue)
        .await
        .unwrap();
    assert_eq!(seen.answer.openings[0].occurrence, claim.occurrence);
    claim.run_id = soloist::scheduler::lease::RunId::new(uuid::Uuid::new_v4());
    assert_eq!(win(&there, &other, &claim).await.attempt, 2);
}

/// Waits until the channel of a namespace has its subscribers.
async fn subscribed(server: &RedisServer, namespace: &str, subscribers: usize) {
    let channel = format!("soloist:{{{namespace}}}:events");
    let wanted = format!("{channel}\n{subscribers}");
    until("so many subscribers", async || {
        let told = server.command(&["PUBSUB", "NUMSUB", &channel]);
        (told == wanted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_replica_that_departs_is_off_the_list() {
    let store = fresh_store(RedisServer::shared()).await;
    let caller = caller("a|b/c");
    store.observe(&caller, &info(), Scope::All).await.unwrap();
    let listed = persist(|| store.snapshot()).await.answer.replicas;
    let mine = listed.iter().find(|r| r.replica == caller.replica).unwrap();
    assert_eq!(mine.info, info());
    persist(|| store.depart(&caller)).await;
    let listed = persist(|| store.snapshot()).await.answer.replicas;
    assert!(listed.iter().all(|r| r.replica != caller.replica));
}
