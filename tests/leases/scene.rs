//! `soloist lock` as a person runs it: where, against which store, and what came of it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use test_support::redis::{RedisServer, fresh_namespace};

use crate::LONG;

pub(crate) struct Scene {
    pub(crate) url: String,
    pub(crate) namespace: String,
    pub(crate) dir: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::of(RedisServer::shared())
    }

    pub(crate) fn of(server: &RedisServer) -> Self {
        Self {
            url: server.url(),
            namespace: fresh_namespace(),
            dir: tempfile::tempdir().expect("a directory"),
        }
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = hearing_signals(env!("CARGO_BIN_EXE_soloist"));
        command.args(["--store", &self.url, "--namespace", &self.namespace, "lock"]);
        command.args(words).current_dir(self.dir.path());
        command
            .env_remove("SOLOIST_LOCK")
            .env_remove("SOLOIST_LOCK_HOLDERS");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn runs(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("it can be run")
    }

    pub(crate) fn starts(&self, words: &[&str]) -> Child {
        self.command(words).spawn().expect("it can be run")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Waits until the list of leases has these words.
    pub(crate) fn lists(&self, words: &str) -> String {
        let begun = Instant::now();
        loop {
            let list = stdout(&self.runs(&["--list"]));
            if list.contains(words) {
                return list;
            }
            assert!(begun.elapsed() < LONG, "no `{words}` in\n{list}");
        }
    }

    /// Waits until a command has said so.
    pub(crate) fn waits_for(&self, name: &str) -> String {
        let begun = Instant::now();
        loop {
            match fs::read_to_string(self.file(name)) {
                Ok(text) if text.ends_with('\n') => return text,
                _ if begun.elapsed() > LONG => panic!("{name} was never written"),
                _ => sleep(Duration::from_millis(5)),
            }
        }
    }
}

/// A program with no signal ignored, also where the tests themselves run in the background of a script,
/// which has SIGINT and SIGQUIT ignored for all that is started there.
pub(crate) fn hearing_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", program]);
    command
}

/// The next line that it writes to stderr, and no byte more.
pub(crate) fn first_line(child: &mut Child) -> String {
    let stderr = child.stderr.as_mut().expect("a pipe");
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(1, stderr);
    reader.read_line(&mut line).expect("it can be read");
    line
}

pub(crate) fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn pid(text: &str) -> Pid {
    Pid::from_raw(text.trim().parse().expect("a process id")).expect("not zero")
}

pub(crate) fn is_alive(pid: Pid) -> bool {
    test_support::process::Process::of(pid.as_raw_nonzero().get()).is_some_and(|one| one.is_alive())
}

pub(crate) fn ends(mut child: Child) -> Output {
    let begun = Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        assert!(begun.elapsed() < LONG, "it runs on");
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it has ended")
}

/// Sends it a signal, as kill(1) does.
pub(crate) fn signals(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("it runs");
}
