//! What an iCalendar file means, piece by piece.

mod events;
mod exports;
mod faults;
mod other_crate;
mod rules;
mod zones;

use jiff::Timestamp;
use jiff::civil::Date;

use super::*;
use crate::scheduler::schedule::days::date;

/// A file of one event with these lines.
fn event(lines: &str) -> String {
    calendar(&format!("BEGIN:VEVENT\n{lines}\nEND:VEVENT\n"))
}

fn calendar(components: &str) -> String {
    format!("BEGIN:VCALENDAR\nVERSION:2.0\n{components}END:VCALENDAR\n")
}

fn contents(file: &str) -> Contents {
    read(file.as_bytes()).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

fn day_text(day: i64) -> String {
    let (month, day) = date(day);
    let year = i16::try_from(month.year).expect("a year of jiff's");
    let date = Date::new(year, month.month as i8, day as i8).expect("a date");
    date.to_string()
}

/// The first dates of a set.
fn dates_of(days: &DaySet, count: usize) -> Vec<String> {
    let all = std::iter::successors(days.next(0, true), |day| days.next(day + 1, true));
    all.take(count).map(day_text).collect()
}

/// All dates of a file that has few of them.
fn dates(file: &str) -> Vec<String> {
    let contents = contents(file);
    assert!(contents.spans.is_empty(), "{:?}", contents.spans);
    dates_of(&contents.days, 100)
}

/// All instants of a file that has no dates.
fn spans(file: &str) -> Vec<(String, String)> {
    let contents = contents(file);
    assert!(contents.days.is_empty(), "{:?}", contents.days);
    let text = |at| Timestamp::from_second(at).expect("an instant").to_string();
    let spans = contents.spans.iter();
    spans.map(|(from, to)| (text(*from), text(*to))).collect()
}

fn faults(file: &str) -> Vec<(usize, String)> {
    let faults = read(file.as_bytes()).expect_err(file);
    assert!(
        faults.iter().all(|fault| !fault.hint.is_empty()),
        "{faults:?}"
    );
    faults
        .into_iter()
        .map(|fault| (fault.line, fault.message))
        .collect()
}
