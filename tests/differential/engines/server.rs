//! A real Redis or Valkey server, whose clock stands still wherever the test sets it.

use std::sync::Arc;
use std::time::Duration;

use soloist::scheduler::time::Timestamp;
use soloist::store::memory::MemoryStore;
use soloist::store::redis::RedisStore;
use soloist::store::{Store, StoreEvent};
use tempfile::TempDir;
use test_support::clock_shim::StandingClock;
use test_support::redis::RedisServer;
use test_support::redis_many::Cluster;
use test_support::redis_program;
use tokio::time::timeout;

use super::{Kind, Raw};
use crate::clock::TestClock;
use crate::drawing::{Habits, NAMESPACES, WAYS};
use crate::steps::Trouble;

/// Where the clock of the server begins: nowhere near a sequence.
const START_MS: i64 = 1_790_000_000_000;

/// How long a server that was started anew may take to be reached.
const PATIENCE: u32 = 400;
/// How long it may take until news are heard again.
const LISTENING: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

pub(crate) struct Server {
    kind: Kind,
    server: RedisServer,
    hand: StandingClock,
    /// What the twins go by.
    clock: Arc<TestClock>,
    /// Drawn anew where the server is another one.
    process: u64,
    ways: Vec<Vec<Arc<dyn Store>>>,
    /// Where the sockets are.
    directory: TempDir,
}

fn name(namespace: usize) -> String {
    format!("n{namespace}")
}

impl Server {
    pub(super) fn start(kind: Kind) -> Self {
        let hand = StandingClock::new(START_MS);
        let directory = TempDir::new().expect("a temporary directory can be made");
        let socket = directory.path().join("0.sock");
        let options = RedisServer::options().environment(hand.environment());
        let server = match kind {
            Kind::Cluster => Cluster::alone(&options),
            Kind::Redis | Kind::Sqlite => {
                let path = socket.to_str().expect("a UTF-8 path");
                options.argument("--unixsocket", path).start()
            }
        };
        let mut all = Self {
            kind,
            server,
            hand,
            clock: Arc::new(TestClock::default()),
            process: 0,
            ways: Vec::new(),
            directory,
        };
        all.wait_for_slots();
        all.open();
        all
    }

    /// A node of a cluster goes by its clock: it takes a while until it says that it is up.
    fn wait_for_slots(&self) {
        if self.kind != Kind::Cluster {
            return;
        }
        for second in 0..i64::from(PATIENCE) {
            self.hand.set(START_MS + second * 1000);
            let info = self.server.command(&["CLUSTER", "INFO"]);
            if info.contains("cluster_state:ok") {
                return;
            }
            std::thread::sleep(POLL);
        }
        panic!("the node does not take up its slots");
    }

    fn open(&mut self) {
        let socket = self.directory.path().join("0.sock");
        let url = match self.kind {
            Kind::Cluster => format!("redis+cluster://127.0.0.1:{}", self.server.port()),
            Kind::Redis | Kind::Sqlite => format!("unix://{}", socket.display()),
        };
        let way = |name: &str| -> Arc<dyn Store> {
            Arc::new(RedisStore::open(&url, name).expect("the URL is good"))
        };
        let names: Vec<String> = (0..NAMESPACES).map(name).collect();
        let ways = names
            .iter()
            .map(|name| (0..WAYS).map(|_| way(name)).collect());
        self.ways = ways.collect();
    }

    pub(super) fn version(&self) -> String {
        redis_program::version(&self.server)
    }

    pub(super) fn habits(&self) -> Habits {
        let troubles = match self.kind {
            // A node of a cluster is told by the cluster whom to follow.
            Kind::Cluster => vec![Trouble::Loss],
            Kind::Redis | Kind::Sqlite => vec![Trouble::Loss, Trouble::FailOver, Trouble::Restart],
        };
        Habits {
            troubles,
            crossing: true,
        }
    }

    pub(super) async fn empty(&self) {
        self.flush();
        self.reach().await;
    }

    fn flush(&self) {
        assert_eq!(self.server.command(&["FLUSHALL"]), "OK");
    }

    /// Returns once all ways lead to a server.
    async fn reach(&self) {
        for store in self.ways.iter().flatten() {
            for left in (0..PATIENCE).rev() {
                let ready = store.ready().await;
                let read = store.snapshot().await;
                match ready.and(read.map(|_| ())) {
                    Ok(()) => break,
                    Err(error) if left == 0 => panic!("{error}"),
                    Err(_) => tokio::time::sleep(POLL).await,
                }
            }
        }
    }

    pub(super) fn lend_life(&self, memory: &MemoryStore) {
        let process = format!("process {}", self.process);
        match self.kind {
            Kind::Cluster => memory.run_as_elected(&process),
            _ => memory.run_as(&process),
        }
    }

    pub(super) fn clock(&self) -> Arc<TestClock> {
        self.clock.clone()
    }

    pub(super) fn set_clock(&self, now: Timestamp) {
        self.clock.set(now);
        self.hand.set(now.as_millis());
    }

    pub(super) fn ways(&self, namespace: usize) -> &[Arc<dyn Store>] {
        &self.ways[namespace]
    }

    pub(super) async fn suffer(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Loss => self.flush(),
            Trouble::FailOver => {
                // It followed another server, which there is not, and is a master again: as one
                // does that was elected.
                let server = &self.server;
                assert_eq!(server.command(&["REPLICAOF", "127.0.0.1", "1"]), "OK");
                assert_eq!(server.command(&["REPLICAOF", "NO", "ONE"]), "OK");
                self.process += 1;
            }
            Trouble::Restart => {
                let mut ears: Vec<_> = self.ways.iter().map(|ways| ways[0].events()).collect();
                self.server.restart();
                self.process += 1;
                self.reach().await;
                for ear in &mut ears {
                    let reconnected =
                        async { while ear.recv().await != Ok(StoreEvent::Reconnected) {} };
                    let heard = timeout(LISTENING, reconnected).await;
                    heard.expect("who listens to a server comes back to it");
                }
            }
        }
    }

    pub(super) fn raw(&self, namespace: usize) -> Raw {
        let server = &self.server;
        let key = |part: &str| format!("soloist:{{{}}}:{part}", name(namespace));
        let mut raw = Raw::default();
        let jobs = server.command(&["HGETALL", &key("jobs")]);
        for (field, value) in pairs(&jobs) {
            match (field, value.split_once('|')) {
                ("#token", _) => raw.marks.0 = value.parse().expect("a token"),
                ("#clock_us", _) => raw.marks.1 = value.parse().expect("a time"),
                (job, Some((agenda, text))) if !job.starts_with('#') => {
                    raw.put(job, agenda.parse().ok(), text);
                }
                _ => {}
            }
        }
        let agenda = server.command(&["ZRANGE", &key("agenda"), "0", "-1", "WITHSCORES"]);
        for (job, score) in pairs(&agenda) {
            let score = score.parse().expect("a whole number");
            raw.agenda.insert(job.to_owned(), score);
        }
        raw
    }
}

/// The elements of a reply, two by two. No record has a line break in it.
fn pairs(reply: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut lines = reply.lines();
    std::iter::from_fn(move || Some((lines.next()?, lines.next()?)))
}
