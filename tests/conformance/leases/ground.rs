//! What an engine has to bring to be held to the laws of named leases.

use std::path::PathBuf;
use std::sync::Arc;

use soloist::store::LeaseStore;
use soloist::store::memory::{Image, MemoryStore};
use soloist::store::sqlite::SqliteStore;
use tempfile::TempDir;

use crate::fixtures::clock::TestClock;

/// An empty place of one engine, with a clock of its own. What it needs is its own and goes with it.
pub(crate) trait Ground: Sized + Send + Sync + 'static {
    /// Whether news name the hold whose turn it is. Else all who wait are told to look.
    const TELLS_WHO: bool = true;

    /// Whether several servers tell the same news, so that one may be heard twice.
    const REPEATS_NEWS: bool = false;

    /// Makes it.
    async fn new() -> Self;

    /// A way in for one client, with connections of its own where there are such. All ways into one
    /// namespace lead to the same names.
    async fn way(&self, namespace: &str) -> Arc<dyn LeaseStore>;

    /// Makes its clock step, from where it is.
    fn step_ms(&self, by: i64);

    /// All that it holds is lost, and it goes on.
    fn lose(&self);
}

pub(crate) struct Memory {
    clock: Arc<TestClock>,
    store: Arc<MemoryStore>,
    other: Arc<MemoryStore>,
    empty: Image,
}

impl Ground for Memory {
    async fn new() -> Self {
        let clock = Arc::new(TestClock::new());
        let store = MemoryStore::new(clock.clone());
        let empty = store.image();
        Self {
            store: Arc::new(store),
            other: Arc::new(MemoryStore::new(clock.clone())),
            clock,
            empty,
        }
    }

    async fn way(&self, namespace: &str) -> Arc<dyn LeaseStore> {
        match namespace {
            super::scene::NAMESPACE => self.store.clone(),
            _ => self.other.clone(),
        }
    }

    fn step_ms(&self, by: i64) {
        self.clock.step_ms(by);
    }

    fn lose(&self) {
        self.store.fall_back_to(self.empty.clone());
    }
}

/// A file, which each client opens for itself.
pub(crate) struct File {
    clock: Arc<TestClock>,
    directory: TempDir,
}

impl File {
    fn path(&self) -> PathBuf {
        self.directory.path().join("soloist.db")
    }
}

impl Ground for File {
    const TELLS_WHO: bool = false;

    async fn new() -> Self {
        Self {
            clock: Arc::new(TestClock::new()),
            directory: TempDir::new().expect("a temporary directory can be made"),
        }
    }

    async fn way(&self, namespace: &str) -> Arc<dyn LeaseStore> {
        let store = SqliteStore::open(&self.path(), namespace, self.clock.clone());
        Arc::new(store.expect("a thread can be started"))
    }

    fn step_ms(&self, by: i64) {
        self.clock.step_ms(by);
    }

    fn lose(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let mut name = self.path().into_os_string();
            name.push(suffix);
            std::fs::remove_file(name).expect("it was there");
        }
    }
}
