//! What runs attempts: processes in the daemon, functions where the library is embedded.
//!
//! Must never: decide whether an attempt may run; that is settled when it gets here.

use std::time::Duration;

use crate::scheduler::lease::RunId;
use crate::scheduler::{Attempt, Ending, Guard, StopReason};

/// Told once how an attempt ended, when nothing of it runs any more. It must not block.
pub type OnEnd = Box<dyn FnOnce(Ending) + Send>;

/// Runs attempts. None of this waits: it is called from within the driver's loop.
///
/// Whoever runs an attempt ends it by its [`Guard`] without being told to: a loop that is stuck
/// tells nothing.
pub trait Attempts: Send {
    /// Starts an attempt, whose end is told once, always: that it could not be started is an
    /// ending as well.
    fn start(&mut self, attempt: Attempt, on_end: OnEnd);
    /// Ends one, if it runs: it is asked to, and made to after `grace` at the latest. Said again,
    /// the shorter grace counts.
    fn stop(&mut self, run_id: RunId, reason: StopReason, grace: Duration);
    /// Lets one, if it runs, run for longer than its last guard said.
    fn guard(&mut self, run_id: RunId, guard: Guard);
    /// One has ended, and nothing more is asked of it.
    fn forget(&mut self, run_id: RunId);
    /// Ends all of them at once.
    fn kill_all(&mut self);
}
