//! Replicas in virtual time: the real scheduler core and the real rules of the store, with a
//! network that loses and delays, replicas that crash and freeze, and one seed that decides
//! everything. `SEED=n cargo test --test simulation` replays a seed.

mod accounting;
mod calls;
mod chance;
mod clock_steps;
mod clocks;
mod direct;
mod guards;
mod happening;
mod laws;
mod loss;
mod policies;
mod recovery;
mod reloading;
mod rollout;
mod table;
mod upkeep;
mod world;
mod year;
