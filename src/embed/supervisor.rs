//! The task in which a scheduler lives: it waits for the store, runs the driver, and tells how that
//! ended.
//!
//! Must never: give up a store.

use std::time::Duration;

use tokio::sync::mpsc;

use super::events::Event;
use super::handle::{Handle, Scheduler};
use crate::driver::{Driver, Finished, Request, wait_for};
use crate::store::StoreError;

/// Requests that may wait for the driver's next turn.
const REQUESTS: usize = 16;

/// From one look at a store that refuses to the next: somebody has to mend it first.
const REFUSED_WAIT: Duration = Duration::from_secs(5);

/// Starts it. Must be called on a runtime.
pub(super) fn start(driver: Driver, handle: Handle, is_there: bool) -> Scheduler {
    let (sender, requests) = mpsc::channel(REQUESTS);
    let task = tokio::spawn(run(driver, handle.clone(), is_there, requests));
    Scheduler::new(handle, sender, task)
}

async fn run(
    driver: Driver,
    handle: Handle,
    is_there: bool,
    mut requests: mpsc::Receiver<Request>,
) -> Finished {
    // However this ends, nobody hears more.
    let _ending = Ending(&handle);
    let mut poked = None;
    if !is_there {
        tokio::select! {
            () = store_there(&handle) => {}
            ended = told_to_end(&mut requests, &mut poked) => return ended,
        }
    }
    driver
        .told_before(poked.into_iter().collect())
        .run(requests)
        .await
}

async fn store_there(handle: &Handle) {
    let tell = |cause: &StoreError| {
        let cause = cause.to_string();
        handle.subscribers().tell(&Event::StoreAway { cause });
    };
    while let Err(cause) = wait_for(handle.store(), Some(tell)).await {
        tracing::error!("{cause}");
        tell(&cause);
        tokio::time::sleep(REFUSED_WAIT).await;
    }
}

/// Nothing was started yet: to drain is to end.
async fn told_to_end(
    requests: &mut mpsc::Receiver<Request>,
    poked: &mut Option<Request>,
) -> Finished {
    loop {
        match requests.recv().await {
            Some(Request::Drain) => return Finished::Drained,
            Some(Request::Abort) | None => return Finished::Aborted,
            // The last one is for the driver.
            Some(poke @ Request::Poke { .. }) => *poked = Some(poke),
            // Nobody asks for more here.
            Some(_) => {}
        }
    }
}

/// Ends the streams of events, also where the driver panics.
struct Ending<'h>(&'h Handle);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.subscribers().end();
    }
}
