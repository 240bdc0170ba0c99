//! When an attempt is asked to end, and when it is made to: its timeout, its lease, an order.
//!
//! ```text
//!   running ── timeout ────────────▶ asked ── kill_grace, or the end of trust ──▶ aborted
//!      ├───── guard's stop_at ─────▶   │ the first reason stays
//!      └───── an order, with a grace ▶─┘
//! ```
//!
//! Must never: read a clock, or let an attempt go on past the end of its guard.

use std::time::Duration;

use super::context::CancelReason;
use crate::scheduler::Guard;
use crate::scheduler::time::BootTime;

/// What its replica wants of an attempt, as it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) guard: Guard,
    /// When it is made to end, where it was told to.
    pub(super) kill_at: Option<BootTime>,
}

/// Why an attempt was cut short; what it was asked first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CutShort {
    /// Its replica asked for it.
    Stopped,
    /// It ran for longer than it may.
    TimedOut { after: Duration },
    /// Its lease was not renewed in time.
    LeaseExpired,
}

/// How far an attempt has got.
#[derive(Debug)]
pub(super) struct Course {
    timeout: Option<(BootTime, Duration)>,
    kill_grace: Duration,
    pub(super) cut_short: Option<CutShort>,
    kill_at: Option<BootTime>,
}

impl Course {
    pub(super) fn new(began: BootTime, timeout: Option<Duration>, kill_grace: Duration) -> Self {
        Self {
            timeout: timeout.map(|timeout| (began + timeout, timeout)),
            kill_grace,
            cut_short: None,
            kill_at: None,
        }
    }

    /// Goes on to `now`. Answers why the attempt is to be asked to end, where that is new and nobody
    /// has done it.
    pub(super) fn go_on(&mut self, now: BootTime, limits: Limits) -> Option<CancelReason> {
        if let Some(at) = limits.kill_at {
            // Who gave the order has asked it too.
            self.cut(CutShort::Stopped, at);
        }
        if now >= limits.guard.stop_at && self.cut_short.is_none() {
            self.cut(CutShort::LeaseExpired, limits.guard.kill_at);
            return Some(CancelReason::LeaseExpiring);
        }
        let (_, after) = self.timeout.filter(|(at, _)| now >= *at)?;
        if self.cut_short.is_some() {
            return None;
        }
        self.cut(CutShort::TimedOut { after }, now + self.kill_grace);
        Some(CancelReason::TimedOut)
    }

    /// Whether it is to be made to end.
    pub(super) fn is_over(&self, now: BootTime, limits: Limits) -> bool {
        now >= self.end(limits)
    }

    /// When there is something to do next, unless the limits change.
    pub(super) fn next_at(&self, limits: Limits) -> BootTime {
        let end = self.end(limits);
        if self.cut_short.is_some() {
            return end;
        }
        let timeout = self.timeout.map_or(end, |(at, _)| at);
        end.min(timeout).min(limits.guard.stop_at)
    }

    fn end(&self, limits: Limits) -> BootTime {
        let trusted = limits.guard.kill_at;
        self.kill_at.map_or(trusted, |at| at.min(trusted))
    }

    fn cut(&mut self, why: CutShort, kill_at: BootTime) {
        self.cut_short.get_or_insert(why);
        self.kill_at = Some(self.kill_at.map_or(kill_at, |before| before.min(kill_at)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: u64) -> BootTime {
        BootTime::since_boot(Duration::from_secs(second))
    }

    fn limits(stop: u64, kill: u64) -> Limits {
        Limits {
            guard: Guard {
                stop_at: at(stop),
                kill_at: at(kill),
            },
            kill_at: None,
        }
    }

    const GRACE: Duration = Duration::from_secs(5);

    #[test]
    fn a_lease_that_is_not_renewed_ends_the_attempt_before_it_runs_out() {
        let mut course = Course::new(at(0), None, GRACE);
        let limits = limits(10, 14);
        assert_eq!(course.next_at(limits), at(10));
        assert_eq!(course.go_on(at(9), limits), None);
        let asked = course.go_on(at(10), limits);
        assert_eq!(asked, Some(CancelReason::LeaseExpiring));
        assert!(!course.is_over(at(13), limits) && course.is_over(at(14), limits));
        assert_eq!(course.cut_short, Some(CutShort::LeaseExpired));
    }

    #[test]
    fn a_renewal_that_comes_once_the_attempt_was_asked_to_end_takes_nothing_back() {
        let mut course = Course::new(at(0), None, GRACE);
        assert!(course.go_on(at(10), limits(10, 14)).is_some());
        let renewed = limits(30, 34);
        assert_eq!(course.go_on(at(11), renewed), None);
        assert!(course.is_over(at(14), renewed));
    }

    #[test]
    fn a_renewal_in_time_moves_the_end() {
        let mut course = Course::new(at(0), None, GRACE);
        assert_eq!(course.go_on(at(12), limits(30, 34)), None);
        assert_eq!(course.next_at(limits(30, 34)), at(30));
    }

    #[test]
    fn a_timeout_leaves_the_grace_but_never_more_than_the_lease() {
        let mut course = Course::new(at(0), Some(Duration::from_secs(8)), GRACE);
        let limits = limits(10, 12);
        assert_eq!(course.next_at(limits), at(8));
        assert_eq!(course.go_on(at(8), limits), Some(CancelReason::TimedOut));
        assert_eq!(course.next_at(limits), at(12));
        assert!(course.is_over(at(12), limits));
        assert!(matches!(course.cut_short, Some(CutShort::TimedOut { .. })));
    }

    #[test]
    fn of_two_orders_the_shorter_grace_counts_and_the_first_reason() {
        let mut course = Course::new(at(0), Some(Duration::from_secs(8)), GRACE);
        let mut limits = limits(100, 110);
        limits.kill_at = Some(at(9));
        assert_eq!(course.go_on(at(4), limits), None);
        limits.kill_at = Some(at(7));
        assert_eq!(course.go_on(at(5), limits), None);
        assert!(course.is_over(at(7), limits));
        assert_eq!(course.go_on(at(8), limits), None);
        assert_eq!(course.cut_short, Some(CutShort::Stopped));
    }
}
