//! Zones that a file defines.

use super::super::expand::Budget;
use super::super::zone::Zone;
use super::*;
use crate::scheduler::schedule::day_set::day_of;

/// As Outlook defines central Europe, for all years.
const EUROPE: &str = "BEGIN:VTIMEZONE\nTZID:W. Europe Standard Time\n\
    BEGIN:STANDARD\nDTSTART:16010101T030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\n\
    RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\nEND:STANDARD\n\
    BEGIN:DAYLIGHT\nDTSTART:16010101T020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\n\
    RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\nEND:DAYLIGHT\nEND:VTIMEZONE\n";

#[test]
fn a_zone_of_the_files_own_is_what_it_says() {
    let zones = zones(EUROPE);
    let event = event_in("W. Europe Standard Time");
    let own = zones.of(&event).expect("known").expect("named");
    assert!(matches!(own, Zone::Own(_)));
    let berlin = jiff::tz::TimeZone::get("Europe/Berlin").expect("bundled");
    let berlin = Zone::Known(berlin);
    // Each quarter of an hour of three days around the changes of years to come.
    let changes = [(2026, 3, 29), (2026, 10, 25), (2027, 3, 28), (2027, 10, 31)];
    for (year, month, day) in changes {
        let day = day_of(Date::new(year, month, day).expect("a date"));
        for local in (0..3 * 96).map(|quarter| (day - 1) * 86_400 + quarter * 900) {
            assert_eq!(
                own.instant(local),
                berlin.instant(local),
                "{}",
                day_text(day)
            );
            assert_eq!(own.local(local), berlin.local(local), "{}", day_text(day));
        }
    }
}

#[test]
fn a_name_of_the_database_goes_before_the_files_own_definition() {
    let renamed = EUROPE.replace("W. Europe Standard Time", "Asia/Shanghai");
    let zone = zones(&renamed).of(&event_in("Asia/Shanghai"));
    assert_eq!(zone.expect("known").expect("named").local(0), 8 * 3600);
}

#[test]
fn a_zone_that_nothing_defines_is_refused() {
    let faults = faults(&event(
        "UID:a\nDTSTART;TZID=W. Europe Standard Time:20261224T220000",
    ));
    assert_eq!(
        faults,
        [(
            5,
            "the zone `W. Europe Standard Time` is not known".to_owned()
        )]
    );
}

#[test]
fn a_zone_that_is_wrong_is_told_once_and_not_for_each_event() {
    let wrong = EUROPE.replace("TZOFFSETTO:+0200", "TZOFFSETTO:CEST");
    let events = "BEGIN:VEVENT\nDTSTART;TZID=W. Europe Standard Time:20261224T220000\nEND:VEVENT\n"
        .repeat(3);
    assert_eq!(
        faults(&calendar(&(wrong + &events))),
        [(14, "`CEST` is no offset from UTC".to_owned())]
    );
    for (line, message) in [
        ("TZOFFSETFROM:+0200\n", "this STANDARD has no TZOFFSETFROM"),
        ("DTSTART:16010101T030000\n", "this STANDARD has no DTSTART"),
        (
            "TZID:W. Europe Standard Time\n",
            "this VTIMEZONE has no TZID",
        ),
    ] {
        let found = faults(&calendar(&EUROPE.replacen(line, "", 1)));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, message);
    }
}

fn zones(components: &str) -> Zones {
    let text = calendar(components);
    let calendars = lines::components(text.as_bytes()).expect("a file");
    let mut zones = Zones::default();
    let faults = zones.read(&calendars[0], &mut Budget::default());
    assert!(faults.is_empty(), "{faults:?}");
    zones
}

fn event_in(zone: &str) -> Property<'static> {
    let text = event(&format!("DTSTART;TZID={zone}:20261224T220000"));
    let text: &'static str = Box::leak(text.into_boxed_str());
    let mut calendars = lines::components(text.as_bytes()).expect("a file");
    calendars.remove(0).children.remove(0).properties.remove(0)
}
