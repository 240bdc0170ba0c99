//! What replicas and people see of the ledger.

use std::time::{Duration, Instant};

use soloist::scheduler::lease::{
    Cause, ClaimAnswer, Dependents, Enrolment, Order, OrderAnswer, OrderKind, Outcome, Scope,
};
use soloist::scheduler::time::Timestamp;
use soloist::store::{NeverStarted, ReplicaState, Standing, StoreEvent};
use tokio::sync::broadcast::Receiver;

use crate::bench::{
    Bench, PATIENCE, Peer, RETENTION, STEP, enrolment, info, job, later, release, renewal, run_id,
};
use crate::fixtures::Fixture;

/// The lease of a law that waits for its end, and looks at it before.
const SEEN_TTL: Duration = Duration::from_secs(4);

/// In such a time news are heard, where nothing else is to do.
const AT_ONCE: Duration = Duration::from_millis(100);

/// How far apart the clocks of several servers on one machine may be read.
const CLOCKS_APART: Duration = Duration::from_millis(50);

pub(crate) async fn a_hand_over_is_announced_to_every_replica<F: Fixture>(bench: &Bench<F>) {
    let peers = bench.replicas(3).await;
    let mut ears: Vec<_> = peers.iter().map(|peer| peer.store.events()).collect();
    // What is told before anybody listens is lost: one hand-over after the other is told, until all
    // were there for one.
    let begun = Instant::now();
    let mut turn = 0;
    while !all_hear_of_one(&peers[0], &mut ears, turn, AT_ONCE).await {
        assert!(begun.elapsed() < PATIENCE, "every replica hears of one");
        turn += 1;
    }
    // From then on each one is heard of.
    let heard = all_hear_of_one(&peers[0], &mut ears, turn + 1, PATIENCE).await;
    assert!(heard, "every replica hears of each");
}

async fn all_hear_of_one(
    peer: &Peer,
    ears: &mut [Receiver<StoreEvent>],
    turn: usize,
    within: Duration,
) -> bool {
    // What was told of the one before is no word of this one.
    for ear in ears.iter_mut() {
        while ear.try_recv().is_ok() {}
    }
    let claim = peer.first_claim(&format!("report-{turn}")).await;
    peer.run(&claim, Outcome::HandedOver).await;
    let mut all = true;
    for ear in ears {
        let heard = tokio::time::timeout(within, async {
            while ear.recv().await.expect("the store lives") != StoreEvent::Opening {}
        });
        all &= heard.await.is_ok();
    }
    all
}

pub(crate) async fn an_observer_sees_what_ran_out_and_what_was_handed_over<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let live = a.first_claim("live").await;
    let mut dying = a.first_claim("dying").await;
    dying.ttl = SEEN_TTL;
    let (kept, left) = (a.win(&live).await, a.win(&dying).await);
    let before = b.observe(Scope::Overdue).await;
    assert_eq!(before.answer.leases, []);
    assert_eq!(before.answer.next_look, Some(left.deadline));
    assert_eq!(before.answer.grace, Duration::ZERO);
    let held = b.when_overdue(&dying.occurrence.job).await;
    assert_eq!(held.sighting.token, left.token);
    assert_eq!(held.sighting.deadline, left.deadline);
    assert_eq!(held.scheduled_at, dying.occurrence.scheduled_at);
    assert_eq!(held.ttl, SEEN_TTL);
    a.release(&release(&live, &kept, Outcome::HandedOver)).await;
    let after = b.observe(Scope::Overdue).await.answer;
    let seen: Vec<_> = after
        .leases
        .iter()
        .map(|lease| lease.job.as_str())
        .collect();
    assert_eq!(seen, ["dying"]);
    let free: Vec<_> = after.openings.iter().map(|one| &one.occurrence).collect();
    assert_eq!(free, [&live.occurrence]);
    assert_eq!(after.next_look, None);
}

pub(crate) async fn an_observer_of_all_sees_live_leases_too<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    a.run(&a.first_claim("over").await, Outcome::Succeeded)
        .await;
    a.first_claim("new").await;
    a.renew(&renewal(&claim, &grant)).await;
    assert_eq!(b.observe(Scope::Overdue).await.answer.leases, []);
    let seen = b.observe(Scope::All).await.answer;
    assert_eq!(seen.leases.len(), 1, "{seen:?}");
    let lease = &seen.leases[0];
    assert_eq!(lease.job.as_str(), "report");
    assert_eq!(seen.openings, []);
    assert!(lease.held.sighting.deadline > grant.deadline, "as renewed");
    assert_eq!(seen.next_look, Some(lease.held.sighting.deadline));
}

pub(crate) async fn a_snapshot_shows_jobs_and_how_they_stand<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let failed = a.first_claim("a-failed").await;
    a.run(&failed, Outcome::Failed).await;
    let new = b.first_due(&job("b-new")).await;
    let running = b.first_claim("c-running").await;
    let grant = b.win(&running).await;
    b.claim_when_due(&later(&running, 3)).await;
    let snapshot = a.store.snapshot().await.expect("the store answers").answer;
    let names: Vec<_> = snapshot.jobs.iter().map(|job| job.job.as_str()).collect();
    assert_eq!(names, ["a-failed", "b-new", "c-running"]);
    let [one, two, three] = &snapshot.jobs[..] else {
        panic!("three names and not three jobs");
    };
    let last = one.last().expect("it ran");
    assert_eq!(last.standing, Standing::Ended(Outcome::Failed));
    assert_eq!((last.replica.as_str(), last.run_id), ("a", failed.run_id));
    assert_eq!(one.settled_until, failed.occurrence.scheduled_at);
    assert_eq!((two.last(), two.settled_until), (None, new - STEP));
    let last = three.last().expect("it runs");
    let deadline = grant.deadline;
    assert_eq!(last.standing, Standing::Running { deadline });
    assert_eq!((last.attempt, last.token), (1, grant.token));
    assert_eq!(last.scheduled_at, running.occurrence.scheduled_at);
    // What was skipped is settled.
    assert_eq!(
        three.settled_until,
        running.occurrence.scheduled_at + STEP * 3
    );
    assert_eq!(snapshot.grace, Duration::ZERO);
}

pub(crate) async fn replicas_are_listed_until_they_depart<F: Fixture>(bench: &Bench<F>) {
    let (b, a) = (bench.replica("b").await, bench.replica("a").await);
    let twin = bench.replica("a").await;
    for peer in [&b, &a, &twin, &b] {
        peer.observe(Scope::Overdue).await;
    }
    let mut draining = info();
    draining.draining = true;
    let before = a.observe(Scope::Overdue).await.now;
    let again = b.store.observe(&b.caller, &draining, Scope::Overdue).await;
    again.expect("the store answers");
    let listed = listed(&a).await;
    let after = a.observe(Scope::Overdue).await.now;
    let names: Vec<_> = listed
        .iter()
        .map(|state| state.replica.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["a", "a", "b"],
        "by name, and two of one name are two"
    );
    assert_eq!(listed[2].replica, b.caller.replica);
    assert_eq!(listed[2].info, draining);
    // Several servers have a clock each, and write it down at a moment of their own.
    let seen_at = listed[2].seen_at;
    assert!(
        before <= seen_at + CLOCKS_APART && seen_at <= after + CLOCKS_APART,
        "{before} {seen_at} {after}"
    );
    for _ in 0..2 {
        b.store
            .depart(&b.caller)
            .await
            .expect("departing twice is no fault");
    }
    without(&a, "b").await;
    assert_eq!(self::listed(&a).await.len(), 2);
}

async fn listed(peer: &Peer) -> Vec<ReplicaState> {
    let snapshot = peer.store.snapshot().await.expect("the store answers");
    snapshot.answer.replicas
}

/// Waits until nobody of this name is listed. Of several servers one may be told after the answer.
async fn without(peer: &Peer, name: &str) {
    let begun = Instant::now();
    loop {
        let listed = listed(peer).await;
        if listed.iter().all(|state| state.replica.name != name) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{listed:?}");
        tokio::time::sleep(STEP).await;
    }
}

/// What a job's record keeps of what never started.
async fn never_started_of(peer: &Peer, name: &str) -> Vec<NeverStarted> {
    let snapshot = peer.store.snapshot().await.expect("the store answers");
    let mut jobs = snapshot.answer.jobs.into_iter();
    let state = jobs.find(|state| state.job.as_str() == name);
    state.expect("the job").never_started
}

const fn never_started(scheduled_at: Timestamp, outcome: Outcome, cause: Cause) -> NeverStarted {
    NeverStarted {
        scheduled_at,
        outcome,
        cause,
        within: None,
    }
}

pub(crate) async fn a_snapshot_shows_what_never_started_until_something_newer_runs<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let first = a.first_claim("busy").await;
    let grant = a.win(&first).await;
    a.claim_when_due(&later(&first, 1)).await;
    let second = first.occurrence.scheduled_at + STEP;
    let skipped = never_started(second, Outcome::Skipped, Cause::Overlap);
    assert_eq!(never_started_of(&a, "busy").await, [skipped]);
    a.release(&release(&first, &grant, Outcome::Succeeded))
        .await;
    let mut third = later(&first, 3);
    third.missed_until = Some(second + STEP);
    third.start_by = second;
    assert_eq!(a.claim_when_due(&third).await, ClaimAnswer::TooLate);
    let third = third.occurrence.scheduled_at;
    let missed = never_started(third, Outcome::Missed, Cause::Deadline);
    assert_eq!(never_started_of(&a, "busy").await, [missed]);
    a.run(&later(&first, 4), Outcome::Failed).await;
    assert_eq!(never_started_of(&a, "busy").await, []);
}

pub(crate) async fn a_pause_leaves_only_what_nobody_claimed_before_it<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let job = job("paused");
    // Nothing of it was due, and nothing is: the record can't know, and keeps the stretch.
    let yearly = Enrolment {
        schedule: "0 0 1 1 *".to_owned(),
        ..enrolment(&job)
    };
    let answered = a.store.register(&a.caller, &[yearly]).await;
    let settled = answered.expect("the store answers").answer[0].settled_until;
    let order = async |what| {
        // Each at an instant of its own.
        tokio::time::sleep(STEP * 2).await;
        let order = Order {
            job: job.clone(),
            what,
            by: "alice".to_owned(),
            id: run_id(),
            retention: RETENTION,
            dependents: Dependents::default(),
        };
        let answered = a.store.order(&a.caller, &[order]).await;
        answered.expect("the store answers").answer.remove(0)
    };
    let OrderAnswer::Paused { since, .. } = order(OrderKind::Pause).await else {
        panic!("it is not paused");
    };
    order(OrderKind::Resume).await;
    let stretch = NeverStarted {
        within: Some((settled, "0 0 1 1 *".to_owned())),
        ..never_started(since, Outcome::Missed, Cause::CatchUp)
    };
    assert_eq!(never_started_of(&a, "paused").await, [stretch]);
}
