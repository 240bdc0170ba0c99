//! Days that are none, and schedules that could never be due.

use super::*;

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
