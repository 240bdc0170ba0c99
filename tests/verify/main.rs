//! `soloist verify` as a user has it: the real command against real stores, short. What it says,
//! what it leaves, and that it can say no.
//!
//! Must never: take the command's own word for what it left.

mod held;
mod scene;
mod told;
mod wrong;
