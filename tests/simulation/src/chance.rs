//! All the chance of a world, from one seed.

/// A small generator (xorshift64*, Vigna 2014): all chance comes from the seed.
pub struct Chance(u64);

impl Chance {
    /// All that follows from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below a limit; 0 where that is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.draw() >> 11) % limit.max(1)
    }

    /// True in so many of a hundred cases.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}
