//! When an event is and how long, and which of its occurrences are none.

use super::*;

#[test]
fn a_whole_day_ends_before_its_end() {
    assert_eq!(
        dates(&event(
            "DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261227"
        )),
        ["2026-12-25", "2026-12-26"]
    );
    for lines in [
        "DTSTART;VALUE=DATE:20261225",
        "DTSTART:20261225",
        "DTSTART;VALUE=DATE:20261225\nDTEND;VALUE=DATE:20261225",
        "DTSTART;VALUE=DATE:20261225\nDURATION:P1D",
        "DTSTART;VALUE=DATE:20261225\nDURATION:PT24H",
    ] {
        assert_eq!(dates(&event(lines)), ["2026-12-25"], "{lines}");
    }
    let week = event("DTSTART;VALUE=DATE:20261225\nDURATION:P1W");
    assert_eq!(dates(&week).len(), 7);
}

#[test]
fn an_event_without_a_zone_is_on_its_local_dates_everywhere() {
    assert_eq!(
        dates(&event("DTSTART:20261224T220000\nDTEND:20261225T000000")),
        ["2026-12-24"]
    );
    assert_eq!(
        dates(&event("DTSTART:20261224T220000\nDURATION:PT2H1S")),
        ["2026-12-24", "2026-12-25"]
    );
    assert_eq!(dates(&event("DTSTART:20261224T220000")), ["2026-12-24"]);
}

#[test]
fn an_event_with_a_zone_is_between_two_instants() {
    let expected = [("2026-12-24T21:00:00Z".into(), "2026-12-24T23:30:00Z".into())];
    for lines in [
        "DTSTART:20261224T210000Z\nDTEND:20261224T233000Z",
        "DTSTART;TZID=Europe/Berlin:20261224T220000\nDTEND;TZID=Europe/Berlin:20261225T003000",
        "DTSTART;TZID=\"Europe/Berlin\":20261224T220000\nDURATION:PT2H30M",
        "DTSTART;TZID=Europe/Berlin:20261224T220000\nDTEND;TZID=America/New_York:20261224T183000",
    ] {
        assert_eq!(spans(&event(lines)), expected, "{lines}");
    }
}

#[test]
fn a_recurrence_keeps_its_local_time_and_its_length() {
    let lines = "DTSTART;TZID=Europe/Berlin:20270327T220000\nDTEND;TZID=Europe/Berlin:20270327T230000\nRRULE:FREQ=DAILY;COUNT=2";
    assert_eq!(
        spans(&event(lines)),
        [
            ("2027-03-27T21:00:00Z".into(), "2027-03-27T22:00:00Z".into()),
            ("2027-03-28T20:00:00Z".into(), "2027-03-28T21:00:00Z".into()),
        ]
    );
}

#[test]
fn a_cancelled_event_covers_nothing_and_transparency_plays_no_part() {
    let cancelled = event("DTSTART;VALUE=DATE:20261225\nSTATUS:CANCELLED");
    assert!(dates(&cancelled).is_empty());
    for line in ["STATUS:TENTATIVE", "TRANSP:TRANSPARENT", "TRANSP:OPAQUE"] {
        let lines = format!("DTSTART;VALUE=DATE:20261225\n{line}");
        assert_eq!(dates(&event(&lines)), ["2026-12-25"], "{line}");
    }
}

#[test]
fn dates_are_added_and_left_out() {
    let lines = "DTSTART;VALUE=DATE:20261201\nRRULE:FREQ=DAILY;COUNT=4\nEXDATE;VALUE=DATE:20261202,20261203\nRDATE;VALUE=DATE:20261224\nRDATE;VALUE=PERIOD:20261230/P2D";
    assert_eq!(
        dates(&event(lines)),
        [
            "2026-12-01",
            "2026-12-04",
            "2026-12-24",
            "2026-12-30",
            "2026-12-31"
        ]
    );
    // As Outlook leaves out a day of an event of whole days.
    let lines = "DTSTART;VALUE=DATE:20261201\nRRULE:FREQ=DAILY;COUNT=2\nEXDATE:20261202T000000";
    assert_eq!(dates(&event(lines)), ["2026-12-01"]);
}

#[test]
fn an_instant_is_left_out_whatever_zone_it_is_written_in() {
    let head = "DTSTART;TZID=Europe/Berlin:20261224T220000\nRRULE:FREQ=DAILY;COUNT=2\n";
    for line in [
        "EXDATE;TZID=Europe/Berlin:20261225T220000",
        "EXDATE:20261225T210000Z",
        "EXDATE;TZID=Asia/Shanghai:20261226T050000",
        "EXDATE:20261225T220000",
        "EXDATE;VALUE=DATE:20261225",
    ] {
        let found = spans(&event(&format!("{head}{line}")));
        assert_eq!(found.len(), 1, "{line}");
        assert_eq!(found[0].0, "2026-12-24T21:00:00Z", "{line}");
    }
    let other_time = event(&format!("{head}EXDATE:20261225T220000Z"));
    assert_eq!(spans(&other_time).len(), 2);
}

#[test]
fn an_occurrence_that_was_moved_is_where_it_was_moved_to() {
    let moved = "BEGIN:VEVENT\nUID:a\nDTSTART;VALUE=DATE:20261201\nRRULE:FREQ=DAILY;COUNT=3\nEND:VEVENT\n\
        BEGIN:VEVENT\nUID:a\nRECURRENCE-ID;VALUE=DATE:20261202\nDTSTART;VALUE=DATE:20261224\nEND:VEVENT\n\
        BEGIN:VEVENT\nUID:a\nRECURRENCE-ID;VALUE=DATE:20261203\nDTSTART;VALUE=DATE:20261203\nSTATUS:CANCELLED\nEND:VEVENT\n\
        BEGIN:VEVENT\nUID:b\nDTSTART;VALUE=DATE:20261210\nEND:VEVENT\n";
    assert_eq!(
        dates(&calendar(moved)),
        ["2026-12-01", "2026-12-10", "2026-12-24"]
    );
}

#[test]
fn until_is_included() {
    for (start, until) in [
        ("DTSTART;VALUE=DATE:20261201", "20261203"),
        ("DTSTART;VALUE=DATE:20261201", "20261203T000000Z"),
        ("DTSTART:20261201T120000", "20261203T120000"),
        ("DTSTART:20261201T120000", "20261203"),
    ] {
        let lines = format!("{start}\nRRULE:FREQ=DAILY;UNTIL={until}");
        assert_eq!(dates(&event(&lines)).len(), 3, "{lines}");
    }
    let before = "DTSTART:20261201T120000\nRRULE:FREQ=DAILY;UNTIL=20261203T115959";
    assert_eq!(dates(&event(before)).len(), 2);
    let in_zone = |until| {
        let lines =
            format!("DTSTART;TZID=Asia/Shanghai:20261201T120000\nRRULE:FREQ=DAILY;UNTIL={until}");
        spans(&event(&lines)).len()
    };
    assert_eq!(in_zone("20261203T040000Z"), 3);
    assert_eq!(in_zone("20261203T035959Z"), 2);
}

#[test]
fn what_is_no_event_covers_nothing() {
    let others = "BEGIN:VTODO\nDTSTART;VALUE=DATE:20261225\nEND:VTODO\nBEGIN:VJOURNAL\nDTSTART;VALUE=DATE:20261225\nEND:VJOURNAL\n";
    assert!(dates(&calendar(others)).is_empty());
    let alarm =
        "DTSTART;VALUE=DATE:20261225\nBEGIN:VALARM\nTRIGGER:-PT15M\nDTSTART:nonsense\nEND:VALARM";
    assert_eq!(dates(&event(alarm)), ["2026-12-25"]);
}

#[test]
fn years_that_calendars_dont_know_are_left_out() {
    assert!(dates(&event("DTSTART;VALUE=DATE:19691231")).is_empty());
    assert!(dates(&event("DTSTART;VALUE=DATE:22000101\nRRULE:FREQ=DAILY")).is_empty());
    assert!(spans(&event("DTSTART:19001225T120000Z")).is_empty());
    // A birthday, as Google exports it.
    let old = event("DTSTART;VALUE=DATE:16040105\nRRULE:FREQ=YEARLY");
    let found = contents(&old).days;
    assert_eq!(dates_of(&found, 2), ["1970-01-05", "1971-01-05"]);
    assert_eq!(dates_of(&found, 1000).len(), 230);
}
