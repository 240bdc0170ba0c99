//! The stores that are held against memory, each with a clock that the test sets.

mod raw;
mod server;
mod sqlite;

use std::sync::Arc;

use soloist::scheduler::time::Timestamp;
use soloist::store::Store;
use soloist::store::memory::MemoryStore;

pub(crate) use self::raw::Raw;
use self::server::Server;
use self::sqlite::File;
use crate::clock::TestClock;
use crate::drawing::Habits;
use crate::steps::Trouble;

/// Which store is held against memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    /// One server.
    Redis,
    /// A node that has all slots of a cluster.
    Cluster,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Sqlite => "SQLite",
            Kind::Redis => "one server",
            Kind::Cluster => "cluster",
        }
    }
}

/// A store, and what can be done to it.
pub(crate) enum Engine {
    Sqlite(File),
    Server(Server),
}

impl Engine {
    /// To be called on a runtime, by which its connections live.
    pub(crate) fn start(kind: Kind) -> Self {
        match kind {
            Kind::Sqlite => Self::Sqlite(File::new()),
            Kind::Redis | Kind::Cluster => Self::Server(Server::start(kind)),
        }
    }

    /// Which program it is, with its version.
    pub(crate) fn version(&self) -> String {
        match self {
            Self::Sqlite(_) => format!("sqlite {}", sqlite::version()),
            Self::Server(server) => server.version(),
        }
    }

    /// What a sequence of this seed may do to it.
    pub(crate) fn habits(&self, seed: u64) -> Habits {
        match self {
            Self::Sqlite(_) => File::habits(seed),
            Self::Server(server) => server.habits(),
        }
    }

    /// Makes all ledgers empty, for a sequence of this seed.
    pub(crate) async fn empty(&mut self, seed: u64) {
        match self {
            Self::Sqlite(file) => file.empty(seed).await,
            Self::Server(server) => server.empty().await,
        }
    }

    /// An empty memory that stands for the same life of a store.
    pub(crate) fn twin(&self, clock: Arc<TestClock>) -> MemoryStore {
        let memory = MemoryStore::new(clock);
        if let Self::Server(server) = self {
            server.lend_life(&memory);
        }
        memory
    }

    pub(crate) fn set_clock(&self, now: Timestamp) {
        match self {
            Self::Sqlite(file) => file.set_clock(now),
            Self::Server(server) => server.set_clock(now),
        }
    }

    /// A way into a namespace.
    pub(crate) fn way(&self, namespace: usize, way: usize) -> &Arc<dyn Store> {
        let ways = match self {
            Self::Sqlite(file) => file.ways(namespace),
            Self::Server(server) => server.ways(namespace),
        };
        &ways[way % ways.len()]
    }

    /// Has it happen to the store, and to its twins.
    pub(crate) async fn suffer(&mut self, trouble: Trouble, twins: &[MemoryStore]) {
        match self {
            Self::Sqlite(file) => file.suffer(trouble).await,
            Self::Server(server) => server.suffer(trouble).await,
        }
        for twin in twins {
            if trouble != Trouble::FailOver && !self.is_kept_by_restart(trouble) {
                let nothing = MemoryStore::new(self.clock());
                twin.fall_back_to(nothing.image());
            }
            if let Self::Server(server) = self {
                server.lend_life(twin);
            }
        }
    }

    fn is_kept_by_restart(&self, trouble: Trouble) -> bool {
        matches!(self, Self::Sqlite(_)) && trouble == Trouble::Restart
    }

    fn clock(&self) -> Arc<TestClock> {
        match self {
            Self::Sqlite(file) => file.clock(),
            Self::Server(server) => server.clock(),
        }
    }

    /// Its news take watches of the host's, of which there are so many for all of a user's
    /// processes together.
    pub(crate) fn tells_if_it_can(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }

    /// What it holds in its own form.
    pub(crate) fn raw(&self, namespace: usize) -> Raw {
        match self {
            Self::Sqlite(file) => file.raw(namespace),
            Self::Server(server) => server.raw(namespace),
        }
    }
}
