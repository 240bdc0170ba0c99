//! A store that is open, for those who share one between schedulers or bring one to a test.
//!
//! Must never: show the URL with its password.

use std::fmt;
use std::sync::Arc;

use super::error::Error;
use crate::clock::{Clock, SystemClock};
use crate::own_thread;
use crate::store::memory::MemoryStore;
use crate::store::{self, Store};

/// A store that is open: where leases and the ledger live. Clones are the same store.
///
/// A scheduler that has a store of its own doesn't need one: see
/// [`Builder::store`](crate::Builder::store). It is for several schedulers in one program, and for
/// tests, where replicas share a store in memory:
///
/// ```
/// use soloist::{ManualClock, Scheduler, SharedStore};
///
/// let clock = ManualClock::at("2026-11-20T22:00:00Z".parse().unwrap());
/// let store = SharedStore::memory_at(clock.clone());
/// let replica = |name: &str| {
///     Scheduler::builder().clock(clock.clone()).store_in(&store).replica(name)
/// };
/// let (one, other) = (replica("one"), replica("other"));
/// # let _ = (one, other);
/// ```
#[derive(Clone)]
pub struct SharedStore(pub(super) Arc<dyn Store>);

impl SharedStore {
    /// A store in this process's memory, which ends with it. It is one namespace.
    pub fn memory() -> Self {
        Self::memory_at(SystemClock)
    }

    /// The same, by another clock; that of its schedulers has to be the same one.
    pub fn memory_at(clock: impl Clock + 'static) -> Self {
        Self(Arc::new(MemoryStore::new(Arc::new(clock))))
    }

    /// The store that a URL names, as in [`Builder::store`](crate::Builder::store). Nothing is
    /// connected yet.
    ///
    /// # Errors
    /// When the URL names no store, or one whose feature is off, or the namespace can't be one.
    pub fn open(url: &str, namespace: &str) -> Result<Self, Error> {
        let runtime = own_thread::runtime().map_err(Error::Thread)?;
        let _there = own_thread::enter(&runtime, true);
        Ok(Self(store::open(Some(url), namespace)?))
    }

    /// One that was made otherwise, by this version's own tests.
    #[doc(hidden)]
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self(store)
    }
}

impl fmt::Debug for SharedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedStore").field(&self.0.place()).finish()
    }
}
