//! How long it takes until something that failed is tried again: twice as long after each
//! further failure, and never the same for two replicas, so that a server which comes back isn't
//! met by all of them at once.
//!
//! Must never: grow without end, or be nothing at all.

use std::time::Duration;

use super::chance;

/// What comes after each failure.
#[derive(Debug)]
pub(super) struct BackOff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl BackOff {
    pub(super) const fn new(first: Duration, longest: Duration) -> Self {
        Self {
            first,
            longest,
            next: first,
        }
    }

    /// The pause after one more failure: the upper half of it is by chance.
    pub(super) fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.longest);
        let [chance, ..] = chance::uuid().into_bytes();
        whole / 2 + whole / 2 * u32::from(chance) / u32::from(u8::MAX)
    }

    /// It went well: the next failure is a first one.
    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const FIRST: Duration = Duration::from_millis(20);
    const LONGEST: Duration = Duration::from_millis(500);

    #[test]
    fn pauses_double_up_to_the_longest_and_begin_anew() {
        let mut back_off = BackOff::new(FIRST, LONGEST);
        for whole in [20, 40, 80, 160, 320, 500, 500] {
            let whole = Duration::from_millis(whole);
            let pause = back_off.pause();
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} {whole:?}");
        }
        back_off.reset();
        assert!(back_off.pause() <= FIRST);
    }

    #[test]
    fn replicas_do_not_come_back_in_step() {
        let pauses: HashSet<Duration> = (0..20)
            .map(|_| BackOff::new(LONGEST, LONGEST).pause())
            .collect();
        assert!(pauses.len() > 10, "{pauses:?}");
    }
}
