//! Why a lease was not acquired.
//!
//! Must never: show a secret of a URL.

use std::time::Duration;

use crate::scheduler::lease::{
    Busy, LeaseName, LeaseNameError, NAMES_PER_HOLD_LIMIT, WAITING_LIMIT,
};
use crate::scheduler::margins::{LONGEST_TTL, SHORTEST_TTL};
use crate::store::StoreError;

/// Why a lease was not acquired.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// Somebody has it, or came first, and it was not to be waited for.
    #[error("{}", busy(.0))]
    Busy(Busy),
    /// The time to wait for it is over, and somebody else has it still, or came first.
    #[error("{}, and the time to wait for it is over", busy(.0))]
    TimedOut(Busy),
    /// Nothing is granted for so long: the ledger is new, or lost data, or the store's clock stepped
    /// back, and holders get the time to come back.
    #[error("the store grants nothing for another {wait:?}, as it is new, or lost data")]
    Grace {
        /// For how long still, when it was asked.
        wait: Duration,
    },
    /// It was granted, and nobody heard of it in time: it was not used, and is given back.
    #[error("the store's answer came after the lease that it granted")]
    Late,
    /// Too many wait for a name.
    #[error("{WAITING_LIMIT} wait for `{name}` already")]
    Full {
        /// Which.
        name: LeaseName,
    },
    /// The holder shares a name with others, and wants it alone. Two that did so would wait for each
    /// other for ever: release it first.
    #[error("`{name}` is shared with others by whoever wants it alone: release it first")]
    Upgrade {
        /// Which.
        name: LeaseName,
    },
    /// A text can't name a lease.
    #[error("`{text}` can't name a lease: {why}")]
    Name {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: LeaseNameError,
    },
    /// No name, or too many.
    #[error("a lease has 1 to {NAMES_PER_HOLD_LIMIT} names, and not {0}")]
    Names(usize),
    /// A TTL that leases can't have.
    #[error("a lease lasts from {SHORTEST_TTL:?} to {LONGEST_TTL:?}, and not {0:?}")]
    Ttl(Duration),
    /// The store is away, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client was shut down.
    #[error("the client of the leases was shut down")]
    Closed,
}

fn busy(busy: &Busy) -> String {
    let holders: Vec<String> = busy
        .held
        .iter()
        .map(|held| format!("`{}` is {}'s", held.name, held.by))
        .collect();
    match (holders.is_empty(), busy.ahead) {
        (false, _) => holders.join(", "),
        (true, 1) => "another one waits for it".to_owned(),
        (true, ahead) => format!("{ahead} others wait for it"),
    }
}
