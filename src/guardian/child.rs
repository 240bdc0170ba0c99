//! The job's own process, between fork(2) and execve(2): puts it into its surroundings, and
//! says why where it can't.
//!
//! Everything here runs in the forked process, so that whatever hangs (a program on a dead NFS
//! server) hangs that process alone, and whatever is refused is refused to the job's user.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::panic;
use std::path::Path;

use rustix::fs::{FileType, Mode, fchmod, fstat};
use rustix::process::{
    Pid, Resource, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit, setsid,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

use super::facts::{SpawnError, SpawnErrorKind, Word};
use super::http::{self, HttpCall};
use super::wire::{Launch, Surroundings, Work};
use super::{identity, name_process, program, sys};
use crate::clock::{Clock, SystemClock};

/// What the process ends with when it has said why it is not the job.
const NOT_STARTED: i32 = 127;

/// What a process that makes a request is called.
const REQUEST_NAME: &str = "job-request";

/// Each variable once.
type Environment = BTreeMap<OsString, OsString>;

/// What the job reads from, and where it writes to.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
}

/// A process that is, or is about to become, the job.
#[derive(Debug)]
pub(super) struct Forked {
    pub(super) pid: Pid,
    /// Ends when the job has been executed, or a request has ended; before that, a [`Word`] in
    /// JSON may come.
    pub(super) word: PipeReader,
}

/// Forks the process. It holds copies of the keeper's descriptors until it executes the job.
pub(super) fn fork(launch: &Launch, streams: Streams, cgroup: Option<&Path>) -> io::Result<Forked> {
    let (word, tell) = io::pipe()?;
    let keeper = rustix::process::getpid();
    let (forked, to_enter) = match cgroup.and_then(fork_into) {
        Some(forked) => (forked, None),
        None => (sys::fork()?, cgroup),
    };
    match forked {
        Some(pid) => Ok(Forked { pid, word }),
        None => {
            drop(word);
            become_the_job(launch, streams, to_enter, keeper, tell)
        }
    }
}

/// None where it has to be moved there after the fork: an old kernel, or a filter of system
/// calls (seccomp(2)) that doesn't know this one.
fn fork_into(cgroup: &Path) -> Option<Option<Pid>> {
    let dir = fs::File::open(cgroup).ok()?;
    sys::fork_into(dir.as_fd()).ok()
}

fn become_the_job(
    launch: &Launch,
    streams: Streams,
    cgroup: Option<&Path>,
    keeper: Pid,
    mut tell: PipeWriter,
) -> ! {
    let name = launch.work.name();
    let word = match (
        enter(&launch.surroundings, &streams, name, cgroup, keeper),
        &launch.work,
    ) {
        (Err(error), _) => Word::NotStarted(error),
        // The host may have been suspended on the way here.
        (Ok(_), _) if SystemClock.boot() >= launch.deadline.stop_at() => Word::TooLate,
        (Ok(environment), Work::Execute { program, arguments }) => {
            Word::NotStarted(execute(program, arguments, environment, streams))
        }
        (Ok(_), Work::Call(call)) => match request(call, streams) {
            Ok(()) => sys::exit(0),
            Err(failure) => Word::Failed(failure),
        },
    };
    let word = serde_json::to_vec(&word).unwrap_or_default();
    // If it can't be told, the code is all there is.
    let _ = tell.write_all(&word);
    sys::exit(NOT_STARTED)
}

/// Makes the request. The process is this program still, and goes by a name of its own.
fn request(call: &HttpCall, streams: Streams) -> Result<(), String> {
    name_process(REQUEST_NAME);
    // What speaks HTTP panics where this host refuses it a thread or memory.
    panic::set_hook(Box::new(|_| {}));
    let performed =
        panic::catch_unwind(move || http::perform(call, &mut File::from(streams.stdout)));
    performed.unwrap_or_else(|panic| {
        let cause = panic.downcast_ref::<String>().map(String::as_str);
        let cause = cause.or(panic.downcast_ref::<&str>().copied());
        Err(format!(
            "the request broke off, as this program failed ({}); this host or unit may be out of \
             processes or memory (TasksMax, MemoryMax)",
            cause.unwrap_or("it doesn't say why")
        ))
    })
}

/// Everything but the exec; returns the whole environment. The order matters: what needs the
/// daemon's rights comes first, what the job's user has to be allowed after it, and the
/// parent-death signal last, for a change of user clears it (prctl(2)).
fn enter(
    surroundings: &Surroundings,
    streams: &Streams,
    program: &str,
    cgroup: Option<&Path>,
    keeper: Pid,
) -> Result<Environment, SpawnError> {
    let refused = |what: &str, error: io::Error| {
        let why = format!("{what}: {error}");
        SpawnError::new(SpawnErrorKind::Other, program, why)
    };
    sys::unblock_signals();
    // A session of its own: no terminal, and a group that nobody else is in.
    setsid().map_err(|error| refused("failed to begin a session", error.into()))?;
    if let Some(cgroup) = cgroup {
        fs::write(cgroup.join("cgroup.procs"), "0")
            .map_err(|error| refused("failed to enter its cgroup", error))?;
    }
    if let Some(soft) = surroundings.open_files {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(soft);
        // Lowering it is always allowed.
        let _ = setrlimit(Resource::Nofile, limit);
    }
    restore_oom_score();
    if let Some(mask) = surroundings.umask {
        identity::set_umask(mask);
    }
    if surroundings.identity.user.is_some() {
        sys::leave_session_keyring();
        open_to_all(streams);
    }
    let assumed = surroundings.identity.assume();
    let assumed = assumed.map_err(|why| SpawnError::new(SpawnErrorKind::Identity, program, why))?;
    if let Some(dir) = &surroundings.working_dir {
        program::check_working_dir(program, dir)?;
        std::env::set_current_dir(dir).map_err(|error| {
            let why = format!("working_dir `{}` can't be entered: {error}", dir.display());
            SpawnError::new(SpawnErrorKind::WorkingDir, program, why)
        })?;
    }
    // The last resort, should the keeper itself be killed. If it was, in this very moment, the
    // signal will not come.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid() != Some(keeper) {
        sys::exit(NOT_STARTED);
    }
    let mut environment: Environment = surroundings.environment.iter().cloned().collect();
    for (name, value) in assumed.variables() {
        environment.entry(name.into()).or_insert(value);
    }
    Ok(environment)
}

/// Has `echo >/dev/stderr` work for another user: a pipe has the mode and owner that it was made
/// with, and only who has it open can find it.
fn open_to_all(streams: &Streams) {
    for stream in [&streams.stdout, &streams.stderr] {
        let is_pipe =
            fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_fifo());
        if is_pipe {
            let _ = fchmod(stream, Mode::from_raw_mode(0o622));
        }
    }
}

/// The keeper is spared by the OOM killer where it may be; the job is not.
fn restore_oom_score() {
    if let Some(score) = super::inherited_oom_score() {
        let _ = fs::write("/proc/self/oom_score_adj", score.to_string());
    }
}

/// Becomes the program; returns only why it can't.
fn execute(
    program: &str,
    arguments: &[String],
    environment: Environment,
    streams: Streams,
) -> SpawnError {
    let path = environment.get(OsStr::new("PATH")).cloned();
    let file = match program::find(program, &path.unwrap_or_default(), None) {
        Ok(file) => file,
        Err(error) => return error,
    };
    let file_name = file.to_string_lossy();
    let explain = |error: io::Error| SpawnError::explain(&error, program, &file_name);
    if let Err(error) = connect(streams) {
        return explain(error);
    }
    let words = [program]
        .into_iter()
        .chain(arguments.iter().map(String::as_str));
    let arguments = words.map(CString::new).collect::<Result<Vec<_>, _>>();
    let variables = environment.iter().map(|(name, value)| {
        let variable = [name.as_bytes(), b"=", value.as_bytes()].concat();
        CString::new(variable)
    });
    let environment = variables.collect::<Result<Vec<_>, _>>();
    match (
        CString::new(file.as_os_str().as_bytes()),
        arguments,
        environment,
    ) {
        (Ok(file), Ok(arguments), Ok(environment)) => {
            explain(sys::execute(&file, &arguments, &environment))
        }
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => explain(error.into()),
    }
}

fn connect(streams: Streams) -> io::Result<()> {
    dup2_stdin(streams.stdin)?;
    dup2_stdout(streams.stdout)?;
    Ok(dup2_stderr(streams.stderr)?)
}
