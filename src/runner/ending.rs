//! What became of an attempt: the facts ([`Exit`], [`CutShort`]), and the [`Ending`] that the
//! scheduler is told. Leaves only; nothing here touches a process.

use std::fmt;
use std::time::Duration;

use crate::scheduler::lease::{AttemptDetail, Output};
use crate::scheduler::{EndedHow, Ending};

/// How the job's first process ended, whoever caused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// It exited by itself, with 0 to 255.
    Exited { code: i32 },
    /// A signal ended it, signal(7).
    Signaled { signal: i32, core_dumped: bool },
    /// It never ran: nothing of the job happened.
    NotStarted(SpawnError),
    /// It was told to stop before it was started.
    Withdrawn,
    /// It ran, and how it ended can't be known.
    Unknown { cause: String },
}

/// Why an attempt was ended from outside, where it was. The first cause stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutShort {
    /// Its time was up: the job's `timeout`.
    TimedOut { after: Duration },
    /// It was told to stop.
    Stopped,
}

/// Judges the facts: the ending without its output.
pub(super) fn judge(exit: &Exit, cut_short: Option<CutShort>, success_codes: &[i32]) -> Ending {
    let how = match (exit, cut_short) {
        (Exit::NotStarted(_), _) => EndedHow::Failed,
        (Exit::Withdrawn, _) | (_, Some(CutShort::Stopped)) => EndedHow::Stopped,
        (_, Some(CutShort::TimedOut { .. })) => EndedHow::TimedOut,
        (Exit::Exited { code }, None) if success_codes.contains(code) => EndedHow::Succeeded,
        (_, None) => EndedHow::Failed,
    };
    Ending {
        how,
        detail: AttemptDetail {
            exit_code: match exit {
                Exit::Exited { code } => Some(*code),
                _ => None,
            },
            signal: match exit {
                Exit::Signaled { signal, .. } => Some(*signal),
                _ => None,
            },
            reason: reason(exit, cut_short),
            usage: None,
        },
        output: Output::default(),
    }
}

/// What code and signal don't say. For a stop the scheduler knows the reason better, and fills
/// it in where there is none.
fn reason(exit: &Exit, cut_short: Option<CutShort>) -> Option<String> {
    match (exit, cut_short) {
        (Exit::Withdrawn, _) => Some("stopped before it was started".to_owned()),
        (Exit::NotStarted(error), _) => Some(error.to_string()),
        (_, Some(CutShort::TimedOut { after })) => {
            Some(format!("ran over its timeout of {after:?}: {exit}"))
        }
        (Exit::Unknown { .. }, _) | (Exit::Signaled { .. }, None) => Some(exit.to_string()),
        (Exit::Exited { .. }, None) | (_, Some(CutShort::Stopped)) => None,
    }
}

/// What kept a job from starting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SpawnErrorKind {
    /// No such program, or its interpreter is missing.
    ProgramNotFound,
    /// There is such a file, and it can't be executed.
    NotExecutable,
    /// `working_dir` is missing, not a directory or not to be entered.
    WorkingDir,
    /// Arguments and environment are longer than the kernel takes (E2BIG).
    TooBig,
    /// This host is out of processes, memory or descriptors (EAGAIN, ENOMEM, EMFILE, ENFILE).
    Exhausted,
    /// Anything else.
    Other,
}

/// Why a job did not start: what was tried, why it failed, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("can't start `{program}`: {why}")]
pub(super) struct SpawnError {
    pub(super) kind: SpawnErrorKind,
    /// As the table names it.
    pub(super) program: String,
    pub(super) why: String,
}

impl SpawnError {
    pub(super) fn new(kind: SpawnErrorKind, program: &str, why: impl Into<String>) -> Self {
        Self {
            kind,
            program: program.to_owned(),
            why: why.into(),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const EXITED: Exit = Exit::Exited { code: 0 };
    const TIMED_OUT: Option<CutShort> = Some(CutShort::TimedOut {
        after: Duration::from_secs(50),
    });

    fn not_started() -> Exit {
        let kind = SpawnErrorKind::ProgramNotFound;
        Exit::NotStarted(SpawnError::new(kind, "foo", "it is not there"))
    }

    #[test]
    fn only_an_exit_of_its_own_with_a_success_code_succeeds() {
        let how = |exit: &Exit| judge(exit, None, &[0, 3]).how;
        assert_eq!(how(&EXITED), EndedHow::Succeeded);
        assert_eq!(how(&Exit::Exited { code: 3 }), EndedHow::Succeeded);
        assert_eq!(how(&Exit::Exited { code: 1 }), EndedHow::Failed);
        assert_eq!(judge(&EXITED, None, &[3]).how, EndedHow::Failed);
        let signaled = Exit::Signaled {
            signal: 9,
            core_dumped: false,
        };
        assert_eq!(how(&signaled), EndedHow::Failed);
        let cause = String::new();
        assert_eq!(how(&Exit::Unknown { cause }), EndedHow::Failed);
        assert_eq!(how(&not_started()), EndedHow::Failed);
    }

    #[test]
    fn what_was_cut_short_is_no_success_even_with_a_success_code() {
        let timed_out = judge(&EXITED, TIMED_OUT, &[0]);
        assert_eq!(timed_out.how, EndedHow::TimedOut);
        assert_eq!(timed_out.detail.exit_code, Some(0));
        let stopped = judge(&EXITED, Some(CutShort::Stopped), &[0]);
        assert_eq!(stopped.how, EndedHow::Stopped);
        assert_eq!(
            stopped.detail.reason, None,
            "that is the scheduler's to say"
        );
    }

    #[test]
    fn what_was_withdrawn_is_stopped_and_what_could_not_start_has_failed() {
        let withdrawn = judge(&Exit::Withdrawn, Some(CutShort::Stopped), &[0]);
        assert_eq!(withdrawn.how, EndedHow::Stopped);
        assert_eq!(withdrawn.detail.exit_code, None);
        let failed = judge(&not_started(), None, &[0]);
        assert_eq!(failed.how, EndedHow::Failed);
        let reason = failed.detail.reason.unwrap();
        assert_eq!(reason, "can't start `foo`: it is not there");
    }

    #[test]
    fn signals_are_named() {
        let reason = |signal| {
            let core_dumped = signal == 11;
            let exit = Exit::Signaled {
                signal,
                core_dumped,
            };
            judge(&exit, None, &[0]).detail.reason.unwrap()
        };
        assert_eq!(reason(15), "killed by SIGTERM");
        assert_eq!(reason(11), "killed by SIGSEGV (core dumped)");
        assert_eq!(reason(31), "killed by SIGSYS");
        assert_eq!(reason(40), "killed by signal 40");
    }

    #[test]
    fn a_timeout_is_told_with_how_it_ended() {
        let exit = Exit::Signaled {
            signal: 9,
            core_dumped: false,
        };
        let detail = judge(&exit, TIMED_OUT, &[0]).detail;
        assert_eq!(detail.signal, Some(9));
        let reason = "ran over its timeout of 50s: killed by SIGKILL";
        assert_eq!(detail.reason.unwrap(), reason);
    }
}
