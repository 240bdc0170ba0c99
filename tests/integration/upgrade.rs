//! Two versions at one ledger, as while a fleet is updated: whoever finds it in another's layout
//! leaves it alone, says why, and goes on once it is its own again.

use rusqlite::Connection;
use tempfile::TempDir;
use test_support::probe::Run;
use test_support::redis::RedisServer;

use crate::fleet::{Fleet, SOON};
use crate::together;

const TABLE: &str = r#"
[scheduler]
shutdown_grace = "1s"

[defaults]
lease_ttl = "2s"
kill_grace = "200ms"

[jobs.long]
schedule = "* * * * * *"
command = [PROBE, "60000"]

[jobs.tick]
schedule = "* * * * * *"
command = [PROBE, "1"]
"#;

/// The layout of this version, in either store.
const OURS: &str = "2";

const NAMESPACE: &str = "default";

/// A store whose ledger a test can hand to another version.
enum Stage {
    Redis(RedisServer),
    Sqlite(TempDir),
}

impl Stage {
    fn fleet(&self) -> Fleet {
        match self {
            Stage::Redis(server) => Fleet::new(server.url(), TABLE),
            Stage::Sqlite(_) => Fleet::new(format!("sqlite:{}", self.path()), TABLE),
        }
    }

    fn path(&self) -> String {
        match self {
            Stage::Sqlite(dir) => dir.path().join("soloist.db").display().to_string(),
            Stage::Redis(_) => unreachable!("it is no file"),
        }
    }

    fn file(&self) -> Connection {
        let file = Connection::open(self.path()).expect("a file");
        file.busy_timeout(SOON).expect("a limit");
        file
    }

    fn set_layout(&self, layout: &str) {
        match self {
            Stage::Redis(server) => {
                server.command(&["HSET", &jobs_key(), "#layout", layout]);
            }
            Stage::Sqlite(_) => {
                let layout: i32 = layout.parse().expect("a number");
                let set = self.file().pragma_update(None, "user_version", layout);
                set.expect("a writable file");
            }
        }
    }

    /// All that the ledger holds.
    fn contents(&self) -> String {
        match self {
            Stage::Redis(server) => {
                let keys = server.command(&["KEYS", "*"]);
                let mut keys: Vec<&str> = keys.lines().collect();
                keys.sort_unstable();
                let dumps = keys.iter().map(|key| server.command(&["DUMP", key]));
                format!("{keys:?} {:?}", dumps.collect::<Vec<_>>())
            }
            Stage::Sqlite(_) => {
                let of_table = |table: &str| {
                    let sql = format!("SELECT * FROM {table}");
                    let file = self.file();
                    let mut rows = file.prepare(&sql).expect("a table");
                    let columns = rows.column_count();
                    let row = |row: &rusqlite::Row<'_>| {
                        let value = |at| row.get::<_, rusqlite::types::Value>(at);
                        (0..columns).map(value).collect::<Result<Vec<_>, _>>()
                    };
                    let rows = rows.query_map([], row).expect("rows");
                    format!("{:?}", rows.collect::<Result<Vec<_>, _>>())
                };
                let tables = ["epoch", "job", "attempt", "replica"];
                format!("{:?}", tables.map(of_table))
            }
        }
    }
}

fn jobs_key() -> String {
    format!("soloist:{{{NAMESPACE}}}:jobs")
}

fn of_long(runs: &[Run]) -> Vec<&Run> {
    runs.iter().filter(|run| run.job == "long").collect()
}

/// A running job is ended before its lease is over, a replica that comes waits, neither writes
/// anything, and both work on when the ledger is theirs again.
fn wait_while_the_ledger_is_anothers(stage: &Stage, layout: &str, cure: &str) {
    let fleet = stage.fleet();
    let mut a = fleet.start("a");
    fleet.wait_for_runs(SOON, |runs| (!of_long(runs).is_empty()).then_some(()));
    stage.set_layout(layout);
    let before = stage.contents();
    let why = a.wait_for_line(&["ERROR", "the store is away", "layout"]);
    assert!(why.contains(cure), "{why}");
    a.wait_for_line(&["stopping the attempt", "job=long", "could not be renewed"]);
    let mut b = fleet.start("b");
    let why = b.wait_for_line(&["WARN", "layout", "trying again"]);
    assert!(why.contains(cure), "{why}");
    let (code, _, stderr) = fleet.output(&["status"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains(cure), "{stderr}");
    let (code, _, stderr) = fleet.output(&["run", "--require-store"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert_eq!(stage.contents(), before, "nothing of it was touched");
    let started = fleet.runs().len();

    stage.set_layout(OURS);
    a.wait_for_line(&["the store is back"]);
    b.wait_until_ready();
    fleet.wait_for_runs(SOON, |runs| {
        let again = runs.len() > started && of_long(runs).len() > 1;
        again.then_some(())
    });
    for replica in [&mut a, &mut b] {
        replica.drain();
    }
    for pair in of_long(&fleet.runs()).windows(2) {
        assert!(pair[0].token < pair[1].token, "{pair:?}");
        assert_eq!(pair[0].ended_ns, None, "it was stopped: {pair:?}");
    }
}

#[test]
fn replicas_wait_while_a_newer_version_keeps_the_ledger() {
    let _machine = together();
    let stage = Stage::Redis(RedisServer::start());
    wait_while_the_ledger_is_anothers(&stage, "3", "upgrade this one");
}

#[test]
fn replicas_wait_while_an_older_version_keeps_the_ledger() {
    let _machine = together();
    let stage = Stage::Redis(RedisServer::start());
    wait_while_the_ledger_is_anothers(&stage, "1", "stop all replicas of that version");
}

#[test]
fn replicas_wait_while_a_newer_version_keeps_the_file() {
    let _machine = together();
    let stage = Stage::Sqlite(TempDir::new().expect("a directory"));
    wait_while_the_ledger_is_anothers(&stage, "3", "run the newer soloist");
}

#[test]
fn replicas_wait_while_a_record_has_a_field_of_a_newer_version() {
    let _machine = together();
    let server = RedisServer::start();
    let fleet = Fleet::new(server.url(), TABLE);
    let mut a = fleet.start("a");
    fleet.wait_for_runs(SOON, |runs| (!of_long(runs).is_empty()).then_some(()));
    // As a server does it, so that no renewal comes in between.
    let swap = |from: &str, to: &str| {
        let script = "local old = redis.call('HGET', KEYS[1], 'long') \
             local at, past = string.find(old, ARGV[1], 1, true) \
             local new = string.sub(old, 1, at - 1) .. ARGV[2] .. string.sub(old, past + 1) \
             redis.call('HSET', KEYS[1], 'long', new) return new";
        server.command(&["EVAL", script, "1", &jobs_key(), from, to])
    };
    let newer = swap("{", "{\"future\":1,");
    let why = a.wait_for_line(&["ERROR", "the store is away", "the record of long"]);
    assert!(why.contains("upgrade this one"), "{why}");
    a.wait_for_line(&["stopping the attempt", "job=long"]);
    let left = server.command(&["HGET", &jobs_key(), "long"]);
    assert_eq!(left, newer, "it is left as it is");
    swap("\"future\":1,", "");
    a.wait_for_line(&["the store is back"]);
    fleet.wait_for_runs(SOON, |runs| (of_long(runs).len() > 1).then_some(()));
    a.drain();
}
