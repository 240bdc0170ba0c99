//! A shop for one test, with the program run as soloist runs it: by environment.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use postgres::{Client, NoTls};
use tempfile::TempDir;
use test_support::postgres::PostgresServer;

pub(crate) struct TestShop {
    engine: Engine,
    url: String,
}

enum Engine {
    Sqlite { _directory: TempDir },
    Postgres,
}

/// What a run printed, and its exit code.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl TestShop {
    pub(crate) fn on_sqlite() -> Self {
        let directory = TempDir::new().expect("a directory");
        let url = directory
            .path()
            .join("shop.db")
            .to_str()
            .expect("UTF-8")
            .to_owned();
        Self {
            engine: Engine::Sqlite {
                _directory: directory,
            },
            url,
        }
    }

    pub(crate) fn on_postgres() -> Self {
        Self {
            engine: Engine::Postgres,
            url: PostgresServer::shared().fresh_database(),
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self.engine, Engine::Postgres)
    }

    /// The program, in the environment of a run with this token, or of none.
    pub(crate) fn command(&self, token: Option<i64>, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_close-expired-orders"));
        command.args(arguments).env("DATABASE_URL", &self.url);
        for variable in ["JOB", "FENCING_TOKEN", "ATTEMPT", "RUN_ID"] {
            command.env_remove(format!("SOLOIST_{variable}"));
        }
        if let Some(token) = token {
            command
                .env("SOLOIST_JOB", "close-expired-orders")
                .env("SOLOIST_FENCING_TOKEN", token.to_string())
                .env("SOLOIST_ATTEMPT", "1")
                .env("SOLOIST_RUN_ID", format!("run-{token}"));
        }
        command
    }

    pub(crate) fn run(&self, token: Option<i64>, arguments: &[&str]) -> Ran {
        self.command(token, arguments)
            .output()
            .expect("the program starts")
            .into()
    }

    /// Closes all unpaid orders, however young.
    pub(crate) fn close(&self, token: i64) -> Ran {
        self.run(Some(token), &["--older-than", "0s"])
    }

    /// Starts the program with its output piped.
    pub(crate) fn spawn(&self, token: Option<i64>, arguments: &[&str]) -> Child {
        let mut command = self.command(token, arguments);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    /// Starts the program and returns once it has said `line` on standard error.
    pub(crate) fn spawn_until(&self, token: i64, arguments: &[&str], line: &str) -> Child {
        let mut child = self.spawn(Some(token), arguments);
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        while !said.contains(line) {
            let length = stderr.read_line(&mut said).expect("readable");
            assert_ne!(length, 0, "ended without saying {line:?}: {said}");
        }
        child.stderr = Some(stderr.into_inner());
        child
    }

    pub(crate) fn place_orders(&self, count: u32) {
        let ran = self.run(None, &["new-orders", "--count", &count.to_string()]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }

    #[track_caller]
    pub(crate) fn assert_sound(&self) {
        let ran = self.run(None, &["audit"]);
        assert!(
            ran.code == Some(0) && ran.stdout.starts_with("audit passed;"),
            "{ran:?}"
        );
    }

    #[track_caller]
    pub(crate) fn assert_damaged(&self, kind: &str) {
        let ran = self.run(None, &["audit"]);
        assert!(
            ran.code == Some(1) && ran.stdout.starts_with("audit FAILED"),
            "{ran:?}"
        );
        assert!(ran.stdout.contains(kind), "{ran:?}");
    }

    /// Everything that closing may change.
    pub(crate) fn contents(&self) -> Vec<i64> {
        [
            "SELECT CAST(sum(stock) AS bigint) FROM products",
            "SELECT count(*) FROM orders WHERE state = 'unpaid'",
            "SELECT count(*) FROM orders WHERE state = 'closed'",
            "SELECT count(*) FROM closings",
            "SELECT coalesce(max(token), 0) FROM fence",
        ]
        .map(|query| self.number(query))
        .to_vec()
    }

    pub(crate) fn orders(&self, state: &str) -> i64 {
        self.number(&format!(
            "SELECT count(*) FROM orders WHERE state = '{state}'"
        ))
    }

    pub(crate) fn number(&self, query: &str) -> i64 {
        match &self.engine {
            Engine::Sqlite { .. } => self
                .sqlite()
                .query_row(query, [], |row| row.get(0))
                .expect(query),
            Engine::Postgres => self.postgres().query_one(query, &[]).expect(query).get(0),
        }
    }

    /// Runs SQL behind the program's back.
    #[track_caller]
    pub(crate) fn execute(&self, sql: &str) {
        self.try_execute(sql).expect("the database accepts this");
    }

    pub(crate) fn try_execute(&self, sql: &str) -> Result<(), String> {
        match &self.engine {
            Engine::Sqlite { .. } => self
                .sqlite()
                .execute_batch(sql)
                .map_err(|error| error.to_string()),
            Engine::Postgres => self.postgres().batch_execute(sql).map_err(|error| {
                error
                    .as_db_error()
                    .map_or(error.to_string(), |error| error.message().to_owned())
            }),
        }
    }

    fn sqlite(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(&self.url).expect("a database")
    }

    fn postgres(&self) -> Client {
        Client::connect(&self.url, NoTls).expect("a server")
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Self {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Waits for the end, and returns what was printed.
pub(crate) fn finish(child: Child) -> Ran {
    child.wait_with_output().expect("the program ends").into()
}

/// `STOP` freezes a process as a paused host would; `CONT` thaws it.
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = Command::new("kill")
        .args([format!("-{name}"), child.id().to_string()])
        .status();
    assert!(kill.expect("kill starts").success());
}
