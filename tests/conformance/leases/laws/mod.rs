//! The laws of named leases, each a function that takes an empty place of any engine.

pub(crate) mod having;
pub(crate) mod keeping;
pub(crate) mod losing;
pub(crate) mod tidying;
pub(crate) mod waiting;
