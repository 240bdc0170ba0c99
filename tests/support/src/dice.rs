//! Chance from a seed: the same seed makes the same choices once more.

use std::time::{SystemTime, UNIX_EPOCH};

/// SplitMix64 (Steele, Lea and Flood, 2014).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// All that comes of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a limit, which is more than 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit
    }

    /// A number from one to another, both included.
    pub fn between(&mut self, (from, to): (u64, u64)) -> u64 {
        from + self.below(to - from + 1)
    }

    /// A place in something of this length.
    ///
    /// # Panics
    ///
    /// When it is empty.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a length")
    }

    /// Puts all into another order.
    pub fn shuffle<T>(&mut self, all: &mut [T]) {
        for last in (1..all.len()).rev() {
            all.swap(last, self.index(last + 1));
        }
    }
}

/// A seed that nobody has chosen.
///
/// # Panics
///
/// When the clock is before 1970.
#[must_use]
pub fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::from(now.expect("a time after 1970").subsec_nanos())
}

/// A whole number from the environment.
///
/// # Panics
///
/// When there is something else.
#[must_use]
pub fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a whole number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_choices_again_and_another_makes_others() {
        let some = |seed| {
            let mut dice = Dice::new(seed);
            let mut all: Vec<u64> = (0..20).collect();
            dice.shuffle(&mut all);
            all.push(dice.below(1 << 40));
            all
        };
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
    }

    #[test]
    fn numbers_between_two_reach_both() {
        let mut dice = Dice::new(1);
        let drawn: std::collections::BTreeSet<u64> =
            (0..100).map(|_| dice.between((3, 5))).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
    }
}
