//! The hash behind `H`.
//!
//! It must never change: a job's times would move with an update of soloist, and for the time of
//! a rolling update two replicas would disagree about what is due. So it is spelled out here,
//! and a test holds its values; the hashers of the standard library promise no such thing.

use crate::scheduler::spread::Spread;

/// A number for a job's name and the index of a field, the same everywhere and for ever.
pub(super) fn hash(name: &str, field: u8) -> u64 {
    Spread::default()
        .bytes(name.as_bytes())
        .bytes(&[field])
        .number()
}
