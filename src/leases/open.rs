//! A client by no more than a URL.
//!
//! Must never: show a secret of it.

use std::sync::Arc;

use super::Leases;
use crate::clock::SystemClock;
use crate::store::{StoreError, open_leases};
use crate::store_url::StoreOptions;

pub(super) async fn by_url(url: &str, namespace: &str) -> Result<Leases, StoreError> {
    let store = open_leases(Some(url), namespace, &StoreOptions::default())?;
    Leases::of(store, Arc::new(SystemClock), &own_name()).await
}

/// What this process is called where nobody gave it a name: by host and process id.
fn own_name() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("{host}:{}", std::process::id())
}
