//! What can't be understood in a file is told with its line.

use super::*;

#[test]
fn what_is_no_calendar_is_refused() {
    for (file, line) in [
        ("", 1),
        ("\n\n", 1),
        ("<!DOCTYPE html>\n<html>", 1),
        ("\nBEGIN:VCARD\nEND:VCARD\n", 2),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR\nrest", 3),
        ("END:VCALENDAR\n", 1),
    ] {
        let expected = [(line, "this is not iCalendar".to_owned())];
        assert_eq!(faults(file), expected, "{file:?}");
    }
}

#[test]
fn a_file_that_was_cut_off_is_refused() {
    let whole = event("UID:a\nDTSTART;VALUE=DATE:20261225");
    let cut = whole.split_once("END:VEVENT").expect("an event").0;
    assert_eq!(
        faults(cut),
        [(3, "the file ends within this VEVENT".to_owned())]
    );
    let crossed = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n";
    let message = "this ends what is not open: `VEVENT` is".to_owned();
    assert_eq!(faults(crossed), [(3, message)]);
    let deep = "BEGIN:VCALENDAR\n".repeat(9);
    assert_eq!(faults(&deep), [(9, "this is nested too deeply".to_owned())]);
}

/// Lines of an event, the line of the file that is at fault, and what is said of it.
const FAULTS: &[(&str, usize, &str)] = &[
    ("UID:a", 3, "this VEVENT has no DTSTART"),
    ("no property", 4, "this line is no property"),
    (
        "DTSTART;VALUE=DATE:20261325",
        4,
        "`20261325` is no date or time",
    ),
    (
        "DTSTART:20261225T250000",
        4,
        "`20261225T250000` is no date or time",
    ),
    (
        "DTSTART:20261225T120000+01",
        4,
        "`20261225T120000+01` is no date or time",
    ),
    ("DTSTART:tomorrow", 4, "`tomorrow` is no date or time"),
    (
        "DTSTART:20261225\nDTSTART:20261226",
        5,
        "this VEVENT has a second DTSTART",
    ),
    (
        "DTSTART:20261225\nDTEND:20261224",
        5,
        "this event ends before it begins",
    ),
    (
        "DTSTART:20261225T120000\nDTEND:20261226",
        5,
        "this end is not of the kind that DTSTART is",
    ),
    (
        "DTSTART:20261225T120000\nDTEND:20261225T120000Z",
        5,
        "this time has a zone, and the event's DTSTART has none",
    ),
    (
        "DTSTART:20261225\nDURATION:1 day",
        5,
        "`1 day` is no duration of an event",
    ),
    (
        "DTSTART:20261225\nDURATION:-P1D",
        5,
        "`-P1D` is no duration of an event",
    ),
    (
        "DTSTART:20261225\nDURATION:P9999999D",
        5,
        "`P9999999D` is no duration of an event",
    ),
    (
        "DTSTART:20261225\nDURATION:PT12H",
        5,
        "this event of whole days lasts part of one",
    ),
    (
        "DTSTART:20261225\nRDATE:20261226,x",
        5,
        "`x` is no date or time",
    ),
    ("DTSTART:20261225\nEXDATE:", 5, "`` is no date or time"),
    (
        "DTSTART:20261225\nEXRULE:FREQ=DAILY",
        5,
        "EXRULE is not supported",
    ),
    (
        "DTSTART:20261225\nUID:a\nRECURRENCE-ID;RANGE=THISANDFUTURE:20261225",
        6,
        "RANGE is not supported",
    ),
    (
        "DTSTART:20261225\nRECURRENCE-ID:20261225",
        5,
        "an event with RECURRENCE-ID needs a UID",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=HOURLY",
        5,
        "FREQ=HOURLY is not supported",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=OFTEN",
        5,
        "`OFTEN` is no FREQ",
    ),
    (
        "DTSTART:20261225\nRRULE:COUNT=5",
        5,
        "this rule has no FREQ",
    ),
    (
        "DTSTART:20261225\nRRULE:yearly",
        5,
        "`yearly` is no part of a rule",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;BYEASTER=0",
        5,
        "`BYEASTER` is no part of a rule",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;RSCALE=CHINESE",
        5,
        "`RSCALE` is no part of a rule",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;BYHOUR=9",
        5,
        "BYHOUR is not supported",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;COUNT=0",
        5,
        "`0` is no COUNT",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;COUNT=+5",
        5,
        "`+5` is no COUNT",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;INTERVAL=100001",
        5,
        "`100001` is no INTERVAL",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;FREQ=DAILY",
        5,
        "FREQ is there twice",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;COUNT=2;UNTIL=20271225",
        5,
        "COUNT and UNTIL can't go together",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;UNTIL=never",
        5,
        "`never` is no date or time",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=YEARLY;BYMONTH=13",
        5,
        "`13` is no BYMONTH",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=YEARLY;BYMONTH=-1",
        5,
        "`-1` is no BYMONTH",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=YEARLY;BYMONTH=5L",
        5,
        "`5L` is no BYMONTH",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=YEARLY;BYDAY=XX",
        5,
        "`XX` is no day of the week",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=YEARLY;BYDAY=54MO",
        5,
        "`54MO` is no day of the week",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=WEEKLY;WKST=1MO",
        5,
        "`1MO` is no day of the week",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=WEEKLY;BYDAY=1MO",
        5,
        "numbered days in BYDAY go with FREQ=MONTHLY or FREQ=YEARLY",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=WEEKLY;BYMONTHDAY=1",
        5,
        "BYMONTHDAY can't go with FREQ=WEEKLY",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=MONTHLY;BYWEEKNO=1",
        5,
        "BYWEEKNO goes with FREQ=YEARLY alone",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;BYYEARDAY=1",
        5,
        "BYYEARDAY goes with FREQ=YEARLY alone",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO",
        5,
        "numbered days in BYDAY can't go with BYWEEKNO",
    ),
    (
        "DTSTART:20261225\nRRULE:FREQ=DAILY;BYSETPOS=1",
        5,
        "BYSETPOS chooses among what another BY part names, and there is none",
    ),
];

#[test]
fn what_is_wrong_with_an_event_is_told_with_its_line() {
    for (lines, line, message) in FAULTS {
        assert_eq!(
            faults(&event(lines)),
            [(*line, (*message).to_owned())],
            "{lines}"
        );
    }
}

#[test]
fn each_event_that_is_wrong_is_told() {
    let wrong = "BEGIN:VEVENT\nDTSTART:x\nEND:VEVENT\n".repeat(3);
    let lines: Vec<usize> = faults(&calendar(&wrong))
        .iter()
        .map(|(line, _)| *line)
        .collect();
    assert_eq!(lines, [4, 7, 10]);
}

#[test]
fn another_calendars_dates_are_refused() {
    let file = calendar("CALSCALE:CHINESE\n");
    let message = "only the Gregorian calendar is supported".to_owned();
    assert_eq!(faults(&file), [(3, message)]);
    assert!(dates(&calendar("CALSCALE:gregorian\n")).is_empty());
}

#[test]
fn the_line_of_a_fault_is_the_first_of_those_folded_into_it() {
    let file = event("SUMMARY:a\n b\n\tc\nDTSTART;VALUE=\n DATE:2026\n 1325\nUID:a");
    let faults = read(file.as_bytes()).expect_err("no such month");
    assert_eq!(faults[0].line, 7);
    assert_eq!(faults[0].text, "DTSTART;VALUE=DATE:20261325");
}

#[test]
fn recurrences_without_end_are_bounded() {
    let daily = "BEGIN:VEVENT\nDTSTART:00010101T120000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\n";
    let found = faults(&calendar(&daily.repeat(20_000)));
    assert_eq!(found.len(), 1);
    assert!(found[0].1.contains("too often to be counted"), "{found:?}");
    // A rule that no day fits comes to an end as well.
    let never = "DTSTART:20261225\nRRULE:FREQ=YEARLY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=30";
    assert_eq!(dates(&event(never)), ["2026-12-25"]);
}

/// Whatever bytes there are, the answer is an error or a calendar.
#[test]
fn no_file_breaks_the_reader() {
    let whole = event("DTSTART;VALUE=DATE:20261225\nRRULE:FREQ=YEARLY;BYDAY=-1SU\nEXDATE:20271225");
    for at in 0..whole.len() {
        for byte in [b'\0', b'\n', b' ', b':', b';', b'"', b'-', b'9', 0xc3, 0xff] {
            let mut bytes = whole.clone().into_bytes();
            bytes[at] = byte;
            let _ = read(&bytes);
            bytes.truncate(at);
            let _ = read(&bytes);
        }
    }
}
