//! What the outside may ask of a running driver.
//!
//! Must never: wait for an answer of the loop without a time-out; it may be what is stuck.

use tokio::sync::oneshot;

use crate::scheduler::Reload;
use crate::scheduler::job::JobName;
use crate::scheduler::time::Timestamp;

/// What the outside may ask of a running driver.
#[derive(Debug)]
pub enum Request {
    /// Take no new work, let what runs end within `shutdown_grace`, give the leases back, end.
    Drain,
    /// Kill what runs and end.
    Abort,
    /// Go on with another table.
    Reload(Box<Reload>),
    /// Another table could not be read: say so to whoever asks, and go on with this one.
    TableRefused {
        /// Why, in a line, without secrets.
        cause: String,
    },
    /// Look at jobs whose timer is outside: it is at work.
    Poke {
        /// Those that it has.
        jobs: Vec<JobName>,
        /// What the host's clock said.
        wall: Timestamp,
    },
    /// Answer, as a sign that the loop turns.
    Ping(oneshot::Sender<()>),
}
