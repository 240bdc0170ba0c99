//! A timer on CLOCK_BOOTTIME for a process that waits by poll(2), without a runtime.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::to_timespec;
use crate::scheduler::time::BootTime;

/// Readable from the instant that it is set to. Like a [`super::BootTimer`] it is due at once
/// after a suspension that the instant fell into, which the time-out of poll(2) is not.
#[derive(Debug)]
pub(crate) struct BootAlarm {
    timer: OwnedFd,
    set_to: Option<BootTime>,
}

impl BootAlarm {
    /// An alarm that is not set.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Boottime, flags)?;
        Ok(Self {
            timer,
            set_to: None,
        })
    }

    /// Sets it anew, or for `None` not at all. Set again to an instant that has passed, it is
    /// readable still.
    pub(crate) fn set(&mut self, at: Option<BootTime>) -> io::Result<()> {
        if self.set_to == at {
            return Ok(());
        }
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = Itimerspec {
            it_interval: zero,
            it_value: at.map_or(zero, |at| to_timespec(at.as_duration())),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        self.set_to = at;
        Ok(())
    }
}

impl AsFd for BootAlarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
