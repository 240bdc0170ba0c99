//! What can be asked of a scheduler at work, and what it tells.

use futures_util::StreamExt as _;
use soloist::{Error, Event, Outcome, State};

use crate::world::{World, come};

const START: &str = "2026-11-20T00:00:30Z";

#[tokio::test]
async fn a_trigger_runs_under_an_instant_of_its_own() {
    let world = World::at(START);
    let job = world.noting("report", "@manual");
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    world.pass(30).await;
    let at = scheduler.trigger("report").await.unwrap();
    world.pass(1).await;
    assert_eq!(world.notes.all(), [format!("report {at} #1")]);
    let status = scheduler.status().await.unwrap();
    let last = status.job("report").unwrap().last.clone().unwrap();
    assert_eq!(last.state, State::Ended(Outcome::Succeeded));
    assert_eq!((last.scheduled_at, last.replica.as_str()), (at, "one"));
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_paused_job_is_skipped_on_all_replicas_until_it_is_resumed() {
    let world = World::at(START);
    let job = || world.noting("sync", "* * * * *");
    let one = world.replica("one").job(job()).start().await.unwrap();
    let two = world.replica("two").job(job()).start().await.unwrap();
    world.pass(60).await;
    assert_eq!(world.notes.all().len(), 1);
    let mut events = two.events();
    let since = one.handle().by("ann").pause("sync").await.unwrap();
    world.pass(120).await;
    assert_eq!(world.notes.all().len(), 1, "nothing ran in the pause");
    let status = two.status().await.unwrap();
    let paused = status.job("sync").unwrap().paused.clone().unwrap();
    assert_eq!((paused.since, paused.by.as_str()), (since, "ann"));
    assert!(come(&mut events).contains(&Event::PausesChanged));
    assert!(two.resume("sync").await.unwrap());
    assert!(!one.resume("sync").await.unwrap());
    world.pass(60).await;
    assert_eq!(world.notes.all().len(), 2);
    let replicas = one.status().await.unwrap().replicas;
    let names: Vec<(&str, bool)> = replicas
        .iter()
        .map(|one| (one.name.as_str(), one.alive))
        .collect();
    assert_eq!(names, [("one", true), ("two", true)]);
    one.shutdown().await.unwrap();
    two.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_job_that_nobody_knows_is_told_with_the_name_that_was_meant() {
    let world = World::at(START);
    let job = world.noting("close-orders", "@manual");
    let off = world.noting("off", "* * * * *").enabled(false);
    let scheduler = world.replica("one").job(job).job(off);
    let scheduler = scheduler.start().await.unwrap();
    world.pass(1).await;
    for name in ["close-order", "close orders"] {
        let error = scheduler.trigger(name).await.unwrap_err();
        let told = format!("no job is called `{name}`: did you mean `close-orders`?");
        assert_eq!(error.to_string(), told);
    }
    let error = scheduler.trigger("off").await.unwrap_err();
    assert!(matches!(error, Error::Disabled { .. }), "{error}");
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn events_tell_the_course_of_an_attempt_and_end_with_the_scheduler() {
    let world = World::at(START);
    let job = world.noting("sync", "* * * * *");
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    let events = scheduler.events();
    world.pass(60).await;
    scheduler.shutdown().await.unwrap();
    let told: Vec<Event> = events.collect().await;
    let position = |is: fn(&Event) -> bool| {
        let found = told.iter().position(is);
        found.unwrap_or_else(|| panic!("{told:#?}"))
    };
    let order = [
        position(|event| matches!(event, Event::Ready { jobs: 1, .. })),
        position(|event| {
            matches!(
                event,
                Event::Started {
                    takeover: false,
                    ..
                }
            )
        }),
        position(|event| {
            matches!(
                event,
                Event::Ended {
                    outcome: Outcome::Succeeded,
                    ..
                }
            )
        }),
        position(|event| matches!(event, Event::Draining { running: 0 })),
    ];
    assert!(order.is_sorted(), "{told:#?}");
}

#[tokio::test]
async fn who_does_not_listen_is_told_how_much_was_lost() {
    let world = World::at(START);
    let job = world.noting("sync", "* * * * * *");
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    let mut events = scheduler.events();
    world.pass(1200).await;
    let first = come(&mut events);
    assert_eq!(first.len(), 1024);
    world.pass(1).await;
    let second = come(&mut events);
    assert!(
        matches!(second[0], Event::Lagged { lost } if lost > 500),
        "{second:#?}"
    );
    scheduler.shutdown().await.unwrap();
}
