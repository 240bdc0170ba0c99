//! Named leases: what whoever wants something for itself asks of the store, and what it hears.
//!
//! A *hold* is one acquisition, of one name or of several: all of them, or none. Its id is drawn
//! before it is asked for and is the identity of the request, so that what is sent again gets the
//! same answer again. Holds of one *owner* never stand in each other's way: that is what lets
//! a holder in again that calls itself.
//!
//! Must never: hold a decision. Those are the store's (`store::leases`) and the client's
//! (`leases`).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{FencingToken, Sighting};
use crate::scheduler::time::Timestamp;

/// The longest name of a lease, in bytes.
pub const LEASE_NAME_LENGTH_LIMIT: usize = 200;

/// The most names that one hold has.
pub const NAMES_PER_HOLD_LIMIT: usize = 32;

/// The most that wait for one name; whoever comes then is told so.
pub const WAITING_LIMIT: usize = 1000;

/// What may stand in the name of a lease beside letters and digits. Business keys have colons,
/// paths slashes.
const ALSO_IN_NAMES: &str = "._-:/@+=,";

/// The name of a lease: 1 to 200 of `A-Z a-z 0-9 . _ - : / @ + = ,`, the first of them a letter or
/// digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LeaseName(Arc<str>);

/// Why a text can't name a lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseNameError {
    /// Nothing there.
    #[error("the name of a lease can't be empty")]
    Empty,
    /// Longer than [`LEASE_NAME_LENGTH_LIMIT`].
    #[error("the name of a lease has at most {LEASE_NAME_LENGTH_LIMIT} characters")]
    TooLong,
    /// A character that would be ambiguous in a key, a log line or a shell.
    #[error(
        "`{0}` can't stand here: the name of a lease is made of letters, digits and `{ALSO_IN_NAMES}`, and starts with a letter or digit"
    )]
    Character(char),
}

impl LeaseName {
    /// Checks and takes a name.
    ///
    /// # Errors
    /// When it can't be one.
    pub fn new(text: &str) -> Result<Self, LeaseNameError> {
        let first = text.chars().next().ok_or(LeaseNameError::Empty)?;
        let may_stand = |c: &char| c.is_ascii_alphanumeric() || ALSO_IN_NAMES.contains(*c);
        let bad = text.chars().find(|c| !may_stand(c));
        if let Some(bad) = bad.or((!first.is_ascii_alphanumeric()).then_some(first)) {
            return Err(LeaseNameError::Character(bad));
        }
        if text.len() > LEASE_NAME_LENGTH_LIMIT {
            return Err(LeaseNameError::TooLong);
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LeaseName {
    type Error = LeaseNameError;
    fn try_from(text: String) -> Result<Self, LeaseNameError> {
        Self::new(&text)
    }
}

impl From<LeaseName> for String {
    fn from(name: LeaseName) -> String {
        name.as_str().to_owned()
    }
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Whether others may have a lease at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nobody else.
    #[default]
    Exclusive,
    /// All who share it, and nobody who wants it alone.
    Shared,
}

/// Which hold, whose, and of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Drawn anew for each acquisition.
    pub id: Uuid,
    /// Holds of one owner are compatible with each other.
    pub owner: Uuid,
    /// Without duplicates, and not empty.
    pub names: Arc<[LeaseName]>,
    /// Whether others may share them.
    pub mode: Mode,
    /// How long a grant lasts unless it is renewed.
    pub ttl: Duration,
}

/// What a client asks of the store.
#[derive(Clone, Debug, PartialEq)]
pub enum LeaseRequest {
    /// To have all names of a hold, or to go on waiting for them.
    Acquire {
        /// Of which.
        hold: Hold,
        /// How it waits; none: not at all.
        waits: Option<Wait>,
        /// Leases that it has watched, and takes for dead.
        dead: Vec<HeldName>,
    },
    /// To keep them for another TTL.
    Renew {
        /// Which.
        hold: Hold,
        /// Its token; must match.
        token: FencingToken,
        /// The last deadline heard of: the new one is later even on a clock that stands still.
        last_deadline: Timestamp,
    },
    /// To have or want them no more.
    Release {
        /// Which.
        hold: Hold,
    },
}

/// How somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// For how long it stands in line without being heard of again.
    pub kept: Duration,
    /// For how long it has waited when it asks. Whoever lost its place, as the store was away for
    /// longer, has it back by that.
    pub so_far: Duration,
}

impl LeaseRequest {
    /// The hold that it is about.
    pub fn hold(&self) -> &Hold {
        match self {
            Self::Acquire { hold, .. } | Self::Renew { hold, .. } | Self::Release { hold } => hold,
        }
    }
}

/// A name that is held, as somebody was told of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeldName {
    /// Which name.
    pub name: LeaseName,
    /// By which hold.
    pub hold: Uuid,
    /// As it stood: only as long as it stands so it may be taken for dead.
    pub sighting: Sighting,
    /// How long it lasts from one renewal to the next.
    pub ttl: Duration,
    /// Who has it, for people.
    pub by: String,
}

/// What the store answers to a [`LeaseRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// All names are the hold's.
    Granted {
        /// Rises at every grant of any of the names, for ever.
        token: FencingToken,
        /// When it is over unless it is renewed, by the store's clock.
        deadline: Timestamp,
        /// How long that is from now.
        remaining: Duration,
        /// They were before the request came: what remains was measured by a clock that may have
        /// been set since.
        replayed: bool,
    },
    /// They are not, for now.
    Busy(Busy),
    /// Nothing is granted for now: the ledger is new, or lost data, or the store's clock stepped
    /// back. Who waits keeps its place.
    Grace {
        /// For how long.
        wait: Duration,
    },
    /// So many wait already ([`WAITING_LIMIT`]) that no more are taken.
    Full {
        /// For which name.
        name: LeaseName,
    },
    /// The owner shares one of them with others, and wants it alone: two that did so would wait
    /// for each other for ever.
    Upgrade {
        /// Which.
        name: LeaseName,
    },
    /// The request came after its own deadline, and nothing was done.
    Expired,
    /// The lease lasts until then.
    Renewed {
        /// By the store's clock.
        deadline: Timestamp,
        /// How long that is from now.
        remaining: Duration,
    },
    /// It is somebody else's, or nobody's.
    Lost,
    /// It is given back, or was not held.
    Released,
}

/// Why a hold is not granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// What stands in its way, of all its names.
    pub held: Vec<HeldName>,
    /// How many came first to one of its names and wait.
    pub ahead: usize,
    /// When the first of those who are ahead is given up unless it is heard of, by the store's
    /// clock.
    pub ahead_until: Option<Timestamp>,
}

/// How a name stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameState {
    /// Which.
    pub name: LeaseName,
    /// Whether those who have it share it.
    pub mode: Mode,
    /// Who has it.
    pub held: Vec<HeldName>,
    /// Who waits, in order, by name.
    pub waiting: Vec<(String, Mode)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn business_keys_are_names_and_what_a_shell_would_read_is_none() {
        for good in ["a", "7", "stock:sku-42/eu", "a@b+c=d,e", "migrate.2027_01"] {
            assert_eq!(LeaseName::new(good).map(String::from).as_deref(), Ok(good));
        }
        assert_eq!(LeaseName::new(""), Err(LeaseNameError::Empty));
        let long = "a".repeat(LEASE_NAME_LENGTH_LIMIT + 1);
        assert_eq!(LeaseName::new(&long), Err(LeaseNameError::TooLong));
        for (bad, character) in [
            ("-n", '-'),
            (":a", ':'),
            ("#token", '#'),
            ("a b", ' '),
            ("a|b", '|'),
            ("a*", '*'),
            ("ä", 'ä'),
        ] {
            assert_eq!(
                LeaseName::new(bad),
                Err(LeaseNameError::Character(character)),
                "{bad}"
            );
        }
    }
}
