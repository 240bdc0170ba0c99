//! Occurrences by a manual clock.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use soloist::{Error, Job, Outcome};

use crate::world::{World, note};

#[tokio::test]
async fn a_day_of_occurrences_passes_in_a_moment_and_each_runs_once() {
    let world = World::at("2026-11-20T00:00:30Z");
    let job = || world.noting("close-orders", "* * * * *");
    let began = Instant::now();
    let scheduler = world.replica("one").job(job()).start().await.unwrap();
    world.pass(86_400).await;
    let took = began.elapsed();
    let notes = world.notes.all();
    let different: BTreeSet<&String> = notes.iter().collect();
    assert_eq!((notes.len(), different.len()), (1440, 1440));
    assert_eq!(notes[0], "close-orders 2026-11-20T00:01:00Z #1");
    assert_eq!(notes[1439], "close-orders 2026-11-21T00:00:00Z #1");
    eprintln!("a day of a job that is due each minute took {took:.2?}");
    let lines = scheduler.history(None, 2000).await.unwrap();
    assert!(lines.iter().all(|line| line.outcome == Outcome::Succeeded));
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn three_schedulers_on_one_store_run_each_occurrence_once() {
    let world = World::at("2026-11-20T00:00:30Z");
    let mut fleet = Vec::new();
    for name in ["one", "two", "three"] {
        let job = world.noting("sync", "*/10 * * * * *");
        fleet.push(world.replica(name).job(job).start().await.unwrap());
    }
    world.pass(3600).await;
    let notes = world.notes.all();
    let different: BTreeSet<&String> = notes.iter().collect();
    assert_eq!(notes.len(), different.len(), "no occurrence ran twice");
    assert_eq!(notes.len(), 360);
    for scheduler in fleet {
        scheduler.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn each_shard_of_an_occurrence_knows_its_part() {
    let world = World::at("2026-11-20T00:00:30Z");
    let job = world.doing("parts", "* * * * *", |ctx, notes, _| async move {
        let key = ctx.idempotency_key();
        notes.add(format!(
            "{key} {} of {}",
            ctx.shard_index(),
            ctx.shard_total()
        ));
        Ok(())
    });
    let scheduler = world.replica("one").job(job.shards(3));
    let scheduler = scheduler.start().await.unwrap();
    world.pass(60).await;
    let mut notes = world.notes.all();
    notes.sort();
    let expected = [0, 1, 2].map(|part| format!("parts/2026-11-20T00:01:00Z {part} of 3"));
    assert_eq!(notes, expected);
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_job_that_comes_after_others_runs_when_all_have_succeeded() {
    let world = World::at("2026-11-20T00:00:30Z");
    let notes = world.notes.clone();
    let last = Job::after("report", ["orders", "stock"], move |ctx| {
        let notes = notes.clone();
        async move {
            notes.add(note(&ctx));
            Ok::<_, Error>(())
        }
    });
    let slow = world.doing("stock", "* * * * *", |ctx, notes, clock| async move {
        clock.sleep(Duration::from_secs(20)).await;
        notes.add(note(&ctx));
        Ok(())
    });
    let orders = world.noting("orders", "* * * * *");
    let scheduler = world.replica("one").jobs([last, slow, orders]);
    let scheduler = scheduler.start().await.unwrap();
    world.pass(70).await;
    let expected =
        ["orders", "stock", "report"].map(|job| format!("{job} 2026-11-20T00:01:00Z #1"));
    assert_eq!(world.notes.all(), expected);
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_job_runs_where_its_tags_are() {
    let world = World::at("2026-11-20T00:00:30Z");
    let job = || {
        let job = world.doing("render", "* * * * *", |ctx, notes, _| async move {
            notes.add(ctx.replica());
            Ok(())
        });
        job.run_on("gpu", "yes")
    };
    let plain = world.replica("plain").job(job()).start().await.unwrap();
    let tagged = world.replica("tagged").tag("gpu", "yes").job(job());
    let tagged = tagged.start().await.unwrap();
    world.pass(300).await;
    assert_eq!(world.notes.all(), ["tagged"; 5]);
    plain.shutdown().await.unwrap();
    tagged.shutdown().await.unwrap();
}
