//! The end of a scheduler, and who goes on.

use std::future::pending;
use std::time::Duration;

use soloist::{Context, Error, Job, Outcome, Scheduler, Shutdown};
use tokio::sync::mpsc;

use crate::world::{Done, World, note};

const START: &str = "2026-11-20T00:00:30Z";

/// One of a fleet whose job takes `seconds`, and ends early when it is cancelled.
async fn replica(world: &World, name: &str, seconds: u64) -> Scheduler {
    let job = world.doing(
        "long",
        "@manual",
        move |ctx: Context, notes, clock| async move {
            notes.add(format!("{} on {}", note(&ctx), ctx.replica()));
            tokio::select! {
                reason = ctx.cancelled() => notes.add(reason.as_str()),
                () = clock.sleep(Duration::from_secs(seconds)) => notes.add("done"),
            }
            Ok(())
        },
    );
    let grace = Duration::from_secs(10);
    let builder = world.replica(name).shutdown_grace(grace).job(job);
    builder.start().await.expect("started")
}

#[tokio::test]
async fn what_ends_within_the_grace_is_not_disturbed() {
    let world = World::at(START);
    let one = replica(&world, "one", 8).await;
    world.pass(30).await;
    one.trigger("long").await.unwrap();
    world.pass(2).await;
    let handle = one.handle();
    let ending = tokio::spawn(one.shutdown());
    world.pass(20).await;
    assert_eq!(ending.await.unwrap().unwrap(), Shutdown::Drained);
    assert_eq!(world.notes.all()[1..], ["done"]);
    let lines = handle.history(Some("long"), 10).await.unwrap();
    assert_eq!(lines[0].outcome, Outcome::Succeeded);
    assert!(handle.status().await.unwrap().replicas.is_empty());
}

#[tokio::test]
async fn what_is_cut_short_is_handed_over_and_another_goes_on_at_once() {
    let world = World::at(START);
    let one = replica(&world, "one", 60).await;
    world.pass(30).await;
    let at = one.trigger("long").await.unwrap();
    world.pass(2).await;
    let two = replica(&world, "two", 60).await;
    world.pass(5).await;
    let ending = tokio::spawn(one.shutdown());
    world.pass(9).await;
    assert_eq!(world.notes.all().len(), 1, "it has its grace");
    world.pass(2).await;
    assert_eq!(ending.await.unwrap().unwrap(), Shutdown::Drained);
    let expected = [
        format!("long {at} #1 on one"),
        "the replica was shutting down".to_owned(),
        format!("long {at} #2 on two"),
    ];
    assert_eq!(world.notes.all(), expected);
    let lines = two.history(Some("long"), 10).await.unwrap();
    assert_eq!(lines[0].outcome, Outcome::HandedOver);
    world.pass(60).await;
    assert_eq!(world.notes.all().last().unwrap(), "done");
    two.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_panics_as_it_is_cut_short_is_handed_over_with_its_panic() {
    let world = World::at(START);
    let job = || {
        world.doing("long", "@manual", |ctx: Context, notes, _| async move {
            notes.add(format!("{} on {}", note(&ctx), ctx.replica()));
            if ctx.replica() == "one" {
                ctx.cancelled().await;
                ctx.check().unwrap();
            }
            Ok(())
        })
    };
    let one = world.replica("one").shutdown_grace(Duration::ZERO);
    let one = one.job(job()).start().await.unwrap();
    world.pass(30).await;
    let at = one.trigger("long").await.unwrap();
    world.pass(2).await;
    let two = world.replica("two").job(job()).start().await.unwrap();
    world.pass(5).await;
    one.shutdown().await.unwrap();
    world.pass(2).await;
    let expected = ["#1 on one", "#2 on two"].map(|run| format!("long {at} {run}"));
    assert_eq!(world.notes.all(), expected);
    let lines = two.history(Some("long"), 10).await.unwrap();
    let outcomes = [Outcome::Succeeded, Outcome::HandedOver];
    assert_eq!([lines[0].outcome, lines[1].outcome], outcomes);
    let reason = lines[1].reason.as_deref().unwrap();
    let told = "the replica was shutting down; panicked: called `Result::unwrap()`";
    assert!(reason.starts_with(told), "{reason}");
    two.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_function_that_takes_no_notice_is_aborted_after_its_grace() {
    let world = World::at(START);
    let job = world.doing("deaf", "@manual", |_, _, _| async {
        pending::<Done>().await
    });
    let job = job.kill_grace(Duration::from_secs(3));
    let one = world.replica("one").shutdown_grace(Duration::ZERO).job(job);
    let one = one.start().await.unwrap();
    world.pass(30).await;
    one.trigger("deaf").await.unwrap();
    world.pass(2).await;
    let ending = tokio::spawn(one.shutdown());
    world.pass(2).await;
    assert!(!ending.is_finished());
    world.pass(2).await;
    assert_eq!(ending.await.unwrap().unwrap(), Shutdown::Drained);
}

#[tokio::test]
async fn a_scheduler_that_is_dropped_ends_its_functions_and_its_lease_runs_out() {
    let world = World::at(START);
    let one = replica(&world, "one", 60).await;
    let two = replica(&world, "two", 1).await;
    world.pass(40).await;
    one.trigger("long").await.unwrap();
    world.pass(1).await;
    let holder = world.notes.all()[0].ends_with("one");
    let (dropped, left) = if holder { (one, two) } else { (two, one) };
    drop(dropped);
    world.pass(60).await;
    let begun = world.notes.all();
    let begun: Vec<&String> = begun.iter().filter(|note| note.contains('#')).collect();
    assert_eq!(begun.len(), 2, "{begun:#?}");
    left.abort().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abort_waits_for_a_function_that_does_not_await() {
    let (sender, mut said) = mpsc::unbounded_channel();
    let job = Job::new("blocks", "@manual", move |_| {
        let sender = sender.clone();
        async move {
            sender.send("began").expect("heard");
            std::thread::sleep(Duration::from_millis(700));
            sender.send("ended").expect("heard");
            Ok::<_, Error>(())
        }
    });
    let one = Scheduler::builder().store("memory:").job(job);
    let one = one.start().await.unwrap();
    one.trigger("blocks").await.unwrap();
    assert_eq!(said.recv().await, Some("began"));
    one.abort().await.unwrap();
    assert_eq!(said.try_recv(), Ok("ended"));
}
