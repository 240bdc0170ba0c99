//! The only reader of clocks.

use crate::scheduler::time::{BootTime, Timestamp};

/// A reader of this host's clocks.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The wall clock.
    fn wall(&self) -> Timestamp;
    /// The boot clock.
    fn boot(&self) -> BootTime;
}
