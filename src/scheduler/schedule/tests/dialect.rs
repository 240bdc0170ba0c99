//! What the fields of the dialect mean, in UTC: numbers, names, ranges, steps, lists.

use super::*;

/// Asserts the next occurrences after Friday, 20 November 2026, 22:00:00.
#[track_caller]
pub(super) fn due(text: &str, expected: &[&str]) {
    assert_eq!(
        next(&utc(text), "2026-11-20T22:00:00Z", expected.len()),
        expected,
        "{text}"
    );
}

#[test]
fn five_fields_begin_with_the_minute() {
    due(
        "30 22 * * *",
        &["2026-11-20T22:30:00Z", "2026-11-21T22:30:00Z"],
    );
    due(
        "*/20 * * * *",
        &[
            "2026-11-20T22:20:00Z",
            "2026-11-20T22:40:00Z",
            "2026-11-20T23:00:00Z",
        ],
    );
    due(
        "5-7 3,4 * * *",
        &[
            "2026-11-21T03:05:00Z",
            "2026-11-21T03:06:00Z",
            "2026-11-21T03:07:00Z",
            "2026-11-21T04:05:00Z",
        ],
    );
    due("  0\t0  1 * * ", &["2026-12-01T00:00:00Z"]);
}

#[test]
fn six_fields_begin_with_the_second() {
    due(
        "0 */1 * * * ?",
        &["2026-11-20T22:01:00Z", "2026-11-20T22:02:00Z"],
    );
    due(
        "* * * * * *",
        &["2026-11-20T22:00:01Z", "2026-11-20T22:00:02Z"],
    );
    due(
        "15,45 59 23 31 12 *",
        &[
            "2026-12-31T23:59:15Z",
            "2026-12-31T23:59:45Z",
            "2027-12-31T23:59:15Z",
        ],
    );
}

/// `0 */1 * * * ?` is how Spring and Quartz spell each full minute, whatever the clocks do.
#[test]
fn the_spring_expression_is_due_at_each_full_minute() {
    for (name, start) in [
        ("Asia/Shanghai", "2026-11-20T22:00:00Z"),
        ("America/New_York", "2027-03-14T00:00:00Z"),
        ("America/New_York", "2027-11-07T00:00:00Z"),
        ("Pacific/Apia", "2011-12-30T00:00:00Z"),
    ] {
        let schedule = zoned("0 */1 * * * ?", name, DstGap::default(), DstFold::default());
        assert!(schedule.warnings().is_empty());
        let start = at(start).as_second();
        for minute in 0..1440 {
            let now = Timestamp::from_second(start + minute * 60);
            let next = Timestamp::from_second(start + (minute + 1) * 60);
            assert_eq!(schedule.next_after(now), Some(next), "{name}");
            assert_eq!(schedule.last_before(next), Some(now), "{name}");
        }
    }
}

#[test]
fn seven_fields_end_with_the_year() {
    due("0 0 12 1 1 ? 2030", &["2030-01-01T12:00:00Z"]);
    due(
        "0 0 0 1 1 ? 2028-2032/2",
        &[
            "2028-01-01T00:00:00Z",
            "2030-01-01T00:00:00Z",
            "2032-01-01T00:00:00Z",
        ],
    );
    due("0 0 0 1 1 ? 2025,2199", &["2199-01-01T00:00:00Z"]);
    assert_eq!(
        utc("0 0 0 1 1 ? 2025,2199").next_after(at("2199-01-01T00:00:00Z")),
        None
    );
    assert_eq!(
        utc("0 0 0 1 1 ? 2030").last_before(at("2030-01-01T00:00:00Z")),
        None
    );
    assert_eq!(
        utc("0 0 0 1 1 ? 2030").last_before(at("9000-01-01T00:00:00Z")),
        Some(at("2030-01-01T00:00:00Z"))
    );
    assert_eq!(
        utc("0 0 0 1 1 ? 2030").next_after(at("0400-01-01T00:00:00Z")),
        Some(at("2030-01-01T00:00:00Z"))
    );
    // An unrestricted year has no end.
    due("0 0 0 1 1 ? *", &["2027-01-01T00:00:00Z"]);
    assert_eq!(
        next(&utc("0 0 0 1 1 ? *"), "2500-06-01T00:00:00Z", 1),
        ["2501-01-01T00:00:00Z"]
    );
}

#[test]
fn a_value_with_a_step_goes_on_to_the_end() {
    due(
        "50/5 * * * *",
        &[
            "2026-11-20T22:50:00Z",
            "2026-11-20T22:55:00Z",
            "2026-11-20T23:50:00Z",
        ],
    );
    due(
        "0 20/2 * * *",
        &[
            "2026-11-21T20:00:00Z",
            "2026-11-21T22:00:00Z",
            "2026-11-22T20:00:00Z",
        ],
    );
    due(
        "0 0 1/15 * *",
        &[
            "2026-12-01T00:00:00Z",
            "2026-12-16T00:00:00Z",
            "2026-12-31T00:00:00Z",
            "2027-01-01T00:00:00Z",
        ],
    );
    due(
        "0 0 1 1/12 *",
        &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"],
    );
    due(
        "0 */24 * * *",
        &["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"],
    );
}

#[test]
fn names_are_read_in_capitals_or_not() {
    due("0 0 1 jan *", &["2027-01-01T00:00:00Z"]);
    due("0 0 * FEB-Apr Sun", &["2027-02-07T00:00:00Z"]);
    due(
        "0 0 * * mon,WED",
        &[
            "2026-11-23T00:00:00Z",
            "2026-11-25T00:00:00Z",
            "2026-11-30T00:00:00Z",
        ],
    );
}

#[test]
fn both_0_and_7_are_sunday_and_1_is_monday() {
    due(
        "0 0 * * 0",
        &["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"],
    );
    due(
        "0 0 * * 7",
        &["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"],
    );
    due(
        "0 0 * * 1",
        &["2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"],
    );
    due(
        "0 0 * * 6-7",
        &[
            "2026-11-21T00:00:00Z",
            "2026-11-22T00:00:00Z",
            "2026-11-28T00:00:00Z",
        ],
    );
    due(
        "0 0 * * 7-1",
        &[
            "2026-11-22T00:00:00Z",
            "2026-11-23T00:00:00Z",
            "2026-11-29T00:00:00Z",
        ],
    );
    due(
        "0 0 * * 7-7",
        &["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"],
    );
    due(
        "0 0 * * 0-7",
        &[
            "2026-11-21T00:00:00Z",
            "2026-11-22T00:00:00Z",
            "2026-11-23T00:00:00Z",
        ],
    );
}

#[test]
fn a_range_of_weekdays_goes_round_the_end_of_the_week() {
    due(
        "0 0 * * FRI-MON",
        &[
            "2026-11-21T00:00:00Z",
            "2026-11-22T00:00:00Z",
            "2026-11-23T00:00:00Z",
            "2026-11-27T00:00:00Z",
        ],
    );
    due(
        "0 0 * * FRI-SUN",
        &[
            "2026-11-21T00:00:00Z",
            "2026-11-22T00:00:00Z",
            "2026-11-27T00:00:00Z",
        ],
    );
    due(
        "0 0 * * FRI-MON/2",
        &[
            "2026-11-22T00:00:00Z",
            "2026-11-27T00:00:00Z",
            "2026-11-29T00:00:00Z",
        ],
    );
}
