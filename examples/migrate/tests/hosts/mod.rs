//! The program on several hosts, as far as one machine has them: processes that share a database
//! and the store of the leases.
//!
//! Must never: wait by sleeping for so long as should do.

use std::io::{BufRead, BufReader, Read, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use soloist::Leases;
use tempfile::TempDir;
use test_support::redis::{RedisServer, fresh_namespace};

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A database, and a fleet of its own in a Redis server.
pub(crate) struct Scene {
    pub(crate) namespace: String,
    dir: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self {
            namespace: fresh_namespace(),
            dir: TempDir::new().expect("a directory"),
        }
    }

    /// Starts the program on one more host.
    pub(crate) fn host(&self, arguments: &[&str]) -> Host {
        let mut child = Command::new(env!("CARGO_BIN_EXE_migrate"))
            .arg("--database")
            .arg(self.dir.path().join("shop.db"))
            .env("SOLOIST_STORE", RedisServer::shared().url())
            .env("SOLOIST_NAMESPACE", &self.namespace)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (said, lines) = mpsc::channel();
        hand_on(child.stdout.take().expect("a pipe"), said.clone());
        hand_on(child.stderr.take().expect("a pipe"), said);
        Host {
            keyboard: child.stdin.take().expect("a pipe"),
            child,
            lines,
            said: String::new(),
        }
    }

    /// A client of the leases, beside the program.
    pub(crate) async fn leases(&self) -> Leases {
        let url = RedisServer::shared().url();
        let leases = Leases::open(&url, &self.namespace).await;
        leases.expect("the store can be used")
    }

    fn connection(&self) -> rusqlite::Connection {
        let path = self.dir.path().join("shop.db");
        let connection = rusqlite::Connection::open(path).expect("a database");
        connection.busy_timeout(LONG).expect("it can be set");
        connection
    }

    pub(crate) fn number(&self, query: &str) -> i64 {
        let connection = self.connection();
        connection
            .query_row(query, [], |row| row.get(0))
            .expect(query)
    }

    pub(crate) fn execute(&self, sql: &str) {
        self.connection().execute_batch(sql).expect(sql);
    }

    /// Version and token of each step that was committed, in order.
    pub(crate) fn migrations(&self) -> Vec<(i64, i64)> {
        let connection = self.connection();
        let mut query = connection
            .prepare("SELECT version, token FROM migrations ORDER BY seq")
            .expect("a table");
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.expect("rows").map(|row| row.expect("a row")).collect()
    }

    /// Each step ran once, in order, with tokens that never fall; and did what it is for.
    pub(crate) fn assert_migrated_once(&self) {
        let migrations = self.migrations();
        let versions: Vec<i64> = migrations.iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, [1, 2, 3, 4, 5, 6], "{migrations:?}");
        assert!(migrations.is_sorted_by_key(|(_, token)| *token));
        let cents = "SELECT CAST(sum(price) AS INTEGER) FROM products";
        assert_eq!(self.number(cents), 2550 + 800 + 425, "twice would be more");
        assert_eq!(self.number("SELECT sum(quantity) FROM orders"), 4);
        assert_eq!(self.number("SELECT version FROM schema_version"), 6);
    }
}

fn hand_on(pipe: impl Read + Send + 'static, lines: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // A test that has ended wants to know no more.
            let _ = lines.send(line);
        }
    });
}

/// The program on one host.
pub(crate) struct Host {
    child: Child,
    keyboard: ChildStdin,
    lines: mpsc::Receiver<String>,
    said: String,
}

/// How a program ended, and all that it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

impl Host {
    /// Waits until it has said so.
    pub(crate) fn says(&mut self, what: &str) {
        while !self.said.contains(what) {
            let line = self.lines.recv_timeout(LONG);
            let line = line.unwrap_or_else(|_| panic!("no {what:?} was said:\n{}", self.said));
            self.said.push_str(&line);
            self.said.push('\n');
        }
    }

    /// Presses Enter so many times.
    pub(crate) fn enter(&mut self, times: usize) {
        let pressed = self.keyboard.write_all("\n".repeat(times).as_bytes());
        pressed.expect("it reads");
    }

    /// `STOP` freezes it as a paused host would; `CONT` lets it go on.
    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill")
            .args([format!("-{name}"), self.child.id().to_string()])
            .status();
        assert!(kill.expect("kill starts").success());
    }

    /// Waits for its end.
    pub(crate) fn ends(mut self) -> Ended {
        // Both pipes are closed at its end, and not before.
        loop {
            match self.lines.recv_timeout(LONG) {
                Ok(line) => {
                    self.said.push_str(&line);
                    self.said.push('\n');
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("it runs on:\n{}", self.said),
            }
        }
        let status = self.child.wait().expect("it has ended");
        Ended {
            code: status.code(),
            said: std::mem::take(&mut self.said),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It has mostly ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
