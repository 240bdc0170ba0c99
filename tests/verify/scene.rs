//! The command in a place of its own, and a look at what it left.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use test_support::process::Process;
use test_support::redis::RedisServer;

/// Longer than any of these tests of it takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place in which the command makes its directory.
pub(crate) struct Place(TempDir);

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// `soloist verify` on that store, with nothing of the caller's environment.
    pub(crate) fn command(&self, store: &str, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command
            .args(["verify", "--store", store])
            .args(words)
            .env_clear()
            .env("TMPDIR", self.path())
            .current_dir(self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, store: &str, words: &[&str]) -> Ended {
        let output = self.command(store, words).output();
        Ended::from(output.expect("the command runs"))
    }

    pub(crate) fn start(&self, store: &str, words: &[&str]) -> Started {
        let child = self.command(store, words).spawn();
        Started(child.expect("the command runs"))
    }

    /// The names of what is in it.
    pub(crate) fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        names
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }

    /// The processes that were started for this place: they have it on their command line, or
    /// their working directory in it.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let mark = self.path().to_str().expect("UTF-8");
        let is_of_it = |process: &Process| {
            let proc = Path::new("/proc").join(process.pid.to_string());
            let line = fs::read(proc.join("cmdline")).unwrap_or_default();
            let dir = fs::read_link(proc.join("cwd")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark) || dir.starts_with(self.path())
        };
        let mut all = Process::all();
        all.retain(|process| process.is_alive() && is_of_it(process));
        all
    }

    /// Waits for so many processes of it at least.
    pub(crate) fn wait_for_processes(&self, count: usize) -> Vec<Process> {
        self.wait(|all| all.len() >= count)
    }

    /// Waits until jobs have written down so many lines more.
    pub(crate) fn wait_for_lines(&self, count: usize) {
        let is_log = |path: &Path| path.extension().is_some_and(|kind| kind == "log");
        let lines = || -> usize {
            let dirs = self.files().into_iter().map(|name| self.path().join(name));
            let files = dirs
                .filter_map(|dir| fs::read_dir(dir).ok())
                .flatten()
                .flatten();
            let logs = files.map(|entry| entry.path()).filter(|path| is_log(path));
            logs.map(|path| fs::read_to_string(path).unwrap_or_default().lines().count())
                .sum()
        };
        let before = lines();
        self.wait(|_| lines() >= before + count);
    }

    /// Waits until nobody is left of it.
    pub(crate) fn wait_until_empty(&self) {
        self.wait(<[Process]>::is_empty);
    }

    fn wait(&self, wanted: impl Fn(&[Process]) -> bool) -> Vec<Process> {
        let end = Instant::now() + PATIENCE;
        loop {
            let all = self.processes();
            if wanted(&all) {
                return all;
            }
            assert!(Instant::now() < end, "{} processes", all.len());
            // There is nothing to wait on: the processes are not ours.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// One that runs.
pub(crate) struct Started(Child);

impl Started {
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("a living process");
    }

    pub(crate) fn wait(self) -> Ended {
        Ended::from(self.0.wait_with_output().expect("it ends"))
    }
}

/// Everything that a server has, by key.
pub(crate) fn dump(server: &RedisServer) -> Vec<(String, String)> {
    let keys = server.command(&["KEYS", "*"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    let value = |key: &str| match server.command(&["TYPE", key]).as_str() {
        "string" => server.command(&["GET", key]),
        "hash" => server.command(&["HGETALL", key]),
        other => panic!("{key} is a {other}: the tests make none"),
    };
    let pairs = keys.into_iter().map(|key| (key.to_owned(), value(key)));
    pairs.collect()
}

/// A server with somebody's data in it, some of which look like ours.
pub(crate) fn server_with_data() -> RedisServer {
    let server = RedisServer::start();
    server.command(&["SET", "mine", "1"]);
    server.command(&["SET", "soloist-verify-mine", "2"]);
    server.command(&["HSET", "soloist:{shop}:jobs", "a", "b"]);
    server
}
