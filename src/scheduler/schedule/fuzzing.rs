//! Any text as a schedule: the expression, then `ZONE GAP FOLD NAME`, then an instant in seconds.
//! Lines that are missing have a default.
//!
//! Must never: be part of a program.

use jiff::tz::TimeZone;

use super::{DstFold, DstGap, Schedule};
use crate::scheduler::time::Timestamp;

/// How many occurrences are looked at, from each instant.
const LOOKED_AT: usize = 12;

/// The instants to begin at: the first and last there are, around 1970, a change of clocks.
const INSTANTS: [i64; 5] = [
    -62_135_596_801,
    -1,
    1_774_746_000,
    1_795_212_000,
    253_370_764_800,
];

/// What is to be read, and how.
struct Asked<'t> {
    text: &'t str,
    zone: TimeZone,
    gap: DstGap,
    fold: DstFold,
    name: &'t str,
    instant: Option<i64>,
}

impl<'t> Asked<'t> {
    fn of(input: &'t str) -> Option<Self> {
        let mut lines = input.splitn(3, '\n');
        let text = lines.next()?;
        let mut words = lines.next().unwrap_or_default().split_ascii_whitespace();
        let zone = TimeZone::get(words.next().unwrap_or("UTC")).ok()?;
        let gap = match words.next() {
            Some("skip") => DstGap::Skip,
            _ => DstGap::RunAfter,
        };
        let fold = match words.next() {
            Some("last") => DstFold::Last,
            Some("both") => DstFold::Both,
            _ => DstFold::First,
        };
        Some(Self {
            text,
            zone,
            gap,
            fold,
            name: words.next().unwrap_or("job"),
            instant: lines.next().and_then(|line| line.trim().parse().ok()),
        })
    }
}

/// Any text is a schedule, or an error that stands within it.
pub(crate) fn expression(input: &[u8]) {
    let Some(asked) = std::str::from_utf8(input).ok().and_then(Asked::of) else {
        return;
    };
    let parsed = Schedule::parse(asked.text, asked.name, asked.zone, asked.gap, asked.fold);
    let schedule = match parsed {
        Ok(schedule) => schedule,
        Err(error) => {
            let place = asked.text.get(error.span.clone());
            assert!(place.is_some(), "the place is not in the text: {error:?}");
            assert!(!error.message.is_empty(), "{error:?}");
            return;
        }
    };
    for warning in schedule.warnings() {
        let place = asked.text.get(warning.span.clone());
        assert!(place.is_some(), "the place is not in the text: {warning:?}");
    }
    let identity = schedule.identity();
    let again = Schedule::from_identity(&identity, asked.name);
    let again = again.unwrap_or_else(|| panic!("no schedule again: {identity}"));
    assert_eq!(again.identity(), identity);
    for instant in INSTANTS.into_iter().chain(asked.instant) {
        let start = Timestamp::from_second(instant);
        let found = walk(&schedule, start);
        assert_eq!(found, walk(&again, start), "another schedule: {identity}");
    }
}

/// The next occurrences, which have to rise and to be found from behind as well.
fn walk(schedule: &Schedule, start: Timestamp) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut after = start;
    while let Some(next) = schedule
        .next_after(after)
        .filter(|_| found.len() < LOOKED_AT)
    {
        assert!(next > after, "{next:?} is not after {after:?}");
        let before = schedule.last_before(next);
        match found.last() {
            Some(last) => assert_eq!(before, Some(*last), "before {next:?}"),
            None => lies_behind(schedule, before, start, next),
        }
        found.push(next);
        after = next;
    }
    if found.is_empty() {
        let last = schedule.last_before(Timestamp::from_millis(i64::MAX));
        assert!(
            last.is_none_or(|last| last <= start),
            "{last:?} was passed over"
        );
    }
    found
}

/// Between the last occurrence up to `start` and the next one after it there is none.
fn lies_behind(schedule: &Schedule, before: Option<Timestamp>, start: Timestamp, next: Timestamp) {
    let Some(before) = before else {
        return;
    };
    assert!(
        before <= start,
        "{before:?} was passed over after {start:?}"
    );
    assert_eq!(schedule.next_after(before), Some(next), "after {before:?}");
}
