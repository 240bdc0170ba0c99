//! The task in which a scheduler lives: it waits for the store, runs the driver, and tells how that
//! ended.
//!
//! Must never: give up a store.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use super::attempt::Function;
use super::events::{Event, Subscribers};
use super::functions::Watches;
use super::handle::{Handle, Scheduler};
use super::home::Home;
use crate::driver::{Driver, Finished, Request, wait_for};
use crate::store::StoreError;

/// Requests that may wait for the driver's next turn.
const REQUESTS: usize = 16;

/// From one look at a store that refuses to the next: somebody has to mend it first.
const REFUSED_WAIT: Duration = Duration::from_secs(5);

/// Starts it. Must be called on the runtime of its functions, with which it ends.
pub(super) fn start(
    home: Home,
    driver: Driver,
    watches: Watches,
    handle: Handle,
    functions: Vec<Function>,
    is_there: bool,
) -> Scheduler {
    let (sender, requests) = mpsc::channel(REQUESTS);
    // However this ends, nobody hears more: also where it never has a turn.
    let ending = Ending(handle.subscribers().clone());
    let work = run(driver, watches, handle.clone(), is_there, requests, ending);
    let task = tokio::spawn(async move {
        let finished = home.run(work).await.unwrap_or(Finished::Aborted);
        // What they have captured is the program's: it may block where it is dropped.
        drop(functions);
        finished
    });
    Scheduler::new(handle, sender, task)
}

async fn run(
    driver: Driver,
    watches: Watches,
    handle: Handle,
    is_there: bool,
    mut requests: mpsc::Receiver<Request>,
    _ending: Ending,
) -> Finished {
    let mut poked = None;
    if !is_there {
        tokio::select! {
            () = store_there(&handle) => {}
            ended = told_to_end(&mut requests, &mut poked) => return ended,
        }
    }
    let driver = driver.told_before(poked.into_iter().collect());
    let finished = driver.run(requests).await;
    // An abort tells all that runs to end, and doesn't wait for it.
    watches.over().await;
    finished
}

async fn store_there(handle: &Handle) {
    // Each time that it is asked, it is away for the same reason, mostly.
    let told = Mutex::new(None);
    let tell = |cause: &StoreError| {
        let kind = Some(std::mem::discriminant(cause));
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *told, kind) != kind {
            let cause = cause.to_string();
            handle.subscribers().tell(Event::StoreAway { cause });
        }
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
struct Ending(Subscribers);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.end();
    }
}
