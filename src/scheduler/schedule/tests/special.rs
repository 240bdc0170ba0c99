//! The schedules that begin with `@`, and the ends of time for all.

use super::dialect::due;
use super::*;

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
fn a_schedule_whose_last_time_is_over_never_fires_again() {
    let last = at("2026-12-31T23:59:00Z");
    let limited = utc("0 59 23 31 12 ? 2024-2026");
    assert!(!limited.never_fires_after(Timestamp::from_millis(last.as_millis() - 1)));
    assert!(limited.never_fires_after(last));
    // The clocks decide here too: the last time of this one is made up for, or was before.
    let text = "0 30 2 14 3 ? 2026-2027";
    let (before, after) = (at("2026-12-01T00:00:00Z"), at("2027-03-14T07:00:00Z"));
    let made_up = zoned(text, "America/New_York", DstGap::RunAfter, DstFold::First);
    assert_eq!(made_up.next_after(before), Some(after));
    assert!(made_up.never_fires_after(after));
    let skipped = zoned(text, "America/New_York", DstGap::Skip, DstFold::First);
    assert!(skipped.never_fires_after(before));
    assert!(!utc("0 0 29 2 *").never_fires_after(before));
}

/// What a host has under /usr/share/zoneinfo differs from host to host.
#[test]
fn zones_are_those_that_were_built_in() {
    let zones = format!("{:?}", jiff::tz::db());
    assert!(zones.to_lowercase().contains("bundled"), "{zones}");
    assert!(!zones.contains('/'), "{zones}");
    assert!(TimeZone::get("America/Ciudad_Juarez").is_ok());
}
