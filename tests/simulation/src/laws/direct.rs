//! One scheduler by hand: answers that come late, or not at all.

use soloist::scheduler::job::JobName;
use soloist::scheduler::lease::{Renewal, RenewalAnswer, RunId};
use soloist::scheduler::{Effect, EndedHow, Event, Notice, Purpose};

use crate::hand::{GENESIS, Hand, TTL, renewal};
use crate::jobs::job;

fn releases(effect: &Effect) -> bool {
    matches!(effect, Effect::Release(_))
}

#[test]
fn a_lease_that_is_lost_is_not_renewed_again_while_its_release_is_unanswered() {
    let mut hand = Hand::new(job("a", "* * * * * *"), Purpose::Table);
    let run_id = hand.run().run_id;
    hand.end(run_id, EndedHow::Succeeded);
    assert!(hand.turn().iter().any(releases));
    let renewal = hand.until(renewal);
    assert_eq!(renewal.run_id, run_id);
    // The release arrived, and its answer is late.
    hand.tell(Event::Renewed {
        renewals: vec![renewal],
        sent: hand.boot(),
        result: hand.answered(RenewalAnswer::Lost),
    });
    for _ in 0..20 {
        let renewed = hand.turn().into_iter().find_map(renewal_of(run_id));
        assert_eq!(renewed, None, "at {:?}", hand.now);
        let next = hand.scheduler.next_wakeup().expect("the job is due again");
        hand.now = hand.now.max(next.as_duration());
    }
}

fn renewal_of(run_id: RunId) -> impl Fn(Effect) -> Option<Renewal> {
    move |effect| renewal(effect).filter(|renewal| renewal.run_id == run_id)
}

/// Whoever found the loss may have short leases alone, and leave as little time to come back.
#[test]
fn what_runs_is_told_at_once_to_a_ledger_that_began_anew() {
    let mut hand = Hand::new(job("a", "* * * * * *"), Purpose::Table);
    hand.look(GENESIS);
    let run_id = hand.run().run_id;
    hand.look(GENESIS);
    let renewed = hand.turn().into_iter().find_map(renewal_of(run_id));
    assert_eq!(renewed, None, "it is not due yet");
    hand.look(GENESIS + hand.now);
    let renewed = hand.turn().into_iter().find_map(renewal_of(run_id));
    assert!(renewed.is_some());
}

#[test]
fn a_single_run_ends_with_its_outcome_although_the_store_went_away() {
    let name = JobName::new("a").expect("a name");
    let mut hand = Hand::new(job("a", "@manual"), Purpose::Once(name));
    let run_id = hand.run().run_id;
    hand.end(run_id, EndedHow::Succeeded);
    let begun = hand.now;
    let mut told = false;
    for _ in 0..200 {
        let effects = hand.turn();
        told |= effects
            .iter()
            .any(|effect| matches!(effect, Effect::Report(Notice::Unreleased { .. })));
        if effects
            .iter()
            .any(|effect| matches!(effect, Effect::Finish))
        {
            assert!(told);
            assert!(hand.now - begun <= TTL, "{:?}", hand.now - begun);
            return;
        }
        for effect in effects {
            hand.fail(effect);
        }
        let next = hand.scheduler.next_wakeup().expect("it tries again");
        hand.now = hand.now.max(next.as_duration());
    }
    panic!("it never ended");
}
