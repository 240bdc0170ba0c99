//! The Redis store against real servers: the ways to them, what becomes of steps that meet, and
//! of leases when a server, or the link to it, dies, forgets, freezes, fills up or refuses.

mod access;
mod acknowledged;
mod basics;
mod catching_up;
mod cluster;
mod contention;
mod crossing;
mod faults;
mod figures;
mod forgetting;
mod held;
mod links;
mod loss;
mod older;
mod quorum;
mod refusals;
mod sentinel;
mod shards;
mod tls;
mod tls_many;
mod ways;
mod world;
