//! Chance that every replica draws alike: numbers hashed from what an occurrence is.
//!
//! Must never: depend on a replica, a process or a version of the standard library; a fleet in
//! the middle of an upgrade must still agree.

use super::lease::Occurrence;

/// FNV-1a with 64 bits (draft-eastlake-fnv) over what it was told, finished by the mixer of
/// SplitMix64, because the low bits of FNV alone barely differ between inputs that differ at
/// their end, and a remainder looks at those.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread(u64);

impl Default for Spread {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Spread {
    /// Begins with what is drawn, so that two draws for one occurrence differ, and for what.
    pub(super) fn of(purpose: &str, occurrence: &Occurrence) -> Self {
        let at = occurrence.scheduled_at.as_millis();
        Self::default()
            .bytes(purpose.as_bytes())
            .bytes(&[0])
            .bytes(occurrence.job.as_str().as_bytes())
            .bytes(&[0])
            .bytes(&at.to_be_bytes())
    }

    /// Takes in another number.
    pub(super) fn and(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// Takes in bytes.
    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
        }
        self
    }

    /// The number drawn.
    pub(crate) fn number(self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// The number drawn, as a part of 1: from 0, below 1.
    pub(super) fn fraction(self) -> f64 {
        // The upper 53 bits: all that an f64 holds exactly.
        (self.number() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduler::job::JobName;
    use crate::scheduler::time::Timestamp;

    fn draw(purpose: &str, second: i64) -> Spread {
        let occurrence = Occurrence {
            job: JobName::new("close-expired-orders").unwrap(),
            scheduled_at: Timestamp::from_second(second),
        };
        Spread::of(purpose, &occurrence)
    }

    #[test]
    fn what_is_drawn_never_changes_between_versions() {
        let drawn = draw("retry", 1_795_212_000).number();
        assert_eq!(drawn, 6_137_507_869_434_135_533);
    }

    #[test]
    fn successive_occurrences_are_spread_evenly() {
        let mut tenths = [0; 10];
        for second in 0..10_000 {
            tenths[(draw("delay", second).fraction() * 10.0) as usize] += 1;
        }
        let even = tenths.iter().all(|count| (850..1150).contains(count));
        assert!(even, "{tenths:?}");
    }
}
