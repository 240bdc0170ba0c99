//! What comes before the driver: the store has to be there, however long that takes.
//!
//! Must never: lose what is asked meanwhile.

use tokio::sync::{mpsc, watch};

use super::leftovers;
use crate::driver::{Request, wait_for};
use crate::health::Health;
use crate::store::{Store, StoreError};

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
        let patience = match require_store {
            true => None,
            false => Some(|cause: &StoreError| {
                health.send_modify(|health| health.store_away = Some(cause.to_string()));
            }),
        };
        wait_for(store, patience).await?;
        health.send_modify(|health| health.store_away = None);
        Ok(())
    };
    tokio::select! {
        ready = prepared => ready.map(|()| Some(newer)),
        () = stopped(requests, &mut newer) => Ok(None),
    }
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
            // Its jobs have no timer but its own.
            Request::Poke { .. } => {}
        }
    }
}
