//! How many notifications came through, for metrics.
//!
//! Must never: hold more than numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// By which way people are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    /// A request with a JSON body.
    Webhook,
    /// A mail.
    Email,
    /// A dead-man's switch.
    Ping,
}

impl Channel {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Webhook, Self::Email, Self::Ping];

    /// As metrics and logs spell it.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Webhook => "webhook",
            Self::Email => "email",
            Self::Ping => "ping",
        }
    }
}

/// What became of the notifications of this process.
#[derive(Debug, Default)]
pub(crate) struct Counts([Row; 3]);

#[derive(Debug, Default)]
struct Row {
    delivered: AtomicU64,
    failed: AtomicU64,
    dropped: AtomicU64,
}

/// The same of one channel, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Somebody took them.
    pub(crate) delivered: u64,
    /// Nobody took them, for good or for too long.
    pub(crate) failed: u64,
    /// There was no room for them.
    pub(crate) dropped: u64,
}

/// What became of one notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fate {
    Delivered,
    Failed,
    Dropped,
}

impl Counts {
    pub(super) fn add(&self, channel: Channel, fate: Fate) {
        let row = &self.0[channel as usize];
        let number = match fate {
            Fate::Delivered => &row.delivered,
            Fate::Failed => &row.failed,
            Fate::Dropped => &row.dropped,
        };
        number.fetch_add(1, Ordering::Relaxed);
    }

    /// All of them: by which way, what came of it, how many.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Channel, &'static str, u64)> + '_ {
        Channel::ALL.into_iter().flat_map(|channel| {
            let count = self.of(channel);
            [
                (channel, "delivered", count.delivered),
                (channel, "failed", count.failed),
                (channel, "dropped", count.dropped),
            ]
        })
    }

    /// How many there were so far.
    pub(crate) fn of(&self, channel: Channel) -> Count {
        let row = &self.0[channel as usize];
        Count {
            delivered: row.delivered.load(Ordering::Relaxed),
            failed: row.failed.load(Ordering::Relaxed),
            dropped: row.dropped.load(Ordering::Relaxed),
        }
    }
}
