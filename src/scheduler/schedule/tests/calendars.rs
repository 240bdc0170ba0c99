//! What calendars take away, and what they leave.

use std::collections::BTreeSet;

use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::super::day_set::day_of;
use super::walk::CHANGES;
use super::*;

fn calendar(name: &str, ranges: &[(Date, Date)]) -> Arc<Calendar> {
    let mut days = DaySet::default();
    for (first, last) in ranges {
        days.insert(*first, *last);
    }
    let name = name.into();
    Arc::new(Calendar { name, days })
}

fn workdays() -> Arc<Calendar> {
    let mut days = DaySet::default();
    (1..=5).for_each(|day| days.insert_weekly(day));
    let name = "workdays".into();
    Arc::new(Calendar { name, days })
}

fn christmas() -> Arc<Calendar> {
    calendar("holidays", &[(date(2026, 12, 25), date(2026, 12, 26))])
}

fn except(calendars: &[Arc<Calendar>]) -> DayFilter {
    DayFilter::new(calendars.to_vec(), Vec::new())
}

fn only(calendars: &[Arc<Calendar>]) -> DayFilter {
    DayFilter::new(Vec::new(), calendars.to_vec())
}

fn on(schedule: Schedule, days: DayFilter) -> Schedule {
    schedule.on_days(days).expect("some days are left")
}

#[test]
fn an_occurrence_in_a_holiday_is_not_due() {
    let schedule = on(utc("0 22 * * *"), except(&[christmas()]));
    let due = [
        "2026-12-24T22:00:00Z",
        "2026-12-27T22:00:00Z",
        "2026-12-28T22:00:00Z",
    ];
    assert_eq!(next(&schedule, "2026-12-24T00:00:00Z", 3), due);
    let last = schedule.last_before(at(due[1]));
    assert_eq!(last, Some(at(due[0])));
}

#[test]
fn only_is_any_of_its_calendars_and_except_wins() {
    let both = DayFilter::new(
        vec![christmas()],
        vec![
            workdays(),
            calendar("sale", &[(date(2026, 12, 26), date(2026, 12, 27))]),
        ],
    );
    let schedule = on(utc("@daily"), both);
    assert_eq!(
        next(&schedule, "2026-12-23T12:00:00Z", 3),
        [
            "2026-12-24T00:00:00Z",
            "2026-12-27T00:00:00Z",
            "2026-12-28T00:00:00Z"
        ]
    );
}

#[test]
fn the_date_is_that_of_the_jobs_own_zone() {
    let schedule = zoned(
        "0 22 * * *",
        "America/New_York",
        DstGap::RunAfter,
        DstFold::First,
    );
    let schedule = on(schedule, except(&[christmas()]));
    // 22:00 on the 24th there is the 25th in UTC, and 22:00 on the 26th is the 27th.
    assert_eq!(
        next(&schedule, "2026-12-24T12:00:00Z", 2),
        ["2026-12-25T03:00:00Z", "2026-12-28T03:00:00Z"]
    );
    let taken = schedule.excluded_by(at("2026-12-27T03:00:00Z"));
    assert_eq!(taken, Some(Exclusion::Except("holidays")));
}

#[test]
fn every_and_at_go_by_the_local_date_of_their_instants() {
    let shanghai = |text| zoned(text, "Asia/Shanghai", DstGap::RunAfter, DstFold::First);
    let every = on(shanghai("@every 6h"), except(&[christmas()]));
    assert_eq!(
        next(&every, "2026-12-24T12:00:00Z", 1),
        ["2026-12-26T18:00:00Z"]
    );
    assert!(
        shanghai("@at 2026-12-24T16:00:00Z")
            .on_days(except(&[christmas()]))
            .is_err()
    );
    assert!(
        shanghai("@at 2026-12-24T15:59:59Z")
            .on_days(except(&[christmas()]))
            .is_ok()
    );
}

#[test]
fn what_runs_after_a_gap_has_the_date_that_it_runs_on() {
    // That day never was there. What runs in place of its noon runs on the 31st, and has that date.
    let apia = zoned(
        "0 12 * * *",
        "Pacific/Apia",
        DstGap::RunAfter,
        DstFold::First,
    );
    let skipped_day = calendar("x", &[(date(2011, 12, 30), date(2011, 12, 30))]);
    let apia = on(apia, except(&[skipped_day]));
    assert_eq!(
        next_local(&apia, "2011-12-29T00:00:00Z", 3),
        [
            "2011-12-29T12:00:00-10:00",
            "2011-12-31T00:00:00+14:00",
            "2011-12-31T12:00:00+14:00"
        ]
    );
}

#[test]
fn a_date_that_comes_back_for_an_hour_is_found_again() {
    // At 00:01 on the 29th the clocks went back to 23:01 on the 28th.
    let name = "America/St_Johns";
    let schedule = zoned("30 * * * *", name, DstGap::RunAfter, DstFold::First);
    let the_28th = calendar("x", &[(date(2006, 10, 28), date(2006, 10, 28))]);
    let schedule = on(schedule, only(&[the_28th]));
    let found = next_local(&schedule, "2006-10-29T01:50:00Z", 9);
    assert_eq!(
        found,
        ["2006-10-28T23:30:00-02:30", "2006-10-28T23:30:00-03:30"]
    );
}

#[test]
fn a_schedule_without_a_day_left_is_refused() {
    let never = [
        (utc("0 0 * * SUN"), only(&[workdays()])),
        (utc("@daily"), only(&[calendar("none", &[])])),
        (
            utc("@daily"),
            DayFilter::new(vec![workdays()], vec![workdays()]),
        ),
        (utc("0 0 0 25 12 ? 2026"), except(&[christmas()])),
    ];
    for (schedule, days) in never {
        let error = schedule.on_days(days).expect_err("no day is left");
        assert!(error.message.contains("never due"), "{error}");
        assert!(error.hint.is_some());
    }
    let manual = utc("@manual").on_days(only(&[workdays()]));
    let error = manual.expect_err("nothing to leave out");
    assert!(error.message.contains("`@manual`"), "{error}");
}

#[test]
fn what_is_over_never_fires_again() {
    let schedule = on(utc("@daily"), only(&[christmas()]));
    assert!(!schedule.never_fires_after(at("2026-12-25T23:59:59Z")));
    assert!(schedule.never_fires_after(at("2026-12-26T00:00:00Z")));
    assert_eq!(
        schedule.last_before(at("2030-01-01T00:00:00Z")),
        Some(at("2026-12-26T00:00:00Z"))
    );
    assert_eq!(schedule.last_before(at("2026-12-25T00:00:00Z")), None);
}

#[test]
fn why_names_the_calendar_that_took_an_instant_away_and_no_other() {
    let filter = DayFilter::new(
        vec![christmas()],
        vec![
            workdays(),
            calendar("sale", &[(date(2026, 12, 20), date(2026, 12, 20))]),
        ],
    );
    let schedule = on(utc("0 22 * * *"), filter);
    let why = |text| {
        schedule
            .excluded_by(at(text))
            .map(|found| found.to_string())
    };
    assert_eq!(
        why("2026-12-25T22:00:00Z").as_deref(),
        Some("calendar \"holidays\"")
    );
    // A Saturday that is a holiday too.
    assert_eq!(
        why("2026-12-26T22:00:00Z").as_deref(),
        Some("calendar \"holidays\"")
    );
    assert_eq!(
        why("2026-12-27T22:00:00Z").as_deref(),
        Some("in none of the calendars \"workdays\", \"sale\"")
    );
    assert_eq!(
        why("2200-01-01T22:00:00Z").as_deref(),
        Some("calendars are for 1970 to 2199")
    );
    // Due; or never was an instant of the schedule.
    for at in [
        "2026-12-24T22:00:00Z",
        "2026-12-20T22:00:00Z",
        "2026-12-25T21:00:00Z",
        "2026-12-25T22:00:00.5Z",
    ] {
        assert_eq!(why(at), None, "{at}");
    }
    assert_eq!(
        utc("0 22 * * *").excluded_by(at("2026-12-25T22:00:00Z")),
        None
    );
}

#[test]
fn what_calendars_take_is_listed_in_runs() {
    let filter = DayFilter::new(vec![christmas()], vec![workdays()]);
    let schedule = on(utc("0 */6 * * *"), filter);
    let taken = schedule.taken_between(at("2026-12-24T00:00:00Z"), at("2026-12-28T06:00:00Z"));
    let shown: Vec<_> = taken
        .iter()
        .map(|taken| format!("{} {} {}", taken.first, taken.last, taken.exclusion))
        .collect();
    assert_eq!(
        shown,
        [
            "2026-12-25T00:00:00Z 2026-12-26T18:00:00Z calendar \"holidays\"",
            "2026-12-27T00:00:00Z 2026-12-27T18:00:00Z not in calendar \"workdays\"",
        ]
    );
    let endless = schedule.taken_between(at("2026-01-01T00:00:00Z"), at("9999-01-01T00:00:00Z"));
    assert_eq!(endless.len(), 100);
    // The start is not in the range, its end is.
    let cut = schedule.taken_between(at("2026-12-25T06:00:00Z"), at("2026-12-25T12:00:00Z"));
    assert_eq!(cut.len(), 1);
    assert_eq!(
        (cut[0].first, cut[0].last),
        (at("2026-12-25T12:00:00Z"), at("2026-12-25T12:00:00Z"))
    );
}

#[test]
fn a_time_that_does_not_exist_is_not_missed_on_a_day_that_calendars_take() {
    let change = date(2027, 3, 14);
    let skipped = |filter| {
        let schedule = zoned(
            "30 2 * * *",
            "America/New_York",
            DstGap::Skip,
            DstFold::First,
        );
        let schedule = on(schedule, filter);
        let (from, to) = (at("2027-01-01T00:00:00Z"), at("2027-12-31T00:00:00Z"));
        schedule.skipped_between(from, to).len()
    };
    assert_eq!(skipped(except(&[christmas()])), 1);
    assert_eq!(skipped(except(&[calendar("x", &[(change, change)])])), 0);
}

#[test]
fn an_identity_is_of_the_days_and_not_of_the_calendars_names() {
    let identity = |schedule: Schedule| schedule.identity();
    let plain = identity(utc("0  22 * * *"));
    assert_eq!(
        plain,
        "0 22 * * * zone=UTC gap=run_after fold=first days=all"
    );
    let holidays = identity(on(utc("0 22 * * *"), except(&[christmas()])));
    let renamed = calendar("fêtes", &[(date(2026, 12, 25), date(2026, 12, 26))]);
    assert_eq!(
        holidays,
        identity(on(utc("0 22 * * *"), except(&[renamed])))
    );
    let moved = calendar("holidays", &[(date(2026, 12, 25), date(2026, 12, 25))]);
    assert_ne!(holidays, identity(on(utc("0 22 * * *"), except(&[moved]))));
    assert_ne!(holidays, plain);
}

/// Times of day around midnight, all hours, and what knows no local time.
const TEXTS: [&str; 8] = [
    "0 0 * * *",
    "1 0 * * *",
    "30 23 * * *",
    "*/30 * * * *",
    "0 */7 * * MON-SAT",
    "15 2,12 */2 * *",
    "@every 7h",
    "@every 50m",
];

/// A schedule on random days of the twelve around a change, against the bare schedule and the
/// wall's date at each of its instants.
fn agrees(
    (name, day): (&'static str, &str),
    text: &str,
    policy: (DstGap, DstFold),
    (except, only): (u16, u16),
) -> Result<(), TestCaseError> {
    let bare = zoned(text, name, policy.0, policy.1);
    let change: Date = day.parse().expect("a date");
    let first = day_of(change) - 5;
    let calendar = |bits: u16| {
        let mut days = DaySet::default();
        let set = (0..12).filter(|bit| bits >> bit & 1 == 1);
        set.for_each(|bit| days.insert_days(first + bit, first + bit));
        let name = "x".into();
        Arc::new(Calendar { name, days })
    };
    let filter = DayFilter::new(vec![calendar(except)], vec![calendar(only)]);
    let mut expected = BTreeSet::new();
    let start = at(&format!("{day}T00:00:00Z")).as_second() - 8 * 86_400;
    let end = start + 20 * 86_400;
    let bare_instants =
        std::iter::successors(bare.next_after(Timestamp::from_second(start)), |found| {
            bare.next_after(*found)
        })
        .take_while(|found| found.as_second() < end);
    for found in bare_instants {
        let wall = zone(name).to_datetime(found.to_jiff()).date();
        let bit = day_of(wall) - first;
        let is_in = |bits: u16| (0..12).contains(&bit) && bits >> bit & 1 == 1;
        if is_in(only) && !is_in(except) {
            expected.insert(found);
        }
    }
    let Ok(schedule) = bare.on_days(filter) else {
        prop_assert!(expected.is_empty(), "{text} in {name}: {expected:?}");
        return Ok(());
    };
    let start = Timestamp::from_second(start);
    let forwards = std::iter::successors(schedule.next_after(start), |found| {
        schedule.next_after(*found)
    });
    let forwards: Vec<_> = forwards.collect();
    prop_assert_eq!(&forwards, &expected.iter().copied().collect::<Vec<_>>());
    let end = Timestamp::from_second(end);
    let backwards = std::iter::successors(schedule.last_before(end), |found| {
        schedule.last_before(*found)
    });
    let backwards: Vec<_> = backwards.collect();
    prop_assert_eq!(
        &backwards,
        &expected.iter().rev().copied().collect::<Vec<_>>()
    );
    Ok(())
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn a_filtered_search_finds_what_a_walk_would(
        change in prop::sample::select(CHANGES.iter().filter(|(_, day)| *day > "1970").copied().collect::<Vec<_>>()),
        text in prop::sample::select(&TEXTS[..]),
        gap in prop::sample::select(vec![DstGap::RunAfter, DstGap::Skip]),
        fold in prop::sample::select(vec![DstFold::First, DstFold::Last, DstFold::Both]),
        days in (0..1u16 << 12, 0..1u16 << 12),
    ) {
        agrees(change, text, (gap, fold), days)?;
    }
}
