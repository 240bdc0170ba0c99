//! The laws, each a function that takes a fresh ledger of any engine.

pub(crate) mod batches;
pub(crate) mod claims;
pub(crate) mod definitions;
pub(crate) mod histories;
pub(crate) mod leases;
pub(crate) mod sale;
pub(crate) mod tables;
pub(crate) mod takeovers;
pub(crate) mod telling;
pub(crate) mod watching;
