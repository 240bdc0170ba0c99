//! The search against a walk over every instant around real changes of clocks.
//!
//! The walk knows nothing of transitions or offsets: it reads the wall clock as text at each
//! instant, sees which local times come twice and which not at all, and applies the policy. Its
//! expressions are matched by `expression`, not by sets of bits.

use std::collections::HashMap;
use std::sync::OnceLock;

use jiff::civil::DateTime;
use jiff::{Timestamp as Instant, ToSpan};
use proptest::prelude::*;

use super::expression::{Expression, Item, List, Wall, expression, plain};
use super::*;

/// Changes of clocks, by a day before each, in UTC.
const CHANGES: &[(&str, &str)] = &[
    ("America/New_York", "2027-03-13"),
    ("America/New_York", "2027-11-06"),
    ("America/New_York", "2090-03-10"),
    ("Europe/London", "2026-03-28"),
    ("Europe/London", "2026-10-24"),
    ("Europe/Dublin", "2026-10-24"),
    ("Australia/Lord_Howe", "2026-04-04"),
    ("Australia/Lord_Howe", "2026-10-03"),
    ("Pacific/Apia", "2011-04-01"),
    ("Pacific/Apia", "2011-09-23"),
    // A day that never was.
    ("Pacific/Apia", "2011-12-29"),
    ("Pacific/Kwajalein", "1993-08-20"),
    // 23 hours that were twice.
    ("Pacific/Kwajalein", "1969-09-29"),
    ("Africa/Casablanca", "2025-02-22"),
    ("Africa/Casablanca", "2025-04-05"),
    // Midnight skipped; 23:00 to 23:59 repeated.
    ("America/Sao_Paulo", "2018-02-17"),
    ("America/Sao_Paulo", "2018-11-03"),
    ("America/Havana", "2026-03-07"),
    ("America/Havana", "2026-10-31"),
    ("Asia/Beirut", "2026-03-28"),
    ("Asia/Beirut", "2026-10-24"),
    ("Asia/Gaza", "2024-04-19"),
    ("Africa/Cairo", "2014-05-14"),
    // Two hours; half an hour; a quarter.
    ("Antarctica/Troll", "2026-03-28"),
    ("Antarctica/Troll", "2026-10-24"),
    ("America/Caracas", "2007-12-08"),
    ("America/Caracas", "2016-04-30"),
    ("Asia/Kathmandu", "1985-12-31"),
    ("Pacific/Chatham", "2027-04-02"),
    // None at all.
    ("Asia/Shanghai", "2026-11-20"),
    ("UTC", "2027-02-28"),
];

/// What the wall shows from three days before to three days after a change, every `step` seconds.
struct Walk {
    name: &'static str,
    step: i64,
    instants: Vec<Shown>,
}

/// One instant of a walk.
struct Shown {
    at: i64,
    wall: Wall,
    comes_again: bool,
    came_before: bool,
    /// The local times that the clock jumped over just before this instant.
    skipped: Vec<Wall>,
}

/// Reads what a clock shows from its text.
fn wall(local: DateTime) -> Wall {
    let text = local.strftime("%S %M %H %d %m %w").to_string();
    let numbers: Vec<u32> = text
        .split(' ')
        .map(|n| n.parse().expect("a number"))
        .collect();
    let [second, minute, hour, day, month, weekday] = numbers[..] else {
        panic!("{text}")
    };
    let days_in_month = local.days_in_month() as u32;
    Wall {
        second,
        minute,
        hour,
        day,
        month,
        weekday,
        days_in_month,
    }
}

fn walk(name: &'static str, day: &str, step: i64, before: i64, length: i64) -> Walk {
    let zone = zone(name);
    let day = at(&format!("{day}T00:00:00Z")).as_second() + before;
    let local = |at: i64| zone.to_datetime(Instant::from_second(at).expect("in range"));
    let mut seen: HashMap<DateTime, Vec<i64>> = HashMap::new();
    // What comes again or came before may be up to a day outside of the walk.
    for at in (day - 90_000..day + length + 90_000).step_by(step as usize) {
        seen.entry(local(at)).or_default().push(at);
    }
    let shown = |at: i64| {
        let (previous, now) = (local(at - step), local(at));
        let following = |local: &DateTime| local.checked_add(step.seconds()).ok();
        let skipped = std::iter::successors(following(&previous), following);
        Shown {
            at,
            wall: wall(now),
            comes_again: seen[&now].iter().any(|other| *other > at),
            came_before: seen[&now].iter().any(|other| *other < at),
            skipped: skipped.take_while(|local| *local < now).map(wall).collect(),
        }
    };
    let instants = (day..day + length)
        .step_by(step as usize)
        .map(shown)
        .collect();
    Walk {
        name,
        step,
        instants,
    }
}

/// Six days each by the minute.
fn by_the_minute() -> &'static [Walk] {
    static WALKS: OnceLock<Vec<Walk>> = OnceLock::new();
    const DAY: i64 = 86_400;
    WALKS.get_or_init(|| {
        CHANGES
            .iter()
            .map(|(name, day)| walk(name, day, 60, -2 * DAY, 6 * DAY))
            .collect()
    })
}

/// Ten hours each by the second, around the change.
fn by_the_second() -> &'static [Walk] {
    static WALKS: OnceLock<Vec<Walk>> = OnceLock::new();
    WALKS.get_or_init(|| {
        let some = [
            "America/New_York",
            "Australia/Lord_Howe",
            "Pacific/Apia",
            "America/Sao_Paulo",
        ];
        let changes = CHANGES.iter().filter(|(name, _)| some.contains(name));
        let walk = |(name, day): &(&'static str, &str)| {
            let day_start = at(&format!("{day}T00:00:00Z"));
            let zone = zone(name);
            let change = zone
                .following(day_start.to_jiff())
                .next()
                .expect("a change");
            let before = change.timestamp().as_second() - day_start.as_second() - 5 * 3600;
            walk(name, day, 1, before, 10 * 3600)
        };
        changes.map(walk).collect()
    })
}

/// The instants of a walk at which an expression is due.
fn due(walk: &Walk, expression: &Expression, gap: DstGap, fold: DstFold) -> Vec<i64> {
    let elapsed = expression.is_of_all_hours();
    let is_due = |shown: &&Shown| {
        let runs = elapsed
            || match fold {
                DstFold::First => !shown.came_before,
                DstFold::Last => !shown.comes_again,
                DstFold::Both => true,
            };
        let made_up = !elapsed
            && gap == DstGap::RunAfter
            && shown.skipped.iter().any(|wall| expression.matches(wall));
        made_up || (runs && expression.matches(&shown.wall))
    };
    walk.instants
        .iter()
        .filter(is_due)
        .map(|shown| shown.at)
        .collect()
}

/// Compares the search with the walk at every place where the answer changes.
fn agree(
    walk: &Walk,
    expression: &Expression,
    gap: DstGap,
    fold: DstFold,
) -> Result<(), TestCaseError> {
    let text = expression.to_string();
    let parsed = Schedule::parse(&text, "job", zone(walk.name), gap, fold);
    let expected = due(walk, expression, gap, fold);
    let schedule = match parsed {
        Ok(schedule) => schedule,
        Err(error) => {
            prop_assert!(
                error.message.contains("no such day") && expected.is_empty(),
                "{text}: {error:?}"
            );
            return Ok(());
        }
    };
    let start = walk.instants[0].at - walk.step;
    let end = walk.instants[walk.instants.len() - 1].at;
    let place = |at: i64| {
        format!(
            "`{text}` in {} {gap:?} {fold:?} at {}",
            walk.name,
            Timestamp::from_second(at)
        )
    };
    // Forwards from before the first.
    let mut now = start;
    for at in expected.iter().copied() {
        let found = schedule.next_after(Timestamp::from_second(now));
        prop_assert_eq!(
            found,
            Some(Timestamp::from_second(at)),
            "next, {}",
            place(now)
        );
        now = at;
    }
    let beyond = schedule.next_after(Timestamp::from_second(now));
    prop_assert!(
        beyond.is_none_or(|next| next.as_second() > end),
        "next, {}",
        place(now)
    );
    // Backwards from after the last.
    let mut now = end + 1;
    for at in expected.iter().rev().copied() {
        let found = schedule.last_before(Timestamp::from_second(now));
        prop_assert_eq!(
            found,
            Some(Timestamp::from_second(at)),
            "last, {}",
            place(now)
        );
        now = at;
    }
    let beyond = schedule.last_before(Timestamp::from_second(now));
    prop_assert!(
        beyond.is_none_or(|last| last.as_second() <= start),
        "last, {}",
        place(now)
    );
    Ok(())
}

fn policies() -> impl Strategy<Value = (DstGap, DstFold)> {
    (
        prop_oneof![Just(DstGap::RunAfter), Just(DstGap::Skip)],
        prop_oneof![
            Just(DstFold::First),
            Just(DstFold::Last),
            Just(DstFold::Both)
        ],
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(3_000), ..ProptestConfig::default() })]

    #[test]
    fn a_search_finds_what_a_walk_by_the_minute_finds(
        change in 0..CHANGES.len(),
        expression in expression(Just(List(vec![Item::One(0)]))),
        (gap, fold) in policies(),
    ) {
        agree(&by_the_minute()[change], &expression, gap, fold)?;
    }

    #[test]
    fn a_search_finds_what_a_walk_by_the_second_finds(
        change in any::<prop::sample::Index>(),
        expression in expression(plain(0, 59, 1)),
        (gap, fold) in policies(),
    ) {
        agree(change.get(by_the_second()), &expression, gap, fold)?;
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

/// How many cases to run: `PROPTEST_CASES` for a long run, else few enough for every day.
pub(super) fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(default)
}
