//! Calendars through the program: what `next` and `check` show, and files that are wrong.

use std::fs;

use crate::soloist::Place;

const TABLE: &str = r#"
[defaults]
except = "holidays"

[calendars.holidays]
description = "days on which the shop is closed"
dates = [2026-12-25, "2027-01-01", "12-26"]
ical = "calendars/holidays.ics"

[calendars.workdays]
weekdays = ["MON-FRI"]

[jobs.report]
schedule = "0 22 * * *"
timezone = "Asia/Shanghai"
shell = "x"
only = ["workdays"]

[jobs.always]
schedule = "0 22 * * *"
except = []
shell = "x"

[jobs.by-hand]
schedule = "@manual"
shell = "x"
"#;

/// From 23:00 on the 28th to 01:00 on the 29th in Shanghai, which is the 28th alone in UTC.
const HOLIDAYS: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTART;TZID=Asia/Sha\r\n nghai:20261228T230000\r\nDURATION:PT2H\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

fn place() -> Place {
    let place = Place::with_table(TABLE);
    fs::create_dir(place.path("calendars")).expect("made");
    fs::write(place.path("calendars/holidays.ics"), HOLIDAYS).expect("written");
    place
}

#[test]
fn next_flags_what_calendars_take_away() {
    let args = ["next", "report", "--from", "2026-12-24", "-n", "3"];
    let ended = place().run(&args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(
        lines[0], "`0 22 * * *` in Asia/Shanghai, except holidays, only workdays",
        "{}",
        ended.stdout
    );
    let expected = [
        "Thu 2026-12-24 22:00:00 +08:00  2026-12-24T14:00:00Z",
        "Fri 2026-12-25 22:00:00 +08:00  2026-12-25T14:00:00Z  to Sat 2026-12-26 22:00:00 +08:00  2026-12-26T14:00:00Z  not due: calendar \"holidays\"",
        "Sun 2026-12-27 22:00:00 +08:00  2026-12-27T14:00:00Z  not due: not in calendar \"workdays\"",
        "Mon 2026-12-28 22:00:00 +08:00  2026-12-28T14:00:00Z  to Tue 2026-12-29 22:00:00 +08:00  2026-12-29T14:00:00Z  not due: calendar \"holidays\"",
        "Wed 2026-12-30 22:00:00 +08:00  2026-12-30T14:00:00Z",
        "Thu 2026-12-31 22:00:00 +08:00  2026-12-31T14:00:00Z",
    ];
    assert_eq!(lines.len(), expected.len() + 1, "{}", ended.stdout);
    for (line, expected) in lines[1..].iter().zip(expected) {
        assert!(line.starts_with(expected), "{}", ended.stdout);
    }
}

#[test]
fn an_empty_list_undoes_the_default_and_a_job_without_days_has_none_to_lose() {
    let place = place();
    let args = ["next", "always", "--from", "2026-12-25", "-n", "1"];
    let ended = place.run(&args);
    assert!(
        ended.stdout.contains("2026-12-25T22:00:00Z"),
        "{}",
        ended.stdout
    );
    assert!(!ended.stdout.contains("not due"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("holidays"), "{}", ended.stdout);
    let ended = place.run(&["next", "by-hand"]);
    assert!(
        ended.stdout.contains("never due by itself"),
        "{}",
        ended.stdout
    );
    let ended = place.run(&["check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let title = "report  `0 22 * * *` in Asia/Shanghai, except holidays, only workdays";
    assert!(
        ended.stdout.lines().any(|line| line == title),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_file_is_looked_for_beside_the_table() {
    let place = place();
    fs::create_dir(place.path("etc")).expect("made");
    fs::rename(place.path("jobs.toml"), place.path("etc/jobs.toml")).expect("moved");
    fs::rename(place.path("calendars"), place.path("etc/calendars")).expect("moved");
    let ended = place.run(&["--config", "etc/jobs.toml", "check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn what_is_wrong_in_a_file_is_told_with_that_file_its_line_and_who_names_it() {
    let place = place();
    let wrong = HOLIDAYS.replace("20261228T230000", "20261328T230000");
    let wrong = wrong.replace("DURATION:PT2H", "DURATION:2h");
    fs::write(place.path("calendars/holidays.ics"), wrong).expect("written");
    let ended = place.run(&["check"]);
    assert_eq!(ended.code, Some(2));
    assert_eq!(ended.stdout, "");
    for part in [
        "error: `20261328T230000` is no date or time",
        "calendars/holidays.ics:5:1",
        "5 | DTSTART;TZID=Asia/Shanghai:20261328T230000",
        "^^^^^^^^^^^^^^",
        "jobs.toml:8:8",
        "ical = \"calendars/holidays.ics\"",
        "= help: a date is `20261225`",
    ] {
        assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
    }
    assert_eq!(
        ended.stderr.matches("error: ").count(),
        1,
        "{}",
        ended.stderr
    );
}

#[test]
fn a_file_that_is_too_large_or_no_calendar_is_refused() {
    for (bytes, message, hint) in [
        (
            vec![b'\n'; 4 * 1024 * 1024 + 1],
            "it is over 4 MiB",
            "a calendar of their own",
        ),
        (
            b"<html></html>".to_vec(),
            "this is not iCalendar",
            "`BEGIN:VCALENDAR`",
        ),
        (Vec::new(), "this is not iCalendar", "`BEGIN:VCALENDAR`"),
        (
            HOLIDAYS.as_bytes()[..HOLIDAYS.find("DURATION").expect("in it")].to_vec(),
            "the file ends within this VEVENT",
            "get it again",
        ),
    ] {
        let place = place();
        fs::write(place.path("calendars/holidays.ics"), bytes).expect("written");
        let ended = place.run(&["check"]);
        assert_eq!(ended.code, Some(2), "{message}");
        for part in [message, hint] {
            assert!(ended.stderr.contains(part), "{part}\n{}", ended.stderr);
        }
    }
}

#[test]
fn a_file_without_a_day_to_come_is_a_warning() {
    let place = place();
    let empty = "BEGIN:VCALENDAR\nEND:VCALENDAR\n";
    fs::write(place.path("calendars/holidays.ics"), empty).expect("written");
    let ended = place.run(&["check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let warning = "warning: `calendars/holidays.ics` names no day from 1970 to 2199";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);

    let over = HOLIDAYS.replace("YEARLY", "YEARLY;COUNT=2");
    let over = over.replace("20261228", "20191228");
    fs::write(place.path("calendars/holidays.ics"), over).expect("written");
    let ended = place.run(&["check"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let warning = "warning: `calendars/holidays.ics` names no day to come";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
}
