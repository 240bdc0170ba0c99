//! Replicas in virtual time: the real scheduler core and the real rules of the store, with a
//! network that loses and delays, replicas that crash and freeze, and one seed that decides
//! everything. `SEED=n make simulate` replays a seed.
//!
//! Must never: let anything but the seed decide, or look at a real clock.

pub mod accounts;
pub mod chance;
pub mod checks;
pub mod hand;
mod happening;
pub mod jobs;
#[cfg(test)]
mod laws;
pub mod leases;
pub mod report;
#[cfg(test)]
mod seeds;
pub mod storm;
pub mod world;
