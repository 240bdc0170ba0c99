//! Names that are held, as each `lock` tells those below it.
//!
//! Must never: have a name counted as held by what another store may have said.

use std::collections::{BTreeMap, BTreeSet};

use crate::leases::{Holder, Lease};
use crate::scheduler::lease::{FencingToken, LeaseName};

/// Told to the command: which names it has, its own and those of each `lock` above.
const NAMES_VARIABLE: &str = "SOLOIST_LOCK";

/// The same with who holds each and by which token, as `HOLDER:TOKEN:NAME`: a `lock` below that wants
/// one of them is let in again.
const HOLDERS_VARIABLE: &str = "SOLOIST_LOCK_HOLDERS";

/// Names that are held, with who holds them: the nearest `lock` last. The same name may be there for
/// several stores and namespaces.
#[derive(Default)]
pub(super) struct Held(Vec<(LeaseName, Above)>);

/// Who holds a name, and by which token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Above {
    pub(super) holder: Holder,
    pub(super) token: FencingToken,
}

impl Held {
    /// By each `lock` that this one runs below.
    pub(super) fn above() -> Self {
        let text = std::env::var(HOLDERS_VARIABLE).unwrap_or_default();
        let one = |word: &str| {
            let (holder, rest) = word.split_once(':')?;
            let (token, name) = rest.split_once(':')?;
            let above = Above {
                holder: Holder::parse(holder)?,
                token: FencingToken::new(token.parse().ok()?),
            };
            Some((LeaseName::new(name).ok()?, above))
        };
        Self(text.split_whitespace().filter_map(one).collect())
    }

    /// Who holds a name above, the nearest first.
    pub(super) fn holders_of(&self, name: &LeaseName) -> Vec<Above> {
        let own = self.0.iter().rev().filter(|(held, _)| held == name);
        own.map(|(_, above)| *above).collect()
    }

    pub(super) fn and(mut self, leases: &[Lease]) -> Self {
        for lease in leases {
            let names = lease.names().iter().cloned();
            let above = Above {
                holder: lease.holder(),
                token: lease.token(),
            };
            for name in names {
                self.0.retain(|one| *one != (name.clone(), above));
                self.0.push((name, above));
            }
        }
        self
    }

    /// What the command is told.
    pub(super) fn told(&self) -> BTreeMap<String, String> {
        let names: BTreeSet<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let held = self.0.iter();
        let holders: Vec<String> = held
            .map(|(name, above)| format!("{}:{}:{name}", above.holder.as_text(), above.token))
            .collect();
        [
            (NAMES_VARIABLE.to_owned(), names.join(" ")),
            (HOLDERS_VARIABLE.to_owned(), holders.join(" ")),
        ]
        .into()
    }
}
