//! Orders: what people and programs ask of a job, sent to the store, and what its answer means.
//!
//! Must never: talk to a replica. What the store has written down is done by whoever is there,
//! now or later.

mod absence;
#[cfg(test)]
pub(crate) mod fixtures;
mod sending;
mod telling;

pub(crate) use self::absence::absence;
pub(crate) use self::sending::{Request, Said, Sender};
pub(crate) use self::telling::{Told, Wire, tell, unknown};
