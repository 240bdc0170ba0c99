//! Who is told how a job goes, and of what.
//!
//! Must never: show the address of a ping, of which the path is a secret.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::lease::{Telling, Topic, Topics};
use super::request::Template;

/// A job that goes on to fail is told of again after so long, where it doesn't say.
pub const REPEAT: Duration = Duration::from_secs(3600);

/// `notify` of a job.
#[derive(Clone, PartialEq, Eq)]
pub struct Notify {
    /// Who is told, of what, and how often. Default: nobody; of everything, and again each hour
    /// while it lasts.
    pub telling: Telling,
    /// Where a dead-man's switch hears of each start and end. Default: none.
    pub ping: Option<Ping>,
}

/// A dead-man's switch, in the style of healthchecks services.
#[derive(Clone, PartialEq, Eq)]
pub struct Ping {
    /// Its address, to which what happened is added.
    pub url: Template,
    /// Whether what the attempt printed last goes with its end. Default: no, as it may hold
    /// anything.
    pub output: bool,
}

impl Default for Notify {
    fn default() -> Self {
        Self {
            telling: Telling {
                to: Arc::default(),
                topics: Topics::from_iter(Topic::ALL),
                repeat: REPEAT,
            },
            ping: None,
        }
    }
}

impl Notify {
    /// Nobody is told anything.
    pub fn is_nobody(&self) -> bool {
        self.telling.to.is_empty() && self.ping.is_none()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field has to be thought of here.
        let Self { telling, ping } = self;
        f.debug_struct("Notify")
            .field("telling", telling)
            .field("ping", ping)
            .finish()
    }
}

impl fmt::Debug for Ping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, output } = self;
        f.debug_struct("Ping")
            .field("url", &"***")
            .field("output", output)
            .finish()
    }
}
