//! Which of the servers answer, told when it changes.
//!
//! Must never: decide anything. Who is slow once may be well.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many looks in a row a server may miss.
const MISSED: u32 = 2;

/// Who answered the last looks.
pub(super) struct Presence {
    missed: Vec<AtomicU32>,
}

/// What is new about a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Away(usize),
    Back(usize),
}

impl Presence {
    pub(super) fn of(all: usize) -> Self {
        Self {
            missed: (0..all).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// These have answered a look, and no others.
    pub(super) fn saw(&self, answered: &[usize]) -> Vec<Change> {
        let mut changes = Vec::new();
        for (number, missed) in self.missed.iter().enumerate() {
            let before = missed.load(Ordering::Relaxed);
            let now = match answered.contains(&number) {
                true => 0,
                false => before.saturating_add(1),
            };
            missed.store(now, Ordering::Relaxed);
            match (before >= MISSED, now >= MISSED) {
                (false, true) => changes.push(Change::Away(number)),
                (true, false) => changes.push(Change::Back(number)),
                _ => {}
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_misses_two_looks_is_away_until_it_answers_one_and_each_is_told_once() {
        let presence = Presence::of(3);
        assert_eq!(presence.saw(&[0, 1]), []);
        assert_eq!(presence.saw(&[0, 1]), [Change::Away(2)]);
        assert_eq!(presence.saw(&[0, 1]), []);
        assert_eq!(presence.saw(&[0, 1, 2]), [Change::Back(2)]);
        assert_eq!(presence.saw(&[0, 2]), []);
        assert_eq!(presence.saw(&[0, 1, 2]), [], "once is nothing");
    }
}
