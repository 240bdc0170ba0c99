//! Keeps the descriptors that this process was itself started with away from jobs.
//!
//! What the daemon opens is close-on-exec from the start. What its own parent left open, say
//! the lock file of `flock 9>/run/lock soloist run`, is not, and a job that outlived the
//! daemon would hold it on.

use std::fs;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Resource, getrlimit, setrlimit};

/// The last of stdin, stdout and stderr, which a job has anyway.
const LAST_STANDARD: RawFd = 2;

/// Marks everything above stderr close-on-exec. Without `/proc` nothing is marked.
pub(super) fn keep_from_children() {
    let Ok(open) = fs::read_dir("/proc/self/fd") else {
        tracing::debug!("no /proc: inherited descriptors, if any, are handed on to jobs");
        return;
    };
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for number in numbers.filter(|number: &RawFd| *number > LAST_STANDARD) {
        close_on_exec(number);
    }
}

/// Lets this process open as many files as it may: it needs a few for each attempt. The soft
/// limit that it was started with, which jobs get; it is low for the sake of programs that use
/// select(2).
pub(super) fn raise_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    let before = limit.current;
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "failed to raise the limit of open files");
    }
    before
}

#[expect(
    unsafe_code,
    reason = "an inherited descriptor is known by its number alone"
)]
fn close_on_exec(number: RawFd) {
    // SAFETY: the borrow ends with the call. Nothing is read, written or closed through it; a
    // flag is set that every descriptor opened by Rust code has already. Should another thread
    // have closed the number since, the call fails with EBADF.
    let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
    if let Err(error) = fcntl_setfd(descriptor, FdFlags::CLOEXEC) {
        tracing::trace!(number, %error, "a descriptor was closed in the meantime");
    }
}
