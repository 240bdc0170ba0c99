//! Files in the shapes that calendars are exported in.

use super::*;

fn exported(bytes: &[u8]) -> (Vec<String>, Vec<(String, String)>) {
    let contents = read(bytes).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let text = |at| Timestamp::from_second(at).expect("an instant").to_string();
    let spans = contents.spans.iter();
    let spans = spans.map(|(from, to)| (text(*from), text(*to))).collect();
    (dates_of(&contents.days, 100), spans)
}

#[test]
fn public_holidays_of_google_are_read() {
    // Transparent, with folded lines, one of them folded within a character.
    let (dates, spans) = exported(include_bytes!("exports/google.ics"));
    assert_eq!(dates, ["2026-12-25", "2026-12-26", "2027-01-01"]);
    assert!(spans.is_empty());
}

#[test]
fn a_calendar_of_outlook_is_read() {
    // With a zone of its own, by a name of Windows, and an occurrence taken out.
    let (dates, spans) = exported(include_bytes!("exports/outlook.ics"));
    assert_eq!(dates, ["2027-01-04", "2027-01-05"]);
    assert_eq!(
        spans,
        [
            ("2026-12-24T11:00:00Z".into(), "2026-12-24T23:00:00Z".into()),
            ("2028-12-24T11:00:00Z".into(), "2028-12-24T23:00:00Z".into()),
        ]
    );
}

#[test]
fn holidays_of_apple_are_read() {
    let (dates, spans) = exported(include_bytes!("exports/apple.ics"));
    assert_eq!(
        dates,
        [
            "2024-11-28",
            "2025-05-26",
            "2025-11-27",
            "2026-05-25",
            "2026-11-26",
            "2027-05-31"
        ]
    );
    let expected = ("2026-12-31T23:00:00Z".into(), "2027-01-01T07:00:00Z".into());
    assert_eq!(spans, [expected]);
}

#[test]
fn line_ends_and_a_mark_at_the_start_play_no_part() {
    let file = include_str!("exports/apple.ics");
    let expected = exported(file.as_bytes());
    assert!(file.contains("\r\n"), "as RFC 5545 has it");
    assert_eq!(exported(file.replace("\r\n", "\n").as_bytes()), expected);
    let marked = format!("\u{feff}{file}\r\n\r\n");
    assert_eq!(exported(marked.as_bytes()), expected);
}
