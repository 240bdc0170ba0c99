//! Fleets, and the clock that their runs are held against.

use std::time::Duration;

pub(crate) use test_support::fleet::{Fleet, Replica, SOON, now_ns};

/// An RFC 3339 instant in nanoseconds since the epoch.
pub(crate) fn instant_ns(text: &str) -> i128 {
    let instant: jiff::Timestamp = text.parse().expect("an instant");
    instant.as_nanosecond()
}

pub(crate) fn sleep_until_ns(at: i128) {
    let left = u64::try_from(at - now_ns()).unwrap_or(0);
    std::thread::sleep(Duration::from_nanos(left));
}
