//! Many jobs in one atomic step, and fleets that share an engine.

use std::time::Duration;

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{
    BATCH_LIMIT, Claim, ClaimAnswer, Dependents, Enrolment, Grant, Order, OrderKind, Outcome,
    ReleaseAnswer, RenewalAnswer, Scope,
};
use soloist::store::{StoreError, StoreEvent};

use tokio::sync::broadcast::Receiver;

use crate::bench::{
    Bench, PATIENCE, Peer, RETENTION, STEP, anew, claim, enrolment, job, release, renewal, run_id,
};
use crate::fixtures::Fixture;

fn names(count: usize) -> Vec<JobName> {
    // Not in the order of the alphabet, so that a store that sorts them is found out.
    (0..count)
        .map(|number| job(&format!("job-{}", (number * 37) % 1000)))
        .collect()
}

async fn due_claims(peer: &Peer, names: &[JobName]) -> Vec<Claim> {
    let enrolments: Vec<_> = names.iter().map(enrolment).collect();
    let answered = peer.store.register(&peer.caller, &enrolments).await;
    let answered = answered.expect("the store answers");
    assert_eq!(answered.answer.len(), names.len());
    names
        .iter()
        .zip(&answered.answer)
        .map(|(job, registration)| claim(job, registration.settled_until + STEP))
        .collect()
}

async fn claim_all(peer: &Peer, claims: &[Claim]) -> Vec<ClaimAnswer> {
    loop {
        let answered = peer.store.claim(&peer.caller, claims).await;
        let answers = answered.expect("the store answers").answer;
        if !answers
            .iter()
            .any(|answer| matches!(answer, ClaimAnswer::Early { .. }))
        {
            return answers;
        }
        tokio::time::sleep(STEP).await;
    }
}

async fn win_all(peer: &Peer, claims: &[Claim]) -> Vec<Grant> {
    let answers = claim_all(peer, claims).await;
    assert_eq!(answers.len(), claims.len());
    let granted = answers.into_iter().map(|answer| match answer {
        ClaimAnswer::Granted(grant) => grant,
        other => panic!("not granted: {other:?}"),
    });
    granted.collect()
}

pub(crate) async fn a_full_batch_is_answered_in_its_order<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let mut claims = due_claims(&a, &names(BATCH_LIMIT)).await;
    a.run(&claims[5], Outcome::Succeeded).await;
    let elsewhere = b.win(&anew(&claims[9])).await;
    // One of them is over, one is held; the others are to be had.
    claims[5] = anew(&claims[5]);
    let answers = claim_all(&a, &claims).await;
    assert_eq!(answers[5], ClaimAnswer::Finished);
    assert!(
        matches!(&answers[9], ClaimAnswer::Held(held) if held.sighting.token == elsewhere.token)
    );
    let mut granted = Vec::new();
    for (claim, answer) in claims.iter().zip(answers) {
        if let ClaimAnswer::Granted(grant) = answer {
            granted.push((claim.clone(), grant));
        }
    }
    assert_eq!(granted.len(), BATCH_LIMIT - 2);
    let renewals: Vec<_> = granted
        .iter()
        .map(|(claim, grant)| renewal(claim, grant))
        .collect();
    let answers = a
        .store
        .renew(&a.caller, &renewals)
        .await
        .expect("the store answers")
        .answer;
    assert_eq!(answers.len(), renewals.len());
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, RenewalAnswer::Renewed { .. }))
    );
    let releases: Vec<_> = granted
        .iter()
        .map(|(claim, grant)| release(claim, grant, Outcome::Succeeded))
        .collect();
    let answers = a
        .store
        .release(&a.caller, &releases)
        .await
        .expect("the store answers")
        .answer;
    assert_eq!(answers, vec![ReleaseAnswer::Released; releases.len()]);
    assert_eq!(
        a.observe(Scope::All).await.answer.leases.len(),
        1,
        "the other replica's"
    );
}

fn assert_refused<T: std::fmt::Debug>(what: &str, result: Result<T, StoreError>) {
    match result {
        Err(StoreError::Refused { .. }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

/// Sends `claims`, and the renewals and releases of the same jobs, and sees all refused.
async fn refused_in_every_call(peer: &Peer, claims: &[Claim], grant: &Grant) {
    let (store, caller) = (&peer.store, &peer.caller);
    let jobs: Vec<_> = claims
        .iter()
        .map(|claim| enrolment(&claim.occurrence.job))
        .collect();
    let renewals: Vec<_> = claims.iter().map(|claim| renewal(claim, grant)).collect();
    let ended = Outcome::Succeeded;
    let releases: Vec<_> = claims
        .iter()
        .map(|claim| release(claim, grant, ended))
        .collect();
    assert_refused("register", store.register(caller, &jobs).await);
    assert_refused("claim", store.claim(caller, claims).await);
    assert_refused("renew", store.renew(caller, &renewals).await);
    assert_refused("release", store.release(caller, &releases).await);
}

pub(crate) async fn a_batch_over_the_limit_is_refused_whole<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claims = due_claims(&a, &names(BATCH_LIMIT)).await;
    let mut more = anew(&claims[0]);
    more.occurrence.job = job("one-more");
    let grant = a.win(&claims[0]).await;
    claims.push(more);
    refused_in_every_call(&a, &claims, &grant).await;
    assert_eq!(
        a.observe(Scope::All).await.answer.leases.len(),
        1,
        "nothing of it was done"
    );
    assert_eq!(a.history(None).await, []);
    claims.pop();
    assert_eq!(win_all(&a, &claims).await.len(), BATCH_LIMIT);
}

pub(crate) async fn a_batch_that_names_a_job_twice_is_refused_whole<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claims = due_claims(&a, &names(3)).await;
    let grant = a.win(&claims[0]).await;
    let mut again = anew(&claims[1]);
    again.occurrence.scheduled_at = again.occurrence.scheduled_at + STEP;
    claims.push(again);
    refused_in_every_call(&a, &claims, &grant).await;
    assert_eq!(
        a.observe(Scope::All).await.answer.leases.len(),
        1,
        "nothing of it was done"
    );
}

pub(crate) async fn an_empty_batch_is_answered_with_nothing<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let (store, caller) = (&a.store, &a.caller);
    assert_eq!(
        store
            .register(caller, &[])
            .await
            .expect("the store answers")
            .answer,
        []
    );
    assert_eq!(
        store
            .claim(caller, &[])
            .await
            .expect("the store answers")
            .answer,
        []
    );
    assert_eq!(
        store
            .renew(caller, &[])
            .await
            .expect("the store answers")
            .answer,
        []
    );
    assert_eq!(
        store
            .release(caller, &[])
            .await
            .expect("the store answers")
            .answer,
        []
    );
}

pub(crate) async fn two_namespaces_never_meet<F: Fixture>(bench: &Bench<F>) {
    // Of two names, one the beginning of the other, and with the separators of keys in them.
    let shop = bench.replica_in("shop", "a").await;
    let other = bench.replica_in("shop.b", "a").await;
    let mut ear = other.store.events();
    let mine = shop.first_claim("report").await;
    let mut output = release(&mine, &shop.win(&mine).await, Outcome::Succeeded);
    output.output.stdout.head = b"x".to_vec();
    output.output.stdout.total = 1;
    // The same job is new to the other, and free.
    let theirs = other.first_claim("report").await;
    let grant = other.win(&theirs).await;
    assert_eq!(
        other.renew(&renewal(&mine, &grant)).await,
        RenewalAnswer::Lost
    );
    assert_eq!(other.release(&output).await, ReleaseAnswer::Superseded);
    assert_eq!(shop.release(&output).await, ReleaseAnswer::Released);
    shop.observe(Scope::All).await;
    assert_eq!(other.history(None).await, []);
    assert_eq!(other.observe(Scope::All).await.answer.leases.len(), 1);
    let kept = other.store.output(&job("report"), mine.run_id).await;
    assert_eq!(kept.expect("the store answers"), None);
    let snapshot = other
        .store
        .snapshot()
        .await
        .expect("the store answers")
        .answer;
    assert_eq!((snapshot.jobs.len(), snapshot.replicas.len()), (1, 1));
    assert_eq!(snapshot.replicas[0].replica, other.caller.replica);
    // What is handed over in one is announced in that one alone. What was said before that, such as of
    // the ledger's birth, is heard first.
    let marked = Enrolment {
        schedule: "0 0 1 1 *".to_owned(),
        ..enrolment(&job("marked"))
    };
    let known = other.store.register(&other.caller, &[marked]).await;
    known.expect("the store answers");
    mark(&other, OrderKind::Pause).await;
    until_marked(&mut ear).await;
    until_quiet::<F>(&mut ear).await;
    let handed = shop.first_claim("handed").await;
    shop.run(&handed, Outcome::HandedOver).await;
    assert_eq!(other.observe(Scope::Overdue).await.answer.leases, []);
    mark(&other, OrderKind::Resume).await;
    assert_eq!(until_marked(&mut ear).await, [], "it is not its own");
    until_quiet::<F>(&mut ear).await;
    other
        .release(&release(&theirs, &grant, Outcome::HandedOver))
        .await;
    mark(&other, OrderKind::Pause).await;
    let heard = words_until_marked::<F>(&mut ear).await;
    assert_eq!(heard, [StoreEvent::Opening], "one hand-over, one word");
}

/// Has something said that nothing else brings about.
async fn mark(peer: &Peer, what: OrderKind) {
    let order = Order {
        job: job("marked"),
        what,
        by: "alice".to_owned(),
        id: run_id(),
        retention: RETENTION,
        dependents: Dependents::default(),
    };
    let said = peer.store.order(&peer.caller, &[order]).await;
    said.expect("the store answers");
}

/// Of several servers one may tell late what was heard of the others: that is let pass.
async fn until_quiet<F: Fixture>(ear: &mut Receiver<StoreEvent>) {
    const QUIET: Duration = Duration::from_millis(500);
    const WORDS: usize = 20;
    if !F::REPEATS_NEWS {
        return;
    }
    for _ in 0..WORDS {
        match tokio::time::timeout(QUIET, ear.recv()).await {
            Ok(word) => word.expect("the store lives"),
            Err(_) => return,
        };
    }
    panic!("more than {WORDS} words, and nobody did anything");
}

/// What is heard before the mark.
async fn until_marked(ear: &mut Receiver<StoreEvent>) -> Vec<StoreEvent> {
    let mut heard = Vec::new();
    loop {
        let next = tokio::time::timeout(PATIENCE, ear.recv()).await;
        match next.expect("it is announced").expect("the store lives") {
            StoreEvent::PauseChanged => return heard,
            other => heard.push(other),
        }
    }
}

/// The same, where there is something to hear: each word once, and not up to the mark before that a late
/// server tells.
async fn words_until_marked<F: Fixture>(ear: &mut Receiver<StoreEvent>) -> Vec<StoreEvent> {
    let mut heard = until_marked(ear).await;
    while F::REPEATS_NEWS && heard.is_empty() {
        heard = until_marked(ear).await;
    }
    if F::REPEATS_NEWS {
        heard.dedup();
    }
    heard
}
