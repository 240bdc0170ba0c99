//! Several replicas: real processes of the real program, on one store.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use test_support::probe::{Run, probe, runs};

/// How long anything may take that ought to take no time.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A table, a store, and a place for what jobs and replicas write.
pub(crate) struct Fleet {
    dir: TempDir,
    store: String,
}

impl Fleet {
    /// A fleet on a store, with `jobs` as its table.
    pub(crate) fn new(store: impl Into<String>, jobs: &str) -> Self {
        let fleet = Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            store: store.into(),
        };
        fleet.set_table(jobs);
        fleet
    }

    /// Writes the table; `PROBE` in it becomes the probe and its log.
    pub(crate) fn set_table(&self, jobs: &str) {
        let (probe, log) = (probe().display().to_string(), self.probe_log());
        let command = format!("\"{probe}\", \"{}\"", log.display());
        let text = jobs.replace("PROBE", &command);
        std::fs::write(self.config(), text).expect("a table");
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.dir.path().join("jobs.toml")
    }

    fn probe_log(&self) -> PathBuf {
        self.dir.path().join("probe.log")
    }

    /// What the probes wrote.
    pub(crate) fn runs(&self) -> Vec<Run> {
        runs(&self.probe_log())
    }

    /// Waits until the probes' runs are as wanted.
    pub(crate) fn wait_for_runs<T>(
        &self,
        within: Duration,
        wanted: impl Fn(&[Run]) -> Option<T>,
    ) -> T {
        let end = Instant::now() + within;
        loop {
            let runs = self.runs();
            if let Some(found) = wanted(&runs) {
                return found;
            }
            assert!(Instant::now() < end, "not within {within:?}: {runs:#?}");
            // A file that others append to: there is nothing to wait on.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The program, told of table and store.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_soloist"));
        command
            .arg("--config")
            .arg(self.config())
            .args(["--store", &self.store])
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end; gives its code and what it printed.
    pub(crate) fn output(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().expect("a program to run");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// The answer of a command that is asked for JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let (code, stdout, stderr) = self.output(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// Starts a replica.
    pub(crate) fn start(&self, name: &str) -> Replica {
        self.start_with(name, |_| {})
    }

    /// Starts a replica in surroundings of its own.
    pub(crate) fn start_with(&self, name: &str, adjust: impl FnOnce(&mut Command)) -> Replica {
        let mut command = self.command(&["run", "--replica", name]);
        adjust(&mut command);
        Replica::start(command, name)
    }

    /// Starts a replica by way of another program, `unshare` and the like.
    pub(crate) fn start_by(&self, wrapper: &[&str], name: &str) -> Replica {
        let run = self.command(&["run", "--replica", name]);
        let mut command = Command::new(wrapper[0]);
        command
            .args(&wrapper[1..])
            .arg(run.get_program())
            .args(run.get_args())
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        Replica::start(command, name)
    }

    /// Starts `run-once`.
    pub(crate) fn run_once(&self, job: &str) -> Replica {
        Replica::start(self.command(&["run-once", job]), "run-once")
    }

    /// Starts replicas and waits until all of them are ready.
    pub(crate) fn start_ready<const N: usize>(&self, names: [&str; N]) -> [Replica; N] {
        let replicas = names.map(|name| self.start(name));
        for replica in &replicas {
            replica.wait_until_ready();
        }
        replicas
    }
}

/// One replica at work. Dropped, it is killed.
pub(crate) struct Replica {
    pub(crate) name: String,
    child: Child,
    log: Arc<Log>,
}

#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    grown: Condvar,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replica {
    fn start(mut command: Command, name: &str) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a replica to start");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let log = Arc::new(Log::default());
        let reader = Arc::clone(&log);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                reader.lock().push(line);
                reader.grown.notify_all();
            }
        });
        Self {
            name: name.to_owned(),
            child,
            log,
        }
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        self.log
            .lock()
            .iter()
            .fold(String::new(), |mut text, line| {
                let _ = writeln!(text, "{line}");
                text
            })
    }

    /// Waits for a line that has all of these in it.
    pub(crate) fn wait_for_line(&self, parts: &[&str]) -> String {
        let end = Instant::now() + SOON;
        let mut lines = self.log.lock();
        loop {
            let found = lines
                .iter()
                .find(|line| parts.iter().all(|part| line.contains(part)));
            if let Some(line) = found {
                return line.clone();
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "{}: no {parts:?} in:\n{}",
                self.name,
                lines.join("\n")
            );
            lines = self
                .log
                .grown
                .wait_timeout(lines, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    pub(crate) fn wait_until_ready(&self) {
        self.wait_for_line(&[" ready"]);
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a living process");
    }

    /// `kill -9`, and waits until it is gone.
    pub(crate) fn kill9(&mut self) {
        self.child.kill().expect("a living process");
        self.child.wait().expect("a dead process");
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self, within: Duration) -> ExitStatus {
        let end = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status;
            }
            assert!(
                Instant::now() < end,
                "{} goes on:\n{}",
                self.name,
                self.log()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// SIGTERM, and it has to end well.
    pub(crate) fn drain(&mut self) {
        self.signal(Signal::TERM);
        let status = self.wait(SOON);
        assert_eq!(status.code(), Some(0), "{}:\n{}", self.name, self.log());
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- {} logged:\n{}", self.name, self.log());
        }
    }
}

/// Now, in nanoseconds since the epoch.
pub(crate) fn now_ns() -> i128 {
    jiff::Timestamp::now().as_nanosecond()
}

/// An RFC 3339 instant in nanoseconds since the epoch.
pub(crate) fn instant_ns(text: &str) -> i128 {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    instant.as_nanosecond()
}

pub(crate) fn sleep_until_ns(at: i128) {
    let left = u64::try_from(at - now_ns()).unwrap_or(0);
    std::thread::sleep(Duration::from_nanos(left));
}
