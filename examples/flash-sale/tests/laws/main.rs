//! The laws of the example, with a real Redis, real books, and processes that are killed and frozen:
//! no item is sold twice, none is lost, and a sale is opened and closed once.
//!
//! Must never: wait by sleeping for so long as should do.

mod draining;
mod market;
mod opening;
mod rush;
mod words;

use std::time::Duration;

/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);
