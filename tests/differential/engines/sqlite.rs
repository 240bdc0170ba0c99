//! A file: each way opens it for itself, as its own process would.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use soloist::scheduler::time::Timestamp;
use soloist::store::Store;
use soloist::store::sqlite::SqliteStore;
use tempfile::TempDir;

use super::Raw;
use crate::clock::TestClock;
use crate::drawing::{Habits, NAMESPACES, WAYS};
use crate::steps::Trouble;

/// After so many sequences another file is begun.
const SEQUENCES_OF_A_FILE: u64 = 100;

pub(crate) struct File {
    directory: TempDir,
    clock: Arc<TestClock>,
    sequences: u64,
    /// Replicas of one host see their file go each for itself, and open a grace window each: a
    /// file that is lost has one way in here.
    is_lost_at_times: bool,
    ways: Vec<Vec<Arc<dyn Store>>>,
}

pub(super) fn version() -> &'static str {
    rusqlite::version()
}

impl File {
    pub(super) fn new() -> Self {
        // Nothing here has to survive a power cut, and a disk would take most of the time.
        let directory = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
        Self {
            directory: directory.expect("a temporary directory can be made"),
            clock: Arc::new(TestClock::default()),
            sequences: 0,
            is_lost_at_times: false,
            ways: Vec::new(),
        }
    }

    pub(super) fn habits(seed: u64) -> Habits {
        match Self::is_lost_at_times(seed) {
            true => Habits {
                troubles: vec![Trouble::Loss],
                crossing: false,
            },
            false => Habits {
                troubles: vec![Trouble::Restart],
                crossing: true,
            },
        }
    }

    fn is_lost_at_times(seed: u64) -> bool {
        seed.is_multiple_of(3)
    }

    fn path(&self) -> PathBuf {
        let number = self.sequences / SEQUENCES_OF_A_FILE;
        self.directory.path().join(format!("{number}.db"))
    }

    fn remove_file(&self) {
        let name = self.path().into_os_string();
        for ending in ["", "-wal", "-shm"] {
            let mut name = name.clone();
            name.push(ending);
            // A file that was never written has not all of them.
            let _ = std::fs::remove_file(name);
        }
    }

    fn name(&self, namespace: usize) -> String {
        format!("s{}.{namespace}", self.sequences)
    }

    pub(super) async fn empty(&mut self, seed: u64) {
        self.ways.clear();
        if (self.sequences + 1).is_multiple_of(SEQUENCES_OF_A_FILE) {
            self.remove_file();
        }
        self.sequences += 1;
        self.is_lost_at_times = Self::is_lost_at_times(seed);
        self.open().await;
    }

    async fn open(&mut self) {
        let width = match self.is_lost_at_times {
            true => 1,
            false => WAYS,
        };
        let path = self.path();
        let way = |name: &str| -> Arc<dyn Store> {
            let store = SqliteStore::open(&path, name, self.clock.clone());
            Arc::new(store.expect("a thread can be started"))
        };
        let names: Vec<String> = (0..NAMESPACES).map(|number| self.name(number)).collect();
        let ways = names
            .iter()
            .map(|name| (0..width).map(|_| way(name)).collect());
        self.ways = ways.collect();
        for store in self.ways.iter().flatten() {
            store.ready().await.expect("the file can be used");
        }
    }

    pub(super) fn clock(&self) -> Arc<TestClock> {
        self.clock.clone()
    }

    pub(super) fn set_clock(&self, now: Timestamp) {
        self.clock.set(now);
    }

    pub(super) fn ways(&self, namespace: usize) -> &[Arc<dyn Store>] {
        &self.ways[namespace]
    }

    pub(super) async fn suffer(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::Loss => self.remove_file(),
            Trouble::Restart | Trouble::FailOver => {
                self.ways.clear();
                self.open().await;
            }
        }
    }

    pub(super) fn raw(&self, namespace: usize) -> Raw {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let file = Connection::open_with_flags(self.path(), flags).expect("a file");
        let name = self.name(namespace);
        let mut raw = Raw::default();
        let sql = "SELECT name, agenda_ms, record FROM job WHERE namespace = ?1";
        let mut records = file.prepare(sql).expect("a table of jobs");
        let mut rows = records.query([&name]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let job: String = row.get(0).expect("a name");
            let agenda: Option<i64> = row.get(1).expect("a time");
            let text: String = row.get(2).expect("a text");
            raw.put(&job, agenda, &text);
            // Its index is the engine's own.
            raw.agenda.extend(agenda.map(|at| (job, at)));
        }
        let sql = "SELECT token, clock_us FROM epoch WHERE namespace = ?1";
        let marks = file.query_row(sql, [&name], |row| Ok((row.get(0)?, row.get(1)?)));
        let (token, clock_us): (i64, i64) = marks.unwrap_or_default();
        raw.marks = (token.unsigned_abs(), clock_us);
        raw
    }
}
