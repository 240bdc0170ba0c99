//! Ledgers that were lost, as they were at that very moment, and the one that is left.
//!
//! No line is between a copy and the loss: a server is paused and saves itself in one transaction before it is
//! killed, and keys are gone by a swap of databases, one of which is empty.
//!
//! Must never: give a server back what it lost.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::Value;
use test_support::account::{Occurrence, instant_s};
use test_support::fleet::{Fleet, SOON, now_ns};
use test_support::redis::RedisServer;

use crate::stage::json_on;

/// Nobody is served until this is over, or the server is killed. In milliseconds.
const PAUSE_MS: u32 = 10_000;

/// A Redis has 16 databases; the first is the fleet's.
const DATABASES: usize = 16;

const ALL_LINES: [&str; 4] = ["history", "-n", "100000", "--json"];

/// All that a ledger told, over its losses.
#[derive(Debug, Default)]
pub(crate) struct Ledgers {
    /// When data were lost.
    pub(crate) losses_ns: Vec<i128>,
    /// Each line of each ledger, once.
    pub(crate) lines: Vec<Value>,
    /// What waited for its turn when a ledger was lost.
    pub(crate) waited: Vec<Occurrence>,
    copies: Vec<PathBuf>,
    swaps: usize,
}

impl Ledgers {
    /// Kills a server without persistence. What it had is copied in the same moment.
    pub(crate) fn kill(&mut self, server: &mut RedisServer, fleet: &Fleet) {
        let saved = server.dir().join("dump.rdb");
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("a server");
        let request = format!("MULTI\r\nCLIENT PAUSE {PAUSE_MS} ALL\r\nBGSAVE\r\nEXEC\r\n");
        stream.write_all(request.as_bytes()).expect("a server");
        stream.set_read_timeout(Some(SOON)).expect("a time-out");
        let mut answers = BufReader::new(stream).lines().map_while(Result::ok);
        assert!(answers.any(|line| line.contains("Background saving")));
        let end = Instant::now() + SOON;
        while !saved.exists() {
            assert!(Instant::now() < end, "the server saved nothing");
            std::thread::sleep(Duration::from_millis(5));
        }
        server.kill();
        self.losses_ns.push(now_ns());
        let copies = fleet.dir().join(format!("lost-{}", self.copies.len()));
        std::fs::create_dir(&copies).expect("a directory");
        std::fs::copy(&saved, copies.join("dump.rdb")).expect("a copy");
        std::fs::remove_file(&saved).expect("nothing is left of it");
        self.copies.push(copies);
    }

    /// All keys are gone at once.
    pub(crate) fn flush(&mut self, server: &RedisServer, fleet: &Fleet) {
        self.swaps += 1;
        assert!(self.swaps < DATABASES, "no empty database is left");
        let other = self.swaps.to_string();
        assert_eq!(server.command(&["SWAPDB", "0", &other]), "OK");
        self.losses_ns.push(now_ns());
        let store = format!("{}/{other}", server.url());
        self.add_lost(fleet, &store);
    }

    /// Reads what is left, and the copies.
    pub(crate) fn close(&mut self, fleet: &Fleet) {
        for copy in std::mem::take(&mut self.copies) {
            let directory = copy.to_str().expect("a UTF-8 path");
            let server = RedisServer::options().argument("--dir", directory).start();
            self.add_lost(fleet, &server.url());
        }
        self.add(fleet.json(&ALL_LINES));
    }

    fn add_lost(&mut self, fleet: &Fleet, store: &str) {
        self.add(json_on(fleet, store, &ALL_LINES));
        let status = json_on(fleet, store, &["status", "--json"]);
        for job in status["jobs"].as_array().expect("jobs") {
            let name = job["name"].as_str().expect("a name");
            for one in job["waiting"].as_array().into_iter().flatten() {
                let at = one["scheduled_at"].as_str().expect("an instant");
                self.waited.push((name.to_owned(), instant_s(at)));
            }
        }
    }

    fn add(&mut self, lines: Value) {
        let lines = lines.as_array().expect("lines").iter();
        self.lines.extend(lines.cloned());
    }
}
