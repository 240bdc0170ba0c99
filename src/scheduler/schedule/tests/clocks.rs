//! Daylight saving, case by case, in the words of the people who live with it.

use super::*;
use DstFold::{Both, First, Last};
use DstGap::{RunAfter, Skip};

/// Asserts the local times that follow an instant.
#[track_caller]
fn due(text: &str, zone: &str, (gap, fold): (DstGap, DstFold), after: &str, expected: &[&str]) {
    let schedule = zoned(text, zone, gap, fold);
    assert_eq!(
        next_local(&schedule, after, expected.len()),
        expected,
        "{text} in {zone}"
    );
}

const NEW_YORK: &str = "America/New_York";
/// New York skips 02:00 to 02:59 on 14 March 2027.
const BEFORE_GAP: &str = "2027-03-13T12:00:00Z";
/// New York repeats 01:00 to 01:59 on 7 November 2027.
const BEFORE_FOLD: &str = "2027-11-06T12:00:00Z";

#[test]
fn a_skipped_time_runs_at_the_end_of_the_gap_by_default() {
    due(
        "30 2 * * *",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_GAP,
        &["2027-03-14T03:00:00-04:00", "2027-03-15T02:30:00-04:00"],
    );
    due(
        "30 2 * * *",
        NEW_YORK,
        (Skip, First),
        BEFORE_GAP,
        &["2027-03-15T02:30:00-04:00"],
    );
}

#[test]
fn skipped_times_run_once_together() {
    due(
        "*/10 2 * * *",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_GAP,
        &["2027-03-14T03:00:00-04:00", "2027-03-15T02:00:00-04:00"],
    );
    // And together with what is due at the end of the gap anyway.
    due(
        "0 2,3 * * *",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_GAP,
        &[
            "2027-03-14T03:00:00-04:00",
            "2027-03-15T02:00:00-04:00",
            "2027-03-15T03:00:00-04:00",
        ],
    );
    due(
        "30 1-3 * * *",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_GAP,
        &[
            "2027-03-14T01:30:00-05:00",
            "2027-03-14T03:00:00-04:00",
            "2027-03-14T03:30:00-04:00",
        ],
    );
}

#[test]
fn a_repeated_hour_runs_once_by_default() {
    due(
        "30 1 * * *",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_FOLD,
        &["2027-11-07T01:30:00-04:00", "2027-11-08T01:30:00-05:00"],
    );
    due(
        "30 1 * * *",
        NEW_YORK,
        (RunAfter, Last),
        BEFORE_FOLD,
        &["2027-11-07T01:30:00-05:00", "2027-11-08T01:30:00-05:00"],
    );
    due(
        "30 1 * * *",
        NEW_YORK,
        (RunAfter, Both),
        BEFORE_FOLD,
        &[
            "2027-11-07T01:30:00-04:00",
            "2027-11-07T01:30:00-05:00",
            "2027-11-08T01:30:00-05:00",
        ],
    );
    due(
        "0,30 1-2 * * *",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_FOLD,
        &[
            "2027-11-07T01:00:00-04:00",
            "2027-11-07T01:30:00-04:00",
            "2027-11-07T02:00:00-05:00",
        ],
    );
}

#[test]
fn a_schedule_of_all_hours_follows_elapsed_time_however_it_is_spelled() {
    for text in ["*/30 * * * *", "0,30 0-23 * * *", "0 */30 0-11,12-23 * * ?"] {
        for policy in [(RunAfter, First), (Skip, Last)] {
            due(
                text,
                NEW_YORK,
                policy,
                "2027-03-14T06:00:00Z",
                &[
                    "2027-03-14T01:30:00-05:00",
                    "2027-03-14T03:00:00-04:00",
                    "2027-03-14T03:30:00-04:00",
                ],
            );
            due(
                text,
                NEW_YORK,
                policy,
                "2027-11-07T05:00:00Z",
                &[
                    "2027-11-07T01:30:00-04:00",
                    "2027-11-07T01:00:00-05:00",
                    "2027-11-07T01:30:00-05:00",
                    "2027-11-07T02:00:00-05:00",
                ],
            );
        }
    }
    // Nothing is added for the hour that isn't there.
    due(
        "15 * * * *",
        NEW_YORK,
        (RunAfter, First),
        "2027-03-14T06:00:00Z",
        &["2027-03-14T01:15:00-05:00", "2027-03-14T03:15:00-04:00"],
    );
}

#[test]
fn half_an_hour_at_lord_howe_is_like_an_hour_elsewhere() {
    let zone = "Australia/Lord_Howe";
    due(
        "15 2 * * *",
        zone,
        (RunAfter, First),
        "2026-10-03T12:00:00Z",
        &["2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"],
    );
    due(
        "45 2 * * *",
        zone,
        (RunAfter, First),
        "2026-10-03T12:00:00Z",
        &["2026-10-04T02:45:00+11:00"],
    );
    due(
        "45 1 * * *",
        zone,
        (RunAfter, First),
        "2026-04-04T12:00:00Z",
        &["2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"],
    );
    due(
        "45 1 * * *",
        zone,
        (RunAfter, Last),
        "2026-04-04T12:00:00Z",
        &["2026-04-05T01:45:00+10:30", "2026-04-06T01:45:00+10:30"],
    );
    due(
        "15 1 * * *",
        zone,
        (RunAfter, Last),
        "2026-04-04T12:00:00Z",
        &["2026-04-05T01:15:00+11:00", "2026-04-06T01:15:00+10:30"],
    );
    // Here another crate does not come back.
    due(
        "1 4 * * *",
        zone,
        (RunAfter, First),
        "2020-04-03T23:59:00Z",
        &["2020-04-05T04:01:00+10:30"],
    );
}

#[test]
fn a_whole_day_can_be_skipped() {
    let zone = "Pacific/Apia";
    due(
        "0 12 * * *",
        zone,
        (RunAfter, First),
        "2011-12-29T12:00:00Z",
        &[
            "2011-12-29T12:00:00-10:00",
            "2011-12-31T00:00:00+14:00",
            "2011-12-31T12:00:00+14:00",
        ],
    );
    due(
        "0 12 * * *",
        zone,
        (Skip, First),
        "2011-12-29T12:00:00Z",
        &["2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00"],
    );
    due(
        "0 0 30 12 *",
        zone,
        (RunAfter, First),
        "2011-01-01T00:00:00Z",
        &["2011-12-31T00:00:00+14:00", "2012-12-30T00:00:00+14:00"],
    );
    due(
        "@hourly",
        zone,
        (RunAfter, First),
        "2011-12-30T09:00:00Z",
        &["2011-12-31T00:00:00+14:00", "2011-12-31T01:00:00+14:00"],
    );
    due(
        "@daily",
        zone,
        (RunAfter, First),
        "2011-12-29T12:00:00Z",
        &["2011-12-31T00:00:00+14:00", "2012-01-01T00:00:00+14:00"],
    );
}

#[test]
fn midnight_itself_can_be_skipped_or_repeated() {
    due(
        "@daily",
        "America/Sao_Paulo",
        (RunAfter, First),
        "2018-11-03T12:00:00Z",
        &["2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"],
    );
    due(
        "30 23 * * *",
        "America/Sao_Paulo",
        (RunAfter, First),
        "2018-02-17T12:00:00Z",
        &["2018-02-17T23:30:00-02:00", "2018-02-18T23:30:00-03:00"],
    );
    due(
        "30 23 * * *",
        "America/Sao_Paulo",
        (RunAfter, Last),
        "2018-02-17T12:00:00Z",
        &["2018-02-17T23:30:00-03:00", "2018-02-18T23:30:00-03:00"],
    );
    due(
        "@daily",
        "Asia/Beirut",
        (Skip, First),
        "2026-03-28T12:00:00Z",
        &["2026-03-30T00:00:00+03:00"],
    );
    // The first of the month is over, comes back for an hour as the last, and is not due again.
    due(
        "@monthly",
        "America/Havana",
        (RunAfter, First),
        "2026-10-31T12:00:00Z",
        &["2026-11-01T00:00:00-04:00", "2026-12-01T00:00:00-05:00"],
    );
}

/// Ciudad Juárez set its clocks back 24 days after the rule that it follows since would have:
/// 23:00 to 23:59 of 29 November 2022 came twice.
#[test]
fn a_change_between_two_rules_is_seen_from_both_sides() {
    let schedule = zoned("30 22,23 * * *", "America/Ciudad_Juarez", RunAfter, First);
    let instants = [
        "2022-11-30T04:30:00Z",
        "2022-11-30T05:30:00Z",
        "2022-12-01T05:30:00Z",
        "2022-12-01T06:30:00Z",
    ];
    assert_eq!(next(&schedule, "2022-11-30T00:00:00Z", 4), instants);
    for pair in instants.windows(2) {
        assert_eq!(schedule.last_before(at(pair[1])), Some(at(pair[0])));
    }
    // The rule alone would have repeated 01:00 to 01:59 of 6 November.
    let one = zoned("30 1 * * *", "America/Ciudad_Juarez", RunAfter, First);
    assert_eq!(one.oddity(at("2022-11-06T07:30:00Z")), None);
    let once = ["2022-11-06T07:30:00Z", "2022-11-07T07:30:00Z"];
    assert_eq!(next(&one, "2022-11-06T00:00:00Z", 2), once);
}

#[test]
fn an_interval_knows_no_clocks() {
    let every = zoned("@every 1h", NEW_YORK, Skip, Last);
    assert_eq!(
        next(&every, "2027-03-14T06:00:00Z", 3),
        [
            "2027-03-14T07:00:00Z",
            "2027-03-14T08:00:00Z",
            "2027-03-14T09:00:00Z"
        ]
    );
    assert_eq!(every.oddity(at("2027-11-07T06:00:00Z")), None);
}

#[test]
fn a_single_local_time_follows_the_policy() {
    due(
        "@at 2027-03-14T02:30:00",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_GAP,
        &["2027-03-14T03:00:00-04:00"],
    );
    due(
        "@at 2027-11-07T01:30:00",
        NEW_YORK,
        (RunAfter, First),
        BEFORE_FOLD,
        &["2027-11-07T01:30:00-04:00"],
    );
    due(
        "@at 2027-11-07T01:30:00",
        NEW_YORK,
        (RunAfter, Last),
        BEFORE_FOLD,
        &["2027-11-07T01:30:00-05:00"],
    );
    let both = zoned("@at 2027-11-07T01:30:00", NEW_YORK, RunAfter, Both);
    assert_eq!(
        next(&both, BEFORE_FOLD, 9),
        ["2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z"]
    );
    assert_eq!(
        both.last_before(at("2199-01-01T00:00:00Z")),
        Some(at("2027-11-07T06:30:00Z"))
    );
}
