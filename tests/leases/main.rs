//! Named leases on real stores, and `soloist lock` as a person runs it: who comes first, who shares,
//! what becomes of a lease when its holder, its server or the link between them dies or stands
//! still.

mod blocked;
mod command;
mod everywhere;
mod fair;
mod late;
mod lost;
mod names;
mod places;
mod scene;
mod stopping;
mod telling;
mod usage;

use std::time::Duration;

use soloist::Leases;
use soloist::leases::{AcquireError, Acquisition, Lease};

/// Longer than anything here takes where nothing is broken.
const LONG: Duration = Duration::from_secs(20);

/// A client of a store that is there.
async fn client(url: &str, namespace: &str) -> Leases {
    let client = Leases::open(url, namespace).await;
    client.expect("the store can be used")
}

/// Whether a lease is held, where it is renewed in time: that it is not is told in words.
fn is_kept(lease: &Lease) -> Result<(), String> {
    lease.check().map_err(|lost| lost.to_string())
}

/// Whether nobody else was granted what is held; where somebody was, it was lost by then.
fn is_kept_alone(lease: &Lease, granted_to_another: bool) -> Result<(), String> {
    let held = is_kept(lease);
    assert!(!granted_to_another || held.is_err(), "two have it");
    held
}

/// Returns when at least so many wait for the first of all names.
async fn until_so_many_wait(client: &Leases, count: usize) {
    let looking = async {
        loop {
            // One look may fail, where a server took its time.
            let names = client.names().await.unwrap_or_default();
            if names.first().map_or(0, |name| name.waiting.len()) >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let seen = tokio::time::timeout(LONG, looking).await;
    seen.expect("they wait");
}

/// What is free is granted.
async fn has(asked: Acquisition) -> Lease {
    asked.acquire_within(LONG).await.expect("it is free")
}

/// What is not is refused to who doesn't wait.
async fn is_busy(asked: Acquisition) -> bool {
    match asked.try_acquire().await {
        Ok(lease) => {
            lease.release().await;
            false
        }
        Err(AcquireError::Busy(_)) => true,
        Err(other) => panic!("neither free nor busy: {other}"),
    }
}
