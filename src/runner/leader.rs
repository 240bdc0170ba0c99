//! The first process of an attempt, which leads its group: how its end is seen, and when it
//! is reaped.
//!
//! Its end is seen *without* reaping it (pidfd_open(2)). Until it is reaped its pid, and so
//! its group's id, can't be given to anybody else, and the group can be signalled safely.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};

use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinHandle;

use super::ending::Exit;
use super::group::ProcessGroup;

/// Owns the process: dropped before it is reaped, it takes its whole group with it.
#[derive(Debug)]
pub(super) struct Leader {
    /// None once reaped.
    child: Option<Child>,
    pid: Pid,
    watch: ExitWatch,
}

#[derive(Debug)]
enum ExitWatch {
    /// Not watched yet.
    None,
    /// Readable from the moment that it has ended.
    Pidfd(AsyncFd<OwnedFd>),
    /// A thread that waits for it; where there is no descriptor left for a pidfd.
    Thread(JoinHandle<()>),
    /// It has ended.
    Ended,
}

impl Leader {
    /// Takes charge of a child that leads a process group.
    pub(super) fn new(child: Child) -> Self {
        let pid = Pid::from_child(&child);
        Self {
            child: Some(child),
            pid,
            watch: ExitWatch::None,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_pid().unsigned_abs()
    }

    pub(super) fn group(&self) -> ProcessGroup {
        ProcessGroup::led_by(self.pid)
    }

    /// Completes when it has ended; never again after that. Cancel safe.
    pub(super) async fn ended(&mut self) {
        if matches!(self.watch, ExitWatch::None) {
            self.watch = self.start_watch();
        }
        match &mut self.watch {
            ExitWatch::Pidfd(pidfd) => wait_readable(pidfd, self.pid).await,
            // A thread that panicked has nothing to tell: there is nothing in it to panic.
            ExitWatch::Thread(waiting) => drop(waiting.await),
            ExitWatch::None | ExitWatch::Ended => pending().await,
        }
        self.watch = ExitWatch::Ended;
    }

    fn start_watch(&self) -> ExitWatch {
        let pidfd = pidfd_open(self.pid, PidfdFlags::empty()).map_err(io::Error::from);
        match pidfd.and_then(watch) {
            Ok(pidfd) => ExitWatch::Pidfd(pidfd),
            Err(error) => {
                tracing::warn!(pid = self.pid(), %error, "no descriptor to watch a job by: waiting on a thread");
                ExitWatch::Thread(wait_on_thread(self.pid))
            }
        }
    }

    /// Whether it has ended, asked of the kernel this instant.
    pub(super) fn has_ended(&self) -> bool {
        self.child.is_none() || has_ended(self.pid)
    }

    /// Reaps it, once it has ended. From here on its group must not be signalled.
    pub(super) fn reap(&mut self) -> Exit {
        let Some(mut child) = self.child.take() else {
            return Exit::Unknown {
                cause: "its exit status was already taken".into(),
            };
        };
        match child.try_wait() {
            Ok(Some(status)) => exit_of(status),
            Ok(None) => {
                self.child = Some(child);
                Exit::Unknown {
                    cause: "it has not ended".into(),
                }
            }
            // ECHILD: SIGCHLD is ignored in this process, or somebody waits for any child.
            Err(error) => Exit::Unknown {
                cause: format!("its exit status was taken by other code in this process: {error}"),
            },
        }
    }
}

impl Drop for Leader {
    /// A job that nobody watches over must not run on: what happens when a task is aborted or
    /// a runtime is shut down.
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        self.group().signal(Signal::KILL);
        // A killed process is gone in an instant, but not necessarily in this one.
        let reap = move || drop(child.wait());
        if let Err(error) = std::thread::Builder::new().spawn(reap) {
            tracing::warn!(pid = self.pid(), %error, "failed to reap a killed job");
        }
    }
}

/// The successor that tokio names is `unsafe`, for the sake of types that could close or swap
/// their descriptor while it is registered. An [`OwnedFd`] that is only ever borrowed can't.
#[expect(
    deprecated,
    reason = "sound for an OwnedFd, and the successor is unsafe"
)]
fn watch(pidfd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(pidfd, Interest::READABLE)
}

async fn wait_readable(pidfd: &AsyncFd<OwnedFd>, pid: Pid) {
    loop {
        let Ok(mut ready) = pidfd.readable().await else {
            // The runtime is shutting down: this task is about to be dropped.
            return pending().await;
        };
        if has_ended(pid) {
            return;
        }
        ready.clear_ready(); // a spurious wake-up, which epoll(7) allows itself
    }
}

fn wait_on_thread(pid: Pid) -> JoinHandle<()> {
    tokio::task::spawn_blocking(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // An error means that it can't be waited for, so that it has ended.
        let _ended = retry_on_intr(|| waitid(WaitId::Pid(pid), options));
    })
}

fn has_ended(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    match waitid(WaitId::Pid(pid), options) {
        Ok(status) => status.is_some(),
        // ECHILD: it has ended, and its status was taken away.
        Err(_) => true,
    }
}

fn exit_of(status: ExitStatus) -> Exit {
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    fn leader(script: &str) -> Leader {
        let mut command = Command::new("/bin/sh");
        Leader::new(
            command
                .args(["-c", script])
                .process_group(0)
                .spawn()
                .unwrap(),
        )
    }

    #[tokio::test]
    async fn the_end_is_seen_before_the_leader_is_reaped() {
        let mut leader = leader("exit 7");
        leader.ended().await;
        assert!(leader.has_ended());
        assert!(!leader.group().is_gone(), "the zombie keeps the group's id");
        assert_eq!(leader.reap(), Exit::Exited { code: 7 });
        assert!(leader.group().is_gone());
    }

    #[tokio::test]
    async fn the_end_is_seen_without_a_pidfd_too() {
        let mut leader = leader("kill -USR1 $$");
        leader.watch = ExitWatch::Thread(wait_on_thread(leader.pid));
        leader.ended().await;
        assert_eq!(
            leader.reap(),
            Exit::Signaled {
                signal: 10,
                core_dumped: false
            }
        );
    }

    #[tokio::test]
    async fn a_leader_that_runs_has_not_ended() {
        let mut leader = leader("exec sleep 1000");
        assert!(!leader.has_ended());
        leader.group().signal(Signal::KILL);
        leader.ended().await;
        assert_eq!(
            leader.reap(),
            Exit::Signaled {
                signal: 9,
                core_dumped: false
            }
        );
    }

    #[tokio::test]
    async fn a_status_that_others_took_is_unknown_and_no_success() {
        let mut leader = leader("exit 0");
        retry_on_intr(|| waitid(WaitId::Pid(leader.pid), WaitIdOptions::EXITED)).unwrap();
        leader.ended().await;
        assert!(matches!(leader.reap(), Exit::Unknown { .. }));
    }
}
