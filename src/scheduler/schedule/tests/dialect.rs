//! What the forms of the dialect mean, in UTC.

use super::*;

/// Asserts the next occurrences after Friday, 20 November 2026, 22:00:00.
#[track_caller]
fn due(text: &str, expected: &[&str]) {
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

#[test]
fn macros_are_what_crontab_spells_out() {
    due("@hourly", &["2026-11-20T23:00:00Z", "2026-11-21T00:00:00Z"]);
    due("@daily", &["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"]);
    due("@midnight", &["2026-11-21T00:00:00Z"]);
    due("@weekly", &["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"]);
    due(
        "@Monthly",
        &["2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
    );
    due("@yearly", &["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]);
    due("@annually", &["2027-01-01T00:00:00Z"]);
}

#[test]
fn an_interval_counts_from_the_epoch() {
    due(
        "@every 5m",
        &["2026-11-20T22:05:00Z", "2026-11-20T22:10:00Z"],
    );
    due(
        "@every 1h30m",
        &["2026-11-20T22:30:00Z", "2026-11-21T00:00:00Z"],
    );
    due(
        "@every 90m",
        &["2026-11-20T22:30:00Z", "2026-11-21T00:00:00Z"],
    );
    due("@every 1s", &["2026-11-20T22:00:01Z"]);
    // 1970-01-01 was a Thursday.
    due("@every 7d", &["2026-11-26T00:00:00Z"]);
    let every = utc("@every 7m");
    assert_eq!(
        every.next_after(Timestamp::from_second(-1)),
        Some(Timestamp::from_second(0))
    );
    assert_eq!(
        every.next_after(Timestamp::from_second(-421)),
        Some(Timestamp::from_second(-420))
    );
    assert_eq!(
        every.last_before(Timestamp::from_second(0)),
        Some(Timestamp::from_second(-420))
    );
    assert_eq!(
        every.last_before(Timestamp::from_millis(1)),
        Some(Timestamp::from_second(0))
    );
}

#[test]
fn a_single_instant_is_due_once() {
    for text in [
        "@at 2027-01-01T00:00:00Z",
        "@at 2027-01-01T08:00:00+08:00",
        "@at 2027-01-01T00:00:00",
    ] {
        due(text, &["2027-01-01T00:00:00Z"]);
        let once = utc(text);
        let instant = at("2027-01-01T00:00:00Z");
        assert_eq!(once.next_after(instant), None);
        assert!(once.never_fires_after(instant));
        assert!(!once.never_fires_after(at("2026-12-31T23:59:59.999Z")));
        assert_eq!(once.last_before(instant), None);
        assert_eq!(
            once.last_before(at("2027-01-01T00:00:00.001Z")),
            Some(instant)
        );
    }
}

#[test]
fn a_manual_schedule_is_never_due_on_purpose() {
    let manual = utc("@manual");
    assert!(manual.is_manual());
    assert_eq!(manual.next_after(at("2026-11-20T22:00:00Z")), None);
    assert_eq!(manual.last_before(at("2026-11-20T22:00:00Z")), None);
    assert!(!manual.never_fires_after(at("2026-11-20T22:00:00Z")));
    assert!(!utc("@daily").is_manual());
}

#[test]
fn next_and_last_are_strict_to_the_millisecond() {
    let daily = utc("@daily");
    let midnight = at("2026-11-20T00:00:00Z");
    assert_eq!(
        daily.next_after(at("2026-11-19T23:59:59.999Z")),
        Some(midnight)
    );
    assert_eq!(daily.next_after(midnight), Some(at("2026-11-21T00:00:00Z")));
    assert_eq!(
        daily.last_before(at("2026-11-20T00:00:00.001Z")),
        Some(midnight)
    );
    assert_eq!(
        daily.last_before(midnight),
        Some(at("2026-11-19T00:00:00Z"))
    );
}

#[test]
fn the_ends_of_time_are_no_trap() {
    for text in [
        "* * * * * *",
        "@daily",
        "@every 7m",
        "0 0 29 2 *",
        "@manual",
        "0 0 0 1 1 ? 2030",
    ] {
        for name in ["UTC", "America/New_York"] {
            let schedule = zoned(text, name, DstGap::RunAfter, DstFold::First);
            for millis in [i64::MIN, i64::MIN + 1, i64::MAX - 1, i64::MAX] {
                let extreme = Timestamp::from_millis(millis);
                assert!(
                    schedule
                        .next_after(extreme)
                        .is_none_or(|next| next > extreme)
                );
                assert!(
                    schedule
                        .last_before(extreme)
                        .is_none_or(|last| last < extreme)
                );
            }
        }
    }
    assert_eq!(
        utc("@daily").next_after(Timestamp::from_millis(i64::MIN)),
        Some(at("0001-01-01T00:00:00Z"))
    );
    assert_eq!(
        utc("@daily").last_before(Timestamp::from_millis(i64::MAX)),
        Some(at("9998-12-31T00:00:00Z"))
    );
}

#[test]
fn a_hash_never_changes() {
    use crate::scheduler::schedule::hash::hash;
    // A change here moves the times of every job that uses `H`.
    assert_eq!(hash("", 0), HASHES[0]);
    assert_eq!(hash("close-expired-orders", 1), HASHES[1]);
    assert_eq!(hash("close-expired-orders", 2), HASHES[2]);
    assert_eq!(
        next(
            &read("H H * * *", "close-expired-orders").expect("valid"),
            "2026-11-20T22:00:00Z",
            1
        ),
        [HASHED_DAILY]
    );
}

/// Computed by another program from the definition.
const HASHES: [u64; 3] = [
    0x25fc_6dd3_6ce0_4b20,
    0x76d6_86ec_8521_1b91,
    0x3f28_1606_9a15_46d5,
];
const HASHED_DAILY: &str = "2026-11-21T13:05:00Z";

#[test]
fn hashed_values_stay_within_their_range_and_spread() {
    let mut minutes = std::collections::BTreeMap::<i64, u32>::new();
    for job in 0..6000 {
        let name = format!("job-{job}");
        let first = |text: &str| {
            let first = read(text, &name)
                .expect("valid")
                .next_after(at("2027-01-31T23:59:59Z"));
            first.expect("due").as_second() - at("2027-02-01T00:00:00Z").as_second()
        };
        *minutes.entry(first("H * * * *") / 60).or_default() += 1;
        assert!(first("H(10-19) * * * *") / 60 >= 10);
        assert!(first("H(10-19) * * * *") / 60 <= 19);
        assert!(first("H/15 * * * *") / 60 < 15);
        assert!(first("H(0-29)/10 * * * *") / 60 < 10);
        assert!(first("0 0 H * *") < 28 * 86_400);
        assert!(first("0 0 H/7 * *") < 7 * 86_400);
    }
    assert_eq!(minutes.len(), 60);
    // 100 each were even; chance leaves hardly any below 60 or above 140 (4 standard deviations).
    assert!(
        minutes.values().all(|count| (60..=140).contains(count)),
        "{minutes:?}"
    );
}

#[test]
fn a_hashed_step_keeps_its_distance() {
    let first = next(
        &read("H/15 * * * *", "report").expect("valid"),
        "2026-11-20T22:00:00Z",
        8,
    );
    let seconds: Vec<i64> = first.iter().map(|text| at(text).as_second()).collect();
    assert!(
        seconds.windows(2).all(|pair| pair[1] - pair[0] == 900),
        "{first:?}"
    );
    // 0-29 in steps of 10: three, and none in the second half of the hour.
    let half = read("H(0-29)/10 * * * *", "report").expect("valid");
    let hour = next(&half, "2026-11-20T21:59:59Z", 4);
    assert!(
        at(&hour[2]) < at("2026-11-20T22:30:00Z") && at(&hour[3]) >= at("2026-11-20T23:00:00Z"),
        "{hour:?}"
    );
}

#[test]
fn a_field_hashes_alike_in_five_fields_and_in_six() {
    let five = next(
        &read("H H * * *", "report").expect("valid"),
        "2026-11-20T22:00:00Z",
        2,
    );
    let six = next(
        &read("0 H H * * *", "report").expect("valid"),
        "2026-11-20T22:00:00Z",
        2,
    );
    assert_eq!(five, six);
}
