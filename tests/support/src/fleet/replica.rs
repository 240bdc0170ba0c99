//! One replica of a fleet: its process, and what it logs.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::SOON;
use crate::process::Process;

/// How much of a log a message shows.
const SHOWN_LINES: usize = 100;

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
