//! What comes before a driver: the store has to be there, however long that takes.
//!
//! Must never: give up a store that may come back, unless it is told to.

use std::time::Duration;

use tracing::warn;
use uuid::Uuid;

use crate::scheduler::time::format_duration;
use crate::store::{Store, StoreError};

/// The first wait for a store that isn't there, and the longest.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Makes sure that the store is there. While it is away, `on_away` is told why; with none, a store
/// that is away is not waited for.
pub(crate) async fn wait_for(
    store: &dyn Store,
    on_away: Option<impl Fn(&StoreError)>,
) -> Result<(), StoreError> {
    let mut wait = FIRST_WAIT;
    loop {
        let cause = match store.ready().await {
            Ok(()) => return Ok(()),
            // One that another version keeps may be this one's once a fleet is updated.
            Err(cause @ (StoreError::Unreachable { .. } | StoreError::OtherVersion { .. })) => {
                cause
            }
            Err(cause) => return Err(cause),
        };
        let Some(on_away) = &on_away else {
            return Err(cause);
        };
        warn!("{cause}; trying again in {}", format_duration(wait));
        on_away(&cause);
        tokio::time::sleep(spread(wait)).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Between half of it and all of it, so that a fleet doesn't come back as one.
fn spread(wait: Duration) -> Duration {
    let dice = u32::from(Uuid::new_v4().as_bytes()[0]);
    wait / 2 + wait / 2 * dice / 255
}
