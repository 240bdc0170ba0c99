//! When somebody should look at a record, and what a look shows of it.
//!
//! Must never: change it, or let what waits for long hide what came later.

use std::time::Duration;

use super::record::{Record, Slot, State, Waiting, occurrence};
use super::telling::Alert;
use crate::scheduler::job::JobName;
use crate::scheduler::lease::{ABANDONED_AFTER, Held, Opening};
use crate::scheduler::time::Timestamp;

impl Record {
    /// When somebody should look at the record next: a lease of it runs out, or something of it
    /// may be claimed. None: nothing is to be done until somebody asks for something.
    ///
    /// What waits for long already, such as a trigger for a replica with the tags, must not hide what
    /// came later: a look goes back by [`ABANDONED_AFTER`] at most.
    pub(in crate::store) fn agenda(&self, now: Timestamp) -> Option<Timestamp> {
        let long_ago = now - ABANDONED_AFTER / 2;
        self.instants().map(|at| at.max(long_ago)).min()
    }

    /// The same of what is to come after an instant.
    pub(in crate::store) fn next_instant(&self, after: Timestamp) -> Option<Timestamp> {
        self.instants().filter(|at| *at > after).min()
    }

    fn instants(&self) -> impl Iterator<Item = Timestamp> {
        let slots = self.current.iter().flat_map(|current| &current.slots);
        let turn = self.waiting.first().filter(|_| self.open().is_none());
        let undecided = self.waiting.iter().filter(|one| !one.queued);
        let expiring = self.waiting.iter().filter_map(|one| one.start_by);
        slots
            .filter_map(Slot::agenda)
            .chain(turn.map(|one| one.since))
            .chain(undecided.map(|one| one.since))
            .chain(expiring.map(|at| at + Duration::from_millis(1)))
            .chain(self.alert.as_ref().and_then(Alert::agenda))
    }

    /// The leases of the job that run out by `until`.
    pub(in crate::store) fn leases(&self, until: Timestamp) -> impl Iterator<Item = Held> {
        let current = self.current.iter();
        current.flat_map(move |current| {
            let slots = current.slots.iter().enumerate();
            slots
                .filter(move |(_, slot)| slot.state == State::Running && slot.deadline <= until)
                .filter_map(|(shard, _)| current.held(shard))
        })
    }

    /// What anybody may claim at `now`.
    pub(in crate::store) fn openings(&self, job: &JobName, now: Timestamp) -> Vec<Opening> {
        let mut openings = Vec::new();
        if let Some(current) = &self.current {
            let slots = current.slots.iter().enumerate();
            let free = slots.filter(|(_, slot)| slot.is_free(now));
            openings.extend(free.map(|(shard, slot)| Opening {
                occurrence: occurrence(job, current.scheduled_at),
                origin: current.origin,
                shard: u32::try_from(shard).unwrap_or(u32::MAX),
                shards: u32::try_from(current.slots.len()).ok(),
                failed_on: slot.failed_on(),
                expired: false,
            }));
        }
        // Whoever claims one of them has the fate of the others settled with it.
        let expired = |one: &&Waiting| one.start_by.is_some_and(|until| now > until);
        let turn = match self.open() {
            None => self.waiting.first(),
            Some(_) => self.waiting.iter().find(|one| !one.queued),
        };
        let first_expired = self.waiting.iter().find(expired);
        openings.extend(turn.or(first_expired).map(|one| Opening {
            occurrence: occurrence(job, one.scheduled_at),
            origin: one.origin,
            shard: 0,
            shards: None,
            failed_on: None,
            expired: first_expired.is_some(),
        }));
        openings
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::scheduler::lease::Origin;

    const HOUR: Duration = Duration::from_secs(3600);

    fn waits(since: Timestamp, start_by: Option<Timestamp>) -> Waiting {
        Waiting {
            scheduled_at: since,
            origin: match start_by {
                Some(_) => Origin::After,
                None => Origin::Trigger,
            },
            by: None,
            since,
            start_by,
            queued: false,
            late: None,
        }
    }

    #[test]
    fn what_waits_for_long_hides_nothing_that_came_later() {
        let begun = Timestamp::from_millis(1_000_000_000);
        let mut record = Record {
            waiting: vec![waits(begun, None)],
            ..Record::default()
        };
        assert_eq!(record.agenda(begun + HOUR), Some(begun));
        // At the next thing that is written of the job, on the day after.
        let later = begun + HOUR * 25;
        let until = later + HOUR;
        record.waiting.push(waits(later, Some(until)));
        let shown = record.agenda(later).expect("there is something to do");
        assert!(shown <= later && shown > later - ABANDONED_AFTER, "{shown}");
        // Nobody took it: that is to be written down once it is too late.
        let expired = until + Duration::from_millis(1);
        assert_eq!(record.next_instant(later), Some(expired));
        let expires = |at| record.openings(&JobName::new("a").unwrap(), at)[0].expired;
        assert_eq!([expires(until), expires(expired)], [false, true]);
    }
}
