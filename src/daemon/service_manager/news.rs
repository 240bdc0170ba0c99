//! What there is to tell, by how this replica is and by what was told before.
//!
//! Must never: read a clock or send anything; it says what is to be sent.

use std::fmt;
use std::time::Duration;

use crate::health::{Health, Phase};

/// The longest line of status, in bytes. The service manager drops messages over 4 KiB.
const STATUS_LIMIT: usize = 512;

/// A line of a message, as in sd_notify(3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The start is over, or a reload is.
    Ready,
    /// The table is being read again, since this time on CLOCK_MONOTONIC.
    Reloading { since: Duration },
    /// It drains.
    Stopping,
    /// How it is, for people.
    Status(String),
    /// The loop turns.
    Watchdog,
    /// It takes that much longer, from now on.
    ExtendTimeout(Duration),
}

impl Line {
    pub(super) fn is_status(&self) -> bool {
        matches!(self, Self::Status(_))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => write!(f, "READY=1"),
            Self::Reloading { since } => {
                write!(f, "RELOADING=1\nMONOTONIC_USEC={}", since.as_micros())
            }
            Self::Stopping => write!(f, "STOPPING=1"),
            Self::Status(status) => write!(f, "STATUS={status}"),
            Self::Watchdog => write!(f, "WATCHDOG=1"),
            Self::ExtendTimeout(by) => write!(f, "EXTEND_TIMEOUT_USEC={}", by.as_micros()),
        }
    }
}

/// What was told so far.
#[derive(Debug, Default)]
pub(super) struct Told {
    ready: bool,
    stopping: bool,
    /// When the newest reload began that it was told of.
    reload: Option<Duration>,
    /// It was told of a reload, and not of its end.
    reloading: bool,
    status: Option<String>,
}

impl Told {
    /// The messages that are due now. A status that goes with nothing else is left out unless
    /// `may_chat`.
    pub(super) fn news(&mut self, health: &Health, may_chat: bool) -> Vec<Vec<Line>> {
        let mut messages = Vec::new();
        if health.phase == Phase::Draining {
            if !self.stopping {
                messages.push(vec![Line::Stopping]);
                self.stopping = true;
            }
        } else if self.ready {
            messages.extend(self.news_of_reloads(health));
        } else if has_started(health) {
            messages.push(vec![Line::Ready]);
            self.ready = true;
            // One before the start was over was a part of it.
            self.reload = health.table.reload_began;
        }
        let status = in_a_line(&health.in_words());
        let is_new = self.status.as_ref() != Some(&status);
        if is_new && (may_chat || !messages.is_empty()) {
            self.status = Some(status.clone());
            match messages.last_mut() {
                Some(message) => message.push(Line::Status(status)),
                None => messages.push(vec![Line::Status(status)]),
            }
        }
        messages
    }

    /// A reload is told even where it was over before anybody looked: somebody may wait for it.
    fn news_of_reloads(&mut self, health: &Health) -> Vec<Vec<Line>> {
        let mut messages = Vec::new();
        if let Some(since) = health.table.reload_began
            && self.reload != Some(since)
        {
            messages.push(vec![Line::Reloading { since }]);
            self.reload = Some(since);
            self.reloading = true;
        }
        if self.reloading && !health.table.reloading {
            messages.push(vec![Line::Ready]);
            self.reloading = false;
        }
        messages
    }
}

/// Whether nothing is left at which this replica could fail by itself: it works, or it waits for a
/// store that is away. A service manager that waited for the store as well would end and start this
/// replica again and again, and hold up the boot of its host.
fn has_started(health: &Health) -> bool {
    health.phase == Phase::Ready || health.store_away.is_some()
}

/// Without ends of lines, which would be other assignments, and not too long.
fn in_a_line(text: &str) -> String {
    let mut line = text.replace(|c: char| c.is_control(), " ");
    if line.len() > STATUS_LIMIT {
        line.truncate(line.floor_char_boundary(STATUS_LIMIT));
        line.push('…');
    }
    line
}
