//! A client by no more than a URL, on soloist's own thread.
//!
//! Must never: show a secret of a URL.

use std::sync::Arc;

use super::Leases;
use crate::clock::SystemClock;
use crate::own_thread;
use crate::store::{StoreError, open_leases};
use crate::store_url::StoreOptions;

pub(super) async fn by_url(url: &str, namespace: &str) -> Result<Leases, StoreError> {
    let (url, namespace) = (url.to_owned(), namespace.to_owned());
    let runtime = own_thread::runtime().map_err(|error| refused(&error.to_string()))?;
    let opening = runtime.spawn(async move {
        let store = open_leases(Some(&url), &namespace, &StoreOptions::default())?;
        Leases::of(store, Arc::new(SystemClock), &own_name()).await
    });
    let ended = opening.await;
    ended.unwrap_or_else(|error| Err(refused(&error.to_string())))
}

fn refused(cause: &str) -> StoreError {
    StoreError::Refused {
        place: "this process".to_owned(),
        cause: format!("it can't have a thread for its leases: {cause}"),
        cure: "raise its limits of threads and of open files".to_owned(),
    }
}

/// What this process is called where nobody gave it a name: by host and process id.
fn own_name() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("{host}:{}", std::process::id())
}
