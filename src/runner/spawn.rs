//! Starts the first process of an attempt, or says precisely why it can't be.
//!
//! Plain `std::process` with nothing that would keep it off posix_spawn(3): the daemon's
//! memory is not copied, however large. The child gets
//!
//! - a process group of its own, and `/dev/null` as stdin;
//! - the descriptors 0, 1 and 2 alone: everything the daemon opens is close-on-exec, and what
//!   it was itself started with is made so (`descriptors`);
//! - SIGPIPE at its default. Its signal mask, and signals that the daemon was itself started
//!   with ignored, are inherited: std changes neither, and doing so by hand is not safe code.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use super::ending::{Exit, SpawnError, SpawnErrorKind};
use super::environment::Environment;
use super::leader::Leader;
use super::output::Writers;
use super::program;
use crate::scheduler::Attempt;
use crate::scheduler::job::{CommandSpec, Program};

/// The shell of `shell` jobs: the system's, never the user's `$SHELL`.
const SHELL: &str = "/bin/sh";

/// Starts the process, writing to `output` where its output is captured. Blocks until it has
/// been executed or refused, and looks at files, so it has no place on an event loop. If the
/// attempt was `given_up` meanwhile, it is not started, or killed at once.
pub(super) fn spawn(
    attempt: &Attempt,
    environment: &Environment,
    output: Option<Writers>,
    given_up: &AtomicBool,
) -> Result<Leader, Exit> {
    let mut command =
        prepare(&attempt.job.command, environment, attempt).map_err(Exit::NotStarted)?;
    if let Some(Writers { stdout, stderr }) = output {
        command.stdout(stdout).stderr(stderr);
    }
    if given_up.load(Ordering::Acquire) {
        return Err(Exit::Withdrawn);
    }
    // The writing ends of the pipes close with `command`, or reading would have no end.
    let leader = match command.spawn() {
        Ok(child) => Leader::new(child),
        Err(error) => {
            let file = command.get_program().to_string_lossy();
            let name = program_name(&attempt.job.command.program);
            return Err(Exit::NotStarted(explain(&error, name, &file)));
        }
    };
    if given_up.load(Ordering::Acquire) {
        return Err(Exit::Withdrawn); // and dropping the leader kills its group
    }
    Ok(leader)
}

/// Everything but the output.
fn prepare(
    spec: &CommandSpec,
    environment: &Environment,
    attempt: &Attempt,
) -> Result<Command, SpawnError> {
    let name = program_name(&spec.program);
    if let Program::Http(_) = &spec.program {
        let why = "this runner starts programs alone: run curl as a `command`";
        return Err(SpawnError::new(SpawnErrorKind::Other, name, why));
    }
    // A relative one is the daemon's; left as it is, the program's path would be taken from
    // it twice.
    let working_dir = match &spec.working_dir {
        Some(dir) => Some(path::absolute(dir).map_err(|error| explain(&error, name, name))?),
        None => None,
    };
    if let Some(dir) = &working_dir {
        program::check_working_dir(name, dir)?;
    }
    let variables = environment.of(attempt);
    let path = variables
        .get(OsStr::new("PATH"))
        .cloned()
        .unwrap_or_default();
    let file = program::find(name, &path, working_dir.as_deref())?;

    // By its path, so that std need not search `PATH`, which would keep it off posix_spawn.
    let mut command = Command::new(&file);
    match &spec.program {
        Program::Shell(script) => command.args(["-c", script]),
        Program::Command(argv) => command.arg0(name).args(argv.iter().skip(1)),
        Program::Http(_) => &mut command,
    };
    command.env_clear().envs(variables);
    command.process_group(0).stdin(Stdio::null());
    if let Some(dir) = working_dir {
        command.current_dir(dir);
    }
    Ok(command)
}

/// What is executed, as the table names it. Empty where the table names nothing.
pub(super) fn program_name(program: &Program) -> &str {
    match program {
        Program::Shell(_) => SHELL,
        Program::Command(argv) => argv.first().map_or("", String::as_str),
        Program::Http(_) => "http",
    }
}

/// What the refusal to start `file` for `program` means, and what would help.
pub(super) fn explain(error: &io::Error, program: &str, file: &str) -> SpawnError {
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
    SpawnError::new(kind, program, format!("`{file}` {why} ({error})"))
}
