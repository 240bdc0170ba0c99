//! A store, and a table with a job that succeeds when a file is there.

use test_support::fleet::Fleet;
use test_support::redis::RedisServer;

/// The secret that webhooks are signed with.
pub(crate) const SECRET: &str = "whsec_bm9ib2R5LWtub3dzLXRoaXMtc2VjcmV0LXlldA==";

/// A fleet on a Redis of its own.
pub(crate) struct Scene {
    pub(crate) fleet: Fleet,
    _server: RedisServer,
}

impl Scene {
    /// In `table`, `DIR` is a place for files.
    pub(crate) fn new(table: &str) -> Self {
        let server = RedisServer::start();
        let fleet = Fleet::new(server.url(), "");
        let dir = fleet.dir().display().to_string();
        fleet.set_table(&table.replace("DIR", &dir));
        Self {
            fleet,
            _server: server,
        }
    }

    /// Has a job succeed from now on that looks for this file, or fail.
    pub(crate) fn set(&self, file: &str, there: bool) {
        let path = self.fleet.dir().join(file);
        match there {
            true => std::fs::write(path, "").expect("a file"),
            false => std::fs::remove_file(path).expect("a file"),
        }
    }

    pub(crate) fn trigger(&self, job: &str) {
        let (code, _, why) = self.fleet.output(&["trigger", job]);
        assert_eq!(code, Some(0), "{why}");
    }
}
