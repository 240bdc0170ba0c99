//! Occurrences by a manual clock.

use std::collections::BTreeSet;
use std::time::Instant;

use soloist::Outcome;

use crate::world::World;

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
