//! This replica's guardian: started, replaced when it ends, continued when it is stopped, and
//! asked for keepers.
//!
//! One thread waits for what becomes of the guardian's process, for as long as there is one. It
//! also makes it, so that the parent-death signal that the guardian wishes for, which is of the
//! thread and not of the process (prctl(2)), means the daemon's death and nothing else.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, pidfd_send_signal,
    waitid,
};
use tokio::sync::watch;

use crate::clock::{Clock, SystemClock};
use crate::guardian::{DESCRIPTORS, GUARDIAN_NAME, GUARDIAN_VARIABLE, KEEPER_PLEASE};

/// How long a daemon that ends waits for its guardian to be gone: it has nothing left to do.
const LEAVE_LIMIT: Duration = Duration::from_millis(500);

/// From the end of a guardian to the start of the next: soon, and twice as long each time, up to
/// the other, while none lives for that long.
const RESTART_INTERVAL_MIN: Duration = Duration::from_millis(10);
const RESTART_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The guardian, whichever process it is at the moment.
#[derive(Debug)]
pub(super) struct Guardian {
    current: watch::Sender<State>,
    /// Ends when the thread does.
    thread: Mutex<mpsc::Receiver<()>>,
}

/// What there is at the moment.
#[derive(Clone, Debug)]
enum State {
    /// None yet, or none any more, and another is being made.
    Starting,
    Running(Arc<Process>),
    /// It can't be made, for the time being.
    Failing(Arc<str>),
}

/// One guardian's process.
#[derive(Debug)]
pub(super) struct Process {
    /// Its end of the socket is its descriptor 0.
    control: OwnedFd,
    pid: Pid,
    pidfd: OwnedFd,
}

/// Why there is no keeper.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoGuardian {
    #[error("the guardian can't be started: {0}")]
    Failing(Arc<str>),
    #[error("the guardian's socket failed: {0}")]
    Socket(#[from] io::Error),
}

impl Guardian {
    /// Begins to start a guardian, by executing `program` as one.
    pub(super) fn new(program: PathBuf) -> Arc<Self> {
        assert!(
            std::env::var_os(GUARDIAN_VARIABLE).is_none(),
            "a guardian is not to start another: call soloist::guardian::run_if_guardian first \
             thing in main"
        );
        let (current, _) = watch::channel(State::Starting);
        let (alive, thread) = mpsc::channel();
        let guardian = Arc::new(Self {
            current,
            thread: Mutex::new(thread),
        });
        let weak = Arc::downgrade(&guardian);
        let spawned = thread::Builder::new()
            .name("guardian".to_owned())
            .spawn(move || {
                look_after(&program, &weak);
                drop(alive);
            });
        if let Err(error) = spawned {
            let why = format!("no thread to look after it: {error}");
            guardian.current.send_replace(State::Failing(why.into()));
        }
        guardian
    }

    /// The guardian's process, as soon as there is one. Cancel safe.
    pub(super) async fn process(&self) -> Result<Arc<Process>, NoGuardian> {
        let mut current = self.current.subscribe();
        loop {
            match &*current.borrow_and_update() {
                State::Running(process) => return Ok(Arc::clone(process)),
                State::Failing(why) => return Err(NoGuardian::Failing(Arc::clone(why))),
                State::Starting => {}
            }
            if current.changed().await.is_err() {
                return std::future::pending().await; // `self` has the sender
            }
        }
    }

    /// Has it replaced, as it does not answer. Keepers and their jobs are not touched.
    pub(super) fn replace(&self, process: &Process) {
        let is_current =
            |state: &State| matches!(state, State::Running(now) if now.pid == process.pid);
        if is_current(&self.current.borrow()) {
            tracing::error!(
                pid = process.pid.as_raw_pid(),
                "the guardian does not answer: killing and replacing it; jobs that run go on"
            );
            let _ = pidfd_send_signal(&process.pidfd, Signal::KILL);
        }
    }

    fn thread(&self) -> MutexGuard<'_, mpsc::Receiver<()>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guardian {
    /// Lets the guardian go, which ends when nothing of any job is left.
    fn drop(&mut self) {
        self.current.send_replace(State::Starting);
        if self.thread().recv_timeout(LEAVE_LIMIT) == Err(RecvTimeoutError::Timeout) {
            tracing::debug!("the guardian is still cleaning up");
        }
    }
}

impl Process {
    /// Asks for a keeper that has these. An error or a socket that ends without a word means
    /// that there is none.
    pub(super) fn fork_keeper(&self, descriptors: [&OwnedFd; DESCRIPTORS]) -> io::Result<()> {
        let rights = descriptors.map(AsFd::as_fd);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(&rights)) {
            return Err(Errno::NOBUFS.into());
        }
        let word = [IoSlice::new(KEEPER_PLEASE)];
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry_on_intr(|| sendmsg(&self.control, &word, &mut ancillary, flags))?;
        Ok(())
    }
}

/// Keeps a guardian running until `guardian` is dropped.
fn look_after(program: &PathBuf, guardian: &Weak<Guardian>) {
    let mut interval = RESTART_INTERVAL_MIN;
    loop {
        let started_at = SystemClock.boot();
        let started = start(program);
        let Some(strong) = guardian.upgrade() else {
            // The process ends with its socket.
            if let Ok((mut child, process)) = started {
                drop(process);
                let _ = child.wait();
            }
            return;
        };
        match started {
            Ok((child, process)) => {
                let pid = process.pid;
                tracing::debug!(pid = pid.as_raw_pid(), "guardian started");
                strong
                    .current
                    .send_replace(State::Running(Arc::new(process)));
                drop(strong);
                let end = wait_for(child, pid);
                let Some(strong) = guardian.upgrade() else {
                    return;
                };
                strong.current.send_replace(State::Starting);
                tracing::error!(pid = pid.as_raw_pid(), %end,
                    "the guardian ended: starting another; jobs that run are looked after by their keepers");
            }
            Err(error) => {
                tracing::error!(%error, "failed to start the guardian: no job is started without one");
                strong
                    .current
                    .send_replace(State::Failing(error.to_string().into()));
            }
        }
        if SystemClock.boot().saturating_since(started_at) >= RESTART_INTERVAL_MAX {
            interval = RESTART_INTERVAL_MIN;
        }
        thread::sleep(interval);
        interval = (interval * 2).min(RESTART_INTERVAL_MAX);
    }
}

fn start(program: &PathBuf) -> io::Result<(Child, Process)> {
    let (control, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut command = Command::new(program);
    command.arg0(GUARDIAN_NAME).env(GUARDIAN_VARIABLE, "1");
    command.stdin(theirs).stdout(Stdio::null());
    let child = command.spawn()?;
    let pid = Pid::from_child(&child);
    // Without it the guardian ends at once, with its socket.
    let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
    let process = Process {
        control,
        pid,
        pidfd,
    };
    Ok((child, process))
}

/// Waits for its end, and continues it when it is stopped: frozen, it would start nothing.
fn wait_for(mut child: Child, pid: Pid) -> String {
    let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        match retry_on_intr(|| waitid(WaitId::Pid(pid), options)) {
            Ok(Some(status)) if status.stopped() => {
                tracing::warn!(
                    pid = pid.as_raw_pid(),
                    "the guardian was stopped: continuing it"
                );
                // Takes note of the stop, or the next look could find the same one.
                let stops = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
                let _ = waitid(WaitId::Pid(pid), stops);
                let _ = kill_process(pid, Signal::CONT);
            }
            Ok(_) | Err(_) => break,
        }
    }
    match child.wait() {
        Ok(status) => status.to_string(),
        // Reaped by others, as a first process in a container may.
        Err(error) => error.to_string(),
    }
}
