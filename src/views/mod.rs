//! What the ledger holds, as JSON: the same by `--json` and by HTTP.
//!
//! Must never: connect, read a clock, or show what a job is given, which may be secret.

pub(crate) mod history;
pub(crate) mod leases;
pub(crate) mod status;
