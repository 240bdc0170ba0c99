//! What `[calendars.NAME]`, `except` and `only` mean together.

use std::fs;

use crate::config::tests::{read, read_at};
use crate::scheduler::job::Job;
use crate::scheduler::schedule::DayFilter;
use crate::scheduler::time::Timestamp;

const CALENDARS: &str = r#"
    [calendars.holidays]
    dates = ["2026-12-25"]
    [calendars.weekend]
    weekdays = ["SAT", "SUN"]
"#;

fn jobs(source: &str) -> Vec<Job> {
    let config = read(source).unwrap_or_else(|error| panic!("{error}"));
    assert!(config.warnings.is_empty(), "{}", config.warnings);
    config.jobs
}

fn job(keys: &str) -> Job {
    let source = format!("[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\n{keys}\n{CALENDARS}");
    jobs(&source).remove(0)
}

fn shown(job: &Job) -> Option<String> {
    job.schedule.days().map(DayFilter::to_string)
}

fn is_due(job: &Job, text: &str) -> bool {
    let at: Timestamp = text.parse::<jiff::Timestamp>().expect("an instant").into();
    let before = Timestamp::from_millis(at.as_millis() - 1);
    job.schedule.next_after(before) == Some(at)
}

#[test]
fn a_calendar_is_all_that_any_of_its_keys_names() {
    let source = "[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\nonly = \"c\"\n\
        [calendars.c]\ndates = [2026-12-25, \"2026-12-28..2026-12-29\", \"11-30\"]\nweekdays = \"SAT\"\n";
    let job = jobs(source).remove(0);
    for day in [
        "2026-12-25",
        "2026-12-26",
        "2026-12-28",
        "2026-12-29",
        "2031-11-30",
    ] {
        assert!(is_due(&job, &format!("{day}T00:00:00Z")), "{day}");
    }
    for day in ["2026-12-24", "2026-12-27", "2026-12-30", "2027-12-28"] {
        assert!(!is_due(&job, &format!("{day}T00:00:00Z")), "{day}");
    }
}

#[test]
fn one_name_needs_no_list() {
    assert_eq!(
        shown(&job("except = \"holidays\"")).as_deref(),
        Some("except holidays")
    );
    let job = job("except = [\"holidays\"]\nonly = [\"weekend\", \"holidays\"]");
    assert_eq!(
        shown(&job).as_deref(),
        Some("except holidays, only weekend, holidays")
    );
    assert!(!is_due(&job, "2026-12-25T00:00:00Z"), "except wins");
}

#[test]
fn a_job_takes_the_defaults_unless_it_says_otherwise() {
    let source = format!(
        "{CALENDARS}\n[defaults]\nschedule = \"@daily\"\nshell = \"x\"\nexcept = [\"holidays\"]\nonly = [\"weekend\"]\n\
        [jobs.a]\n[jobs.b]\nexcept = []\n[jobs.c]\nexcept = []\nonly = []\n[jobs.d]\nexcept = \"weekend\"\nonly = []\n[jobs.e]\nschedule = \"@manual\"\n[jobs.f]\nschedule = \"@manual\"\nexcept = []\n"
    );
    let shown: Vec<_> = jobs(&source).iter().map(shown).collect();
    let expected = [
        Some("except holidays, only weekend".into()),
        Some("only weekend".into()),
        None,
        Some("except weekend".into()),
        None,
        None,
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_calendar_that_is_wrong_is_told_once_and_not_as_missing() {
    let source = "[defaults]\nexcept = [\"bad\"]\nschedule = \"@daily\"\nshell = \"x\"\n[jobs.a]\n[jobs.b]\n[calendars.bad]\ndates = [\"x\"]\n";
    let error = read(source).expect_err("no date");
    let messages: Vec<_> = error
        .0
        .diagnostics()
        .iter()
        .map(|found| &found.message)
        .collect();
    assert_eq!(messages, ["`x` is no date"]);
}

#[test]
fn timed_events_are_on_the_dates_of_each_jobs_own_zone() {
    let place = tempfile::tempdir().expect("a directory");
    let file = "BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20261224T150000Z\nDTEND:20261224T170000Z\nEND:VEVENT\nEND:VCALENDAR\n";
    fs::write(place.path().join("x.ics"), file).expect("written");
    let source = "[calendars.x]\nical = \"x.ics\"\n[defaults]\nschedule = \"@daily\"\nshell = \"x\"\nonly = \"x\"\n\
        [jobs.utc]\n[jobs.shanghai]\ntimezone = \"Asia/Shanghai\"\n";
    let config = read_at(source, &place.path().join("jobs.toml"));
    let config = config.unwrap_or_else(|error| panic!("{error}"));
    // From 15:00 to 17:00 on the 24th, which in Shanghai ends at 01:00 on the 25th.
    for (job, dates) in config.jobs.iter().zip([
        &["2026-12-24T00:00:00Z"][..],
        &["2026-12-23T16:00:00Z", "2026-12-24T16:00:00Z"],
    ]) {
        let first = job.schedule.next_after(Timestamp::from_second(0));
        let due = std::iter::successors(first, |at| job.schedule.next_after(*at));
        let due: Vec<_> = due.map(|at| at.to_string()).collect();
        assert_eq!(due, dates, "{}", job.name);
    }
    // A replica that reads the same file elsewhere knows the same days.
    let again = read_at(source, &place.path().join("again.toml")).expect("as above");
    assert_eq!(
        config.jobs[1].schedule.identity(),
        again.jobs[1].schedule.identity()
    );
    assert_ne!(
        config.jobs[0].schedule.identity(),
        config.jobs[1].schedule.identity()
    );
}

#[test]
fn jobs_share_what_they_have_in_common() {
    let jobs: String = (0..20_000).map(|n| format!("[jobs.j{n}]\n")).collect();
    let source = format!(
        "{CALENDARS}\n[defaults]\nschedule = \"@daily\"\nshell = \"x\"\nexcept = \"holidays\"\n{jobs}"
    );
    // Ten kilobytes each would come to 200 MB, and to seconds.
    let jobs = self::jobs(&source);
    let first = jobs[0].schedule.days().expect("a filter");
    let last = jobs[19_999].schedule.days().expect("a filter");
    assert!(std::ptr::eq(first.open(), last.open()));
}

#[test]
fn tables_with_other_days_have_another_digest() {
    let digest = |date: &str| {
        let source = format!(
            "[jobs.x]\nschedule = \"@daily\"\nshell = \"x\"\nexcept = \"c\"\n[calendars.c]\ndates = [\"{date}\"]\n"
        );
        let config = read(&source).unwrap_or_else(|error| panic!("{error}"));
        config.digest()
    };
    assert_eq!(digest("2026-12-25"), digest("2026-12-25..2026-12-25"));
    assert_ne!(digest("2026-12-25"), digest("2026-12-26"));
}
