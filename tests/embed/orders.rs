//! What can be asked of a scheduler at work, and what it tells.

use futures_util::StreamExt as _;
use soloist::{EndedAttempt, Error, Event, Outcome, State, Timestamp};

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
    let older = world.replica("older").job(world.noting("gone", "@manual"));
    let older = older.start().await.unwrap();
    world.pass(1).await;
    older.shutdown().await.unwrap();
    let scheduler = world.replica("one").job(job).job(off);
    let scheduler = scheduler.start().await.unwrap();
    world.pass(1).await;
    for name in ["close-order", "close orders"] {
        let error = scheduler.trigger(name).await.unwrap_err();
        let told = format!("no job is called `{name}`: did you mean `close-orders`?");
        assert_eq!(error.to_string(), told);
    }
    let error = scheduler.history(Some("close-order"), 5).await.unwrap_err();
    let told = "no job is called `close-order`: did you mean `close-orders`?";
    assert_eq!(error.to_string(), told);
    // One that never ran, and one that only the ledger has any more.
    for known in ["close-orders", "gone"] {
        assert_eq!(scheduler.history(Some(known), 5).await.unwrap(), []);
    }
    let error = scheduler.trigger("off").await.unwrap_err();
    assert!(matches!(error, Error::Disabled { .. }), "{error}");
    assert!(error.to_string().contains("take `enabled(false)` from it"));
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
        position(|event| matches!(event, Event::Draining { running: 0, .. })),
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
        matches!(second[0], Event::Lagged { lost, .. } if lost > 500),
        "{second:#?}"
    );
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_was_lost_with_nothing_after_it_is_told_as_the_stream_ends() {
    let world = World::at(START);
    let job = world.noting("sync", "* * * * * *");
    let builder = world.replica("one").job(job);
    let all = tokio::spawn(builder.events().count());
    let (mut awaited, mut polled, streamed) =
        (builder.events(), builder.events(), builder.events());
    let scheduler = builder.start().await.unwrap();
    world.pass(1200).await;
    scheduler.shutdown().await.unwrap();
    let all = all.await.unwrap();
    assert!(all > 1500, "{all}");
    let lost = |told: &[Event]| match told {
        [before @ .., Event::Lagged { lost, .. }] => Some((before.len(), *lost)),
        _ => None,
    };
    let expected = Some((1024, all as u64 - 1024));
    let mut told = Vec::new();
    while let Some(event) = awaited.next().await {
        told.push(event);
    }
    assert_eq!(lost(&told), expected);
    assert_eq!(lost(&come(&mut polled)), expected);
    assert_eq!(lost(&streamed.collect::<Vec<_>>().await), expected);
    assert_eq!((awaited.next().await, polled.try_next()), (None, None));
}

#[tokio::test]
async fn a_stream_of_the_builder_misses_nothing_and_ends_with_a_builder_that_never_starts() {
    let world = World::at(START);
    let job = || world.noting("sync", "* * * * *");
    let builder = world.replica("one").job(job());
    let mut early = builder.events();
    let scheduler = builder.start().await.unwrap();
    world.pass(1).await;
    let mut late = scheduler.events();
    world.pass(60).await;
    let ready = |event: &Event| matches!(event, Event::Ready { jobs: 1, .. });
    let (early, late) = (come(&mut early), come(&mut late));
    assert_eq!(early.iter().filter(|event| ready(event)).count(), 1);
    assert!(!late.iter().any(ready), "it was before: {late:?}");
    assert!(!late.is_empty() && early.ends_with(&late), "{early:?}");
    scheduler.shutdown().await.unwrap();

    let mut never = world.replica("two").job(job()).events();
    assert_eq!(never.next().await, None);
}

#[tokio::test]
async fn what_a_pause_skipped_is_a_line_that_says_how_many_it_stands_for_and_nothing_is_none() {
    let world = World::at(START);
    let job = world.noting("sync", "* * * * *");
    let one = world.replica("one").job(job).start().await.unwrap();
    world.pass(35).await; // 00:01:05
    for paused in [10, 120, 10] {
        one.pause("sync").await.unwrap();
        world.pass(paused).await;
        one.resume("sync").await.unwrap();
        world.pass(1).await;
    }
    let lines = one.history(Some("sync"), 10).await.unwrap();
    let told = |line: &EndedAttempt| {
        let at = |at: Timestamp| at.to_string()[14..19].to_owned();
        let stretch = line.since.map(|since| (at(since), line.occurrences));
        (line.outcome, at(line.scheduled_at), stretch)
    };
    let told: Vec<_> = lines.iter().map(told).collect();
    let stretch = Some(("01:16".to_owned(), Some(2)));
    let expected = [
        (Outcome::Skipped, "03:16".to_owned(), stretch),
        (Outcome::Succeeded, "01:00".to_owned(), None),
    ];
    assert_eq!(told, expected, "two pauses had no instant: {lines:#?}");
    // Lines that stand for nothing take nobody's place.
    assert_eq!(one.history(None, 1).await.unwrap(), lines[..1]);
    assert_eq!(one.history(None, 2).await.unwrap(), lines);
    assert_eq!(one.history(None, 0).await.unwrap(), []);
    one.shutdown().await.unwrap();
}
