//! What is left to chance here: pauses, and the names of those who propose.
//!
//! Must never: be what safety hangs on, or be guessable where it is not a test's own.

use uuid::Uuid;

/// A number that nobody has had before.
pub(super) fn uuid() -> Uuid {
    #[cfg(test)]
    if let Some(uuid) = seeded::uuid() {
        return uuid;
    }
    Uuid::new_v4()
}

/// The same by a seed, on the thread of one test: what it found can be found again.
#[cfg(test)]
pub(super) mod seeded {
    use std::cell::Cell;

    use uuid::Uuid;

    thread_local! {
        static STATE: Cell<Option<u64>> = const { Cell::new(None) };
    }

    /// From now on, on this thread.
    pub(in crate::store::redis) fn begin(seed: u64) {
        STATE.set(Some(seed));
    }

    /// The next number (Steele and others, "Fast splittable pseudorandom number generators", 2014).
    pub(in crate::store::redis) fn next() -> Option<u64> {
        let state = STATE.get()?.wrapping_add(0x9e37_79b9_7f4a_7c15);
        STATE.set(Some(state));
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Some(mixed ^ (mixed >> 31))
    }

    pub(super) fn uuid() -> Option<Uuid> {
        Some(Uuid::from_u64_pair(next()?, next()?))
    }
}
