//! Instants by key: which key is due, and when the next one is.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::time::BootTime;

/// At most one instant a key. Setting, clearing and taking cost O(log n).
#[derive(Clone, Debug)]
pub(super) struct Timers<K> {
    order: BTreeSet<(BootTime, K)>,
    by_key: HashMap<K, BootTime>,
}

impl<K: Copy + Ord + Hash> Default for Timers<K> {
    fn default() -> Self {
        Self {
            order: BTreeSet::new(),
            by_key: HashMap::new(),
        }
    }
}

impl<K: Copy + Ord + Hash> Timers<K> {
    /// Sets the key's instant, in place of the one it had.
    pub(super) fn set(&mut self, key: K, at: BootTime) {
        self.clear(key);
        self.order.insert((at, key));
        self.by_key.insert(key, at);
    }

    /// Forgets the key's instant.
    pub(super) fn clear(&mut self, key: K) {
        if let Some(at) = self.by_key.remove(&key) {
            self.order.remove(&(at, key));
        }
    }

    /// The earliest instant.
    pub(super) fn next(&self) -> Option<BootTime> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes one key whose instant has come, the earliest first.
    pub(super) fn take_due(&mut self, now: BootTime) -> Option<K> {
        let (_, key) = *self.order.first().filter(|(at, _)| *at <= now)?;
        self.clear(key);
        Some(key)
    }
}
