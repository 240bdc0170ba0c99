//! The guardian: a process beside the daemon in which no job can outlive its lease, or the
//! daemon.
//!
//! ```text
//!   daemon ──────────────── guardian              one for each replica: forks keepers,
//!     │   "a keeper, please"    │                 replaces nothing, knows no deadline
//!     │ (a socket, stdout,      ├── keeper        one for each attempt: its deadlines, its
//!     │  stderr)                │     └── job     ending, its descendants
//!     │                         └── keeper            └── …
//!     └──── wire: Launch, Extend, Stop ──┘  └── job
//! ```
//!
//! The daemon executes its own program again as the guardian, which is small, has one thread,
//! and is forked from at a cost that doesn't depend on the daemon's memory. Each keeper hangs
//! on its own socket to the daemon, so that
//!
//! - the daemon dead: each keeper reads the end of its socket and kills its tree;
//! - the daemon frozen or cut off: each keeper holds its own deadline;
//! - the guardian dead: keepers and jobs go on, and the daemon starts another for new attempts;
//! - a keeper dead: its orphans become the guardian's children, which kills whatever is its
//!   child and no keeper; the job itself dies by its parent-death signal;
//! - a keeper stopped (SIGSTOP): its parent, the guardian, is told and continues it. So does
//!   the daemon with the guardian.
//!
//! Must never: read the table, connect anywhere, log, or wait for the daemon.

mod cgroup;
mod child;
mod facts;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod held_back;
pub(crate) mod http;
pub(crate) mod identity;
mod keeper;
mod program;
mod sys;
mod tree;
pub(crate) mod wire;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setsid, wait,
};

pub(crate) use cgroup::{end as end_cgroup, name_of as cgroup_name, prepare as prepare_cgroups};
pub(crate) use child::Streams;
pub(crate) use facts::{CutShort, Exit, SpawnError, SpawnErrorKind};

#[cfg(feature = "daemon")]
pub(crate) use tree::{children, kill_guardians_of};

use crate::clock::{Clock, SystemClock};
use wire::{End, Report};

/// What a guardian is called, in `ps` too. Not `soloist`: who kills everything of that name
/// should not take those along who clean up after it.
pub(crate) const GUARDIAN_NAME: &str = "job-guardian";

/// What a keeper is called.
pub(crate) const KEEPER_NAME: &str = "job-keeper";

/// Set in the environment of guardians, which keepers share and jobs never have. Processes with
/// one of these above them are looked after.
pub(crate) const GUARDIAN_VARIABLE: &str = "SOLOIST_GUARDIAN";

/// How long to wait for killed processes to be gone. A process that can be killed is gone
/// within microseconds; one that hangs in the kernel may hang for ever.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What a request for a keeper says; all that matters comes with it, and later.
pub(crate) const KEEPER_PLEASE: &[u8] = b"k";

/// The descriptors that come with a request: the keeper's end of its socket, stdout, stderr.
pub(crate) const DESCRIPTORS: usize = 4;

/// What guardians and keepers ask the OOM killer for; granted to root alone (proc_pid_oom_score_adj(5)).
/// Short of -1000, so that a leak here would still be found.
const OOM_SCORE: i32 = -900;

/// As it was when the guardian was started.
static INHERITED_OOM_SCORE: OnceLock<Option<i32>> = OnceLock::new();

fn inherited_oom_score() -> Option<i32> {
    INHERITED_OOM_SCORE.get().copied().flatten()
}

/// Becomes the guardian, and ends with it, if this process was started as one; returns at once
/// if not. To be called first thing in `main`, before there is a second thread.
pub fn run_if_guardian() {
    let is_guardian = std::env::args_os()
        .next()
        .is_some_and(|name| name == GUARDIAN_NAME)
        && std::env::var_os(GUARDIAN_VARIABLE).is_some();
    if !is_guardian {
        return;
    }
    let served = Guardian::new().and_then(Guardian::serve);
    if let Err(error) = &served {
        // The daemon sees it end and tells; why, only this process knows.
        complain(error);
    }
    sys::exit(i32::from(served.is_err()));
}

/// Says it where the daemon does, unless nobody reads there: a full pipe is not waited for.
fn complain(error: &io::Error) {
    let stderr = io::stderr();
    let mut waiting = [PollFd::new(&stderr, PollFlags::OUT)];
    let at_once = Timespec::default();
    if retry(|| poll(&mut waiting, Some(&at_once))).is_ok_and(|ready| ready > 0) {
        let _ = writeln!(&stderr, "{GUARDIAN_NAME}: {error}");
    }
}

struct Guardian {
    /// None once the daemon is gone.
    control: Option<OwnedFd>,
    events: OwnedFd,
    keepers: HashSet<Pid>,
}

/// A request for a keeper.
struct Request {
    stream: UnixStream,
    streams: Streams,
}

impl Guardian {
    fn new() -> io::Result<Self> {
        sys::block_signals();
        name_process(GUARDIAN_NAME);
        // What the first look at the clock finds out, each keeper would find out again.
        SystemClock.boot();
        // Away from the terminal and its signals.
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        wake_when_parent_ends()?;
        let score = fs::read_to_string("/proc/self/oom_score_adj");
        let score = score.ok().and_then(|score| score.trim().parse().ok());
        let _ = INHERITED_OOM_SCORE.set(score);
        let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE.to_string());
        // Off descriptor 0, which jobs would otherwise inherit until they get their own.
        let control = fcntl_dupfd_cloexec(io::stdin(), 3)?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self {
            control: Some(control),
            events: sys::child_events()?,
            keepers: HashSet::new(),
        })
    }

    /// Serves until the daemon is gone and nothing of any job is left.
    fn serve(mut self) -> io::Result<()> {
        loop {
            let is_needed = self.look_after_children() || self.control.is_some();
            if !is_needed {
                return Ok(());
            }
            let asked = {
                let mut waiting = vec![PollFd::new(&self.events, PollFlags::IN)];
                let control = self.control.as_ref();
                waiting.extend(control.map(|control| PollFd::new(control, PollFlags::IN)));
                retry(|| poll(&mut waiting, None))?;
                waiting.get(1).is_some_and(|fd| !fd.revents().is_empty())
            };
            drain(&self.events);
            if asked {
                match self.receive() {
                    Ok(Some(request)) => self.fork_keeper(request),
                    Ok(None) => {}
                    Err(_) => self.control = None,
                }
            }
        }
    }

    /// Reaps children, continues stopped keepers, kills orphans. Whether there are children.
    fn look_after_children(&mut self) -> bool {
        let mut orphans_expected = false;
        loop {
            match retry(|| wait(WaitOptions::NOHANG | WaitOptions::UNTRACED)) {
                Ok(Some((pid, status))) if status.stopped() => {
                    if self.keepers.contains(&pid) {
                        let _ = kill_process(pid, Signal::CONT);
                    }
                }
                Ok(Some((pid, status))) => {
                    let was_keeper = self.keepers.remove(&pid);
                    orphans_expected |= !was_keeper || status.exit_status() != Some(0);
                }
                Ok(None) => {
                    if orphans_expected {
                        self.kill_orphans();
                    }
                    return true;
                }
                // ECHILD
                Err(_) => return false,
            }
        }
    }

    /// A child that is no keeper was left by one that was killed. The end of each tells of
    /// those that were below it.
    fn kill_orphans(&self) {
        let mut children = tree::children();
        children.retain(|child| !self.keepers.contains(child));
        tree::signal(&children, Signal::KILL);
    }

    /// The next request; none where there was nothing of use.
    fn receive(&self) -> io::Result<Option<Request>> {
        let Some(control) = &self.control else {
            return Ok(None);
        };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut word = [0; KEEPER_PLEASE.len()];
        let received = retry(|| {
            let mut parts = [IoSliceMut::new(&mut word)];
            recvmsg(control, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Out of descriptors: those that came were closed, which the daemon sees.
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Ok(None);
        }
        let rights = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let mut descriptors = rights.flatten();
        let mut next = || descriptors.next();
        Ok(match (next(), next(), next(), next()) {
            (Some(stream), Some(stdin), Some(stdout), Some(stderr)) => Some(Request {
                stream: stream.into(),
                streams: Streams {
                    stdin,
                    stdout,
                    stderr,
                },
            }),
            _ => None,
        })
    }

    fn fork_keeper(&mut self, request: Request) {
        match sys::fork() {
            Ok(Some(keeper)) => {
                self.keepers.insert(keeper);
            }
            Ok(None) => {
                name_process(KEEPER_NAME);
                // A copy would hide from the daemon that the guardian is gone.
                self.control = None;
                let kept = keeper::keep(request.stream, request.streams);
                sys::exit(i32::from(kept.is_err()));
            }
            Err(error) => refuse(request.stream, &error),
        }
    }
}

#[cfg(feature = "daemon")]
/// Whether there is such a program to execute, by this `PATH`: what a job's own process would find. Why
/// not, as it is told to whoever typed it.
pub(crate) fn find_program(program: &str, path: &std::ffi::OsStr) -> Result<(), SpawnError> {
    let found = program::find(program, path, None).map(drop);
    found.map_err(
        |error| match error.is_not_found() && !program.contains('/') {
            // Where the hint is for jobs.
            true => SpawnError::new(error.kind, program, "no such program in PATH"),
            false => error,
        },
    )
}

/// Tells why there is no keeper. If that fails too, the end of the stream says that there is
/// none.
fn refuse(mut stream: UnixStream, error: &io::Error) {
    let error = SpawnError::explain(error, KEEPER_NAME, KEEPER_NAME);
    if let Ok(report) = wire::encode(&Report::Ended(End::not_started(error))) {
        let _ = stream.write_all(&report);
    }
}

/// Has this process continued, should it be stopped, when nobody is left above to do so.
fn wake_when_parent_ends() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(Signal::CONT))?)
}

/// For `ps` and whoever looks for it; that it is refused is unheard of.
fn name_process(name: &str) {
    if let Ok(name) = std::ffi::CString::new(name) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// Empties a signalfd: what happened is asked of wait(2).
fn drain(events: impl AsFd) {
    // A few of its records (signalfd_siginfo has 128 bytes); there are hardly ever two.
    let mut records = [0; 1024];
    while rustix::io::read(&events, &mut records).is_ok_and(|count| count == records.len()) {}
}

fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}
