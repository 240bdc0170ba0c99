//! Several replicas: real processes of the real program, on one store.
//!
//! The program is the one that cargo built for the test that asks; a test crate of another
//! package has none.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::cgroup::Cgroup;
use crate::family::{Member, family, members};
use crate::probe::{Run, probe, runs};
use crate::process::Process;

/// How long anything may take that ought to take no time.
pub const SOON: Duration = Duration::from_secs(20);

/// How much of a log a message shows.
const SHOWN_LINES: usize = 100;

/// A table, a store, and a place for what jobs and replicas write.
#[derive(Debug)]
pub struct Fleet {
    dir: TempDir,
    store: String,
    cgroup: Option<Cgroup>,
}

impl Fleet {
    /// A fleet on a store, with `jobs` as its table.
    ///
    /// # Panics
    ///
    /// When there is no place for its files.
    pub fn new(store: impl Into<String>, jobs: &str) -> Self {
        let fleet = Self {
            dir: tempfile::tempdir().expect("a temporary directory"),
            store: store.into(),
            cgroup: None,
        };
        fleet.set_table(jobs);
        fleet
    }

    /// Has all that is started from now on in a cgroup.
    #[must_use]
    pub fn within(mut self, cgroup: Option<Cgroup>) -> Self {
        self.cgroup = cgroup;
        self
    }

    /// Where all is started, if not where the test is.
    #[must_use]
    pub fn cgroup(&self) -> Option<&Cgroup> {
        self.cgroup.as_ref()
    }

    /// Writes the table; `PROBE` and `FAMILY` in it become the probe and the family, each with
    /// its log.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    pub fn set_table(&self, jobs: &str) {
        std::fs::write(self.config(), self.filled_in(jobs)).expect("a table");
    }

    /// The same in one go: nobody reads half of it.
    ///
    /// # Panics
    ///
    /// When it can't be written.
    pub fn replace_table(&self, jobs: &str) {
        let beside = self.dir.path().join("jobs.toml.new");
        std::fs::write(&beside, self.filled_in(jobs)).expect("a table");
        std::fs::rename(beside, self.config()).expect("a table");
    }

    fn filled_in(&self, jobs: &str) -> String {
        let with_log = |program: &Path, log: PathBuf| {
            format!("\"{}\", \"{}\"", program.display(), log.display())
        };
        let mut text = jobs.to_owned();
        if text.contains("PROBE") {
            text = text.replace("PROBE", &with_log(probe(), self.probe_log()));
        }
        if text.contains("FAMILY") {
            text = text.replace("FAMILY", &with_log(family(), self.family_log()));
        }
        text
    }

    /// A place for files, gone with the fleet.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The table.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.dir.path().join("jobs.toml")
    }

    /// Where probes write.
    #[must_use]
    pub fn probe_log(&self) -> PathBuf {
        self.dir.path().join("probe.log")
    }

    /// Where families write.
    #[must_use]
    pub fn family_log(&self) -> PathBuf {
        self.dir.path().join("family.log")
    }

    /// The members of families that came to life so far.
    #[must_use]
    pub fn members(&self) -> Vec<Member> {
        members(&self.family_log())
    }

    /// Waits until the families' members are as wanted.
    ///
    /// # Panics
    ///
    /// When they are not in time.
    pub fn wait_for_members<T>(
        &self,
        within: Duration,
        wanted: impl Fn(&[Member]) -> Option<T>,
    ) -> T {
        let end = Instant::now() + within;
        loop {
            let members = self.members();
            if let Some(found) = wanted(&members) {
                return found;
            }
            let lines = std::fs::read_to_string(self.family_log()).unwrap_or_default();
            assert!(Instant::now() < end, "not within {within:?}:\n{lines}");
            // A file that others append to: there is nothing to wait on.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// What the probes wrote.
    #[must_use]
    pub fn runs(&self) -> Vec<Run> {
        runs(&self.probe_log())
    }

    /// Waits until the probes' runs are as wanted.
    ///
    /// # Panics
    ///
    /// When they are not in time.
    pub fn wait_for_runs<T>(&self, within: Duration, wanted: impl Fn(&[Run]) -> Option<T>) -> T {
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
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_on(&self.store, arguments)
    }

    /// The same, told of another store.
    #[must_use]
    pub fn command_on(&self, store: &str, arguments: &[&str]) -> Command {
        let mut command = match &self.cgroup {
            None => Command::new(program()),
            Some(cgroup) => {
                let mut shell = Command::new("sh");
                shell
                    .args(["-c", "echo 0 > \"$0\" && exec \"$@\""])
                    .args([cgroup.door(), program()]);
                shell
            }
        };
        command
            .arg("--config")
            .arg(self.config())
            .args(["--store", store])
            .args(arguments)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end; gives its code and what it printed.
    ///
    /// # Panics
    ///
    /// When the program can't be run.
    #[must_use]
    pub fn output(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().expect("a program to run");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }

    /// The answer of a command that is asked for JSON.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let (code, stdout, stderr) = self.output(arguments);
        assert_eq!(code, Some(0), "{arguments:?}: {stderr}");
        serde_json::from_str(&stdout).expect("JSON")
    }

    /// Starts a replica.
    #[must_use]
    pub fn start(&self, name: &str) -> Replica {
        self.start_with(name, |_| {})
    }

    /// Starts a replica in surroundings of its own.
    #[must_use]
    pub fn start_with(&self, name: &str, adjust: impl FnOnce(&mut Command)) -> Replica {
        let mut command = self.command(&["run", "--replica", name]);
        adjust(&mut command);
        Replica::start(command, name)
    }

    /// Starts a replica that reaches the store elsewhere.
    #[must_use]
    pub fn start_on(&self, store: &str, name: &str) -> Replica {
        let command = self.command_on(store, &["run", "--replica", name]);
        Replica::start(command, name)
    }

    /// Starts a replica by way of another program, `unshare` and the like.
    #[must_use]
    pub fn start_by(&self, wrapper: &[&str], name: &str) -> Replica {
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
    #[must_use]
    pub fn run_once(&self, job: &str) -> Replica {
        Replica::start(self.command(&["run-once", job]), "run-once")
    }

    /// Starts replicas and waits until all of them are ready.
    #[must_use]
    pub fn start_ready<const N: usize>(&self, names: [&str; N]) -> [Replica; N] {
        let replicas = names.map(|name| self.start(name));
        for replica in &replicas {
            replica.wait_until_ready();
        }
        replicas
    }
}

impl Drop for Fleet {
    /// What a replica should have ended and didn't is ended here: no test leaves processes.
    fn drop(&mut self) {
        for member in self.members() {
            member.process.signal(Signal::KILL);
        }
    }
}

/// One replica at work. Dropped, it is killed.
#[derive(Debug)]
pub struct Replica {
    /// What it is called.
    pub name: String,
    child: Child,
    log: Arc<Log>,
}

#[derive(Debug, Default)]
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
    /// Starts what a command says as a replica, and reads what it logs.
    ///
    /// # Panics
    ///
    /// When it can't be started.
    #[must_use]
    pub fn start(mut command: Command, name: &str) -> Self {
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
    #[must_use]
    pub fn log(&self) -> String {
        self.log
            .lock()
            .iter()
            .fold(String::new(), |mut text, line| {
                let _ = writeln!(text, "{line}");
                text
            })
    }

    /// What it logged last, for a message: without what jobs printed, which may be a flood.
    #[must_use]
    pub fn tail(&self) -> String {
        let lines = self.log.lock();
        let own = lines.iter().filter(|line| !line.contains(" stream=\""));
        let own: Vec<&str> = own.map(String::as_str).collect();
        own[own.len().saturating_sub(SHOWN_LINES)..].join("\n")
    }

    /// How many lines of what it logged have this in them.
    #[must_use]
    pub fn lines_with(&self, part: &str) -> usize {
        let lines = self.log.lock();
        lines.iter().filter(|line| line.contains(part)).count()
    }

    /// Waits for a line that has all of these in it.
    ///
    /// # Panics
    ///
    /// When none comes soon.
    pub fn wait_for_line(&self, parts: &[&str]) -> String {
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

    /// Waits until it says that it is.
    pub fn wait_until_ready(&self) {
        self.wait_for_line(&[" ready"]);
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The process.
    ///
    /// # Panics
    ///
    /// When it was waited for.
    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(self.pid().as_raw_pid()).expect("a process that was not waited for")
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a living process");
    }

    /// `kill -9`, and waits until it is gone.
    ///
    /// # Panics
    ///
    /// When it was gone before.
    pub fn kill9(&mut self) {
        self.child.kill().expect("a living process");
        self.child.wait().expect("a dead process");
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// When it doesn't end in time.
    pub fn wait(&mut self, within: Duration) -> ExitStatus {
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
    ///
    /// # Panics
    ///
    /// When it doesn't.
    pub fn drain(&mut self) {
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
            eprintln!("--- {} logged:\n{}", self.name, self.tail());
        }
    }
}

/// The program under test: cargo puts it beside the tests' own directory.
fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test program");
    let built = test.parent().and_then(Path::parent).expect("two levels");
    let program = built.join("soloist");
    assert!(program.exists(), "cargo built no {}", program.display());
    program
}

/// Now, in nanoseconds since the epoch.
///
/// # Panics
///
/// When the clock is before 1970.
#[must_use]
pub fn now_ns() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i128::try_from(since.expect("a clock past 1970").as_nanos()).expect("a near date")
}
