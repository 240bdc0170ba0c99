//! Errors name the fault, underline precisely it, and say what to do; warnings likewise.

use super::*;

/// Asserts that a text is refused, with the part at fault, the message, and part of the hint.
#[track_caller]
fn refused(text: &str, at_fault: &str, message: &str, hint: &str) {
    let error = read(text, "job").expect_err(text);
    assert_eq!(
        text.get(error.span.clone()),
        Some(at_fault),
        "{text}: {error:?}"
    );
    assert_eq!(error.message, message, "{text}");
    let given = error.hint.clone().unwrap_or_default();
    assert!(
        given.contains(hint) && (hint.is_empty() == given.is_empty()),
        "{text}: {given}"
    );
}

#[test]
fn a_value_out_of_range_is_underlined_in_its_list() {
    refused(
        "5,99 * * * *",
        "99",
        "`99` is not a minute: minutes go from 0 to 59",
        "5 fields are",
    );
    refused(
        "60 * * * *",
        "60",
        "`60` is not a minute: minutes go from 0 to 59",
        "write `0`",
    );
    refused(
        "0 24 * * *",
        "24",
        "`24` is not an hour: hours go from 0 to 23",
        "hour `0`",
    );
    refused(
        "0 0 0 * *",
        "0",
        "`0` is not a day of the month: days of the month go from 1 to 31",
        "write `L`",
    );
    refused(
        "0 0 1-32 * *",
        "32",
        "`32` is not a day of the month: days of the month go from 1 to 31",
        "fields",
    );
    refused(
        "0 0 * 13 *",
        "13",
        "`13` is not a month: months go from 1 to 12, or JAN to DEC",
        "fields",
    );
    refused(
        "0 0 * * 8",
        "8",
        "`8` is not a day of the week: days of the week go from 0 to 7 (0 and 7 are Sunday, 1 is Monday), or SUN to SAT",
        "fields",
    );
    refused(
        "99 0 0 * * *",
        "99",
        "`99` is not a second: seconds go from 0 to 59",
        "fields",
    );
    refused(
        "0 0 0 * * ? 1969",
        "1969",
        "`1969` is not a year: years go from 1970 to 2199",
        "fields",
    );
    refused(
        "0 99999999999999999999 * * *",
        "99999999999999999999",
        "`99999999999999999999` is not an hour: hours go from 0 to 23",
        "fields",
    );
}

#[test]
fn the_place_is_counted_in_bytes_of_the_given_text() {
    assert_eq!(
        read("  0 0  *\t13 *", "job").expect_err("month 13").span,
        9..11
    );
    assert_eq!(
        read("  5 é * * *  ", "job").expect_err("no hour").span,
        4..6
    );
    assert_eq!(read("  5 * *  ", "job").expect_err("too few").span, 2..7);
}

#[test]
fn a_name_that_is_none_gets_the_short_one() {
    refused(
        "0 0 * * MONDAY",
        "MONDAY",
        "`MONDAY` is not a day of the week: days of the week go from 0 to 7 (0 and 7 are Sunday, 1 is Monday), or SUN to SAT",
        "write `MON`",
    );
    refused(
        "0 0 * january *",
        "january",
        "`january` is not a month: months go from 1 to 12, or JAN to DEC",
        "write `JAN`",
    );
    refused(
        "MON 0 * * *",
        "MON",
        "`MON` is not a minute: minutes go from 0 to 59",
        "fields",
    );
}

#[test]
fn a_wrong_number_of_fields_is_explained() {
    refused(
        "* * * *",
        "* * * *",
        "a schedule has 5, 6 or 7 fields, not 4",
        "5 fields are minute, hour",
    );
    refused(
        " 1 2 3 4 5 6 7 8 ",
        "1 2 3 4 5 6 7 8",
        "a schedule has 5, 6 or 7 fields, not 8",
        "7 have the year last",
    );
    refused("", "", "a schedule can't be empty", "@manual");
    refused("   ", "", "a schedule can't be empty", "@manual");
    refused(
        "Daily",
        "Daily",
        "`Daily` is not a schedule",
        "write `@daily`",
    );
    refused("5m", "5m", "`5m` is not a schedule", "write `@every 5m`");
    refused(
        "2027-01-01T00:00:00Z",
        "2027-01-01T00:00:00Z",
        "`2027-01-01T00:00:00Z` is not a schedule",
        "write `@at 2027",
    );
}

#[test]
fn a_step_must_lead_somewhere() {
    refused(
        "*/90 * * * *",
        "*/90",
        "the step of `*/90` is larger than its range of 60, so it would mean one minute alone",
        "@every 90m",
    );
    refused(
        "0 5/25 * * *",
        "5/25",
        "the step of `5/25` is larger than its range of 24, so it would mean one hour alone",
        "@every 25h",
    );
    refused(
        "0 0-5/9 * * *",
        "0-5/9",
        "the step of `0-5/9` is larger than its range of 6, so it would mean one hour alone",
        "@every 9h",
    );
    refused(
        "H/61 * * * *",
        "H/61",
        "the step of `H/61` is larger than its range of 60, so it would mean one minute alone",
        "@every 61m",
    );
    refused(
        "0 0 * */13 *",
        "*/13",
        "the step of `*/13` is larger than its range of 12, so it would mean one month alone",
        "alone",
    );
    refused(
        "1,*/0 * * * *",
        "*/0",
        "the step of `*/0` leads nowhere",
        "1 or more",
    );
    refused("*/ * * * *", "*/", "`` in `*/` is not a step", "`*/5`");
    refused("*/a * * * *", "*/a", "`a` in `*/a` is not a step", "`*/5`");
    refused(
        "*/5/5 * * * *",
        "*/5/5",
        "`5/5` in `*/5/5` is not a step",
        "`*/5`",
    );
    refused(
        "*/-5 * * * *",
        "*/-5",
        "`-5` in `*/-5` is not a step",
        "`*/5`",
    );
}

#[test]
fn a_range_that_runs_backwards_is_refused_except_in_the_week() {
    refused(
        "0 22-2 * * *",
        "22-2",
        "the range `22-2` runs backwards",
        "`22-23,0-2`",
    );
    refused(
        "0 23-0 * * *",
        "23-0",
        "the range `23-0` runs backwards",
        "`23,0`",
    );
    refused(
        "0 0 * NOV-FEB *",
        "NOV-FEB",
        "the range `NOV-FEB` runs backwards",
        "`NOV-DEC,JAN-FEB`",
    );
    refused(
        "0 0 0 1 1 ? 2030-2027",
        "2030-2027",
        "the range `2030-2027` runs backwards",
        "earlier year first",
    );
    refused(
        "H(30-10) * * * *",
        "H(30-10)",
        "the range `H(30-10)` runs backwards",
        "go round",
    );
    refused(
        "0 1- * * *",
        "",
        "an hour is missing here",
        "hours go from 0 to 23",
    );
    refused(
        "0 -5 * * *",
        "",
        "an hour is missing here",
        "hours go from 0 to 23",
    );
    refused(
        "0 1-2-3 * * *",
        "2-3",
        "`2-3` is not an hour: hours go from 0 to 23",
        "fields",
    );
}

#[test]
fn lists_have_no_empty_items() {
    refused(
        "1,,2 * * * *",
        "1,,2",
        "an item of the list `1,,2` is empty",
        "between two commas",
    );
    refused(
        "0 0 1, * *",
        "1,",
        "an item of the list `1,` is empty",
        "between two commas",
    );
}

#[test]
fn special_days_stand_where_they_have_a_meaning() {
    refused(
        "? * * * *",
        "?",
        "`?` can stand in day of month and day of week only",
        "write `*`",
    );
    refused("0 0 ?,5 * *", "?,5", "`?` stands alone", "write `*`");
    refused("0 0 ?/5 * *", "?/5", "`?` stands alone", "write `*`");
    refused(
        "0 0 * * L",
        "L",
        "`L` is not a day of the week: days of the week go from 0 to 7 (0 and 7 are Sunday, 1 is Monday), or SUN to SAT",
        "`5L`",
    );
    refused(
        "0 0 * * FRI#6",
        "FRI#6",
        "`FRI#6` is not a day of the week",
        "`FRI#1` to `FRI#5`",
    );
    refused(
        "0 0 * * 9#1",
        "9",
        "`9` is not a day of the week: days of the week go from 0 to 7 (0 and 7 are Sunday, 1 is Monday), or SUN to SAT",
        "fields",
    );
    refused(
        "0 0 L-31 * *",
        "L-31",
        "`L-31` is not a day of the month",
        "`L-30`",
    );
    refused(
        "0 0 1-5W * *",
        "1-5W",
        "`1-5W` is not a day of the month",
        "`15W`",
    );
    refused(
        "0 0 32W * *",
        "32",
        "`32` is not a day of the month: days of the month go from 1 to 31",
        "fields",
    );
    refused("0 0 W * *", "W", "`W` is not a day of the month", "`15W`");
    refused(
        "0 L * * *",
        "L",
        "`L` is not an hour: hours go from 0 to 23",
        "fields",
    );
}

#[test]
fn hashed_values_have_two_forms_only() {
    refused(
        "H(5) * * * *",
        "H(5)",
        "`H(5)` is not a hashed value",
        "`H(0-29)`",
    );
    refused(
        "H5 * * * *",
        "H5",
        "`H5` is not a hashed value",
        "`H(0-29)`",
    );
    refused(
        "H(0-60) * * * *",
        "60",
        "`60` is not a minute: minutes go from 0 to 59",
        "write `0`",
    );
    refused("0 0 0 1 1 ? H", "H", "a year can't be hashed", "`*`");
}

#[test]
fn a_day_that_never_comes_is_refused() {
    let message = "this schedule is never due: no such day exists";
    refused("0 0 30 2 *", "30 2", message, "`L`");
    refused("0 0 31 4,6,9,11 ?", "31 4,6,9,11", message, "`L`");
    refused("0 0 0 29 2 ? 2025-2027", "29 2 ? 2025-2027", message, "`L`");
    refused("0 0 0 29 2 ? 2100", "29 2 ? 2100", message, "`L`");
    refused("0 0 30W 2 *", "30W 2", message, "`L`");
    refused("0 0 L-29 2 *", "L-29 2", message, "`L`");
    refused("0 0 0 ? 2 MON#5 2027", "2 MON#5 2027", message, "`L`");
    // Possible, however rare: the fifth Monday of a February.
    assert!(read("0 0 ? 2 MON#5", "job").is_ok());
    assert!(read("0 0 29 2 *", "job").is_ok());
    // Either day will do, so Mondays are due.
    assert!(read("0 0 30 2 MON", "job").is_ok());
}

#[test]
fn words_with_an_at_sign_are_known_or_refused() {
    refused(
        "@reboot",
        "@reboot",
        "`@reboot` has no meaning for a fleet: its replicas start at different times",
        "@every",
    );
    refused(
        "@fortnightly",
        "@fortnightly",
        "`@fortnightly` is not a schedule",
        "@weekly",
    );
    refused("@daily 5", "5", "nothing can follow `@daily`", "");
    refused("@manual x", "x", "nothing can follow `@manual`", "");
}

#[test]
fn a_zone_belongs_in_its_own_key() {
    refused(
        "CRON_TZ=Asia/Tokyo 0 0 * * *",
        "CRON_TZ=Asia/Tokyo",
        "a schedule can't set its own time zone",
        "timezone = \"Asia/Tokyo\"",
    );
    refused(
        "TZ=UTC @daily",
        "TZ=UTC",
        "a schedule can't set its own time zone",
        "timezone = \"UTC\"",
    );
    refused(
        "@at 2027-01-01T00:00:00+09:00[Asia/Tokyo]",
        "[Asia/Tokyo]",
        "a schedule can't name a time zone",
        "timezone",
    );
}

#[test]
fn an_interval_is_in_whole_seconds() {
    refused(
        "@every 500ms",
        "500ms",
        "`500ms` is no whole number of seconds",
        "@every 1s",
    );
    refused(
        "@every 1m500ms",
        "500ms",
        "`500ms` is no whole number of seconds",
        "@every 1s",
    );
    refused(
        "@every 0s",
        "0s",
        "an interval is at least one second",
        "@manual",
    );
    refused("@every", "", "`@every` needs a duration", "@every 5m");
    refused("@every 5", "5", "`5` is not a duration", "`@every 1h30m`");
    refused(
        "@every 1.5h",
        "1.",
        "`1.5h` is not a duration",
        "`@every 1h30m`",
    );
    refused(
        "@every 1h 30m",
        "1h ",
        "`1h 30m` is not a duration",
        "without spaces",
    );
    refused(
        "@every 30m1h",
        "1h",
        "`30m1h` is not a duration",
        "longest first",
    );
    refused(
        "@every -5m",
        "-",
        "`-5m` is not a duration",
        "whole numbers",
    );
    refused("@every 5é", "5é", "`5é` is not a duration", "whole numbers");
    refused(
        "@every 99999999999999999999d",
        "99999999999999999999d",
        "an interval is at most 36525d, a century",
        "",
    );
}

#[test]
fn a_single_instant_is_a_date_and_a_time() {
    refused(
        "@at",
        "",
        "`@at` needs a date and time",
        "@at 2027-01-01T00:00:00Z",
    );
    refused(
        "@at tomorrow",
        "tomorrow",
        "`tomorrow` is not a date and time",
        "@at 2027",
    );
    refused(
        "@at 2027-01-01",
        "2027-01-01",
        "`2027-01-01` is not a date and time",
        "@at 2027",
    );
    refused(
        "@at 2027-02-30T00:00:00Z",
        "2027-02-30T00:00:00Z",
        "`2027-02-30T00:00:00Z` is not a date and time",
        "@at 2027",
    );
    refused(
        "@at 2027-01-01T00:00:00.5Z",
        "2027-01-01T00:00:00.5Z",
        "a schedule can't have fractions of a second",
        "whole seconds",
    );
    refused(
        "@at 1969-12-31T00:00:00Z",
        "1969-12-31T00:00:00Z",
        "years go from 1970 to 2199",
        "",
    );
}

#[test]
fn a_local_time_that_is_skipped_and_not_made_up_for_is_never_due() {
    for text in ["@at 2027-03-14T02:30:00", "0 30 2 14 3 ? 2027"] {
        let parse =
            |gap| Schedule::parse(text, "job", zone("America/New_York"), gap, DstFold::First);
        assert!(parse(DstGap::RunAfter).is_ok());
        let error = parse(DstGap::Skip).expect_err(text);
        assert_eq!(error.span, 0..text.len());
        assert!(error.message.contains("skipped"), "{error}");
    }
}

#[test]
fn surprises_are_warned_of() {
    let warned = |text: &str| {
        let schedule = utc(text);
        let places = schedule
            .warnings()
            .iter()
            .map(|warning| text[warning.span.clone()].to_owned());
        places.collect::<Vec<_>>()
    };
    assert_eq!(warned("0 0 13 * FRI"), ["13 * FRI"]);
    assert_eq!(warned("0 0 */2 * MON"), ["*/2", "*/2 * MON"]);
    assert_eq!(warned("*/7 */5 * * *"), ["*/7", "*/5"]);
    assert_eq!(warned("0-59/45 * * * *"), ["0-59/45"]);
    assert_eq!(warned("0-30/7 H/7 * * *"), ["H/7"]);
    for plain in [
        "*/15 */6 * * *",
        "0 0 ? * MON",
        "0 0 13 * *",
        "@weekly",
        "0 */24 * * *",
    ] {
        assert!(
            utc(plain).warnings().is_empty(),
            "{plain}: {:?}",
            utc(plain).warnings()
        );
    }
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn gives_a_schedule_or_an_error_within_the_text(
            text in prop_oneof![
                ".{0,40}",
                "[0-9*/,?LWH()#@ \\-A-Z]{0,24}",
                "[0-9*/,?LWH()#é-]{1,6}( [0-9*/,?LWH()#-]{1,5}){4,6}",
                "@(every|at) [0-9a-zTZ:.+ é-]{0,24}",
            ]
        ) {
            match read(&text, "job") {
                Ok(schedule) => {
                    let now = at("2026-11-20T22:00:00Z");
                    prop_assert!(schedule.next_after(now).is_none_or(|next| next > now));
                    prop_assert!(schedule.last_before(now).is_none_or(|last| last < now));
                }
                Err(error) => {
                    prop_assert!(text.get(error.span.clone()).is_some(), "{error:?}");
                    prop_assert!(!error.message.is_empty() && !error.message.ends_with('.'));
                }
            }
        }
    }
}
