//! Keeping a lease, and giving it back.

use std::time::Duration;

use soloist::scheduler::lease::{
    ClaimAnswer, FencingToken, Outcome, ReleaseAnswer, Renewal, RenewalAnswer, Scope,
};

use crate::bench::{Bench, SHORT_TTL, STEP, anew, release, renewal, run_id};
use crate::fixtures::Fixture;

pub(crate) async fn the_deadline_rises_strictly_at_every_renewal<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let renewal = renewal(&claim, &grant);
    let mut last = grant.deadline;
    // Faster than the clock ticks, and the same request each time.
    for _ in 0..50 {
        match a.renew(&renewal).await {
            RenewalAnswer::Renewed {
                deadline,
                remaining,
                stop,
            } => {
                assert_eq!(stop, None);
                assert!(deadline > last, "{deadline} after {last}");
                assert_eq!(remaining, claim.ttl);
                last = deadline;
            }
            RenewalAnswer::Lost => panic!("lost to nobody"),
        }
    }
    // Above what the holder heard of, whatever the store remembers.
    let far = Renewal {
        last_deadline: last + Duration::from_secs(60),
        ..renewal
    };
    match a.renew(&far).await {
        RenewalAnswer::Renewed { deadline, .. } => assert!(deadline > far.last_deadline),
        RenewalAnswer::Lost => panic!("lost to nobody"),
    }
}

pub(crate) async fn a_renewal_that_does_not_match_is_lost<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let good = renewal(&claim, &grant);
    let token = |by: i64| FencingToken::new(grant.token.get().wrapping_add_signed(by));
    let mut elsewhere = good.clone();
    elsewhere.occurrence.scheduled_at = good.occurrence.scheduled_at + STEP;
    let mut unknown = good.clone();
    unknown.occurrence.job = crate::bench::job("unknown");
    for bad in [
        Renewal {
            token: token(1),
            ..good.clone()
        },
        Renewal {
            token: token(-1),
            ..good.clone()
        },
        Renewal {
            run_id: run_id(),
            ..good.clone()
        },
        elsewhere,
        unknown,
    ] {
        assert_eq!(a.renew(&bad).await, RenewalAnswer::Lost, "{bad:?}");
    }
    assert!(matches!(
        a.renew(&good).await,
        RenewalAnswer::Renewed { .. }
    ));
    a.release(&release(&claim, &grant, Outcome::Succeeded))
        .await;
    assert_eq!(
        a.renew(&good).await,
        RenewalAnswer::Lost,
        "a release is for good"
    );
    assert_eq!(a.observe(Scope::All).await.answer.leases, []);
}

pub(crate) async fn a_release_that_does_not_match_changes_nothing<F: Fixture>(bench: &Bench<F>) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let good = release(&claim, &grant, Outcome::Succeeded);
    let mut wrong_token = good.clone();
    wrong_token.token = FencingToken::new(grant.token.get() + 1);
    let mut wrong_run = good.clone();
    wrong_run.run_id = run_id();
    let mut wrong_occurrence = good.clone();
    wrong_occurrence.occurrence.scheduled_at = good.occurrence.scheduled_at + STEP;
    for bad in [wrong_token, wrong_run, wrong_occurrence] {
        assert_eq!(a.release(&bad).await, ReleaseAnswer::Superseded, "{bad:?}");
    }
    assert_eq!(a.history(None).await, []);
    assert!(matches!(a.claim(&anew(&claim)).await, ClaimAnswer::Held(_)));
    assert_eq!(a.release(&good).await, ReleaseAnswer::Released);
}

pub(crate) async fn a_release_sent_again_is_released_again_and_written_once<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let good = release(&claim, &grant, Outcome::Failed);
    for _ in 0..3 {
        assert_eq!(a.release(&good).await, ReleaseAnswer::Released);
    }
    // The first word counts: another outcome comes too late.
    let other = release(&claim, &grant, Outcome::Succeeded);
    assert_eq!(a.release(&other).await, ReleaseAnswer::Superseded);
    assert_eq!(a.outcomes(&claim.occurrence.job).await, [Outcome::Failed]);
}

pub(crate) async fn a_lease_that_ran_out_is_the_holders_until_somebody_takes_it<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let mut one = a.first_claim("renewed").await;
    let mut two = a.first_claim("released").await;
    (one.ttl, two.ttl) = (SHORT_TTL, SHORT_TTL);
    let (kept, ended) = (a.win(&one).await, a.win(&two).await);
    a.when_overdue(&one.occurrence.job).await;
    a.when_overdue(&two.occurrence.job).await;
    // The claim told again says that nothing is left.
    match a.claim(&one).await {
        ClaimAnswer::Granted(again) => {
            assert_eq!((again.token, again.remaining), (kept.token, Duration::ZERO));
        }
        other => panic!("the same claim was told {other:?}"),
    }
    match a.renew(&renewal(&one, &kept)).await {
        RenewalAnswer::Renewed { deadline, .. } => assert!(deadline > kept.deadline),
        RenewalAnswer::Lost => panic!("lost to nobody"),
    }
    let answer = a.release(&release(&two, &ended, Outcome::Succeeded)).await;
    assert_eq!(answer, ReleaseAnswer::Released);
    assert_eq!(a.outcomes(&two.occurrence.job).await, [Outcome::Succeeded]);
}

pub(crate) async fn what_was_taken_over_is_lost_to_its_former_holder<F: Fixture>(bench: &Bench<F>) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let mut mine = a.first_claim("report").await;
    mine.ttl = SHORT_TTL;
    let grant = a.win(&mine).await;
    let mut takeover = anew(&mine);
    takeover.watched = Some(b.when_overdue(&mine.occurrence.job).await.sighting);
    let taken = b.win(&takeover).await;
    assert_eq!(a.renew(&renewal(&mine, &grant)).await, RenewalAnswer::Lost);
    let answer = a.release(&release(&mine, &grant, Outcome::Succeeded)).await;
    assert_eq!(answer, ReleaseAnswer::Superseded);
    assert!(
        matches!(a.claim(&mine).await, ClaimAnswer::Held(_)),
        "not its own any more"
    );
    // The rival noticed nothing of all this.
    assert!(matches!(
        b.renew(&renewal(&takeover, &taken)).await,
        RenewalAnswer::Renewed { .. }
    ));
    assert_eq!(b.outcomes(&mine.occurrence.job).await, [Outcome::Lost]);
}
