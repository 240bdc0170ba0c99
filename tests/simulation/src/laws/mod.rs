//! What must hold in every world, one thing at a time.

mod accounting;
mod clock_steps;
mod clocks;
mod direct;
mod guards;
mod loss;
mod policies;
mod recovery;
mod reloading;
mod rollout;
mod steady;
mod year;
