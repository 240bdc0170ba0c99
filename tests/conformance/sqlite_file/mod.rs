//! Laws of the store in a file alone: what the file survives, who may share it, and where it is
//! refused.

mod crash;
mod loss;
mod paths;
mod processes;

use std::path::Path;
use std::sync::Arc;

use soloist::clock::{Clock, SystemClock};
use soloist::store::StoreError;
use soloist::store::sqlite::SqliteStore;

use crate::bench::{NAMESPACE, Peer};

/// A replica with the file at `path` open.
pub(crate) fn peer_at(path: &Path, name: &str) -> Peer {
    peer_by(path, name, Arc::new(SystemClock))
}

/// The same, by a clock of the test's.
pub(crate) fn peer_by(path: &Path, name: &str, clock: Arc<dyn Clock>) -> Peer {
    let store = SqliteStore::open(path, NAMESPACE, clock).expect("a thread can be started");
    Peer::new(Arc::new(store), name)
}

/// What the file at `path` is refused for; panics where it is taken.
pub(crate) async fn refusal(path: &Path) -> (String, String) {
    match peer_at(path, "a").store.ready().await {
        Err(
            StoreError::Refused { place, cause, cure }
            | StoreError::OtherVersion { place, cause, cure },
        ) => {
            assert_eq!(place, format!("sqlite:{}", path.display()));
            (cause, cure)
        }
        other => panic!("{}: {other:?}", path.display()),
    }
}
