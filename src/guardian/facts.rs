//! What became of an attempt's first process, in facts that travel from keeper to daemon.
//! Leaves only; nothing here touches a process.

use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// How the job's first process ended, whoever caused it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// It exited by itself, with 0 to 255.
    Exited { code: i32 },
    /// A signal ended it, signal(7).
    Signaled { signal: i32, core_dumped: bool },
    /// A request came to its end: was answered as expected, or why that is not so.
    Answered { failure: Option<String> },
    /// It never ran: nothing of the job happened.
    NotStarted(SpawnError),
    /// It was told to stop before it was started.
    Withdrawn,
    /// It ran, and how it ended can't be known.
    Unknown { cause: String },
}

impl Exit {
    pub(super) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Exited { code },
            (None, Some(signal)) => Exit::Signaled {
                signal,
                core_dumped: status.core_dumped(),
            },
            // Neither stopping nor continuing was asked for, and there is nothing else.
            (None, None) => Exit::Unknown {
                cause: format!("wait status {:#x}", status.into_raw()),
            },
        }
    }
}

/// What a job's process says of itself before it is the job, or where it is no program.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Word {
    NotStarted(SpawnError),
    /// Its lease had run out before it began.
    TooLate,
    /// How a request failed.
    Failed(String),
}

/// Why an attempt was ended from outside, where it was. The first cause stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CutShort {
    /// Its time was up: the job's `timeout`.
    TimedOut { after: Duration },
    /// It was told to stop.
    Stopped,
    /// The keeper ended it as its lease was not renewed in time, and the daemon, frozen
    /// perhaps, did not see to it.
    LeaseExpired,
}

/// How much of a name or a reason is told, in bytes. A keeper doesn't wait for its daemon to
/// read, so what it tells has to fit its socket's buffer (some 200 KiB) however it is escaped.
const TEXT_LIMIT: usize = 8 * 1024;

/// What kept a job from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum SpawnErrorKind {
    /// No such program, or its interpreter is missing.
    ProgramNotFound,
    /// There is such a file, and it can't be executed.
    NotExecutable,
    /// `working_dir` is missing, not a directory or not to be entered.
    WorkingDir,
    /// `user` or `group` are unknown on this host, or not to be had.
    Identity,
    /// Arguments and environment are longer than the kernel takes (E2BIG).
    TooBig,
    /// This host is out of processes, memory or descriptors (EAGAIN, ENOMEM, EMFILE, ENFILE).
    Exhausted,
    /// Anything else.
    Other,
}

/// Why a job did not start: what was tried, why it failed, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("can't start `{program}`: {why}")]
pub(crate) struct SpawnError {
    pub(crate) kind: SpawnErrorKind,
    /// As the table names it.
    pub(crate) program: String,
    pub(crate) why: String,
}

impl SpawnError {
    #[cfg(feature = "daemon")]
    /// There is no such program, rather than one that can't be executed.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == SpawnErrorKind::ProgramNotFound
    }

    pub(crate) fn new(kind: SpawnErrorKind, program: &str, why: impl Into<String>) -> Self {
        let (mut program, mut why) = (program.to_owned(), why.into());
        for text in [&mut program, &mut why] {
            if text.len() > TEXT_LIMIT {
                text.truncate(text.floor_char_boundary(TEXT_LIMIT));
                text.push('…');
            }
        }
        Self { kind, program, why }
    }

    /// What the refusal to start `file` for `program` means, and what would help.
    pub(crate) fn explain(error: &io::Error, program: &str, file: &str) -> Self {
        use SpawnErrorKind::{Exhausted, NotExecutable, Other, ProgramNotFound, TooBig};
        let (kind, why) = match Errno::from_io_error(error) {
            Some(Errno::NOENT) => (
                ProgramNotFound,
                "is there, but what its first line (`#!…`) or its header names as interpreter is not",
            ),
            Some(Errno::NOEXEC) => (
                NotExecutable,
                "is not a program for this machine; a script needs a first line like `#!/bin/sh`",
            ),
            Some(Errno::ACCESS | Errno::PERM) => (
                NotExecutable,
                "or its interpreter can't be executed by this user: check modes and mount options",
            ),
            Some(Errno::TXTBSY) => (NotExecutable, "is being written to at this moment"),
            Some(Errno::TOOBIG) => (
                TooBig,
                "was given more arguments and environment than the kernel takes: pass a file instead",
            ),
            Some(Errno::AGAIN) => (
                Exhausted,
                "would be one process too many: raise TasksMax, the pids cgroup or `ulimit -u`",
            ),
            Some(Errno::NOMEM) => (Exhausted, "needs more memory than this host has left"),
            Some(Errno::MFILE) => (
                Exhausted,
                "needs descriptors, and this process is at its limit: raise LimitNOFILE or `ulimit -n`",
            ),
            Some(Errno::NFILE) => (
                Exhausted,
                "needs descriptors, and this host is at its limit: raise fs.file-max",
            ),
            _ => (Other, "can't be started"),
        };
        Self::new(kind, program, format!("`{file}` {why} ({error})"))
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Exited { code } => write!(f, "exited with code {code}"),
            Exit::Signaled {
                signal,
                core_dumped,
            } => {
                f.write_str("killed by ")?;
                match signal_name(*signal) {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "signal {signal}")?,
                }
                f.write_str(if *core_dumped { " (core dumped)" } else { "" })
            }
            Exit::Answered { failure: None } => f.write_str("answered as expected"),
            Exit::Answered {
                failure: Some(failure),
            } => f.write_str(failure),
            Exit::NotStarted(error) => error.fmt(f),
            Exit::Withdrawn => f.write_str("never started"),
            Exit::Unknown { cause } => write!(f, "ended in an unknown way: {cause}"),
        }
    }
}

/// Names of signals 1 to 31 on Linux (signal(7)); they are the same on x86, ARM, RISC-V,
/// POWER and s390, the platforms that Rust's std is shipped for.
fn signal_name(signal: i32) -> Option<&'static str> {
    #[rustfmt::skip]
    const NAMES: [&str; 31] = [
        "SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE",
        "SIGKILL", "SIGUSR1", "SIGSEGV", "SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM",
        "SIGSTKFLT", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU",
        "SIGURG", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO", "SIGPWR",
        "SIGSYS",
    ];
    usize::try_from(signal)
        .ok()?
        .checked_sub(1)
        .and_then(|index| NAMES.get(index))
        .copied()
}
