//! What the wall clock shows, instant by instant, around real changes of clocks.
//!
//! A walk knows nothing of transitions or offsets: it reads the clock at each instant, and sees
//! by comparison which local times come twice and which not at all.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use jiff::civil::DateTime;
use jiff::{Timestamp as Instant, ToSpan};

use super::expression::Wall;
use super::*;

const HOUR: i64 = 3600;

/// Changes of clocks, by a day before each, in UTC.
pub(super) const CHANGES: &[(&str, &str)] = &[
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
    // One minute past midnight.
    ("America/St_Johns", "2006-04-01"),
    ("America/St_Johns", "2006-10-28"),
    // Two hours; half an hour; a quarter.
    ("Antarctica/Troll", "2026-03-28"),
    ("Antarctica/Troll", "2026-10-24"),
    ("America/Caracas", "2007-12-08"),
    ("America/Caracas", "2016-04-30"),
    ("Asia/Kathmandu", "1985-12-31"),
    ("Pacific/Chatham", "2027-04-02"),
    // Between the last change that the zone lists and the first of its rule.
    ("America/Ciudad_Juarez", "2022-11-29"),
    ("America/Metlakatla", "2019-01-19"),
    // None at all.
    ("Asia/Shanghai", "2026-11-20"),
    ("UTC", "2027-02-28"),
];

/// The same, for walks by the second: the last two from an offset with seconds.
const CHANGES_TO_THE_SECOND: &[(&str, &str)] = &[
    ("America/New_York", "2027-03-13"),
    ("America/New_York", "2027-11-06"),
    ("Australia/Lord_Howe", "2026-04-04"),
    ("Australia/Lord_Howe", "2026-10-03"),
    ("Pacific/Apia", "2011-12-29"),
    ("America/Sao_Paulo", "2018-02-17"),
    ("America/Sao_Paulo", "2018-11-03"),
    ("Africa/Monrovia", "1972-01-06"),
    ("America/New_York", "1883-11-17"),
];

/// What the wall shows at every `step` seconds.
pub(super) struct Walk {
    pub(super) name: &'static str,
    pub(super) step: i64,
    pub(super) instants: Vec<Shown>,
    /// Where local times begin or cease to be skipped or repeated.
    pub(super) edges: Vec<i64>,
}

/// One instant of a walk.
pub(super) struct Shown {
    pub(super) at: i64,
    pub(super) wall: Wall,
    pub(super) comes_again: bool,
    pub(super) came_before: bool,
    /// The local times that the clock jumped over just before this instant.
    pub(super) skipped: Vec<Wall>,
}

fn wall(local: DateTime) -> Wall {
    let number = |n: i8| u32::try_from(n).expect("not negative");
    Wall {
        second: number(local.second()),
        minute: number(local.minute()),
        hour: number(local.hour()),
        day: number(local.day()),
        month: number(local.month()),
        weekday: number(local.weekday().to_sunday_zero_offset()),
        days_in_month: number(local.days_in_month()),
    }
}

/// Walks through a range of instants. What comes again or came before does so within `reach`.
fn walk(name: &'static str, step: i64, range: Range<i64>, reach: i64) -> Walk {
    let zone = zone(name);
    let local = |at: i64| zone.to_datetime(Instant::from_second(at).expect("in range"));
    let stride = usize::try_from(step).expect("a step ahead");
    let mut seen: HashMap<DateTime, Vec<i64>> = HashMap::new();
    for at in (range.start - reach..range.end + reach).step_by(stride) {
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
    let instants: Vec<Shown> = range.step_by(stride).map(shown).collect();
    let is_edge = |pair: &&[Shown]| {
        let passes = |shown: &Shown| (shown.comes_again, shown.came_before);
        passes(&pair[0]) != passes(&pair[1]) || !pair[1].skipped.is_empty()
    };
    let edges = instants.windows(2).filter(is_edge);
    Walk {
        name,
        step,
        edges: edges.map(|pair| pair[1].at).collect(),
        instants,
    }
}

/// Four days each by the minute.
pub(super) fn by_the_minute() -> &'static [Walk] {
    static WALKS: OnceLock<Vec<Walk>> = OnceLock::new();
    let walked = |(name, day): &(&'static str, &str)| {
        let day = at(&format!("{day}T00:00:00Z")).as_second();
        walk(name, 60, day - 24 * HOUR..day + 72 * HOUR, 25 * HOUR)
    };
    WALKS.get_or_init(|| CHANGES.iter().map(walked).collect())
}

/// Three hours each by the second, around the change.
pub(super) fn by_the_second() -> &'static [Walk] {
    static WALKS: OnceLock<Vec<Walk>> = OnceLock::new();
    let walked = |(name, day): &(&'static str, &str)| {
        let zone = zone(name);
        let day = at(&format!("{day}T00:00:00Z")).to_jiff();
        let change = zone.following(day).next().expect("a change");
        let change = change.timestamp().as_second();
        walk(name, 1, change - HOUR * 3 / 2..change + HOUR * 3 / 2, HOUR)
    };
    WALKS.get_or_init(|| CHANGES_TO_THE_SECOND.iter().map(walked).collect())
}

/// A walk that skips or repeats nothing where it was meant to would prove nothing.
#[test]
fn each_walk_sees_its_change() {
    for walk in by_the_minute() {
        let still = ["Asia/Shanghai", "UTC"].contains(&walk.name);
        assert_eq!(walk.edges.is_empty(), still, "{}", walk.name);
    }
    for walk in by_the_second() {
        assert!(!walk.edges.is_empty(), "{}", walk.name);
    }
}
