//! When people are told, and when not again.

use uuid::Uuid;

use super::*;
use crate::scheduler::lease::{Cause, Claim, ClaimAnswer, Grant, Release, Topics};
use crate::store::rules::{Group, Life, somebody};

const HOUR: Duration = Duration::from_secs(3600);
const MINUTE: Duration = Duration::from_secs(60);

/// A ledger of one job, and who asks it.
struct World {
    group: Group,
    record: Option<Record>,
    now: Timestamp,
    runs: u128,
    telling: Telling,
}

impl World {
    fn new(topics: impl IntoIterator<Item = Topic>) -> Self {
        Self {
            group: Group::default(),
            record: None,
            now: Timestamp::from_second(1_800_000_000),
            runs: 0,
            telling: Telling {
                to: vec!["ops".to_owned()].into(),
                topics: topics.into_iter().collect(),
                repeat: HOUR,
            },
        }
    }

    fn call<A>(
        &mut self,
        ask: impl FnOnce(&mut Call<'_>, Option<&Record>) -> Decision<A>,
    ) -> (A, Vec<Closing>) {
        let caller = somebody();
        let clock_us = self.now.as_millis() * 1000;
        let mut call = Call::begin(&mut self.group, &caller, clock_us, &Life::Steady);
        let decision = ask(&mut call, self.record.as_ref());
        if let Some(record) = decision.record {
            let text = record.to_text().unwrap();
            self.record = Record::from_text(&text);
            assert_eq!(self.record, Some(record));
        }
        (decision.answer, decision.closings)
    }

    /// A claim to an occurrence that is due now.
    fn claim(&mut self) -> Claim {
        self.runs += 1;
        // What was due before the ledger began is settled.
        self.now = self.now + Duration::from_millis(1);
        let occurrence = Occurrence {
            job: JobName::new("report").unwrap(),
            scheduled_at: self.now,
        };
        Claim {
            telling: Some(self.telling.clone()),
            ..Claim::new(occurrence, RunId::new(Uuid::from_u128(self.runs)))
        }
    }

    fn granted(&mut self) -> (Claim, Grant) {
        let claim = self.claim();
        self.now = self.now + Duration::from_millis(1);
        let (answer, _) = self.call(|call, record| call.claim(record, &claim));
        let ClaimAnswer::Granted(grant) = answer else {
            panic!("{answer:?}")
        };
        (claim, grant)
    }

    fn release(&mut self, release: &Release) -> Vec<Closing> {
        self.call(|call, record| call.release(record, release)).1
    }

    /// One occurrence runs and ends so; answers what people are told.
    fn ends(&mut self, outcome: Outcome) -> Option<Told> {
        let (claim, grant) = self.granted();
        let closings = self.release(&Release::of(&claim, &grant, outcome));
        assert_eq!(closings.len(), 1);
        assert_eq!(closings[0].outcome, outcome);
        closings[0].told
    }

    /// One is claimed too late; answers what people are told.
    fn misses(&mut self) -> Option<Told> {
        let claim = self.claim();
        self.now = self.now + MINUTE * 2;
        let (answer, closings) = self.call(|call, record| call.claim(record, &claim));
        assert_eq!(answer, ClaimAnswer::TooLate);
        assert_eq!(closings[0].detail.cause, Some(Cause::Deadline));
        closings[0].told
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }
}

fn topic(told: Option<Told>) -> Option<Topic> {
    told.map(|told| told.topic)
}

#[test]
fn a_job_that_goes_on_to_fail_is_told_of_once_an_hour_and_its_recovery_once() {
    let mut world = World::new(Topic::ALL);
    assert_eq!(world.ends(Outcome::Succeeded), None);
    let first = world.now + Duration::from_millis(1);
    let mut told = Vec::new();
    for _ in 0..7200 {
        told.extend(world.ends(Outcome::Failed));
        world.wait(Duration::from_millis(998));
    }
    let counts: Vec<u32> = told.iter().map(|told| told.count).collect();
    assert_eq!(counts, [1, 3601]);
    assert!(told.iter().all(|told| told.topic == Topic::Failure));
    assert_eq!(told[1].since, first);
    let recovery = world.ends(Outcome::Succeeded).unwrap();
    assert_eq!((recovery.topic, recovery.count), (Topic::Recovery, 7200));
    assert_eq!(recovery.since, first);
    assert_eq!(world.ends(Outcome::Succeeded), None);
}

#[test]
fn a_job_that_fails_by_turns_is_told_of_at_most_each_five_minutes() {
    let mut world = World::new(Topic::ALL);
    let mut told = 0;
    for _ in 0..1800 {
        told += usize::from(world.ends(Outcome::Failed).is_some());
        told += usize::from(world.ends(Outcome::Succeeded).is_some());
        world.wait(Duration::from_millis(1996));
    }
    assert_eq!(told, 24);
}

#[test]
fn a_failure_that_comes_soon_after_another_is_told_if_it_lasts() {
    let mut world = World::new(Topic::ALL);
    assert!(world.ends(Outcome::Failed).is_some());
    assert!(world.ends(Outcome::Succeeded).is_some());
    world.wait(MINUTE);
    assert_eq!(world.ends(Outcome::Failed), None);
    world.wait(QUIET);
    assert_eq!(world.ends(Outcome::Failed).unwrap().count, 2);
}

#[test]
fn what_is_missed_is_news_beside_a_failure_and_ends_with_the_same_recovery() {
    let mut world = World::new(Topic::ALL);
    assert_eq!(topic(world.ends(Outcome::TimedOut)), Some(Topic::Failure));
    assert_eq!(topic(world.misses()), Some(Topic::Missed));
    assert_eq!(world.misses(), None);
    assert_eq!(topic(world.ends(Outcome::Succeeded)), Some(Topic::Recovery));
}

#[test]
fn nobody_is_told_of_what_they_did_not_ask_for() {
    let mut world = World::new([Topic::Missed]);
    assert_eq!(world.ends(Outcome::Failed), None);
    assert_eq!(world.ends(Outcome::Succeeded), None);
    assert!(world.misses().is_some());
    assert_eq!(world.ends(Outcome::Succeeded), None);
    world.telling.topics = Topics::default();
    assert_eq!(world.misses(), None);
}

#[test]
fn what_was_cut_short_on_purpose_is_no_news() {
    let mut world = World::new(Topic::ALL);
    assert_eq!(world.ends(Outcome::Cancelled), None);
    assert!(world.ends(Outcome::Failed).is_some());
    assert_eq!(world.ends(Outcome::Cancelled), None);
    assert!(world.ends(Outcome::Succeeded).is_some());
}

#[test]
fn a_job_of_which_nobody_wants_to_know_leaves_no_trace_of_that() {
    let mut world = World::new(Topic::ALL);
    let (mut claim, grant) = world.granted();
    claim.telling = None;
    let closings = world.release(&Release::of(&claim, &grant, Outcome::Failed));
    assert_eq!(closings, []);
    assert_eq!(world.record.unwrap().alert, None);
}

#[test]
fn a_request_that_is_sent_again_is_told_the_same_again() {
    let mut world = World::new(Topic::ALL);
    let (claim, grant) = world.granted();
    let release = Release::of(&claim, &grant, Outcome::Failed);
    let first = world.release(&release);
    let again = world.release(&release);
    assert_eq!(first[0].told, again[0].told);
    assert!(first[0].told.is_some());
    // So is a claim that was too late.
    let claim = world.claim();
    world.wait(MINUTE * 2);
    let (_, first) = world.call(|call, record| call.claim(record, &claim));
    let (answer, again) = world.call(|call, record| call.claim(record, &claim));
    assert_eq!(answer, ClaimAnswer::Finished);
    assert_eq!(first[0].told, again[0].told);
    assert!(first[0].told.is_some());
}

#[test]
fn an_attempt_that_another_one_follows_is_no_end() {
    let mut world = World::new(Topic::ALL);
    let (claim, grant) = world.granted();
    let release = Release {
        retry_after: Some(MINUTE),
        ..Release::of(&claim, &grant, Outcome::Failed)
    };
    assert_eq!(world.release(&release), []);
}

#[test]
fn news_whose_teller_vanished_are_another_replicas_to_tell_and_one_of_them_gets_them() {
    let mut world = World::new(Topic::ALL);
    world.ends(Outcome::Failed);
    let job = JobName::new("report").unwrap();
    let untold = |world: &World| -> Vec<Untold> {
        let alert = world.record.as_ref().unwrap().alert.as_ref().unwrap();
        alert.untold(&job, world.now).collect()
    };
    assert_eq!(untold(&world), []);
    assert_eq!(
        world.record.as_ref().unwrap().agenda(world.now),
        Some(world.now + TELLING_TTL)
    );
    world.wait(TELLING_TTL);
    let [news] = &untold(&world)[..] else {
        panic!("one of them")
    };
    let mut delivery = Delivery {
        job: job.clone(),
        by: news.by,
        topic: Topic::Failure,
        step: DeliveryStep::TakenOver { due: news.due },
    };
    let deliver = |world: &mut World, delivery: &Delivery| {
        world.call(|call, record| call.deliver(record, delivery)).0
    };
    assert_eq!(news.to, ["ops"]);
    assert!(deliver(&mut world, &delivery));
    assert!(!deliver(&mut world, &delivery), "somebody else has them");
    assert_eq!(untold(&world), []);
    delivery.step = DeliveryStep::GoesOn;
    world.wait(TELLING_TTL / 2);
    assert!(deliver(&mut world, &delivery));
    world.wait(TELLING_TTL - Duration::from_millis(1));
    assert_eq!(untold(&world), []);
    delivery.step = DeliveryStep::Done;
    assert!(deliver(&mut world, &delivery));
    assert_eq!(world.record.as_ref().unwrap().agenda(world.now), None);
    delivery.step = DeliveryStep::GoesOn;
    assert!(!deliver(&mut world, &delivery), "they are told");
}

#[test]
fn news_that_nobody_told_for_days_come_up_again_and_hide_nothing_of_their_job() {
    let mut world = World::new(Topic::ALL);
    world.ends(Outcome::Failed);
    world.wait(HOUR * 48);
    world.granted();
    let record = world.record.as_ref().unwrap();
    assert_eq!(record.agenda(world.now), Some(world.now));
    let job = JobName::new("report").unwrap();
    let untold = record.alert.as_ref().unwrap().untold(&job, world.now);
    assert_eq!(untold.count(), 1);
    // So do those of a time that was far ahead.
    let mut alert = record.alert.clone().unwrap();
    let long_before = world.now - HOUR;
    alert.wake(long_before);
    assert_eq!(alert.agenda(), Some(long_before));
}

#[test]
fn an_attempt_that_takes_long_is_told_once_and_another_one_not_before_it_is_time_again() {
    let mut world = World::new(Topic::ALL);
    let asks = |world: &mut World, claim: &Claim| {
        let delivery = Delivery {
            job: claim.occurrence.job.clone(),
            by: claim.run_id,
            topic: Topic::Slow,
            step: DeliveryStep::Slow { repeat: HOUR },
        };
        world.call(|call, record| call.deliver(record, &delivery)).0
    };
    let (first, grant) = world.granted();
    assert!(asks(&mut world, &first));
    assert!(asks(&mut world, &first), "the request is sent again");
    let handed_over = Release::of(&first, &grant, Outcome::HandedOver);
    world.release(&handed_over);
    assert!(!asks(&mut world, &first), "it runs no more");
    let mut next = Claim {
        run_id: RunId::new(Uuid::from_u128(1000)),
        ..first.clone()
    };
    let (answer, _) = world.call(|call, record| call.claim(record, &next));
    assert!(matches!(answer, ClaimAnswer::Granted(_)), "{answer:?}");
    assert!(!asks(&mut world, &next), "people know since a moment ago");
    world.wait(HOUR);
    assert!(asks(&mut world, &next));
    next.run_id = RunId::new(Uuid::from_u128(1001));
    assert!(!asks(&mut world, &next), "there is no such attempt");
}
