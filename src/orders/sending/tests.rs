//! Orders arrive once, whatever becomes of calls and answers.

use std::sync::atomic::Ordering;

use super::*;
use crate::orders::fixtures::{World, job};

#[tokio::test]
async fn a_job_that_the_table_alone_knows_is_enrolled_before_its_order() {
    let (world, job) = (World::new(), job("report"));
    let said = world.order(OrderKind::Trigger, &job).await;
    assert!(
        matches!(said.answer, OrderAnswer::Triggered { .. }),
        "{said:?}"
    );
    let snapshot = world.snapshot().await.unwrap().answer;
    let [state] = &snapshot.jobs[..] else {
        panic!("{snapshot:?}");
    };
    assert_eq!(state.schedule, job.schedule.identity());
    assert_eq!(state.waiting.len(), 1);
    assert_eq!(state.waiting[0].by.as_deref(), Some("alice@db1"));
}

#[tokio::test]
async fn a_disabled_job_is_enrolled_as_that_and_not_triggered() {
    let (world, mut job) = (World::new(), job("report"));
    job.enabled = false;
    let said = world.order(OrderKind::Trigger, &job).await;
    assert_eq!(said.answer, OrderAnswer::Disabled);
}

#[tokio::test]
async fn to_kill_or_resume_what_never_ran_enrols_nothing() {
    let (world, job) = (World::new(), job("report"));
    let killed = world.order(OrderKind::Kill, &job).await.answer;
    assert_eq!(killed, OrderAnswer::Idle);
    let resumed = world.order(OrderKind::Resume, &job).await.answer;
    assert_eq!(resumed, OrderAnswer::Resumed { since: None });
    assert_eq!(world.snapshot().await.unwrap().answer.jobs, []);
}

#[tokio::test]
async fn answers_come_in_the_order_of_the_jobs_though_some_are_enrolled_and_some_unknown() {
    let (world, known, new) = (World::new(), job("known"), job("new"));
    world.trigger(&known).await;
    let names = ["new", "nobody", "known"].map(|name| JobName::new(name).unwrap());
    let request = Request {
        what: OrderKind::Pause,
        jobs: &names,
        by: "alice@db1",
        id: None,
    };
    let said = Sender::new(&world, &[new], "db1".to_owned())
        .send(request)
        .await
        .unwrap();
    let said: Vec<_> = said
        .iter()
        .map(|said| (said.job.as_str(), said.answer != OrderAnswer::Unknown))
        .collect();
    assert_eq!(said, [("new", true), ("nobody", false), ("known", true)]);
}

#[tokio::test]
async fn an_order_whose_answer_was_lost_is_done_once() {
    let (world, job) = (World::new(), job("report"));
    world.trigger(&job).await;
    world.mute.store(1, Ordering::SeqCst);
    let said = world.order(OrderKind::Trigger, &job).await;
    assert!(said.again);
    let snapshot = world.snapshot().await.unwrap().answer;
    assert_eq!(snapshot.jobs[0].waiting.len(), 2, "{snapshot:?}");
}

#[tokio::test]
async fn a_store_that_is_away_is_asked_a_few_times_and_no_more() {
    let (world, job) = (World::new(), job("report"));
    world.away.store(100, Ordering::SeqCst);
    let request = Request {
        what: OrderKind::Kill,
        jobs: std::slice::from_ref(&job.name),
        by: "alice@db1",
        id: None,
    };
    let sender = Sender::new(&world, &[], "db1".to_owned());
    let ended = sender.send(request).await;
    assert!(
        matches!(ended, Err(StoreError::Unreachable { .. })),
        "{ended:?}"
    );
    assert_eq!(world.calls.load(Ordering::SeqCst), 3);
    assert!(!sender.has_sent(), "it never got as far");
}

#[tokio::test]
async fn an_order_without_any_answer_may_have_arrived() {
    let (world, job) = (World::new(), job("report"));
    world.trigger(&job).await;
    world.mute.store(100, Ordering::SeqCst);
    let request = Request {
        what: OrderKind::Trigger,
        jobs: std::slice::from_ref(&job.name),
        by: "alice@db1",
        id: None,
    };
    let sender = Sender::new(&world, &[], "db1".to_owned());
    let ended = sender.send(request).await;
    assert!(ended.is_err(), "{ended:?}");
    assert!(sender.has_sent());
    let snapshot = world.snapshot().await.unwrap().answer;
    assert_eq!(snapshot.jobs[0].waiting.len(), 2, "it did");
}
