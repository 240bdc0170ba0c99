//! Why a lease was not acquired.
//!
//! Must never: show a secret of a URL.

use std::sync::Arc;
use std::time::Duration;

use crate::scheduler::lease::{
    Busy, LeaseName, LeaseNameError, NAMES_PER_HOLD_LIMIT, WAITING_LIMIT,
};
use crate::scheduler::margins::{LONGEST_TTL, SHORTEST_TTL};
use crate::scheduler::time::{format_duration, short_duration};
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
    #[error("the store grants nothing for another {}, as it is new, or lost data", short_duration(*.wait))]
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
    #[error("`{name}` can't be had alone by who shares it with others: give the share back first")]
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
    #[error("{}", ttl(*.0))]
    Ttl(Duration),
    /// The store is away, or refuses.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The client was shut down.
    #[error("the client of the leases was shut down")]
    Closed,
}

/// A lease is not to be used any more: somebody else may have it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lease of {} was lost: somebody else may have it by now", quoted(.0))]
pub struct LeaseLost(pub(super) Arc<[LeaseName]>);

impl LeaseLost {
    /// What it was of, in order.
    pub fn names(&self) -> &[LeaseName] {
        &self.0
    }
}

fn quoted(names: &[LeaseName]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

fn ttl(ttl: Duration) -> String {
    let shown = format_duration;
    let (least, most) = (shown(SHORTEST_TTL), shown(LONGEST_TTL));
    let wrong = match ttl < SHORTEST_TTL {
        true => format!("at least {least}"),
        false => format!("at most {most}"),
    };
    format!(
        "the `ttl` of a lease is {wrong}; choose one from {least} to {most}: it is renewed for as long as \
         its holder lives"
    )
}

fn busy(busy: &Busy) -> String {
    // Who shares a name may have it several times.
    let mut holders: Vec<String> = Vec::new();
    for held in &busy.held {
        let holder = format!("`{}` is {}'s", held.name, held.by);
        if !holders.contains(&holder) {
            holders.push(holder);
        }
    }
    match (holders.is_empty(), busy.ahead) {
        (false, _) => holders.join(", "),
        (true, 1) => "another one waits for it".to_owned(),
        (true, ahead) => format!("{ahead} others wait for it"),
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::scheduler::lease::{FencingToken, HeldName, Sighting};
    use crate::scheduler::time::Timestamp;

    fn held(name: &str, by: &str) -> HeldName {
        HeldName {
            name: LeaseName::new(name).expect("a name"),
            hold: Uuid::new_v4(),
            sighting: Sighting {
                token: FencingToken::default(),
                deadline: Timestamp::default(),
            },
            ttl: Duration::from_secs(1),
            by: by.to_owned(),
        }
    }

    #[test]
    fn who_shares_a_name_thrice_is_named_once() {
        let busy = Busy {
            held: vec![held("a", "db1:7"), held("a", "db2:8"), held("a", "db1:7")],
            ..Busy::default()
        };
        let told = AcquireError::Busy(busy).to_string();
        assert_eq!(told, "`a` is db1:7's, `a` is db2:8's");
    }

    #[test]
    fn a_ttl_that_no_lease_can_have_is_told_with_those_that_it_can() {
        for (ttl, told) in [
            (
                Duration::ZERO,
                "the `ttl` of a lease is at least 1s; choose one from 1s to 1h: it",
            ),
            (
                Duration::from_secs(3601),
                "the `ttl` of a lease is at most 1h; choose one from 1s to 1h: it",
            ),
        ] {
            let shown = AcquireError::Ttl(ttl).to_string();
            assert!(shown.starts_with(told), "{shown}");
        }
    }
}
