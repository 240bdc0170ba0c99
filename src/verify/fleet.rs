//! The replicas of a self-test: real processes of this very program, and what is done to them.
//!
//! Each asks the kernel to die with this process, and nobody else knows of them. What outlives a
//! replica for a moment, its guardian and keepers, becomes a child of this process, so that at
//! the end it can be told that nobody is left.
//!
//! Must never: signal a process that is not its own child, or of one.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, wait};

use super::part::WORD;
use super::relay::Relay;
use crate::guardian;

/// What has a meaning for replicas, and was said to this process.
const FOR_OTHERS: [&str; 4] = ["RUST_LOG", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// How long those that were killed may take to be gone.
const KILLED: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);

/// What every replica is started with.
pub(super) struct Start<'s> {
    pub(super) program: &'s Path,
    pub(super) dir: &'s Path,
    pub(super) namespace: &'s str,
}

/// One replica, alive or not.
pub(super) struct Member {
    pub(super) name: String,
    /// By which it reaches the store; it may hold a password.
    url: String,
    pub(super) relay: Option<Relay>,
    child: Option<Child>,
}

/// All of them.
pub(super) struct Fleet<'s> {
    start: Start<'s>,
    pub(super) members: Vec<Member>,
}

impl Member {
    pub(super) fn new(number: usize, url: String, relay: Option<Relay>) -> Self {
        Self {
            name: format!("verify-{}", number + 1),
            url,
            relay,
            child: None,
        }
    }
}

impl<'s> Fleet<'s> {
    /// Nobody is started yet.
    pub(super) fn new(start: Start<'s>, members: Vec<Member>) -> io::Result<Self> {
        set_child_subreaper(Some(getpid()))?;
        Ok(Self { start, members })
    }

    /// Starts one that is not there. To be called on the process's first thread: with the thread
    /// that started it a replica dies, too.
    pub(super) fn start(&mut self, at: usize) -> io::Result<()> {
        self.end(at)?;
        let member = &mut self.members[at];
        let mut command = Command::new(self.start.program);
        command
            .args([WORD, "replica", &getpid().as_raw_pid().to_string()])
            .args(["run", "--namespace", self.start.namespace])
            .args(["--replica", &member.name, "--listen", "off", "--config"])
            .arg(self.start.dir.join("jobs.toml"));
        for (name, _) in std::env::vars_os() {
            let is_ours = name
                .to_str()
                .is_some_and(|name| name.starts_with("SOLOIST_") || FOR_OTHERS.contains(&name));
            if is_ours {
                command.env_remove(name);
            }
        }
        // In the environment, which other users can't read, and not on the command line.
        command.env("SOLOIST_STORE", &member.url);
        command
            .current_dir(self.start.dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log(self.start.dir, &member.name)?)
            // Ctrl-C is for this process, which ends them in its own way.
            .process_group(0);
        member.child = Some(command.spawn()?);
        Ok(())
    }

    /// Sends a signal to one that was started.
    pub(super) fn signal(&self, at: usize, signal: Signal) {
        if let Some(child) = &self.members[at].child {
            // One that has ended is our zombie: its number is nobody else's.
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// `kill -9`, and nothing of it is left.
    pub(super) fn end(&mut self, at: usize) -> io::Result<()> {
        self.signal(at, Signal::KILL);
        if let Some(mut child) = self.members[at].child.take() {
            child.wait()?;
        }
        Ok(())
    }

    /// `kill -9` of the guardian; whether there was one.
    pub(super) fn kill_guardian(&self, at: usize) -> bool {
        let child = self.members[at].child.as_ref();
        child.is_some_and(|child| guardian::kill_guardians_of(Pid::from_child(child)) > 0)
    }

    /// The first that has ended without being told to, and how.
    pub(super) fn deserter(&mut self) -> Option<(String, String)> {
        for member in &mut self.members {
            let Some(child) = &mut member.child else {
                continue;
            };
            if let Ok(Some(status)) = child.try_wait() {
                return Some((member.name.clone(), status.to_string()));
            }
        }
        None
    }

    /// How one has ended, if it has.
    pub(super) fn end_of(&mut self, at: usize) -> Option<String> {
        let child = self.members[at].child.as_mut()?;
        child.try_wait().ok()?.map(|status| status.to_string())
    }

    /// Whether one that was told to end has ended.
    pub(super) fn has_ended(&mut self, at: usize) -> bool {
        let child = self.members[at].child.as_mut();
        child.is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    /// Lets all that were stopped go on, and all links be open.
    pub(super) fn mend_all(&self) {
        for (at, member) in self.members.iter().enumerate() {
            self.signal(at, Signal::CONT);
            if let Some(relay) = &member.relay {
                relay.set_open(true);
            }
        }
    }

    /// Kills all of them, and waits until nobody is left of what they started; whether that is so.
    pub(super) async fn end_all(&mut self) -> bool {
        for at in 0..self.members.len() {
            self.signal(at, Signal::KILL);
        }
        for at in 0..self.members.len() {
            // Waiting for one that was killed takes no time worth mentioning.
            let _ = self.end(at);
        }
        let rounds = KILLED.as_millis() / POLL.as_millis();
        for round in 0..rounds {
            match reap() {
                Reaped::Nobody => return true,
                // Guardians see to their end themselves; who doesn't is helped.
                Reaped::SomeLive if round == rounds / 2 => kill_children(),
                Reaped::SomeLive => {}
            }
            tokio::time::sleep(POLL).await;
        }
        false
    }

    /// The last lines that a replica logged.
    pub(super) fn last_lines(&self, name: &str, count: usize) -> String {
        let text = fs::read_to_string(log_path(self.start.dir, name)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(count)..].join("\n")
    }
}

enum Reaped {
    Nobody,
    SomeLive,
}

/// Takes in what has ended. All that this process waits for by name was waited for before.
fn reap() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => {}
            Ok(None) => return Reaped::SomeLive,
            Err(_) => return Reaped::Nobody,
        }
    }
}

fn kill_children() {
    for child in guardian::children() {
        let _ = kill_process(child, Signal::KILL);
    }
}

fn log_path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.stderr"))
}

fn log(dir: &Path, name: &str) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    options.open(log_path(dir, name))
}
