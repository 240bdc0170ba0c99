//! The Redis store against real servers: what becomes of steps that
//! meet, and of leases when a server dies, forgets, freezes, fills up or refuses.

mod basics;
mod contention;
mod crossing;
mod faults;
mod figures;
mod loss;
mod world;
