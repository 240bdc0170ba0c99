//! What events tell of occurrences that did not start, many of them at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use soloist::{CatchUp, Event, Job, Scheduler};
use tokio::net::TcpListener;

use crate::world::{SOON, World, come};

const START: &str = "2026-11-20T00:00:30Z";

/// What is told of occurrences that did not start: minute and second, and the stretch of time.
fn unstarted(events: Vec<Event>) -> Vec<String> {
    let at = |at: soloist::Timestamp| at.to_string()[14..19].to_owned();
    let told = |event| match event {
        Event::Missed {
            scheduled_at,
            since,
            occurrences,
            ..
        } => Some(format!(
            "missed {} {:?} {occurrences:?}",
            at(scheduled_at),
            since.map(at)
        )),
        Event::Skipped {
            scheduled_at,
            cause,
            since,
            occurrences,
            ..
        } => Some(format!(
            "skipped ({cause}) {} {:?} {occurrences:?}",
            at(scheduled_at),
            since.map(at)
        )),
        _ => None,
    };
    events.into_iter().filter_map(told).collect()
}

#[tokio::test]
async fn all_that_nobody_ran_in_an_outage_is_one_event_of_whoever_comes_first() {
    let world = World::at(START);
    let job = || world.noting("sync", "* * * * *");
    let first = world.replica("first").job(job()).start().await.unwrap();
    world.pass(31).await; // 00:01:01
    first.shutdown().await.unwrap();
    world.pass(600).await; // 00:11:01

    let (one, two) = (world.replica("one"), world.replica("two"));
    let (mut of_one, mut of_two) = (one.events(), two.events());
    let one = one.job(job()).start().await.unwrap();
    let two = two.job(job()).start().await.unwrap();
    world.pass(61).await;
    let lines = one.history(Some("sync"), 10).await.unwrap();
    let line = lines.iter().find(|line| line.since.is_some());
    assert_eq!(
        line.and_then(|line| line.occurrences),
        Some(9),
        "{lines:#?}"
    );

    let told = [come(&mut of_one), come(&mut of_two)].map(unstarted);
    let mut told = told.concat();
    assert_eq!(
        told.pop().as_deref(),
        Some("missed 10:00 Some(\"01:00\") Some(9)")
    );
    assert_eq!(told, [""; 0], "and nobody else tells it");
    one.shutdown().await.unwrap();
    two.shutdown().await.unwrap();
}

#[tokio::test]
async fn one_that_nobody_ran_in_time_is_told_by_itself() {
    let world = World::at(START);
    let job = || world.noting("sync", "* * * * *").catch_up(CatchUp::None);
    let first = world.replica("first").job(job()).start().await.unwrap();
    world.pass(31).await; // 00:01:01
    first.shutdown().await.unwrap();
    world.pass(90).await; // 00:02:31
    let one = world.replica("one");
    let mut events = one.events();
    let one = one.job(job()).start().await.unwrap();
    world.pass(10).await;
    assert_eq!(unstarted(come(&mut events)), ["missed 02:00 None None"]);
    one.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_a_pause_skipped_is_one_event_of_whoever_ended_it() {
    let world = World::at(START);
    let job = || world.noting("sync", "* * * * *");
    let one = world.replica("one").job(job()).start().await.unwrap();
    let two = world.replica("two").job(job()).start().await.unwrap();
    let (mut of_one, mut of_two) = (one.events(), two.events());
    world.pass(35).await; // 00:01:05
    one.pause("sync").await.unwrap();
    world.pass(300).await;
    two.resume("sync").await.unwrap(); // 00:06:05
    world.pass(1).await;
    assert_eq!(unstarted(come(&mut of_one)), [""; 0]);
    let told = "skipped (paused) 06:05 Some(\"01:05\") Some(5)";
    assert_eq!(unstarted(come(&mut of_two)), [told]);
    // Where nothing was due there is nothing to tell, however it is listened to.
    one.pause("sync").await.unwrap();
    world.pass(10).await;
    two.resume("sync").await.unwrap();
    world.pass(1).await;
    two.shutdown().await.unwrap();
    assert_eq!(unstarted(of_two.collect().await), [""; 0]);
    one.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_store_that_was_never_there_is_told_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let builder = Scheduler::builder().store(format!("redis://127.0.0.1:{port}"));
    let mut events = builder.events();
    let job = Job::new("sync", "* * * * *", |_| async {
        Ok::<_, soloist::Error>(())
    });
    let asked = AtomicUsize::new(0);
    let answered = async {
        while asked.fetch_add(1, Ordering::Relaxed) < 6 {
            drop(listener.accept().await.unwrap());
        }
    };
    let starting = builder.job(job).start();
    let all = async { tokio::join!(starting, answered).0.unwrap() };
    let scheduler = tokio::time::timeout(SOON, all).await.expect("it is asked");
    // Somebody was told by the time that it is asked again.
    let told = come(&mut events);
    let away = |event: &&Event| matches!(event, Event::StoreAway { .. });
    assert_eq!(told.iter().filter(away).count(), 1, "{told:#?}");
    let ended = tokio::time::timeout(Duration::from_secs(5), scheduler.shutdown());
    ended.await.expect("nothing is held").unwrap();
}
