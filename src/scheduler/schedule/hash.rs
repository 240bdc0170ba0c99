//! The hash behind `H`.
//!
//! It must never change: a job's times would move with an update of soloist, and for the time of
//! a rolling update two replicas would disagree about what is due. So it is spelled out here,
//! and a test holds its values; the hashers of the standard library promise no such thing.

/// A number for a job's name and the index of a field, the same everywhere and for ever: FNV-1a
/// with 64 bits (draft-eastlake-fnv) over the name and then the index as one byte, finished by
/// the mixer of SplitMix64, because the low bits of FNV alone barely differ from one index to
/// the next, and a remainder by 60 looks at those.
pub(super) fn hash(name: &str, field: u8) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let bytes = name.bytes().chain([field]);
    let fnv = bytes.fold(OFFSET_BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    let mixed = (fnv ^ (fnv >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
