//! Which of what never started a record keeps.

use super::*;
use crate::store::rules::{Group, Life, somebody};

const fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second)
}

fn one(second: i64, cause: Cause) -> NeverStarted {
    NeverStarted {
        scheduled_at: at(second),
        outcome: Outcome::Missed,
        cause,
        within: None,
    }
}

fn stretch(second: i64) -> NeverStarted {
    NeverStarted {
        within: Some((at(second - 1), String::new())),
        ..one(second, Cause::ScheduleChanged)
    }
}

/// What is kept after these came in this order: by instant.
fn kept(came: impl IntoIterator<Item = NeverStarted>) -> Vec<i64> {
    let caller = somebody();
    let mut group = Group::default();
    let mut call = Call::begin(&mut group, &caller, 1_000_000_000, &Life::Steady);
    let mut step = Step::begin(&mut call, None);
    came.into_iter().for_each(|one| step.remember(one));
    let kept = step.record.unstarted.iter();
    kept.map(|one| one.scheduled_at.as_millis() / 1000)
        .collect()
}

#[test]
fn the_newest_that_certainly_was_due_makes_all_before_it_moot() {
    let cause = Cause::Deadline;
    assert_eq!(kept([one(1, cause), one(2, cause)]), [2]);
    assert_eq!(kept([one(2, cause), one(1, cause)]), [2]);
    assert_eq!(kept([stretch(1), one(2, cause)]), [2]);
}

#[test]
fn a_stretch_that_may_be_empty_leaves_what_was_before_it() {
    let first = one(1, Cause::Overlap);
    assert_eq!(kept([first.clone(), stretch(2), stretch(3)]), [3, 2, 1]);
    // The oldest of the stretches goes, and what is certain stays.
    let stretches = (2..=9).map(stretch);
    assert_eq!(kept([first].into_iter().chain(stretches)), [9, 8, 7, 1]);
}

#[test]
fn what_people_kept_from_starting_is_not_how_it_went_last() {
    let wanted = [Cause::Paused, Cause::Disabled, Cause::Killed];
    let kept = kept(wanted.map(|cause| one(2, cause)));
    assert!(kept.is_empty(), "{kept:?}");
}
