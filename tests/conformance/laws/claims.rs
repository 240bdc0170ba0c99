//! Who gets an occurrence, and that it is got once.

use std::time::Duration;

use soloist::scheduler::lease::{
    Cause, Claim, ClaimAnswer, FencingToken, Origin, Outcome, Sighting,
};

use crate::bench::{Bench, LONG_TTL, Peer, STEP, anew, claim, enrolment, job, later, release};
use crate::fixtures::Fixture;

const CONTENDERS: usize = 24;

pub(crate) async fn of_many_concurrent_claims_one_wins<F: Fixture>(bench: &Bench<F>) {
    let peers = bench.replicas(CONTENDERS).await;
    let first = peers[0].first_claim("report").await;
    let tasks: Vec<_> = peers
        .into_iter()
        .map(|peer| {
            let claim = anew(&first);
            tokio::spawn(async move { peer.claim_when_due(&claim).await })
        })
        .collect();
    let (mut granted, mut held) = (Vec::new(), Vec::new());
    for task in tasks {
        match task.await.expect("no contender panics") {
            ClaimAnswer::Granted(grant) => granted.push(grant),
            ClaimAnswer::Held(lease) => held.push(lease),
            other => panic!("a contender was told {other:?}"),
        }
    }
    assert_eq!((granted.len(), held.len()), (1, CONTENDERS - 1));
    let sighting = Sighting {
        token: granted[0].token,
        deadline: granted[0].deadline,
    };
    for lease in held {
        assert_eq!((lease.sighting, lease.ttl), (sighting, LONG_TTL));
        assert_eq!(lease.scheduled_at, first.occurrence.scheduled_at);
    }
}

pub(crate) async fn an_occurrence_is_remembered_after_its_release<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    for (name, outcome) in [
        ("well", Outcome::Succeeded),
        ("badly", Outcome::Failed),
        ("late", Outcome::TimedOut),
        ("stopped", Outcome::Cancelled),
    ] {
        let claim = a.first_claim(name).await;
        a.run(&claim, outcome).await;
        for peer in [&a, &b] {
            assert_eq!(peer.claim(&anew(&claim)).await, ClaimAnswer::Finished);
        }
        assert_eq!(a.outcomes(&claim.occurrence.job).await, [outcome]);
    }
}

pub(crate) async fn a_claim_sent_again_is_granted_the_same_again<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    // Through another connection too: the first one may be what lost the answer.
    for peer in [
        &a,
        &Peer {
            store: b.store,
            caller: a.caller.clone(),
        },
    ] {
        match peer.claim(&claim).await {
            ClaimAnswer::Granted(again) => {
                assert_eq!((again.token, again.deadline), (grant.token, grant.deadline));
                assert_eq!(again.attempt, 1);
                assert!(again.remaining <= grant.remaining, "time went on");
            }
            other => panic!("the same claim was told {other:?}"),
        }
    }
    assert_eq!(a.history(None).await, []);
}

pub(crate) async fn a_claim_sent_again_after_the_release_is_not_granted_again<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    a.run(&claim, Outcome::Succeeded).await;
    assert_eq!(a.claim(&claim).await, ClaimAnswer::Finished);
}

pub(crate) async fn a_claim_that_comes_too_early_is_told_how_long_to_wait<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    let hour = Duration::from_secs(3600);
    claim.occurrence.scheduled_at = claim.occurrence.scheduled_at + hour;
    match a.claim(&claim).await {
        ClaimAnswer::Early { wait } => {
            assert!(wait <= hour + STEP && wait > hour - Duration::from_secs(60));
        }
        other => panic!("an hour early, and told {other:?}"),
    }
    assert_eq!(a.history(None).await, []);
    // It settled nothing: what is due before it can be had.
    claim.occurrence.scheduled_at = claim.occurrence.scheduled_at - hour;
    a.win(&claim).await;
}

pub(crate) async fn an_occurrence_past_its_start_by_is_recorded_as_missed<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let mut claim = a.first_claim("report").await;
    claim.start_by = claim.occurrence.scheduled_at - Duration::from_secs(1);
    assert_eq!(a.claim_when_due(&claim).await, ClaimAnswer::TooLate);
    assert_eq!(b.claim(&anew(&claim)).await, ClaimAnswer::Finished);
    let lines = a.history(None).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((line.outcome, line.attempt), (Outcome::Missed, 0));
    assert_eq!(line.token, FencingToken::default());
    assert_eq!(line.scheduled_at, claim.occurrence.scheduled_at);
    assert_eq!(line.replica, "a");
    assert!(line.detail.reason.is_some(), "{line:?}");
    // The next one is none the worse for it.
    assert_eq!(
        b.win(&later(
            &crate::bench::claim(&line.job, line.scheduled_at),
            1
        ))
        .await
        .attempt,
        1
    );
}

pub(crate) async fn what_a_newer_occurrence_overtook_is_missed_as_one_line<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let mut older = a.first_claim("report").await;
    let settled = older.occurrence.scheduled_at - STEP;
    older.claim_by = Claim::ONLY_ASKS;
    assert_eq!(a.claim_when_due(&older).await, ClaimAnswer::Finished);
    assert_eq!(a.history(None).await, [], "it asks, and settles nothing");
    let mut newer = later(&older, 5);
    newer.claim_by = newer.start_by;
    newer.missed_until = Some(later(&older, 4).occurrence.scheduled_at);
    a.win(&newer).await;
    let lines = a.history(None).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let line = &lines[0];
    assert_eq!((line.outcome, line.attempt), (Outcome::Missed, 0));
    assert_eq!(line.scheduled_at, later(&older, 4).occurrence.scheduled_at);
    assert_eq!(line.detail.since, Some(settled));
    assert_eq!(line.detail.schedule.as_deref(), Some("* * * * * *"));
    assert_eq!(line.detail.cause, Some(Cause::CatchUp));
}

pub(crate) async fn an_occurrence_older_than_the_newest_is_finished<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let older = a.first_claim("report").await;
    let newer = later(&older, 2);
    let grant = a.win(&newer).await;
    // While the newer one runs, and after it.
    assert_eq!(b.claim(&anew(&older)).await, ClaimAnswer::Finished);
    a.release(&release(&newer, &grant, Outcome::Succeeded))
        .await;
    assert_eq!(b.claim(&anew(&older)).await, ClaimAnswer::Finished);
    assert_eq!(a.outcomes(&job("report")).await, [Outcome::Succeeded]);
}

pub(crate) async fn an_occurrence_during_another_one_is_recorded_as_skipped<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let first = a.first_claim("report").await;
    let grant = a.win(&first).await;
    let second = later(&first, 1);
    match b.claim_when_due(&second).await {
        ClaimAnswer::Overlap(lease) => assert_eq!(lease.sighting.token, grant.token),
        other => panic!("the second was told {other:?}"),
    }
    let lines = b.history(Some(&job("report"))).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((lines[0].outcome, lines[0].attempt), (Outcome::Skipped, 0));
    assert_eq!(lines[0].scheduled_at, second.occurrence.scheduled_at);
    // It is consumed: neither another replica nor the end of the first one brings it back.
    assert_eq!(a.claim(&anew(&second)).await, ClaimAnswer::Finished);
    a.release(&release(&first, &grant, Outcome::Succeeded))
        .await;
    assert_eq!(a.claim(&anew(&second)).await, ClaimAnswer::Finished);
    assert_eq!(b.win(&later(&first, 2)).await.attempt, 1);
}

pub(crate) async fn a_manual_occurrence_waits_for_the_running_one_and_consumes_nothing<
    F: Fixture,
>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let first = a.first_claim("report").await;
    let grant = a.win(&first).await;
    let mut manual = later(&first, 5);
    manual.origin = Origin::RunOnce;
    assert!(matches!(
        a.claim_when_due(&manual).await,
        ClaimAnswer::Held(_)
    ));
    a.release(&release(&first, &grant, Outcome::Succeeded))
        .await;
    let grant = a.win(&manual).await;
    a.release(&release(&manual, &grant, Outcome::Succeeded))
        .await;
    let two = [Outcome::Succeeded, Outcome::Succeeded];
    assert_eq!(a.outcomes(&job("report")).await, two);
    // An occurrence of the schedule from before the manual one is still to be had.
    a.win(&later(&first, 2)).await;
}

pub(crate) async fn a_new_job_never_runs_its_past<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let due = a.first_due(&job("report")).await;
    for before in [STEP, Duration::from_secs(60), Duration::from_secs(86_400)] {
        let past = claim(&job("report"), due - before);
        assert_eq!(a.claim(&past).await, ClaimAnswer::Finished);
    }
    assert_eq!(a.history(None).await, []);
    a.win(&claim(&job("report"), due)).await;
}

pub(crate) async fn registering_again_settles_nothing<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let first = a.first_claim("report").await;
    let settled = first.occurrence.scheduled_at - STEP;
    // Time goes on, so that "now" and what was settled can be told apart.
    while a
        .observe(soloist::scheduler::lease::Scope::Overdue)
        .await
        .now
        < settled + STEP * 2
    {
        tokio::time::sleep(STEP).await;
    }
    let jobs = [enrolment(&job("report")), enrolment(&job("new"))];
    let answered = b.store.register(&b.caller, &jobs).await;
    let answered = answered.expect("the store answers");
    assert_eq!(answered.answer.len(), 2);
    assert_eq!(
        (answered.answer[0].settled_until, answered.answer[0].new),
        (settled, false)
    );
    assert_eq!(
        (answered.answer[1].settled_until, answered.answer[1].new),
        (answered.now, true)
    );
    a.win(&first).await;
}

pub(crate) async fn a_claim_that_arrives_after_its_own_deadline_does_nothing<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let mut late = a.clone();
    late.caller.send_by = Some(claim.occurrence.scheduled_at - Duration::from_secs(1));
    assert_eq!(late.claim(&claim).await, ClaimAnswer::RequestExpired);
    assert_eq!(a.history(None).await, []);
    // In time it is granted; and what was granted is told again however late it is asked.
    a.win(&claim).await;
    assert!(matches!(late.claim(&claim).await, ClaimAnswer::Granted(_)));
}

pub(crate) async fn a_caller_who_has_seen_a_grace_window_is_granted_nothing_in_it<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let mut held_back = a.clone();
    held_back.caller.held_back = Duration::from_secs(60);
    match held_back.claim_when_due(&claim).await {
        ClaimAnswer::Grace { wait } => assert_eq!(wait, held_back.caller.held_back),
        other => panic!("held back, and told {other:?}"),
    }
    // By the store's clock there is none, and who has seen none is granted it.
    a.win(&claim).await;
}

pub(crate) async fn tokens_rise_at_every_grant_above_the_floor_and_fit_53_bits<F: Fixture>(
    bench: &Bench<F>,
) {
    let mut a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    let mut last = FencingToken::default();
    for _ in 0..20 {
        let grant = a.run(&claim, Outcome::Succeeded).await;
        assert!(grant.token > last, "{} after {last}", grant.token);
        last = grant.token;
        claim = later(&claim, 1);
    }
    let due_us = claim.occurrence.scheduled_at.as_millis() * 1000;
    assert!(
        last.get() > due_us as u64 - 60_000_000,
        "the store's time in µs: {last}"
    );
    a.caller.token_floor = FencingToken::new(last.get() + 3_600_000_000);
    let above = a.run(&claim, Outcome::Succeeded).await.token;
    assert!(above > a.caller.token_floor, "{above}");
    // Others rise above it too, though they never saw it.
    let b = bench.replica("b").await;
    let other = b.first_claim("other").await;
    let higher = b.run(&other, Outcome::Succeeded).await.token;
    assert!(higher > above && higher <= FencingToken::MAX, "{higher}");
}
