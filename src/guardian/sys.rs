//! The few calls that neither std nor rustix offers as safe functions.
//!
//! All of them are for processes with one thread, which the guardian and what it forks are.
//! Must never: be called from the daemon.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::process::Pid;

/// What all ended children of this process used, and theirs that they waited for
/// (getrusage(2), `RUSAGE_CHILDREN`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChildrenUsage {
    /// User and system time together.
    pub(super) cpu: Duration,
    /// The largest resident set of any one of them, in bytes.
    pub(super) peak_resident: u64,
}

/// fork(2): the child's pid in the parent, none in the child.
#[expect(unsafe_code, reason = "fork(2) has no safe form")]
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: there is one thread, so no lock is held that nobody in the child would release,
    // and everything may be called in the child that may be called here.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok(Pid::from_raw(child)),
    }
}

/// As [`fork`], with the child in this cgroup from its first instruction: to move a process that
/// is there already takes the kernel a grace period of RCU, some ten milliseconds on a busy
/// host. Linux 5.7.
#[expect(unsafe_code, reason = "clone3(2) has no safe form")]
pub(super) fn fork_into(cgroup: BorrowedFd<'_>) -> io::Result<Option<Pid>> {
    /// `struct clone_args`, which has more in libc for some targets than for others.
    #[repr(C)]
    #[derive(Default)]
    struct Arguments {
        flags: u64,
        descriptors_and_threads: [u64; 3],
        exit_signal: u64,
        stack_and_ids: [u64; 5],
        cgroup: u64,
    }
    const CLONE_INTO_CGROUP: u64 = 1 << 33;
    let arguments = Arguments {
        flags: CLONE_INTO_CGROUP,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        cgroup: u64::from(cgroup.as_raw_fd().unsigned_abs()),
        ..Arguments::default()
    };
    // SAFETY: the arguments are what the kernel defines, and without CLONE_VM and a stack it is
    // a fork. What libc's own does beside it is for programs with threads, or with handlers of
    // pthread_atfork(3).
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw const arguments,
            mem::size_of::<Arguments>(),
        )
    };
    match i32::try_from(child) {
        Ok(child) if child >= 0 => Ok(Pid::from_raw(child)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Leaves at once: no destructor, no exit handler of what was forked from runs here.
#[expect(unsafe_code, reason = "_exit(2) has no safe form")]
pub(super) fn exit(code: i32) -> ! {
    // SAFETY: it only ends this process.
    unsafe { libc::_exit(code) }
}

/// Leaves the session keyring that was inherited for an empty one (keyctl(2)): the keys in it
/// are the daemon's user's. A kernel without keyrings has nothing to leave.
#[expect(unsafe_code, reason = "keyctl(2) has no safe form")]
pub(super) fn leave_session_keyring() {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    let anonymous = ptr::null::<libc::c_char>();
    // SAFETY: a null name asks for a keyring without one; nothing else is read or written.
    unsafe { libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, anonymous) };
}

/// execve(2); returns only what it was refused for. Not what std's `exec` does, which is
/// execvp(3): that hands a text without a `#!` line to a shell.
#[expect(unsafe_code, reason = "execve(2) has no safe form")]
pub(super) fn execute(file: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        let pointers = strings.iter().map(|string| string.as_ptr());
        pointers.chain([ptr::null()]).collect()
    };
    let (arguments, environment) = (pointers(arguments), pointers(environment));
    // SAFETY: both are arrays of pointers to strings that end in NUL, and end in null
    // themselves; all of them outlive the call.
    unsafe { libc::execve(file.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Blocks every signal that can be: none is to end or stop a guardian, which ends by the end of
/// its socket alone. Not ignored, because a signal to a child that has only just been forked is
/// then still there when it unblocks it.
///
/// Each gets its default disposition, as a program that is just being started expects (POSIX
/// leaves that to whoever calls execve(2)). Here already: where SIGCHLD is ignored, as some
/// parents leave it, children are gone before anybody can ask how they ended (wait(2)).
pub(super) fn block_signals() {
    set_mask(true);
    for signal in 1..=libc::SIGRTMAX() {
        // Some can't be changed (SIGKILL, SIGSTOP) or are libc's own: refused, and as they were.
        set_default(signal);
    }
}

/// Unblocks all signals, for a program that is about to be started.
pub(super) fn unblock_signals() {
    set_mask(false);
}

#[expect(unsafe_code, reason = "sigprocmask(2) has no safe form")]
fn set_mask(full: bool) {
    // SAFETY: the set is initialised by sigfillset or sigemptyset before it is used, and lives
    // for both calls.
    unsafe {
        let mut mask: libc::sigset_t = mem::zeroed();
        match full {
            true => libc::sigfillset(&raw mut mask),
            false => libc::sigemptyset(&raw mut mask),
        };
        libc::sigprocmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "signal(2) has no safe form")]
fn set_default(signal: libc::c_int) {
    // SAFETY: the default runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// A descriptor that is readable when a child of this process ended or was stopped: SIGCHLD,
/// which is blocked, taken by signalfd(2). It tells a process that it was forked into of that one's
/// own children.
#[expect(unsafe_code, reason = "signalfd(2) has no safe form")]
pub(super) fn child_events() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used; the descriptor that
    // signalfd returns is new and nobody else's.
    unsafe {
        let mut chld: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut chld);
        libc::sigaddset(&raw mut chld, libc::SIGCHLD);
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        match libc::signalfd(-1, &raw const chld, flags) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// What the children that were waited for used.
#[expect(unsafe_code, reason = "getrusage(2) has no safe form")]
pub(super) fn children_usage() -> ChildrenUsage {
    // SAFETY: all-zero is a valid rusage, and the call writes within it.
    let usage = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let kibibytes = u64::try_from(usage.ru_maxrss).unwrap_or(0);
    ChildrenUsage {
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        peak_resident: kibibytes * 1024,
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
}
