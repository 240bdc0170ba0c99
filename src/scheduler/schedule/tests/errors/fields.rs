//! Faults within the fields of a schedule, and in their number.

use super::*;

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
}

#[test]
fn a_value_out_of_range_is_underlined_in_optional_fields_and_however_long_it_is() {
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
