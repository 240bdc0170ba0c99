//! What a preview says of the occurrences that a change of clocks touched.

use super::*;
use DstFold::{Both, First, Last};
use DstGap::{RunAfter, Skip};

const NEW_YORK: &str = "America/New_York";

fn local(text: &str) -> jiff::civil::DateTime {
    text.parse().expect("a local time")
}

#[test]
fn times_made_up_for_and_repeated_are_named() {
    let schedule = zoned("0,30 1-3 * * *", NEW_YORK, RunAfter, Both);
    let after_gap = schedule.oddity(at("2027-03-14T07:00:00Z")).expect("odd");
    assert_eq!(
        after_gap,
        Oddity::AfterGap {
            first: local("2027-03-14T02:00:00"),
            last: local("2027-03-14T02:30:00")
        }
    );
    assert_eq!(
        after_gap.to_string(),
        "stands for 2027-03-14T02:00:00 to 2027-03-14T02:30:00, which are skipped"
    );
    assert_eq!(schedule.oddity(at("2027-03-14T07:30:00Z")), None);
    assert_eq!(
        schedule.oddity(at("2027-11-07T05:30:00Z")),
        Some(Oddity::RepeatedFirst)
    );
    assert_eq!(
        schedule.oddity(at("2027-11-07T06:00:00Z")),
        Some(Oddity::RepeatedSecond)
    );
    assert_eq!(schedule.oddity(at("2027-11-07T07:00:00Z")), None);
    assert_eq!(
        (
            Oddity::RepeatedFirst.to_string(),
            Oddity::RepeatedSecond.to_string()
        ),
        (
            "has a local time that comes twice: the first".into(),
            "has a local time that comes twice: the second".into()
        )
    );
    // No time of this one is skipped, so its 03:00 is as any other.
    assert_eq!(
        zoned("0 3 * * *", NEW_YORK, RunAfter, First).oddity(at("2027-03-14T07:00:00Z")),
        None
    );
    assert_eq!(utc("@daily").oddity(Timestamp::from_millis(i64::MAX)), None);
}

#[test]
fn one_skipped_time_is_named_alone() {
    let schedule = zoned("30 2 * * *", NEW_YORK, RunAfter, First);
    let oddity = schedule.oddity(at("2027-03-14T07:00:00Z")).expect("odd");
    assert_eq!(
        oddity.to_string(),
        "stands for 2027-03-14T02:30:00, which is skipped"
    );
}

#[test]
fn the_policy_decides_what_is_odd() {
    let end_of_gap = at("2027-03-14T07:00:00Z");
    let skips = zoned("0,30 2,3 * * *", NEW_YORK, Skip, First);
    assert_eq!(
        skips.next_after(at("2027-03-14T00:00:00Z")),
        Some(end_of_gap)
    );
    assert_eq!(skips.oddity(end_of_gap), None);
    // The one pass that runs is named too: people ask which of the two it is.
    for (fold, instant, oddity) in [
        (First, "2027-11-07T05:30:00Z", Oddity::RepeatedFirst),
        (Last, "2027-11-07T06:30:00Z", Oddity::RepeatedSecond),
    ] {
        let once = zoned("30 1 * * *", NEW_YORK, RunAfter, fold);
        assert_eq!(next(&once, "2027-11-07T00:00:00Z", 1), [instant]);
        assert_eq!(once.oddity(at(instant)), Some(oddity));
    }
}

#[test]
fn a_schedule_of_all_hours_stands_in_for_nothing_but_repeats() {
    let hourly = zoned("@hourly", NEW_YORK, RunAfter, First);
    assert_eq!(hourly.oddity(at("2027-03-14T07:00:00Z")), None);
    let first = hourly.oddity(at("2027-11-07T05:00:00Z"));
    assert_eq!(first, Some(Oddity::RepeatedFirst));
    let second = hourly.oddity(at("2027-11-07T06:00:00Z"));
    assert_eq!(second, Some(Oddity::RepeatedSecond));
}

#[test]
fn without_a_local_time_nothing_is_odd() {
    let repeated = at("2027-11-07T05:30:00Z");
    for text in ["@every 30m", "@at 2027-11-07T05:30:00Z", "@manual"] {
        let schedule = zoned(text, NEW_YORK, RunAfter, Both);
        assert_eq!(schedule.oddity(repeated), None, "{text}");
        assert!(
            schedule
                .skipped_between(at("2027-01-01T00:00:00Z"), at("2028-01-01T00:00:00Z"))
                .is_empty()
        );
    }
    let named = zoned("@at 2027-11-07T01:30:00", NEW_YORK, RunAfter, Last);
    let second = at("2027-11-07T06:30:00Z");
    assert_eq!(named.oddity(second), Some(Oddity::RepeatedSecond));
}

#[test]
fn what_is_skipped_for_good_can_be_listed() {
    let listed = |text: &str, gap| {
        let schedule = zoned(text, NEW_YORK, gap, First);
        schedule.skipped_between(at("2027-01-01T00:00:00Z"), at("2029-01-01T00:00:00Z"))
    };
    let skipped = listed("0,30 2 * * *", Skip);
    assert_eq!(skipped.len(), 2);
    assert_eq!(skipped[0].at, at("2027-03-14T07:00:00Z"));
    assert_eq!(
        (skipped[0].first.to_string(), skipped[0].last.to_string()),
        ("2027-03-14T02:00:00".into(), "2027-03-14T02:30:00".into())
    );
    assert!(listed("0,30 2 * * *", RunAfter).is_empty());
    assert!(listed("0,30 * * * *", Skip).is_empty());
    assert!(listed("0,30 4 * * *", Skip).is_empty());
}

#[test]
fn a_whole_day_skipped_is_listed_once_and_a_list_ends() {
    let schedule = zoned("0 6,18 * * *", "Pacific/Apia", Skip, First);
    let (before, change) = (at("2011-12-01T00:00:00Z"), at("2011-12-30T10:00:00Z"));
    let day = SkippedTimes {
        at: change,
        first: local("2011-12-30T06:00:00"),
        last: local("2011-12-30T18:00:00"),
    };
    // The end belongs to the range, its start does not.
    assert_eq!(schedule.skipped_between(before, change), [day]);
    assert!(schedule.skipped_between(change, change).is_empty());
    let earlier = Timestamp::from_millis(change.as_millis() - 1);
    assert_eq!(schedule.skipped_between(earlier, change), [day]);
    assert!(schedule.skipped_between(before, earlier).is_empty());
    // A gap a year for ever is cut.
    let endless = zoned("30 2 * * *", NEW_YORK, Skip, First);
    let listed = endless.skipped_between(before, Timestamp::from_millis(i64::MAX));
    assert_eq!(listed.len(), 100);
}
