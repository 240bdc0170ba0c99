//! Which days are due: `L`, `W`, `#`, and what the two day fields mean together.

use super::dialect::due;
use super::*;

#[test]
fn l_is_the_last_day_of_a_month() {
    due(
        "0 0 L * *",
        &[
            "2026-11-30T00:00:00Z",
            "2026-12-31T00:00:00Z",
            "2027-01-31T00:00:00Z",
            "2027-02-28T00:00:00Z",
        ],
    );
    due(
        "0 0 L-3 2 ?",
        &["2027-02-25T00:00:00Z", "2028-02-26T00:00:00Z"],
    );
    due(
        "0 0 1,L * *",
        &[
            "2026-11-30T00:00:00Z",
            "2026-12-01T00:00:00Z",
            "2026-12-31T00:00:00Z",
        ],
    );
    // Only months of 31 days have a 30th before the last.
    due(
        "0 0 L-30 * *",
        &[
            "2026-12-01T00:00:00Z",
            "2027-01-01T00:00:00Z",
            "2027-03-01T00:00:00Z",
        ],
    );
}

#[test]
fn w_is_the_nearest_weekday_in_the_same_month() {
    // 15 November 2026 is a Sunday, 1 August a Saturday, 31 October a Saturday, 31 January 2027 a Sunday.
    let from = |text| next(&utc(text), "2026-07-20T00:00:00Z", 4);
    assert_eq!(from("0 0 15W 11 *")[0], "2026-11-16T00:00:00Z");
    assert_eq!(from("0 0 1W * *")[0], "2026-08-03T00:00:00Z");
    assert_eq!(
        from("0 0 31W * *"),
        [
            "2026-07-31T00:00:00Z",
            "2026-08-31T00:00:00Z",
            "2026-10-30T00:00:00Z",
            "2026-12-31T00:00:00Z"
        ]
    );
    assert_eq!(from("0 0 31W 1 *")[0], "2027-01-29T00:00:00Z");
    assert_eq!(
        from("0 0 LW * *"),
        [
            "2026-07-31T00:00:00Z",
            "2026-08-31T00:00:00Z",
            "2026-09-30T00:00:00Z",
            "2026-10-30T00:00:00Z"
        ]
    );
    assert_eq!(from("0 0 lw 1 *")[0], "2027-01-29T00:00:00Z");
}

#[test]
fn weekdays_can_be_counted_within_a_month() {
    due(
        "0 0 * * FRI#2",
        &["2026-12-11T00:00:00Z", "2027-01-08T00:00:00Z"],
    );
    due(
        "0 0 ? * 5L",
        &[
            "2026-11-27T00:00:00Z",
            "2026-12-25T00:00:00Z",
            "2027-01-29T00:00:00Z",
        ],
    );
    due(
        "0 0 ? * sunl",
        &["2026-11-29T00:00:00Z", "2026-12-27T00:00:00Z"],
    );
    due(
        "0 0 * * 1#5",
        &["2026-11-30T00:00:00Z", "2027-03-29T00:00:00Z"],
    );
    due(
        "0 0 * * 7#1,3#1",
        &["2026-12-02T00:00:00Z", "2026-12-06T00:00:00Z"],
    );
}

#[test]
fn two_restricted_day_fields_match_either() {
    due(
        "0 0 13 * FRI",
        &[
            "2026-11-27T00:00:00Z",
            "2026-12-04T00:00:00Z",
            "2026-12-11T00:00:00Z",
            "2026-12-13T00:00:00Z",
        ],
    );
    due(
        "0 0 13 * 5L",
        &[
            "2026-11-27T00:00:00Z",
            "2026-12-13T00:00:00Z",
            "2026-12-25T00:00:00Z",
        ],
    );
}

#[test]
fn a_day_field_that_begins_with_a_star_must_match_too() {
    // crontab(5): such a field is not restricted. So: Mondays on odd days.
    due(
        "0 0 */2 * MON",
        &[
            "2026-11-23T00:00:00Z",
            "2026-12-07T00:00:00Z",
            "2026-12-21T00:00:00Z",
            "2027-01-11T00:00:00Z",
        ],
    );
    due(
        "0 0 13 * */5",
        &[
            "2026-12-13T00:00:00Z",
            "2027-06-13T00:00:00Z",
            "2027-08-13T00:00:00Z",
        ],
    );
    due(
        "0 0 13 * ?",
        &["2026-12-13T00:00:00Z", "2027-01-13T00:00:00Z"],
    );
    due(
        "0 0 ? * ?",
        &["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"],
    );
}

#[test]
fn rare_days_are_found_however_far() {
    // 2100 is no leap year.
    assert_eq!(
        next(&utc("0 0 29 2 *"), "2096-03-01T00:00:00Z", 1),
        ["2104-02-29T00:00:00Z"]
    );
    assert_eq!(
        utc("0 0 29 2 *").last_before(at("2104-02-29T00:00:00Z")),
        Some(at("2096-02-29T00:00:00Z"))
    );
    // `*/7` is Sunday, and as it begins with a star both must match.
    let sundays = utc("0 0 29 2 */7");
    let is_sunday = |date: &jiff::civil::Date| date.weekday() == jiff::civil::Weekday::Sunday;
    let leap_days = (1901..2300).filter_map(|year| jiff::civil::Date::new(year, 2, 29).ok());
    let expected: Vec<_> = leap_days
        .filter(is_sunday)
        .map(|date| format!("{date}T00:00:00Z"))
        .collect();
    assert_eq!(
        next(&sundays, "1901-01-01T00:00:00Z", expected.len()),
        expected
    );
}
