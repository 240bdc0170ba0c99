//! Taking over what its holder left: compare and take over, and hand-overs.

use std::time::Duration;

use soloist::scheduler::job::OnCrash;
use soloist::scheduler::lease::{
    Claim, ClaimAnswer, FencingToken, Outcome, RenewalAnswer, Scope, Sighting,
};

use crate::bench::{Bench, Peer, SHORT_TTL, anew, release, renewal};
use crate::fixtures::Fixture;

/// A claim whose lease was granted to `peer` and ran out, and what there is to see of it.
async fn abandoned(peer: &Peer, name: &str) -> (Claim, Sighting) {
    let mut claim = peer.first_claim(name).await;
    claim.ttl = SHORT_TTL;
    peer.win(&claim).await;
    let held = peer.when_overdue(&claim.occurrence.job).await;
    (claim, held.sighting)
}

fn takeover(claim: &Claim, sighting: Sighting) -> Claim {
    Claim {
        watched: Some(sighting),
        ..anew(claim)
    }
}

pub(crate) async fn a_lease_that_ran_out_is_not_granted_without_its_sighting<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let (claim, sighting) = abandoned(&a, "report").await;
    match b.claim(&anew(&claim)).await {
        ClaimAnswer::Held(held) => assert_eq!(held.sighting, sighting),
        other => panic!("expiry alone was believed: {other:?}"),
    }
    assert_eq!(b.history(None).await, []);
}

pub(crate) async fn a_sighting_that_is_not_exact_takes_nothing<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let (claim, seen) = abandoned(&a, "report").await;
    let millisecond = Duration::from_millis(1);
    let token = |number| FencingToken::new(number);
    for wrong in [
        Sighting {
            token: token(seen.token.get() + 1),
            ..seen
        },
        Sighting {
            token: token(seen.token.get() - 1),
            ..seen
        },
        Sighting {
            deadline: seen.deadline + millisecond,
            ..seen
        },
        Sighting {
            deadline: seen.deadline - millisecond,
            ..seen
        },
    ] {
        let answer = b.claim(&takeover(&claim, wrong)).await;
        assert!(
            matches!(answer, ClaimAnswer::Held(_)),
            "{wrong:?}: {answer:?}"
        );
    }
    b.win(&takeover(&claim, seen)).await;
}

pub(crate) async fn a_renewal_makes_every_older_sighting_worthless<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let mut claim = a.first_claim("report").await;
    claim.ttl = SHORT_TTL;
    let grant = a.win(&claim).await;
    let seen = b.when_overdue(&claim.occurrence.job).await.sighting;
    // The holder was only slow.
    let answer = a.renew(&renewal(&claim, &grant)).await;
    assert!(matches!(answer, RenewalAnswer::Renewed { .. }));
    let answer = b.claim(&takeover(&claim, seen)).await;
    assert!(matches!(answer, ClaimAnswer::Held(_)), "{answer:?}");
    assert_eq!(b.history(None).await, []);
}

pub(crate) async fn a_takeover_is_the_next_attempt_under_a_higher_token<F: Fixture>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let (claim, seen) = abandoned(&a, "report").await;
    let takeover = takeover(&claim, seen);
    let grant = b.win(&takeover).await;
    assert_eq!(grant.attempt, 2);
    assert!(grant.token > seen.token);
    let lines = b.history(Some(&claim.occurrence.job)).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    let lost = &lines[0];
    assert_eq!((lost.outcome, lost.attempt), (Outcome::Lost, 1));
    assert_eq!((lost.token, lost.run_id), (seen.token, claim.run_id));
    assert_eq!(lost.replica, "a", "it was lost by its holder");
    // Sent again, the same; and it ends as any attempt does.
    assert_eq!(b.win(&takeover).await.token, grant.token);
    b.release(&release(&takeover, &grant, Outcome::Succeeded))
        .await;
    let both = [Outcome::Succeeded, Outcome::Lost];
    assert_eq!(b.outcomes(&claim.occurrence.job).await, both);
    assert_eq!(a.claim(&anew(&claim)).await, ClaimAnswer::Finished);
}

pub(crate) async fn a_job_that_may_not_run_again_is_closed_as_lost<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let mut claim = a.first_claim("charge").await;
    (claim.ttl, claim.on_crash) = (SHORT_TTL, OnCrash::Skip);
    a.win(&claim).await;
    let seen = b.when_overdue(&claim.occurrence.job).await.sighting;
    // What counts is what the holder was granted, not what the rival says.
    let mut forgiving = takeover(&claim, seen);
    forgiving.on_crash = OnCrash::Rerun;
    assert_eq!(b.claim(&forgiving).await, ClaimAnswer::Closed);
    assert_eq!(
        b.claim(&takeover(&claim, seen)).await,
        ClaimAnswer::Finished
    );
    assert_eq!(b.outcomes(&claim.occurrence.job).await, [Outcome::Lost]);
    assert_eq!(b.observe(Scope::All).await.answer.leases, []);
    b.win(&crate::bench::later(&claim, 1)).await;
}

pub(crate) async fn attempts_end_with_max_attempts<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let (claim, seen) = abandoned(&a, "poison").await;
    let mut second = takeover(&claim, seen);
    second.max_attempts = 2;
    assert_eq!(b.win(&second).await.attempt, 2);
    let seen = a.when_overdue(&claim.occurrence.job).await.sighting;
    let mut third = takeover(&claim, seen);
    third.max_attempts = 2;
    assert_eq!(a.claim(&third).await, ClaimAnswer::Closed);
    assert_eq!(a.claim(&anew(&claim)).await, ClaimAnswer::Finished);
    let twice = [Outcome::Lost, Outcome::Lost];
    assert_eq!(b.outcomes(&claim.occurrence.job).await, twice);
}

pub(crate) async fn what_was_handed_over_is_free_at_once<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = a.first_claim("report").await;
    let first = a.run(&claim, Outcome::HandedOver).await;
    let next = anew(&claim);
    let second = b.win(&next).await;
    assert_eq!(second.attempt, 2);
    assert!(second.token > first.token);
    // It was free for one.
    let third = bench.replica("c").await.claim(&anew(&claim)).await;
    assert!(matches!(third, ClaimAnswer::Held(_)), "{third:?}");
    b.release(&release(&next, &second, Outcome::Succeeded))
        .await;
    let both = [Outcome::Succeeded, Outcome::HandedOver];
    assert_eq!(b.outcomes(&claim.occurrence.job).await, both);
}

pub(crate) async fn attempts_that_were_handed_over_count_too<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let mut claim = a.first_claim("report").await;
    claim.max_attempts = 2;
    a.run(&claim, Outcome::HandedOver).await;
    a.run(&anew(&claim), Outcome::HandedOver).await;
    assert_eq!(a.claim(&anew(&claim)).await, ClaimAnswer::Closed);
    assert_eq!(a.claim(&anew(&claim)).await, ClaimAnswer::Finished);
    assert_eq!(a.outcomes(&claim.occurrence.job).await[0], Outcome::Lost);
}

pub(crate) async fn of_many_takeovers_one_wins<F: Fixture>(bench: &Bench<F>) {
    let rivals = bench.replicas(12).await;
    let (claim, seen) = abandoned(&rivals[0], "report").await;
    let tasks: Vec<_> = rivals
        .into_iter()
        .map(|rival| {
            let takeover = takeover(&claim, seen);
            tokio::spawn(async move { rival.claim(&takeover).await })
        })
        .collect();
    let mut granted = 0;
    for task in tasks {
        match task.await.expect("no rival panics") {
            ClaimAnswer::Granted(grant) => {
                assert_eq!(grant.attempt, 2);
                granted += 1;
            }
            ClaimAnswer::Held(held) => assert_ne!(held.sighting, seen, "of the new holder"),
            other => panic!("a rival was told {other:?}"),
        }
    }
    assert_eq!(granted, 1);
}
