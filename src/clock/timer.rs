//! A timer of whichever clock it goes by.
//!
//! Must never: fire early by its clock.

use super::BootTimer;
use super::manual::ManualTimer;
use crate::scheduler::time::BootTime;

/// Waits for instants of one clock's boot time: what [`super::Clock::timer`] gives.
#[derive(Debug)]
pub struct Timer(Kind);

#[derive(Debug)]
enum Kind {
    Host(BootTimer),
    Manual(ManualTimer),
}

impl Timer {
    pub(super) fn of_host(timer: BootTimer) -> Self {
        Self(Kind::Host(timer))
    }

    pub(super) fn manual(timer: ManualTimer) -> Self {
        Self(Kind::Manual(timer))
    }

    /// It goes by the host's clock, at the pace of everything else.
    pub(crate) fn is_of_host(&self) -> bool {
        matches!(self.0, Kind::Host(_))
    }

    /// Completes at `at`, at once if that has passed; never for `None`. Cancel safe.
    pub async fn sleep_until(&mut self, at: Option<BootTime>) {
        match &mut self.0 {
            Kind::Host(timer) => timer.sleep_until(at).await,
            Kind::Manual(timer) => timer.sleep_until(at).await,
        }
    }
}
