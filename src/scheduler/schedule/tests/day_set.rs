//! A set of days against a set of dates.

use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::super::day_set::{FIRST_DAY, LAST_DAY, day_of};
use super::*;

fn dates(from: Date, to: Date) -> impl Iterator<Item = Date> {
    from.series(1.day()).take_while(move |date| *date <= to)
}

#[test]
fn a_set_holds_the_years_that_schedules_can_name() {
    assert_eq!(day_of(date(1970, 1, 1)), FIRST_DAY);
    assert_eq!(day_of(date(2199, 12, 31)), LAST_DAY);
    let mut set = DaySet::default();
    assert!(set.is_empty());
    set.insert(date(1, 1, 1), date(9999, 12, 31));
    assert!(set == DaySet::all());
    assert!(set.contains(date(1970, 1, 1)) && set.contains(date(2199, 12, 31)));
    assert!(!set.contains(date(1969, 12, 31)) && !set.contains(date(2200, 1, 1)));
    assert_eq!(set.next(LAST_DAY, false), None);
    set.remove_all(&set.clone());
    assert!(set.is_empty());
    assert_eq!((set.next(0, true), set.previous(LAST_DAY)), (None, None));
}

#[test]
fn a_yearly_range_may_go_round_the_end_of_the_year() {
    let mut set = DaySet::default();
    set.insert_yearly((12, 24), (1, 1));
    for date in dates(date(1970, 1, 1), date(2199, 12, 31)) {
        let within = (date.month(), date.day()) >= (12, 24) || date.day_of_year() == 1;
        assert_eq!(set.contains(date), within, "{date}");
    }
}

#[test]
fn a_yearly_29_february_is_in_leap_years_alone() {
    let only = |first, last| {
        let mut set = DaySet::default();
        set.insert_yearly(first, last);
        let all = dates(date(2095, 1, 1), date(2105, 1, 1));
        let found: Vec<String> = all
            .filter(|date| set.contains(*date))
            .map(|date| date.to_string())
            .collect();
        found
    };
    assert_eq!(only((2, 29), (2, 29)), ["2096-02-29", "2104-02-29"]);
    assert_eq!(
        only((2, 28), (2, 29)).len(),
        12,
        "ten 28ths and two leap days"
    );
    assert_eq!(only((2, 29), (3, 1)).len(), 12);
}

#[test]
fn a_weekly_day_is_that_day_of_the_week() {
    let mut set = DaySet::default();
    set.insert_weekly(0);
    for date in dates(date(1970, 1, 1), date(2199, 12, 31)) {
        let is_sunday = date.weekday() == jiff::civil::Weekday::Sunday;
        assert_eq!(set.contains(date), is_sunday, "{date}");
    }
}

#[test]
fn a_digest_tells_sets_apart_and_nothing_else() {
    let of = |days: &[i64]| {
        let mut set = DaySet::default();
        days.iter().for_each(|day| set.insert_days(*day, *day));
        set.digest()
    };
    assert_eq!(of(&[5, 70_000]), of(&[70_000, 5, 5]));
    assert_ne!(of(&[5]), of(&[6]));
    // It is in identities that replicas of different versions compare.
    assert_eq!(of(&[]), DIGEST_OF_NOTHING);
}

const DIGEST_OF_NOTHING: u64 = 12_998_455_976_384_794_585;

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_set_is_a_set(ranges in prop::collection::vec((-100..LAST_DAY + 100, 0..300i64), 0..8), from in -200..LAST_DAY + 200) {
        let mut set = DaySet::default();
        let mut plain = BTreeSet::new();
        for (first, length) in ranges {
            set.insert_days(first, first + length);
            plain.extend((first..=first + length).filter(|day| (FIRST_DAY..=LAST_DAY).contains(day)));
        }
        prop_assert_eq!(set.has(from), plain.contains(&from));
        prop_assert_eq!(set.next(from, true), plain.range(from..).next().copied());
        prop_assert_eq!(set.previous(from), plain.range(..=from).next_back().copied());
        let absent = (from.max(FIRST_DAY)..=LAST_DAY).find(|day| !plain.contains(day));
        prop_assert_eq!(set.next(from, false), absent);
    }
}
