//! Faults in the schedules that begin with `@`, and zones where none belong.

use super::*;

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
    for (text, at_fault) in [
        ("@at 1969-12-31T00:00:00Z", "1969-12-31T00:00:00Z"),
        ("@at 1969-12-31T00:00:00", "1969-12-31T00:00:00"),
        ("@at 2200-01-01T00:00:00", "2200-01-01T00:00:00"),
        ("@at 9999-12-31T00:00:00", "9999-12-31T00:00:00"),
    ] {
        refused(text, at_fault, "years go from 1970 to 2199", "");
    }
    // A leap second; no minute; no such offset; a sixth digit of the year.
    for when in [
        "2027-01-01T00:00:60Z",
        "2027-01-01T00+08:00",
        "2027-01-01T00:00:00+30:00",
        "+002027-01-01T00:00:00Z",
    ] {
        let message = format!("`{when}` is not a date and time");
        refused(&format!("@at {when}"), when, &message, "@at 2027");
    }
}
