//! What comes before the driver: the store has to be there, however long that takes.
//!
//! Must never: lose what is asked meanwhile.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tracing::warn;
use uuid::Uuid;

use super::leftovers;
use crate::driver::Request;
use crate::health::Health;
use crate::scheduler::time::format_duration;
use crate::store::{Store, StoreError};

/// The first wait for a store that isn't there, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Ends what an earlier life left and waits for the store. Answers with what was asked meanwhile
/// and is for the driver; with nothing where this replica was told to end.
pub(super) async fn prepare(
    replica: &str,
    store: &dyn Store,
    require_store: bool,
    health: &watch::Sender<Health>,
    requests: &mut mpsc::Receiver<Request>,
) -> Result<Option<Vec<Request>>, StoreError> {
    let mut newer = Vec::new();
    let prepared = async {
        // Before the store is waited for: they run on as long as it takes.
        leftovers::end(replica).await;
        wait_for(store, require_store, health).await
    };
    tokio::select! {
        ready = prepared => ready.map(|()| Some(newer)),
        () = stopped(requests, &mut newer) => Ok(None),
    }
}

/// Makes sure that the store is there.
async fn wait_for(
    store: &dyn Store,
    required: bool,
    health: &watch::Sender<Health>,
) -> Result<(), StoreError> {
    let mut wait = FIRST_WAIT;
    loop {
        let cause = match store.ready().await {
            Ok(()) => {
                health.send_modify(|health| health.store_away = None);
                return Ok(());
            }
            // One that another version keeps may be this one's once a fleet is updated.
            Err(cause @ (StoreError::Unreachable { .. } | StoreError::OtherVersion { .. }))
                if !required =>
            {
                cause
            }
            Err(cause) => return Err(cause),
        };
        warn!("{cause}; trying again in {}", format_duration(wait));
        health.send_modify(|health| health.store_away = Some(cause.to_string()));
        tokio::time::sleep(spread(wait)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Between half of it and all of it, so that a fleet doesn't come back as one.
fn spread(wait: Duration) -> Duration {
    let dice = u32::from(Uuid::new_v4().as_bytes()[0]);
    wait / 2 + wait / 2 * dice / 255
}

/// Hears requests until one ends the start. What is said of a new table is for the driver; it is
/// left in `table`: the newest, and whether a still newer one was refused.
async fn stopped(requests: &mut mpsc::Receiver<Request>, table: &mut Vec<Request>) {
    while let Some(request) = requests.recv().await {
        match request {
            Request::Drain | Request::Abort => return,
            Request::Ping(answer) => {
                // Whoever asked may have given up waiting.
                let _ = answer.send(());
            }
            newer @ Request::Reload(_) => *table = vec![newer],
            refusal @ Request::TableRefused { .. } => {
                table.retain(|newer| matches!(newer, Request::Reload(_)));
                table.push(refusal);
            }
        }
    }
}
