//! Named leases on real stores, and `soloist lock` as a person runs it: who comes first, who shares,
//! what becomes of a lease when its holder, its server or the link between them dies or stands
//! still.

mod command;
mod everywhere;
mod fair;
mod lost;
mod names;
mod places;

use std::time::Duration;

use soloist::leases::{AcquireError, Acquisition, Lease};

/// Longer than anything here takes where nothing is broken.
const LONG: Duration = Duration::from_secs(20);

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
