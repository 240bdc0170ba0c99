//! The stores that rows are played on, each with a clock that the world sets.

use std::sync::Arc;

use soloist::clock::Clock;
use soloist::scheduler::time::Timestamp;
use soloist::store::Store;
use soloist::store::redis::RedisStore;
use soloist::store::sqlite::SqliteStore;
use tempfile::TempDir;
use test_support::clock_shim::StandingClock;
use test_support::redis::{RedisServer, fresh_namespace};
use tokio::runtime::{Builder, Runtime};

use soloist_simulation::world::{Premises, Real, StoreClock};

/// Ways into a store, as many as rows have replicas.
const WAYS: usize = 3;

pub(crate) enum Engine {
    Memory,
    /// A file for each row.
    Sqlite(TempDir),
    /// A namespace for each row.
    Redis(RedisServer, Arc<StandingClock>),
}

impl Engine {
    pub(crate) fn memory() -> Self {
        Self::Memory
    }

    pub(crate) fn sqlite() -> Self {
        // Nothing here has to survive a power cut, and a disk would take most of the time.
        let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        Self::Sqlite(dir.expect("a temporary directory can be made"))
    }

    pub(crate) fn redis() -> Self {
        // Two rows' worlds begin at one instant, so that the clock steps back between them; what
        // is in another namespace doesn't mind.
        let clock = Arc::new(StandingClock::new(0));
        let server = RedisServer::options().environment(clock.environment());
        Self::Redis(server.start(), clock)
    }

    pub(crate) fn is_memory(&self) -> bool {
        matches!(self, Engine::Memory)
    }

    /// A fresh, empty ledger.
    pub(crate) fn premises(&self) -> Premises {
        match self {
            Engine::Memory => Premises::new(None),
            Engine::Sqlite(dir) => Premises::new(Some(file_in(dir))),
            Engine::Redis(server, clock) => Premises::new(Some(server_of(server, clock))),
        }
    }
}

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made")
}

fn file_in(dir: &TempDir) -> Real {
    let clock = Arc::new(StoreClock::default());
    let path = dir.path().join(format!("{}.db", fresh_namespace()));
    let way = |_| -> Arc<dyn Store> {
        let clock: Arc<dyn Clock> = Arc::clone(&clock) as _;
        let store = SqliteStore::open(&path, "table", clock);
        Arc::new(store.expect("a thread can be started"))
    };
    Real {
        ways: (0..WAYS).map(way).collect(),
        set_clock: Box::new(move |now| clock.set(now)),
        runtime: runtime(),
    }
}

fn server_of(server: &RedisServer, clock: &Arc<StandingClock>) -> Real {
    let (url, namespace) = (server.url(), fresh_namespace());
    let way = |_| -> Arc<dyn Store> {
        let store = RedisStore::open(&url, &namespace);
        Arc::new(store.expect("the URL is good"))
    };
    let runtime = runtime();
    let ways = {
        let _inside = runtime.enter();
        (0..WAYS).map(way).collect()
    };
    let clock = Arc::clone(clock);
    Real {
        ways,
        set_clock: Box::new(move |now: Timestamp| clock.set(now.as_millis())),
        runtime,
    }
}
