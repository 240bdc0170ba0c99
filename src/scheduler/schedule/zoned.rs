//! From local times to instants: what gaps and folds make of a [`Cron`].
//!
//! Time in a zone is a row of segments, each with one offset, and between two of them a
//! transition. Local times run on within a segment, jump at a gap, and go back at a fold:
//!
//! ```text
//! UTC    ──────────────┬──────────────────────────────┬──────────────
//! local  00:00 … 01:59 │ 03:00 … 01:00 … 01:59        │ 01:00 … 01:59 …
//!                      gap 02:00–02:59  first pass    fold  second pass
//! ```
//!
//! The search goes segment by segment, and over the many that can't hold a match in one jump.
//! It must never return what it was asked to pass over, and each step must get ahead, whatever
//! the zone's history.
//!
//! A schedule that follows elapsed time is one that skips gaps and runs in both passes.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneTransition};

use super::cron::Cron;
use super::{DstFold, DstGap, FIRST_SECOND, LAST_SECOND};

/// More than two offsets can differ by (`jiff` allows from -25:59:59 to 25:59:59): so long after
/// an instant all local times are later than its own, however often the clocks are set.
const REACH_SECONDS: i64 = 3 * 86_400;

/// A zone and what to do in its gaps and folds.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    zone: TimeZone,
    /// The offset, where it never changes.
    fixed: Option<i64>,
    gap: DstGap,
    fold: DstFold,
}

/// A change of the offset, all in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transition {
    /// The first instant with the new offset.
    pub(super) at: i64,
    /// The offset up to it.
    pub(super) before: i64,
    /// The offset from it on.
    pub(super) after: i64,
}

/// The time around an instant during which the offset stays the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) offset: i64,
    pub(super) start: Option<Transition>,
    pub(super) end: Option<Transition>,
}

impl Transition {
    /// The local times that are skipped; empty where none are.
    pub(super) fn skipped(self) -> Range<i64> {
        self.at + self.before..self.at + self.after
    }

    /// The instants whose local time will come again; empty where none are.
    pub(super) fn first_pass(self) -> Range<i64> {
        self.at - (self.before - self.after)..self.at
    }

    /// The instants whose local time came before; empty where none are.
    pub(super) fn second_pass(self) -> Range<i64> {
        self.at..self.at + (self.before - self.after)
    }
}

impl Segment {
    /// The first instant after it; later than all where there is none.
    pub(super) fn end_at(&self) -> i64 {
        self.end.map_or(i64::MAX, |end| end.at)
    }

    /// Its first instant; earlier than all but one where there is none.
    pub(super) fn start_at(&self) -> i64 {
        self.start.map_or(i64::MIN + 1, |start| start.at)
    }

    /// The first pass that `at` is in, if it is in one.
    pub(super) fn first_pass(&self, at: i64) -> Option<Range<i64>> {
        self.end
            .map(Transition::first_pass)
            .filter(|pass| pass.contains(&at))
    }

    /// The second pass that `at` is in, if it is in one.
    pub(super) fn second_pass(&self, at: i64) -> Option<Range<i64>> {
        self.start
            .map(Transition::second_pass)
            .filter(|pass| pass.contains(&at))
    }
}

impl Zone {
    pub(super) fn new(zone: TimeZone, gap: DstGap, fold: DstFold) -> Self {
        let fixed = zone
            .to_fixed_offset()
            .ok()
            .map(|offset| i64::from(offset.seconds()));
        Self {
            zone,
            fixed,
            gap,
            fold,
        }
    }

    /// The same zone, for a schedule whose local times are not fixed.
    pub(super) fn following_elapsed_time(self) -> Self {
        Self {
            gap: DstGap::Skip,
            fold: DstFold::Both,
            ..self
        }
    }

    pub(super) fn time_zone(&self) -> &TimeZone {
        &self.zone
    }

    /// The first occurrence at or after `from`.
    pub(super) fn next(&self, cron: &Cron, mut from: i64) -> Option<i64> {
        // From the instant before, so that a gap that ends at `from` is seen.
        let mut segment = self.segment(from - 1);
        loop {
            let found = cron.next(from + segment.offset);
            let found = found.map_or(i64::MAX, |local| local - segment.offset);
            let end_at = segment.end_at();
            if found < end_at {
                match self.left_out(&segment, found) {
                    None => return Some(found),
                    Some(pass) => from = pass.end.min(end_at),
                }
            } else if end_at > from + REACH_SECONDS && found - REACH_SECONDS > end_at {
                // From `end_at` up to there, all local times lie between the one sought from
                // and the one found: nothing can match.
                from = found - REACH_SECONDS;
            } else {
                from = end_at;
            }
            if from > LAST_SECOND {
                return None;
            }
            if segment
                .end
                .is_some_and(|end| end.at == from && self.runs_after(cron, end))
            {
                return Some(from);
            }
            segment = self.segment(from);
        }
    }

    /// The last occurrence at or before `until`.
    pub(super) fn previous(&self, cron: &Cron, mut until: i64) -> Option<i64> {
        while until >= FIRST_SECOND {
            let segment = self.segment(until);
            let found = cron.previous(until + segment.offset);
            let found = found.map_or(i64::MIN, |local| local - segment.offset);
            let start_at = segment.start_at();
            if found >= start_at {
                match self.left_out(&segment, found) {
                    None => return Some(found),
                    Some(pass) => until = (pass.start - 1).max(start_at - 1),
                }
            } else if start_at < until - REACH_SECONDS && found + REACH_SECONDS < start_at {
                // As above, the other way round.
                until = found + REACH_SECONDS;
            } else {
                until = start_at - 1;
            }
            if let Some(start) = segment.start
                && start.at == until + 1
                && self.runs_after(cron, start)
            {
                return Some(start.at);
            }
        }
        None
    }

    /// The pass that `at` is in, if its matches don't run.
    fn left_out(&self, segment: &Segment, at: i64) -> Option<Range<i64>> {
        match self.fold {
            DstFold::First => segment.second_pass(at),
            DstFold::Last => segment.first_pass(at),
            DstFold::Both => None,
        }
    }

    /// Whether the end of a gap is an occurrence for the sake of those in it.
    pub(super) fn runs_after(&self, cron: &Cron, transition: Transition) -> bool {
        self.gap == DstGap::RunAfter && has_match(cron, transition.skipped())
    }

    /// The segment that holds `at`.
    pub(super) fn segment(&self, at: i64) -> Segment {
        if let Some(offset) = self.fixed {
            return Segment {
                offset,
                start: None,
                end: None,
            };
        }
        let offset = self.offset(at);
        let mut start = self
            .zone
            .preceding(instant(at + 1))
            .next()
            .map(|start| start_at(&start));
        let mut following = self.zone.following(instant(start.unwrap_or(at)));
        let mut end = following.next();
        // After the last change that a zone lists by itself, jiff looks back by the zone's rule
        // for the years to come, and so may overlook that last one (Ciudad Juárez, 2022, changed
        // 24 days after the rule would have had it). Forwards it finds them all.
        while let Some(next) = end.take_if(|next| start_at(next) <= at) {
            start = Some(start_at(&next));
            end = following.next();
        }
        let start = start.map(|start| Transition {
            at: start,
            before: self.offset(start - 1),
            after: offset,
        });
        let end = end.map(|end| Transition {
            at: start_at(&end),
            before: offset,
            after: i64::from(end.offset().seconds()),
        });
        Segment { offset, start, end }
    }

    fn offset(&self, at: i64) -> i64 {
        i64::from(self.zone.to_offset(instant(at)).seconds())
    }
}

/// Whether a local time in the range matches.
pub(super) fn has_match(cron: &Cron, local: Range<i64>) -> bool {
    !local.is_empty()
        && cron
            .next(local.start)
            .is_some_and(|found| found < local.end)
}

fn start_at(transition: &TimeZoneTransition<'_>) -> i64 {
    transition.timestamp().as_second()
}

/// Instants are kept well within jiff's range; one that were not would be cut to it.
fn instant(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or(if second < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}
