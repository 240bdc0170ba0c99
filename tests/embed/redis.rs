//! Functions on a real Redis that stops answering, and one that comes late.

use std::future::pending;
use std::time::Duration;

use soloist::{CancelReason, Clock as _, Context, Error, Event, Job, Scheduler, SystemClock};
use test_support::machine::stood_still;
use test_support::redis::RedisServer;
use tokio::sync::mpsc;

use crate::world::{OnDrop, SOON, until};

const TTL: Duration = Duration::from_secs(2);

/// Less than this of a lease is trusted: a tenth is kept back, and what clocks may drift.
const TRUSTED: Duration = Duration::from_millis(1780);

/// What this machine may take for itself.
const MARGIN: Duration = Duration::from_millis(150);

fn now() -> Duration {
    SystemClock.boot().as_duration()
}

/// What an attempt says of itself.
#[derive(Debug)]
enum Said {
    Began(u32),
    Cancelled(CancelReason, Duration),
    Refused(Duration),
    Dropped(Duration),
}

/// Takes no notice of its cancellation but to say so.
async fn stubborn(ctx: Context, said: mpsc::UnboundedSender<Said>) -> Result<(), Error> {
    let _dropped = OnDrop(|| {
        // Nobody may listen any more.
        let _ = said.send(Said::Dropped(now()));
    });
    said.send(Said::Began(ctx.attempt())).expect("heard");
    assert!(ctx.check().is_ok());
    let reason = ctx.cancelled().await;
    said.send(Said::Cancelled(reason, now())).expect("heard");
    if ctx.check().is_err() {
        said.send(Said::Refused(now())).expect("heard");
    }
    pending().await
}

/// The store froze: it is cancelled, refused, and at last aborted in time.
async fn ends_as_told(mut next: impl AsyncFnMut() -> Said, frozen: Duration) {
    let stood_before = stood_still();
    let Said::Cancelled(reason, cancelled) = next().await else {
        panic!("cancelled first");
    };
    let Said::Refused(refused) = next().await else {
        panic!("`check` fails once it is cancelled");
    };
    let Said::Dropped(dropped) = next().await else {
        panic!("aborted in the end");
    };
    assert_eq!(reason, CancelReason::LeaseExpiring);
    eprintln!(
        "the store froze; cancelled after {:.2?}, refused after {:.2?}, aborted after {:.2?} of a lease of {TTL:?}",
        cancelled.saturating_sub(frozen),
        refused.saturating_sub(frozen),
        dropped.saturating_sub(frozen)
    );
    // Who is told late has less of it.
    let still = stood_still() - stood_before;
    assert!(dropped - cancelled + still >= TTL / 5, "it had a grace");
    assert!(
        dropped.saturating_sub(frozen) <= TRUSTED + MARGIN + still,
        "aborted in time; the machine stood still for {still:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_freezes_ends_a_function_before_its_lease_is_over() {
    let server = RedisServer::start();
    let (sender, mut said) = mpsc::unbounded_channel();
    let job = Job::new("stubborn", "* * * * * *", move |ctx| {
        stubborn(ctx, sender.clone())
    });
    let scheduler = Scheduler::builder()
        .store(server.url())
        .lease_ttl(TTL)
        .job(job)
        .start()
        .await
        .unwrap();
    let mut events = scheduler.events();
    let mut next = async || {
        let next = tokio::time::timeout(SOON, said.recv()).await;
        next.expect("soon").expect("an attempt")
    };
    assert!(matches!(next().await, Said::Began(1)));
    // Long enough for renewals to have come.
    tokio::time::sleep(TTL).await;
    server.freeze();
    // A renewal may have been answered until here.
    ends_as_told(&mut next, now()).await;
    until(&mut events, |event| {
        matches!(event, Event::StoreAway { .. })
    })
    .await;
    let unanswered = scheduler.status().await.unwrap_err();
    let is_away = matches!(
        unanswered,
        Error::Store {
            is_temporary: true,
            ..
        }
    );
    assert!(is_away, "{unanswered}");
    server.thaw();
    until(&mut events, |event| {
        matches!(event, Event::StoreBack { .. })
    })
    .await;
    assert!(matches!(next().await, Said::Began(2)), "run again");
    scheduler.abort().await.unwrap();
}

#[tokio::test]
async fn a_store_that_comes_late_is_waited_for() {
    let mut server = RedisServer::start();
    server.kill();
    let job = Job::new("tick", "* * * * * *", |_| async { Ok::<_, Error>(()) });
    let scheduler = Scheduler::builder()
        .store(server.url())
        .lease_ttl(TTL)
        .job(job)
        .start()
        .await
        .unwrap();
    let mut events = scheduler.events();
    until(&mut events, |event| {
        matches!(event, Event::StoreAway { .. })
    })
    .await;
    server.restart();
    until(&mut events, |event| matches!(event, Event::Ended { .. })).await;
    scheduler.shutdown().await.unwrap();
}
