//! All chance of a sequence, from its seed.

use uuid::Uuid;

/// xorshift64* (Vigna 2014).
#[derive(Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        // Seeds that follow each other begin far apart; zero would stay zero.
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }

    /// The same for what is counted in memory.
    pub(crate) fn index(&mut self, limit: usize) -> usize {
        self.below(limit as u64) as usize
    }

    /// One time out of so many.
    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Some value one time out of so many.
    pub(crate) fn some<T>(&mut self, times: u64, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.one_in(times).then(|| value(self))
    }

    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        match all.len() {
            0 => None,
            length => all.get(self.index(length)),
        }
    }

    /// One of those that came last, where there are many.
    pub(crate) fn recent<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        const RECENT: usize = 12;
        self.of(&all[all.len().saturating_sub(RECENT)..])
    }

    pub(crate) fn uuid(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.next(), self.next())
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.below(256) as u8).collect()
    }
}
