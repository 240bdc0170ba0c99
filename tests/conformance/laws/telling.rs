//! What people are told of an end: decided with it, for one replica, and kept until they know.

use std::time::Duration;

use soloist::scheduler::lease::{
    Delivery, DeliveryStep, Outcome, Release, Scope, Telling, Told, Topic,
};

use crate::bench::{Bench, release};
use crate::fixtures::Fixture;

pub(crate) async fn news_are_told_to_the_request_that_made_them_and_kept_until_people_know<
    F: Fixture,
>(
    bench: &Bench<F>,
) {
    let (a, b) = (bench.replica("a").await, bench.replica("b").await);
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let failed = Release {
        telling: Some(Telling {
            to: vec!["ops".to_owned()].into(),
            topics: Topic::ALL.into_iter().collect(),
            repeat: Duration::from_secs(3600),
        }),
        ..release(&claim, &grant, Outcome::Failed)
    };
    for sending in ["the first time", "again"] {
        let answered = a
            .store
            .release(&a.caller, std::slice::from_ref(&failed))
            .await;
        let closings = answered.expect("the store answers").closings;
        let [closing] = &closings[..] else {
            panic!("{sending}: one end, not {closings:?}")
        };
        assert_eq!(closing.by, claim.run_id, "{sending}");
        let told = Told {
            topic: Topic::Failure,
            since: claim.occurrence.scheduled_at,
            count: 1,
        };
        assert_eq!(closing.told, Some(told), "{sending}");
    }
    // Nobody tells them in its place yet, and everybody knows when to look.
    let seen = b.observe(Scope::Overdue).await.answer;
    assert_eq!(seen.untold, []);
    assert!(seen.next_look.is_some());

    let delivery = |step| Delivery {
        job: claim.occurrence.job.clone(),
        by: claim.run_id,
        topic: Topic::Failure,
        step,
    };
    for (step, known) in [
        (DeliveryStep::GoesOn, true),
        (DeliveryStep::Done, true),
        (DeliveryStep::GoesOn, false),
    ] {
        let answered = a.store.deliver(&a.caller, &[delivery(step)]).await;
        assert_eq!(answered.expect("the store answers").answer, [known]);
    }
    assert_eq!(b.observe(Scope::Overdue).await.answer.next_look, None);
}

pub(crate) async fn an_attempt_that_takes_long_is_told_once_and_while_it_runs_alone<F: Fixture>(
    bench: &Bench<F>,
) {
    let a = bench.replica("a").await;
    let claim = a.first_claim("report").await;
    let grant = a.win(&claim).await;
    let slow = &[Delivery {
        job: claim.occurrence.job.clone(),
        by: claim.run_id,
        topic: Topic::Slow,
        step: DeliveryStep::Slow {
            repeat: Duration::from_secs(3600),
        },
    }];
    for sending in ["the first time", "again"] {
        let answered = a.store.deliver(&a.caller, slow).await;
        let answer = answered.expect("the store answers").answer;
        assert_eq!(answer, [true], "{sending}");
    }
    let ended = release(&claim, &grant, Outcome::Succeeded);
    let answered = a.store.release(&a.caller, &[ended]).await;
    answered.expect("the store answers");
    let answered = a.store.deliver(&a.caller, slow).await;
    assert_eq!(answered.expect("the store answers").answer, [false]);
}
