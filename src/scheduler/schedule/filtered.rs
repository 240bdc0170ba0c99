//! The search among the days that calendars leave.
//!
//! The bare schedule finds an instant, gaps and folds resolved; what counts is that instant's
//! local date. Where that day is left out, the search goes on at the next day that isn't, in one
//! jump. Local dates rise with time only while the offset stays the same (a clock set back past
//! midnight shows yesterday again), so a jump must never leave the segment it starts in.

use std::sync::Arc;

use super::calendar::{DayFilter, Exclusion};
use super::day_set::{FIRST_DAY, LAST_DAY};
use super::days::DAY_SECONDS;
use super::{FIRST_SECOND, Inner, LAST_SECOND, Schedule, ScheduleError};
use crate::scheduler::time::Timestamp;

/// How many runs of instants [`Schedule::taken_between`] lists at most.
const TAKEN_LIMIT: usize = 100;

/// Instants of the bare schedule in a row that calendars took away, for one and the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken<'s> {
    /// The first of them.
    pub first: Timestamp,
    /// The last of them; the same where there is one.
    pub last: Timestamp,
    /// Which calendar did it.
    pub exclusion: Exclusion<'s>,
}

impl Schedule {
    /// The same schedule, due on the days alone that a filter leaves.
    ///
    /// That nothing is left is an error, as a schedule that is never due is, and so is a filter
    /// for `@manual`, which has no days to leave out. A schedule with a filter is due from 1970
    /// to 2199.
    pub fn on_days(self, days: DayFilter) -> Result<Self, ScheduleError> {
        let span = 0..self.0.text.len();
        if self.is_manual() {
            return Err(ScheduleError {
                message: "`@manual` is due on no day, so calendars have nothing to leave out"
                    .into(),
                span,
                hint: Some("leave out the calendars, or give the job a schedule".into()),
            });
        }
        let schedule = Self(Arc::new(Inner {
            days: Some(days),
            ..Arc::unwrap_or_clone(self.0)
        }));
        if schedule.never_fires_after(Timestamp::from_second(FIRST_SECOND)) {
            return Err(ScheduleError {
                message: "this schedule is never due: its calendars leave none of its days".into(),
                span,
                hint: Some(
                    "`soloist next` with the schedule alone shows its days; `except` wins over `only`"
                        .into(),
                ),
            });
        }
        Ok(schedule)
    }

    /// Which calendar took an instant away that the bare schedule has; none where it has not, or
    /// where none did.
    pub fn excluded_by(&self, at: Timestamp) -> Option<Exclusion<'_>> {
        let days = self.0.days.as_ref()?;
        let second = at.as_second();
        let is_whole = at == Timestamp::from_second(second);
        let within = (FIRST_SECOND..=LAST_SECOND).contains(&second);
        if !is_whole || !within || self.bare_next(second) != Some(second) {
            return None;
        }
        days.exclusion(self.day(second))
    }

    /// What calendars took away after `after` and up to `until`, the first 100 runs at most.
    pub fn taken_between(&self, after: Timestamp, until: Timestamp) -> Vec<Taken<'_>> {
        let mut taken: Vec<Taken<'_>> = Vec::new();
        let Some(days) = &self.0.days else {
            return taken;
        };
        let mut from = after.as_second().saturating_add(1).max(FIRST_SECOND);
        let until = until.as_second().min(LAST_SECOND);
        // Whether nothing was due since the last run.
        let mut goes_on = false;
        while from <= until
            && let Some(found) = self.bare_next(from).filter(|found| *found <= until)
        {
            let day = self.day(found);
            let Some(exclusion) = days.exclusion(day) else {
                goes_on = false;
                from = self.until_day(found, days.open().next(day, false));
                continue;
            };
            from = self.until_day(found, Some(day + 1));
            let last = self.bare_previous((from - 1).min(until)).unwrap_or(found);
            let run = Taken {
                first: Timestamp::from_second(found),
                last: Timestamp::from_second(last),
                exclusion,
            };
            let before = taken.last_mut().filter(|_| goes_on);
            if let Some(before) = before.filter(|before| before.exclusion == exclusion) {
                before.last = run.last;
            } else if taken.len() < TAKEN_LIMIT {
                taken.push(run);
            } else {
                break;
            }
            goes_on = true;
        }
        taken
    }

    /// The first occurrence at or after `from`. No clock was ever set by more than a day, so what
    /// is a day beyond all calendars stays beyond them.
    pub(super) fn filtered_next(&self, days: &DayFilter, mut from: i64) -> Option<i64> {
        while from <= LAST_SECOND {
            let found = self.bare_next(from)?;
            let day = self.day(found);
            if days.open().has(day) {
                return Some(found);
            }
            if day > LAST_DAY + 1 {
                return None;
            }
            from = self.until_day(found, days.open().next(day, true));
        }
        None
    }

    /// The last occurrence at or before `until`.
    pub(super) fn filtered_previous(&self, days: &DayFilter, mut until: i64) -> Option<i64> {
        while until >= FIRST_SECOND {
            let found = self.bare_previous(until)?;
            let segment = self.0.zone.segment(found);
            let day = (found + segment.offset).div_euclid(DAY_SECONDS);
            if days.open().has(day) {
                return Some(found);
            }
            if day < FIRST_DAY - 1 {
                return None;
            }
            let start = segment.start_at();
            let end_of_open = days
                .open()
                .previous(day)
                .map(|open| (open + 1) * DAY_SECONDS - 1 - segment.offset);
            until = end_of_open.unwrap_or(i64::MIN).max(start - 1);
        }
        None
    }

    /// The local date of an instant, in days since 1970-01-01.
    fn day(&self, second: i64) -> i64 {
        (second + self.0.zone.segment(second).offset).div_euclid(DAY_SECONDS)
    }

    /// The first instant after `at` from which on the local date may be `day`, or any earlier
    /// one: its midnight, or else the next time that the clocks are set.
    fn until_day(&self, at: i64, day: Option<i64>) -> i64 {
        let segment = self.0.zone.segment(at);
        let midnight = day.map_or(i64::MAX, |day| day * DAY_SECONDS - segment.offset);
        midnight.min(segment.end_at())
    }
}
