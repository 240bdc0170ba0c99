//! Orders: what people and programs ask of a job, sent to the store, and what its answer means.
//!
//! Must never: talk to a replica. What the store has written down is done by whoever is there,
//! now or later.

#[cfg(feature = "daemon")]
mod absence;
#[cfg(feature = "daemon")]
#[cfg(test)]
pub(crate) mod fixtures;
mod sending;
#[cfg(feature = "daemon")]
mod telling;

#[cfg(feature = "daemon")]
pub(crate) use self::absence::absence;
pub(crate) use self::sending::{Request, Said, Sender};
#[cfg(feature = "daemon")]
pub(crate) use self::telling::{Told, Wire, tell, unknown};
