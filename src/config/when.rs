//! When a job is due: `schedule`, `timezone`, `dst_gap`, `dst_fold` and calendars together.

use jiff::tz::TimeZone;

use super::calendars::on_days;
use super::diagnostics::{Diagnostic, Severity};
use super::job::{Keys, push_missing};
use super::raw::RawJob;
use super::read::{Reader, Text, Word};
use super::zone::find_zone;
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};

/// What is said where the schedule itself has no better hint.
const EXAMPLE: &str = "for example `schedule = \"0 22 * * *\"`: minute, hour, day of month, month, day of week; try others with `soloist next`";

/// Reads a job's schedule. A schedule that is over is told when the job is enabled.
pub(super) fn read_schedule(
    reader: &mut Reader<'_>,
    raw: &RawJob<'_>,
    keys: &Keys<'_>,
    enabled: bool,
) -> Option<Schedule> {
    let zone = read_zone(reader, keys);
    let gap = keys.get("dst_gap").and_then(|entry| {
        let words = vec![
            ("run_after", Word::Now(DstGap::RunAfter)),
            ("skip", Word::Now(DstGap::Skip)),
        ];
        reader.word(entry, words)
    });
    let fold = keys.get("dst_fold").and_then(|entry| {
        let words = vec![
            ("first", Word::Now(DstFold::First)),
            ("last", Word::Now(DstFold::Last)),
            ("both", Word::Now(DstFold::Both)),
        ];
        reader.word(entry, words)
    });
    if !keys.mentions("schedule") {
        let hint = "say when it is due, such as `schedule = \"0 22 * * *\"`, or `schedule = \"@manual\"` for a job that only runs when it is told to";
        push_missing(&mut reader.problems, raw, "has no schedule", hint);
    }
    let text = keys.get("schedule").and_then(|entry| reader.text(entry))?;
    // Read in UTC, a wrong zone doesn't hide a wrong schedule.
    let parsed = Schedule::parse(
        &text.value,
        raw.name,
        zone.clone().unwrap_or(TimeZone::UTC),
        gap.unwrap_or_default(),
        fold.unwrap_or_default(),
    );
    match parsed {
        Ok(schedule) => {
            tell_warnings(reader, &text, &schedule);
            let schedule = on_days(reader, keys, &text, schedule)?;
            if enabled && zone.is_some() {
                tell_if_over(reader, &text, &schedule);
            }
            Some(schedule)
        }
        Err(error) => {
            let span = reader.span_within(&text, error.span);
            let mut diagnostic = Diagnostic::error(span, error.message);
            diagnostic.hint = error.hint.or_else(|| Some(EXAMPLE.into()));
            reader.problems.push(diagnostic);
            None
        }
    }
}

/// The job's zone, UTC by default; none when it is wrong.
fn read_zone(reader: &mut Reader<'_>, keys: &Keys<'_>) -> Option<TimeZone> {
    let Some(entry) = keys.get("timezone") else {
        return Some(TimeZone::UTC);
    };
    let text = reader.text(entry)?;
    match find_zone(&text.value) {
        Ok(zone) => Some(zone),
        Err(error) => {
            let message = format!("{} {}", text.quoted(), error.message);
            reader.error(&text.span, message, error.hint);
            None
        }
    }
}

fn tell_warnings(reader: &mut Reader<'_>, text: &Text, schedule: &Schedule) {
    for warning in schedule.warnings() {
        let span = reader.span_within(text, warning.span.clone());
        reader
            .problems
            .push(Diagnostic::warning(span, warning.message.clone()));
    }
}

fn tell_if_over(reader: &mut Reader<'_>, text: &Text, schedule: &Schedule) {
    if !schedule.never_fires_after(reader.now) {
        return;
    }
    let last = schedule
        .last_before(reader.now)
        .map_or(String::new(), |at| {
            format!(": its last occurrence was {at}")
        });
    let mut diagnostic = Diagnostic::warning(
        text.span.clone(),
        format!("this schedule never fires again{last}"),
    )
    .hint("choose an instant to come, remove the job, or keep it with `enabled = false`");
    if reader.strictness == super::Strictness::Edit {
        diagnostic.severity = Severity::Error;
    }
    reader.problems.push(diagnostic);
}
