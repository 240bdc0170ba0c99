//! Names that were held by somebody who died, and that nobody asks for any more, would stay written
//! down for ever. A client that lives for long looks at all of them now and then, and takes away
//! what it has watched for as long as it would have to be to take it over.
//!
//! A name that somebody has just given back is forgotten some seconds later, and not at once: see
//! `may_be_forgotten` in `store::leases`.
//!
//! Must never: take away what may come back. A holder is named exactly as it was seen.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{Effect, Holds};
use crate::scheduler::lease::{HeldName, LeaseName, NameState};
use crate::scheduler::time::BootTime;

/// From one look at all names to the next.
const INTERVAL: Duration = Duration::from_secs(3600);

/// How long after it was given back a name is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(4);

/// How long a call that tidies may take.
const TIDY_TIMEOUT: Duration = Duration::from_secs(10);

/// What was seen of all names, and when they are looked at next.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    seen: HashMap<(LeaseName, Uuid), (HeldName, BootTime)>,
    next: Option<BootTime>,
    /// A look is on its way.
    busy: bool,
    /// Names that were given back, and when they may be forgotten.
    freed: VecDeque<(BootTime, Arc<[LeaseName]>)>,
}

impl Sweep {
    pub(super) fn next_at(&self) -> Option<BootTime> {
        let freed = self.freed.front().map(|(at, _)| *at);
        let next = self.next.filter(|_| !self.busy);
        next.into_iter().chain(freed).min()
    }
}

impl Holds {
    /// Looks at all names, when it is time.
    pub(super) fn sweep(&mut self, now: BootTime) {
        // Clients that began together do not look together.
        let offset = self.replica.id.as_u128() % INTERVAL.as_millis();
        let first = now + Duration::from_millis(u64::try_from(offset).unwrap_or(0));
        let next = *self.sweep.next.get_or_insert(first);
        if next <= now && !self.sweep.busy {
            self.sweep.busy = true;
            self.effects.push_back(Effect::Survey);
        }
        if self.sweep.freed.front().is_some_and(|(at, _)| *at <= now) {
            self.forget_freed(now);
        }
    }

    fn forget_freed(&mut self, now: BootTime) {
        let mut names = BTreeSet::new();
        while let Some((_, freed)) = self.sweep.freed.pop_front_if(|(at, _)| *at <= now) {
            names.extend(freed.iter().cloned());
        }
        self.tidy(names.into_iter().collect(), Vec::new(), now);
    }

    /// Names were given back.
    pub(super) fn was_freed(&mut self, names: &Arc<[LeaseName]>, now: BootTime) {
        self.sweep
            .freed
            .push_back((now + FORGOTTEN_AFTER, Arc::clone(names)));
    }

    fn tidy(&mut self, names: Vec<LeaseName>, dead: Vec<HeldName>, now: BootTime) {
        let caller = self.caller(super::margins::SHORTEST_TTL, TIDY_TIMEOUT, now);
        self.effects.push_back(Effect::Tidy {
            caller,
            names,
            dead,
        });
    }

    /// How all names stand; none where nobody could be asked.
    pub fn surveyed(&mut self, names: Option<Vec<NameState>>, now: BootTime) {
        self.sweep.busy = false;
        self.sweep.next = Some(now + INTERVAL);
        let Some(names) = names else {
            return;
        };
        self.knows_of(names.iter().flat_map(|name| &name.held));
        // Of those who wait for what nobody has, some may be dead: who lives is left in line.
        let is_free = |name: &&NameState| name.held.is_empty();
        let mut tidied: Vec<LeaseName> = names
            .iter()
            .filter(is_free)
            .map(|name| name.name.clone())
            .collect();
        let mut before = std::mem::take(&mut self.sweep.seen);
        for held in names.into_iter().flat_map(|name| name.held) {
            let key = (held.name.clone(), held.hold);
            let known = before.remove(&key);
            let since = known.filter(|(known, _)| known.sighting == held.sighting);
            let since = since.map_or(now, |(_, since)| since);
            self.sweep.seen.insert(key, (held, since));
        }
        let seen = self.sweep.seen.values();
        let dead = seen.filter(|(held, since)| *since < now && self.dead_at(held, *since) <= now);
        let dead: Vec<HeldName> = dead.map(|(held, _)| held.clone()).collect();
        tidied.extend(dead.iter().map(|held| held.name.clone()));
        if !tidied.is_empty() && !mutant!(NeverSweeps) {
            self.tidy(tidied, dead, now);
        }
    }
}
