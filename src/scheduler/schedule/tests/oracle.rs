//! The search against a walk over every instant around real changes of clocks.
//!
//! The walk (`walk`) sees which local times come twice and which not at all, `expression` says
//! which match, and the policies are applied here, to each instant by itself.

use proptest::prelude::*;

use super::expression::{Expression, Item, List, Wall, expression, plain};
use super::walk::{CHANGES, Shown, Walk, by_the_minute, by_the_second};
use super::*;

/// So many of a walk's occurrences are compared, besides those around a change.
const COMPARED: usize = 40;

/// An expression under a policy, as a walk judges it.
struct Judge<'a> {
    expression: &'a Expression,
    elapsed: bool,
    gap: DstGap,
    fold: DstFold,
}

/// An instant at which an expression is due, and why.
#[derive(Clone, Copy)]
struct Due<'a> {
    shown: &'a Shown,
    in_place_of_skipped: bool,
}

impl Judge<'_> {
    fn skipped<'a>(&self, shown: &'a Shown) -> Option<(&'a Wall, &'a Wall)> {
        let matches = |wall: &&Wall| self.expression.matches(wall);
        let first = shown.skipped.iter().find(matches)?;
        Some((first, shown.skipped.iter().rfind(matches)?))
    }

    fn due<'a>(&self, shown: &'a Shown) -> Option<Due<'a>> {
        let runs = self.elapsed
            || match self.fold {
                DstFold::First => !shown.came_before,
                DstFold::Last => !shown.comes_again,
                DstFold::Both => true,
            };
        let makes_up = !self.elapsed && self.gap == DstGap::RunAfter;
        let in_place_of_skipped = makes_up && self.skipped(shown).is_some();
        let due = in_place_of_skipped || (runs && self.expression.matches(&shown.wall));
        due.then_some(Due {
            shown,
            in_place_of_skipped,
        })
    }

    fn oddity(&self, due: Due<'_>) -> Option<String> {
        if due.in_place_of_skipped {
            let (first, last) = self.skipped(due.shown)?;
            Some(format!("{first} {last}"))
        } else if due.shown.came_before {
            Some("second".into())
        } else if due.shown.comes_again {
            Some("first".into())
        } else {
            None
        }
    }
}

/// The same of the module under test.
fn spelled(oddity: Oddity) -> String {
    match oddity {
        Oddity::AfterGap { first, last } => {
            let spell = |local: jiff::civil::DateTime| local.strftime("%m-%dT%H:%M:%S").to_string();
            format!("{} {}", spell(first), spell(last))
        }
        Oddity::RepeatedFirst => "first".into(),
        Oddity::RepeatedSecond => "second".into(),
    }
}

/// Compares the search with the walk.
fn agree(
    walk: &Walk,
    expression: &Expression,
    gap: DstGap,
    fold: DstFold,
) -> Result<(), TestCaseError> {
    let judge = Judge {
        expression,
        elapsed: expression.is_of_all_hours(),
        gap,
        fold,
    };
    let due: Vec<Due<'_>> = walk
        .instants
        .iter()
        .filter_map(|at| judge.due(at))
        .collect();
    match Schedule::parse(&expression.to_string(), "job", zone(walk.name), gap, fold) {
        Ok(schedule) => {
            same_neighbours(walk, &schedule, &due)?;
            same_oddities(walk, &schedule, &judge, &due)
        }
        Err(error) => {
            prop_assert!(
                error.message.contains("no such day") && due.is_empty(),
                "{expression}: {error:?}"
            );
            Ok(())
        }
    }
}

/// From each occurrence compared the search finds the next one, and from that back.
fn same_neighbours(walk: &Walk, schedule: &Schedule, due: &[Due<'_>]) -> Result<(), TestCaseError> {
    let start = walk.instants[0].at - walk.step;
    let end = walk.instants[walk.instants.len() - 1].at;
    let stride = due.len().div_ceil(COMPARED).max(1);
    let around = |index: usize| {
        let before = index
            .checked_sub(3)
            .map_or(start, |index| due[index].shown.at);
        let after = due.get(index + 2).map_or(end, |due| due.shown.at);
        walk.edges
            .iter()
            .any(|edge| (before..=after).contains(edge))
    };
    for index in (0..=due.len()).filter(|index| index % stride == 0 || around(*index)) {
        // Where the walk begins and ends there is no occurrence, but none is missed before.
        let from = index.checked_sub(1).map(|index| due[index].shown.at);
        let to = due.get(index).map(|due| due.shown.at);
        let place = format!("{schedule:?} from {from:?} to {to:?}");
        let next = schedule.next_after(Timestamp::from_second(from.unwrap_or(start)));
        let next = next.map(Timestamp::as_second);
        let last = schedule.last_before(Timestamp::from_second(to.unwrap_or(end + 1)));
        let last = last.map(Timestamp::as_second);
        prop_assert_eq!(next.filter(|next| *next <= end), to, "next of {}", &place);
        prop_assert_eq!(
            last.filter(|last| *last > start),
            from,
            "last of {}",
            &place
        );
    }
    Ok(())
}

/// What a preview says of each occurrence near a change is what the walk saw.
fn same_oddities(
    walk: &Walk,
    schedule: &Schedule,
    judge: &Judge<'_>,
    due: &[Due<'_>],
) -> Result<(), TestCaseError> {
    let stride = due.len().div_ceil(COMPARED).max(1);
    let made_up = |(index, due): &(usize, &Due<'_>)| index % stride == 0 || due.in_place_of_skipped;
    for (_, due) in due.iter().enumerate().filter(made_up) {
        let at = Timestamp::from_second(due.shown.at);
        let oddity = schedule.oddity(at).map(spelled);
        prop_assert_eq!(oddity, judge.oddity(*due), "{:?} at {}", schedule, at);
    }
    let lost = |shown: &&Shown| {
        judge.gap == DstGap::Skip && !judge.elapsed && judge.skipped(shown).is_some()
    };
    let lost = walk.instants.iter().filter(lost).map(|shown| shown.at);
    let start = Timestamp::from_second(walk.instants[0].at - 1);
    let end = Timestamp::from_second(walk.instants[walk.instants.len() - 1].at);
    let listed = schedule.skipped_between(start, end);
    prop_assert_eq!(
        listed
            .iter()
            .map(|skipped| skipped.at.as_second())
            .collect::<Vec<_>>(),
        lost.collect::<Vec<_>>(),
        "{:?}",
        schedule
    );
    Ok(())
}

fn policies() -> impl Strategy<Value = (DstGap, DstFold)> {
    let gaps = vec![DstGap::RunAfter, DstGap::Skip];
    let folds = vec![DstFold::First, DstFold::Last, DstFold::Both];
    (prop::sample::select(gaps), prop::sample::select(folds))
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn a_search_finds_what_a_walk_by_the_minute_finds(
        change in 0..CHANGES.len(),
        expression in expression(Just(List(vec![Item::One(0)]))),
        (gap, fold) in policies(),
    ) {
        agree(&by_the_minute()[change], &expression, gap, fold)?;
    }

    #[test]
    fn from_any_instant_the_next_is_the_first_and_the_last_before_it_is_no_later(
        change in 0..CHANGES.len(),
        expression in expression(plain(0, 59, 1)),
        (gap, fold) in policies(),
        millis in -40_000_000_000..40_000_000_000i64,
    ) {
        let (name, day) = CHANGES[change];
        let now = Timestamp::from_millis(at(&format!("{day}T00:00:00Z")).as_millis() + millis);
        if let Ok(schedule) = Schedule::parse(&expression.to_string(), "job", zone(name), gap, fold) {
            inverse(&schedule, now)?;
        }
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn a_search_finds_what_a_walk_by_the_second_finds(
        change in any::<prop::sample::Index>(),
        expression in expression(plain(0, 59, 1)),
        (gap, fold) in policies(),
    ) {
        agree(change.get(by_the_second()), &expression, gap, fold)?;
    }
}

/// That next and last are each other's inverse around an instant.
fn inverse(schedule: &Schedule, now: Timestamp) -> Result<(), TestCaseError> {
    let next = schedule.next_after(now);
    let last = schedule.last_before(now);
    let step = Timestamp::from_millis(now.as_millis() + 1);
    if let Some(next) = next {
        prop_assert!(next > now);
        prop_assert!(schedule.last_before(next).is_none_or(|last| last <= now));
        prop_assert_eq!(
            schedule.last_before(Timestamp::from_millis(next.as_millis() + 1)),
            Some(next)
        );
    }
    if let Some(last) = last {
        prop_assert!(last < now);
        prop_assert!(schedule.next_after(last).is_none_or(|next| next >= now));
        prop_assert_eq!(
            schedule.next_after(Timestamp::from_millis(last.as_millis() - 1)),
            Some(last)
        );
    }
    let at_now = schedule.last_before(step).filter(|last| *last == now);
    prop_assert_eq!(
        schedule.next_after(Timestamp::from_millis(now.as_millis() - 1)),
        at_now.or(next)
    );
    Ok(())
}
