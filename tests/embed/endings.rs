//! How functions end, and what the ledger says of it.

use std::future::pending;
use std::time::Duration;

use soloist::{CancelReason, Concurrency, Event, OnCrash, Outcome, Retry};

use crate::world::{Done, OnDrop, World, come, note, only_line};

const START: &str = "2026-11-20T00:00:30Z";

#[tokio::test]
async fn an_error_and_a_panic_are_failures_with_their_text() {
    let world = World::at(START);
    let failing = world.doing("failing", "* * * * *", |_, _, _| async {
        let inner = std::io::Error::other("the database is away");
        Err(format!("failed to close orders: {inner}").into())
    });
    let panicking = world.doing("panicking", "* * * * *", |ctx, _, _| async move {
        assert_eq!(ctx.attempt(), 0, "attempts count from 1");
        Ok(())
    });
    let scheduler = world.replica("one").job(failing).job(panicking);
    let scheduler = scheduler.start().await.unwrap();
    world.pass(40).await;
    let line = only_line(&scheduler, "failing").await;
    let reason = "failed to close orders: the database is away";
    assert_eq!(line.outcome, Outcome::Failed);
    assert_eq!(line.reason.as_deref(), Some(reason));
    let line = only_line(&scheduler, "panicking").await;
    assert_eq!(line.outcome, Outcome::Failed);
    let reason = line.reason.unwrap();
    assert!(reason.starts_with("panicked: ") && reason.contains("attempts count from 1"));
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_failure_is_tried_again_after_its_wait() {
    let world = World::at(START);
    let job = world.doing("flaky", "@manual", |ctx, notes, _| async move {
        notes.add(note(&ctx));
        match ctx.attempt() {
            3 => Ok(()),
            _ => Err("not yet".into()),
        }
    });
    let retry = Retry {
        backoff: Duration::from_secs(10),
        ..Retry::times(2)
    };
    let scheduler = world.replica("one").job(job.retry(retry));
    let scheduler = scheduler.start().await.unwrap();
    world.pass(30).await;
    let at = scheduler.trigger("flaky").await.unwrap();
    world.pass(5).await;
    assert_eq!(world.notes.all().len(), 1);
    world.pass(60).await;
    let expected = [1, 2, 3].map(|attempt| format!("flaky {at} #{attempt}"));
    assert_eq!(world.notes.all(), expected);
    let lines = scheduler.history(Some("flaky"), 10).await.unwrap();
    let outcomes: Vec<Outcome> = lines.iter().map(|line| line.outcome).collect();
    let expected = [Outcome::Succeeded, Outcome::Failed, Outcome::Failed];
    assert_eq!(outcomes, expected);
    assert!(lines[0].fencing_token > lines[1].fencing_token);
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_runs_over_its_timeout_is_cancelled_and_then_aborted() {
    let world = World::at(START);
    let polite = world.doing("polite", "* * * * *", |ctx, notes, _| async move {
        let reason = ctx.cancelled().await;
        notes.add(format!("polite: {reason}"));
        assert_eq!(ctx.check().unwrap_err().reason(), CancelReason::TimedOut);
        Ok(())
    });
    let deaf = world.doing("deaf", "* * * * *", |_, notes, _| async move {
        let _dropped = OnDrop(|| notes.add("deaf dropped".to_owned()));
        pending::<Done>().await
    });
    let timeout = Duration::from_secs(10);
    let scheduler = world
        .replica("one")
        .job(polite.timeout(timeout))
        .job(deaf.timeout(timeout).kill_grace(Duration::from_secs(3)))
        .start()
        .await
        .unwrap();
    world.pass(42).await;
    assert_eq!(world.notes.all(), ["polite: it ran over its timeout"]);
    world.pass(2).await;
    assert_eq!(world.notes.all().len(), 2, "aborted after its grace");
    for (job, reason) in [
        ("polite", "ran over its timeout of 10s: it returned"),
        ("deaf", "ran over its timeout of 10s: aborted"),
    ] {
        let line = only_line(&scheduler, job).await;
        assert_eq!(line.outcome, Outcome::TimedOut, "{job}");
        assert_eq!(line.reason.as_deref(), Some(reason));
    }
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_somebody_kills_is_cancelled_for_that_reason_and_not_run_again() {
    let world = World::at(START);
    let job = world.doing("long", "@manual", |ctx, notes, _| async move {
        notes.add(format!("{} began", note(&ctx)));
        notes.add(ctx.cancelled().await.as_str());
        Ok(())
    });
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    world.pass(30).await;
    assert!(!scheduler.kill("long").await.unwrap(), "nothing runs");
    scheduler.trigger("long").await.unwrap();
    world.pass(5).await;
    let mut events = scheduler.events();
    assert!(scheduler.handle().by("ann").kill("long").await.unwrap());
    world.pass(5).await;
    assert_eq!(world.notes.all()[1..], ["it was killed"]);
    let line = only_line(&scheduler, "long").await;
    assert_eq!(line.outcome, Outcome::Cancelled);
    let told = come(&mut events);
    let stopping = |event: &Event| {
        let Event::Stopping { reason, .. } = event else {
            return false;
        };
        *reason == CancelReason::Killed
    };
    assert!(told.iter().any(stopping), "{told:#?}");
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_panics_as_it_is_killed_is_cancelled_and_not_tried_again() {
    let world = World::at(START);
    let job = world.doing("long", "@manual", |ctx, notes, _| async move {
        notes.add(note(&ctx));
        ctx.cancelled().await;
        panic!("half done");
    });
    let job = job.retry(Retry::times(3));
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    world.pass(30).await;
    scheduler.trigger("long").await.unwrap();
    world.pass(5).await;
    assert!(scheduler.kill("long").await.unwrap());
    world.pass(30).await;
    assert_eq!(world.notes.all().len(), 1);
    let line = only_line(&scheduler, "long").await;
    assert_eq!(line.outcome, Outcome::Cancelled);
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_is_killed_as_its_timeout_ends_it_is_told_as_the_last_attempt() {
    let world = World::at(START);
    let deaf = world.doing("deaf", "@manual", |_, notes, _| async move {
        notes.add("began");
        pending::<Done>().await
    });
    let deaf = deaf
        .timeout(Duration::from_secs(10))
        .kill_grace(Duration::from_secs(5))
        .retry(Retry::times(3));
    let scheduler = world.replica("one").job(deaf).start().await.unwrap();
    world.pass(30).await;
    let mut events = scheduler.events();
    scheduler.trigger("deaf").await.unwrap();
    world.pass(12).await;
    assert!(scheduler.kill("deaf").await.unwrap());
    world.pass(60).await;
    assert_eq!(world.notes.all(), ["began"]);
    let ends = come(&mut events)
        .into_iter()
        .filter_map(|event| match event {
            Event::Ended {
                outcome,
                retry_after,
                ..
            } => Some((outcome, retry_after)),
            _ => None,
        });
    assert_eq!(Vec::from_iter(ends), [(Outcome::TimedOut, None)]);
    assert_eq!(
        only_line(&scheduler, "deaf").await.outcome,
        Outcome::TimedOut
    );
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_newer_occurrence_replaces_the_running_one() {
    let world = World::at(START);
    let job = world.doing("newest", "* * * * *", |ctx, notes, clock| async move {
        tokio::select! {
            reason = ctx.cancelled() => notes.add(format!("{}: {reason}", note(&ctx))),
            () = clock.sleep(Duration::from_secs(90)) => notes.add(note(&ctx)),
        }
        Ok(())
    });
    let job = job.concurrency_policy(Concurrency::Replace);
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    world.pass(110).await;
    let replaced = "newest 2026-11-20T00:01:00Z #1: a newer occurrence takes its place";
    assert_eq!(world.notes.all(), [replaced]);
    scheduler.abort().await.unwrap();
}

#[tokio::test]
async fn a_frozen_host_finds_its_attempts_lease_over_and_another_takes_it_over_or_not() {
    let world = World::at(START);
    let job = |name: &str| {
        world.doing(name, "@manual", |ctx, notes, clock| async move {
            notes.add(note(&ctx));
            clock.sleep(Duration::from_secs(5)).await;
            if let Err(cancelled) = ctx.check() {
                notes.add(format!("{} {cancelled}", ctx.job()));
            }
            Ok(())
        })
    };
    let (again, once) = (job("again"), job("once").on_crash(OnCrash::Skip));
    let scheduler = world.replica("one").job(again).job(once);
    let scheduler = scheduler.start().await.unwrap();
    world.pass(30).await;
    scheduler.trigger("again").await.unwrap();
    scheduler.trigger("once").await.unwrap();
    world.pass(2).await;
    // The leases of 15 s are over before anybody here can renew them.
    world.clock.jump(Duration::from_secs(60));
    world.pass(90).await;
    let notes = world.notes.all();
    for name in ["again", "once"] {
        let refused = |note: &&String| note.starts_with(&format!("{name} cancelled: the lease"));
        assert!(notes.iter().find(refused).is_some(), "{notes:#?}");
    }
    let runs = |name: &str| {
        let begun = |note: &&String| note.starts_with(name) && note.contains('#');
        notes.iter().filter(begun).count()
    };
    assert_eq!((runs("again"), runs("once")), (2, 1), "{notes:#?}");
    let line = only_line(&scheduler, "once").await;
    assert_eq!(line.outcome, Outcome::Lost);
    scheduler.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_a_function_leaves_behind_is_told_that_its_attempt_is_over() {
    let world = World::at(START);
    let job = world.doing("leaves", "@manual", |ctx, notes, _| async move {
        tokio::spawn(async move {
            assert!(ctx.check().is_ok(), "the function has not ended");
            notes.add(ctx.cancelled().await.as_str());
            let refused = ctx.check().map_err(|cancelled| cancelled.reason());
            assert_eq!(refused, Err(CancelReason::Ended));
            notes.add("refused");
        });
        tokio::task::yield_now().await;
        Ok(())
    });
    let scheduler = world.replica("one").job(job).start().await.unwrap();
    world.pass(30).await;
    scheduler.trigger("leaves").await.unwrap();
    world.pass(2).await;
    assert_eq!(world.notes.all(), ["the attempt has ended", "refused"]);
    let line = only_line(&scheduler, "leaves").await;
    assert_eq!(line.outcome, Outcome::Succeeded);
    scheduler.shutdown().await.unwrap();
}
