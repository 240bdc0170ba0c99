//! The Redis store against real servers: that its scripts say what the rules say, and what
//! becomes of leases when a server dies, forgets, freezes, fills up or refuses.

mod basics;
mod differential;
mod faults;
mod figures;
mod loss;
mod world;
