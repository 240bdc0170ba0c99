//! What many ask for at once, and is asked for once.
//!
//! Must never: give out what is older than it was made to last.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;

use crate::clock::Clock;
use crate::scheduler::time::BootTime;

/// A value that is made when it is asked for, by one at a time, and lasts a while.
pub(super) struct Fresh<T> {
    clock: Arc<dyn Clock>,
    lasts: Duration,
    kept: Mutex<Option<Kept<T>>>,
    /// How many times it was to be forgotten.
    forgotten: AtomicU64,
}

struct Kept<T> {
    /// From before it was asked for: so old it may be.
    at: BootTime,
    forgotten: u64,
    value: T,
}

impl<T: Clone> Fresh<T> {
    pub(super) fn new(clock: Arc<dyn Clock>, lasts: Duration) -> Self {
        Self {
            clock,
            lasts,
            kept: Mutex::new(None),
            forgotten: AtomicU64::new(0),
        }
    }

    /// The value, which is `made` unless there is one that lasts still. Whoever comes meanwhile
    /// waits for it.
    pub(super) async fn get(&self, make: impl Future<Output = T>) -> T {
        let mut kept = self.kept.lock().await;
        let (at, forgotten) = (self.clock.boot(), self.forgotten.load(Ordering::SeqCst));
        if let Some(kept) = &*kept
            && kept.forgotten == forgotten
            && at.saturating_since(kept.at) < self.lasts
        {
            return kept.value.clone();
        }
        let value = make.await;
        *kept = Some(Kept {
            at,
            forgotten,
            value: value.clone(),
        });
        value
    }

    /// Has the next one make it anew, also where one is being made at this moment, for which
    /// nobody waits here.
    pub(super) fn forget(&self) {
        self.forgotten.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use tokio::sync::oneshot;

    use super::*;
    use crate::scheduler::time::Timestamp;

    /// A clock that stands.
    #[derive(Debug)]
    struct Standing;

    impl Clock for Standing {
        fn wall(&self) -> Timestamp {
            Timestamp::from_second(0)
        }
        fn boot(&self) -> BootTime {
            BootTime::default()
        }
    }

    #[tokio::test]
    async fn what_many_ask_for_at_once_is_made_once() {
        let fresh = Fresh::new(Arc::new(Standing), Duration::from_secs(3600));
        let made = AtomicU32::new(0);
        let ask = || {
            fresh.get(async {
                tokio::task::yield_now().await;
                made.fetch_add(1, Ordering::SeqCst)
            })
        };
        let answers = futures_util::future::join_all((0..10).map(|_| ask())).await;
        assert_eq!(answers, [0; 10]);
        fresh.forget();
        assert_eq!(ask().await, 1, "made anew once it was forgotten");
    }

    #[tokio::test]
    async fn what_is_forgotten_while_it_is_made_is_made_anew_and_nobody_waits_to_say_so() {
        let fresh = Fresh::new(Arc::new(Standing), Duration::from_secs(3600));
        let (go, gone) = oneshot::channel();
        let older = fresh.get(async { gone.await.unwrap_or(0) });
        let newer = async {
            fresh.forget();
            go.send(1).unwrap();
            fresh.get(async { 2 }).await
        };
        assert_eq!(tokio::join!(older, newer), (1, 2));
    }

    #[tokio::test]
    async fn what_does_not_last_is_made_anew() {
        let fresh = Fresh::new(Arc::new(Standing), Duration::ZERO);
        assert_eq!(fresh.get(async { 1 }).await, 1);
        assert_eq!(fresh.get(async { 2 }).await, 2);
    }
}
