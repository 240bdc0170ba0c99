//! Jobs whose timer is outside: what is due of them is looked at once somebody there said that it
//! is time, and is then claimed like all else.
//!
//! A poke doesn't say which occurrence it is for, and the clock that brought it about may be wrong.
//! What is claimed is still what is due by the store's clock. A poke that comes before that, from a
//! clock that is fast, is kept for the next occurrence; never for more, so that a wrong clock can't
//! have a job run on after its timer was taken away.
//!
//! Must never: look at a job that was not poked, or hold back a takeover, a retry or a trigger.

use std::collections::HashMap;
use std::time::Duration;

use super::Scheduler;
use super::job::JobName;
use super::table::{Armed, Entry};
use super::time::Timestamp;

/// Those that wait, and how far they were released.
#[derive(Debug, Default)]
pub(super) struct Poked(HashMap<JobName, Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// Instants up to this one wait no more.
    until: Option<Timestamp>,
    armed: Option<Armed>,
}

impl Poked {
    /// Holds a job back until it is poked; gives it back where it was already.
    pub(super) fn hold(&mut self, armed: Armed) -> Option<Armed> {
        let waiting = self.0.entry(armed.job.clone()).or_default();
        if waiting.until.is_some_and(|until| armed.next <= until) {
            return Some(armed);
        }
        waiting.armed = Some(armed);
        None
    }

    /// Whether a job waits for an instant after `at`: a poke at `at` is nothing to it.
    pub(super) fn waits_beyond(&self, job: &JobName, at: Timestamp) -> bool {
        let armed = self.0.get(job).and_then(|waiting| waiting.armed.as_ref());
        armed.is_some_and(|armed| armed.next > at)
    }

    /// The first instant that any of them waits for.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let armed = self.0.values().filter_map(|waiting| waiting.armed.as_ref());
        armed.map(|armed| armed.next).min()
    }

    /// Releases a job's instants up to `until`; gives back what waits no more.
    pub(super) fn release(&mut self, job: &JobName, until: Timestamp) -> Option<Armed> {
        let waiting = self.0.entry(job.clone()).or_default();
        waiting.until = waiting.until.max(Some(until));
        waiting.armed.take_if(|armed| armed.next <= until)
    }

    /// Takes jobs out of the queue, as of the table's own.
    pub(super) fn disarm(&mut self, which: impl Fn(&JobName) -> bool) {
        self.0.retain(|job, _| !which(job));
    }
}

impl Entry {
    /// Up to which instant a poke releases it that came at `wall` by another clock.
    pub(super) fn released_until(&self, wall: Timestamp, now: Timestamp) -> Timestamp {
        let schedule = &self.job.schedule;
        let meant = schedule.last_before(wall + Duration::from_millis(1));
        let next = schedule.next_after(now);
        // Whoever pokes has a clock on which the instant has come: one past the store's time is
        // still to come there.
        next.filter(|next| meant >= Some(*next)).unwrap_or(now)
    }
}

impl Scheduler {
    /// Takes in that the timer of these jobs is at work, by whose clock it is `wall`. What follows
    /// from it is done once it is known what time it is at the store.
    pub fn poke(&mut self, jobs: Vec<JobName>, wall: Timestamp) {
        self.pokes.extend(jobs.into_iter().map(|job| (job, wall)));
    }

    pub(super) fn heed_pokes(&mut self, store_now: Timestamp) {
        for (job, wall) in std::mem::take(&mut self.pokes) {
            self.table.poke(&job, wall, store_now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::tz::TimeZone;

    use super::*;
    use crate::scheduler::job::{Job, Program};
    use crate::scheduler::policy::Tags;
    use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
    use crate::scheduler::table::Table;

    const HOUR: i64 = 3600;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second)
    }

    fn name() -> JobName {
        JobName::new("hourly").unwrap()
    }

    /// An hourly job that is settled until just after `second`.
    fn armed_after(second: i64) -> Table {
        let (zone, gap, fold) = (TimeZone::UTC, DstGap::default(), DstFold::default());
        let schedule = Schedule::parse("@hourly", "hourly", zone, gap, fold).unwrap();
        let job = Job {
            waits_for_poke: true,
            ..Job::new(name(), schedule, Program::Function)
        };
        let mut table = Table::new([Arc::new(job)], &Tags::new());
        table.arm(&name(), at(second));
        table
    }

    fn due(table: &mut Table, now: i64) -> Vec<i64> {
        let due = table.take_due(at(now)).into_iter();
        due.map(|due| due.scheduled_at.as_second()).collect()
    }

    #[test]
    fn nothing_is_due_before_it_is_poked_and_each_poke_is_for_one_occurrence() {
        let mut table = armed_after(0);
        assert_eq!((due(&mut table, HOUR), table.next_due()), (vec![], None));
        assert_eq!(table.next_instant(), Some(at(HOUR)), "it is told even so");
        table.poke(&name(), at(HOUR), at(HOUR));
        assert_eq!(due(&mut table, HOUR), [HOUR]);
        assert_eq!(due(&mut table, 2 * HOUR), [0; 0]);
    }

    #[test]
    fn a_poke_that_comes_early_by_a_fast_clock_is_kept_until_the_store_says_so() {
        let mut table = armed_after(0);
        table.poke(&name(), at(HOUR), at(HOUR - 1200));
        assert_eq!(table.next_due(), Some(at(HOUR)));
        assert_eq!(due(&mut table, HOUR - 1), [0; 0]);
        assert_eq!(due(&mut table, HOUR), [HOUR]);
    }

    #[test]
    fn a_clock_that_is_days_ahead_releases_the_next_occurrence_and_no_more() {
        let mut table = armed_after(0);
        table.poke(&name(), at(100 * HOUR), at(HOUR - 1));
        assert_eq!(due(&mut table, HOUR), [HOUR]);
        assert_eq!(due(&mut table, 50 * HOUR), [0; 0]);
    }

    #[test]
    fn a_clock_that_is_behind_has_what_is_due_at_the_store_claimed() {
        let mut table = armed_after(10 * HOUR);
        table.poke(&name(), at(HOUR), at(11 * HOUR + 5));
        assert_eq!(due(&mut table, 11 * HOUR + 5), [11 * HOUR]);
    }

    #[test]
    fn after_lost_pokes_the_newest_is_due_and_the_others_are_told_to_be_passed_over() {
        let mut table = armed_after(0);
        table.poke(&name(), at(4 * HOUR), at(4 * HOUR));
        let due = table.take_due(at(4 * HOUR)).remove(0);
        assert_eq!(due.scheduled_at, at(4 * HOUR));
        assert_eq!(due.passed_over, Some(at(HOUR)));
    }

    #[test]
    fn a_poke_that_nothing_is_due_for_releases_nothing() {
        let mut table = armed_after(0);
        for second in [60, 120, 1800] {
            table.poke(&name(), at(second), at(second));
        }
        assert_eq!(due(&mut table, 2 * HOUR), [0; 0]);
    }

    #[test]
    fn what_is_poked_before_it_is_known_to_the_ledger_is_due_once_it_is() {
        let mut table = armed_after(0);
        table.disarm(|_| true);
        table.poke(&name(), at(HOUR), at(HOUR + 1));
        table.arm(&name(), at(0));
        assert_eq!(due(&mut table, HOUR + 2), [HOUR]);
    }
}
