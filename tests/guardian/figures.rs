//! Durations of many tries, and what is said of them.

use std::fmt::Write as _;
use std::time::Duration;

use test_support::fleet::now_ns;
use test_support::machine::stood_still;

/// From when something is measured, on a machine that may stand still meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Since {
    pub(crate) at_ns: i128,
    still: Duration,
}

impl Since {
    pub(crate) fn now() -> Self {
        Self {
            at_ns: now_ns(),
            still: stood_still(),
        }
    }

    /// How long the machine has stood still since, in nanoseconds.
    pub(crate) fn still_ns(self) -> i128 {
        nanos(stood_still() - self.still)
    }

    /// How long it has run since, in nanoseconds.
    pub(crate) fn ran_ns(self) -> i128 {
        now_ns() - self.at_ns - self.still_ns()
    }
}

/// What several tries of one thing took; a try that had no end is lost.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    nanos: Vec<i128>,
    lost: usize,
}

impl Figures {
    pub(crate) fn add(&mut self, took_ns: Option<i128>) {
        match took_ns {
            Some(took) => self.nanos.push(took),
            None => self.lost += 1,
        }
    }

    pub(crate) fn tries(&self) -> usize {
        self.nanos.len() + self.lost
    }

    /// How many had no end.
    pub(crate) fn lost(&self) -> usize {
        self.lost
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.nanos.extend(&other.nanos);
        self.lost += other.lost;
    }

    /// The nearest rank; none where nothing had an end.
    fn percentile(&self, percent: usize) -> Option<i128> {
        let mut sorted = self.nanos.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted.get(rank - 1).copied()
    }

    pub(crate) fn min(&self) -> Option<i128> {
        self.nanos.iter().min().copied()
    }

    /// `12 tries: p50 3.2 ms, p99 9.1 ms, max 9.1 ms`.
    pub(crate) fn tell(&self) -> String {
        let mut text = format!("{} tries:", self.tries());
        for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            if let Some(value) = self.percentile(percent) {
                let _ = write!(text, " {name} {},", millis(value));
            }
        }
        if self.lost > 0 {
            let _ = write!(text, " {} HAD NO END,", self.lost);
        }
        text.pop();
        text
    }

    /// Every try had an end, none after more than this.
    pub(crate) fn assert_within(&self, what: &str, limit: Duration) {
        assert!(self.tries() > 0, "{what}: nothing was tried");
        let late = self.nanos.iter().filter(|took| **took > nanos(limit));
        let late = late.count();
        assert_eq!(
            (late, self.lost),
            (0, 0),
            "{what}: (later than {limit:?}, never); {}",
            self.tell()
        );
    }
}

pub(crate) fn nanos(duration: Duration) -> i128 {
    i128::try_from(duration.as_nanos()).expect("a short time")
}

/// `3.2 ms`.
pub(crate) fn millis(nanos: i128) -> String {
    format!("{}.{} ms", nanos / 1_000_000, nanos.abs() / 100_000 % 10)
}

#[test]
fn percentiles_are_of_the_nearest_rank_and_what_is_lost_is_said() {
    let mut figures = Figures::default();
    for millis in (1..=60).rev() {
        figures.add(Some(millis * 1_000_000));
    }
    assert_eq!(
        figures.tell(),
        "60 tries: p50 30.0 ms, p99 60.0 ms, max 60.0 ms"
    );
    figures.add(None);
    assert!(figures.tell().ends_with("1 HAD NO END"), "{figures:?}");
    assert_eq!((figures.lost(), figures.min()), (1, Some(1_000_000)));
}
