//! One process as `/proc` shows it, and signals that reach that one and no other.
//!
//! A process is known by its pid and the instant at which it was started. A pid alone may be
//! another process's by the time that it is used. So a signal goes through a descriptor of the
//! process (pidfd_open(2)) that was opened *before* the start was compared once more: if the
//! process has ended since, the signal reaches nobody.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::clock::{Clock, SystemClock};
use crate::scheduler::time::BootTime;

/// A kernel thread, in the flags of proc_pid_stat(5) (PF_KTHREAD).
const KERNEL_THREAD: u32 = 0x0020_0000;

/// One process, at the moment that it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// Clock ticks from the boot to its start.
    started: u64,
    /// The name of its program, at most 15 bytes.
    pub(super) command: String,
    state: u8,
    /// 0 where the parent is in another PID namespace.
    pub(super) parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    flags: u32,
}

impl Process {
    /// None if there is no such process, or if it is hidden from this user.
    pub(super) fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        Self::parse(pid, &String::from_utf8_lossy(&stat))
    }

    /// Reads proc_pid_stat(5). The name, in parentheses, may hold any character, parentheses
    /// too.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(')')?;
        let (_, command) = before.split_once('(')?;
        let fields: Vec<&str> = after.split_ascii_whitespace().collect();
        // Numbered as in the manual page, where the state is the third.
        let field = |number: usize| fields.get(number - 3).copied();
        Some(Self {
            pid,
            command: command.to_owned(),
            state: *field(3)?.as_bytes().first()?,
            parent: field(4)?.parse().ok()?,
            group: field(5)?.parse().ok()?,
            session: field(6)?.parse().ok()?,
            flags: field(9)?.parse().ok()?,
            started: field(22)?.parse().ok()?,
        })
    }

    pub(super) fn is_kernel_thread(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }

    /// Has ended, and is yet to be reaped.
    pub(super) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X')
    }

    /// Stopped by a signal.
    pub(super) fn is_stopped(&self) -> bool {
        self.state == b'T'
    }

    /// Runs no code of its own at this moment, and none before it gets a signal or a tracer
    /// or the kernel lets it.
    pub(super) fn is_still(&self) -> bool {
        matches!(self.state, b'T' | b't' | b'D') || self.is_zombie()
    }

    /// Whether it was started later than another.
    pub(super) fn is_younger_than(&self, other: &Self) -> bool {
        self.started > other.started
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        (self.pid, self.started) == (other.pid, other.started)
    }

    /// The same process as it is now; none once it is gone, reaped or not.
    pub(super) fn now(&self) -> Option<Self> {
        Self::read(self.pid).filter(|now| now.is_same(self) && !now.is_zombie())
    }

    /// The user that it acts as; root's for one that lets nobody look into it (a setuid
    /// program, prctl(2) PR_SET_DUMPABLE).
    pub(super) fn user(&self) -> Option<u32> {
        let metadata = fs::metadata(format!("/proc/{}", self.pid)).ok()?;
        Some(metadata.uid())
    }

    /// Its environment, as it was started with; none where this user may not see it. A program
    /// can overwrite its own. Empty as well while a program is just being executed.
    pub(super) fn environment(&self) -> Option<Vec<u8>> {
        fs::read(format!("/proc/{}/environ", self.pid)).ok()
    }

    /// Signals it. One that is gone needs no signal.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        let Some(pidfd) = self.open()? else {
            return Ok(());
        };
        match pidfd_send_signal(pidfd, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until it is gone, to an instant at most. Whether it is.
    pub(super) fn wait_until_gone(&self, end: BootTime) -> io::Result<bool> {
        let Some(pidfd) = self.open()? else {
            return Ok(true);
        };
        loop {
            let left = end.saturating_since(SystemClock.boot());
            let timeout = Timespec::try_from(left).ok();
            let mut watched = [PollFd::new(&pidfd, PollFlags::IN)];
            match poll(&mut watched, timeout.as_ref()) {
                Ok(0) if left.is_zero() => return Ok(false),
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A descriptor of this process; none once it is gone.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return Ok(None);
        };
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(pidfd) => pidfd,
            // The last two where the number is now a thread's, by kernel version.
            Err(Errno::SRCH | Errno::INVAL | Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(self.now().map(|_| pidfd))
    }
}

/// The numbers of all processes that this user may see.
pub(super) fn pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        pids.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(pids)
}

/// The value of a variable in an environment block.
pub(super) fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a OsStr> {
    let mut entries = environment.split(|byte| *byte == 0);
    entries.find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(OsStr::from_bytes(value))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_fields_are_read_past_any_name() {
        let rest = "S 7 8 9 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let process = Process::parse(12, &format!("12 (a) Z 1 ((b) {rest}")).unwrap();
        assert_eq!(process.command, "a) Z 1 ((b");
        assert_eq!((process.state, process.started), (b'S', 4711));
        let places = (process.parent, process.group, process.session);
        assert_eq!(places, (7, 8, 9));
        assert!(!process.is_kernel_thread());
        assert_eq!(Process::parse(12, "12 (sh) S 1"), None);
        assert_eq!(Process::parse(12, ""), None);
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environment = b"XA=0\0AB=1\0A=2=3\0A=4\0B\0";
        assert_eq!(variable(environment, "A"), Some("2=3".as_ref()));
        assert_eq!(variable(environment, "B"), None);
        assert_eq!(variable(b"", "A"), None);
    }

    #[test]
    fn a_signal_does_not_reach_who_got_the_pid_next() {
        let mut child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        let now = Process::read(child.id().cast_signed()).unwrap();
        let mut former = now.clone();
        former.started -= 1;
        former.signal(Signal::KILL).unwrap();
        assert!(former.wait_until_gone(SystemClock.boot()).unwrap());
        now.signal(Signal::TERM).unwrap();
        let end = SystemClock.boot() + Duration::from_secs(30);
        assert!(now.wait_until_gone(end).unwrap());
        assert_eq!(child.wait().unwrap().signal(), Some(15), "not 9");
    }
}
