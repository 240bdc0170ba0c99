//! Several replicas: real processes of the real program, on one store.
//!
//! The program is the one that cargo built for the test that asks; a test crate of another
//! package has none.

mod replica;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use tempfile::TempDir;

pub use self::replica::Replica;

use crate::cgroup::Cgroup;
use crate::family::{Member, family, members};
use crate::probe::{Run, probe, runs};

/// How long anything may take that ought to take no time.
pub const SOON: Duration = Duration::from_secs(20);

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
        in_text(self.run_to_its_end(arguments))
    }

    fn run_to_its_end(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("a program to run")
    }

    /// Runs a command that only looks, to its end, and again for a while where the store gave it no
    /// answer: a command has less patience than a test.
    ///
    /// # Panics
    ///
    /// When the program can't be run.
    #[must_use]
    pub fn look(&self, arguments: &[&str]) -> Output {
        const STORE_UNREACHABLE: Option<i32> = Some(3);
        let end = Instant::now() + SOON;
        loop {
            let output = self.run_to_its_end(arguments);
            if output.status.code() != STORE_UNREACHABLE || Instant::now() > end {
                return output;
            }
        }
    }

    /// The answer of a command that is asked for JSON. What only looks is asked again where the store
    /// gave it no answer.
    ///
    /// # Panics
    ///
    /// When it is none.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let only_looks = ["status", "history", "why"].contains(&arguments[0]);
        let (code, stdout, stderr) = match only_looks {
            true => in_text(self.look(arguments)),
            false => self.output(arguments),
        };
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

fn in_text(output: Output) -> (Option<i32>, String, String) {
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|stream| String::from_utf8_lossy(&stream).into_owned());
    (output.status.code(), stdout, stderr)
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
