//! When a job is due: `schedule` or `after`, `timezone`, `dst_gap`, `dst_fold` and
//! calendars together.

use std::ops::Range;

use jiff::tz::TimeZone;

use super::after::{Wait, read_after};
use super::calendars::on_days;
use super::diagnostics::{Diagnostic, Severity};
use super::job::{Keys, push_missing};
use super::raw::{Entry, RawJob, Section};
use super::read::{Reader, Text};
use super::zone::find_zone;
use crate::scheduler::job::JobName;
use crate::scheduler::schedule::{DstFold, DstGap, Schedule, ScheduleError};

/// What is said where the schedule itself has no better hint.
const EXAMPLE: &str = "for example `schedule = \"0 22 * * *\"`: minute, hour, day of month, month, day of week; try others with `soloist next`";

/// The schedule of a job that `after` brings about.
const NEVER_BY_ITSELF: &str = "@manual";

/// When a job is due, and where the table says so.
pub(super) struct When {
    pub(super) schedule: Schedule,
    /// The jobs that it comes after; with any, the schedule is `@manual`.
    pub(super) after: Vec<JobName>,
    /// The value of `schedule` or of `after`.
    pub(super) span: Range<usize>,
}

impl When {
    /// Whether no instant makes it due, but a trigger or other jobs.
    pub(super) fn is_triggered(&self) -> bool {
        self.schedule.is_manual()
    }
}

/// Reads when a job is due, and adds it to `waits` if that is after others. A schedule that is
/// over is told when the job is enabled.
pub(super) fn read_when<'k>(
    reader: &mut Reader<'_>,
    raw: &'k RawJob<'_>,
    keys: &Keys<'k>,
    enabled: bool,
    waits: &mut Vec<Wait<'k>>,
) -> Option<When> {
    let terms = read_terms(reader, keys);
    let Some(section) = section_of(keys) else {
        let hint = "say when it is due, such as `schedule = \"0 22 * * *\"`, `after = \"JOB\"` for a job that follows others, or `schedule = \"@manual\"` for one that only runs when it is told to";
        push_missing(&mut reader.problems, raw, "has no schedule", hint);
        return None;
    };
    let (schedule, after) = (section.get("schedule"), section.get("after"));
    refuse_both(reader, schedule, after);
    let Some(entry) = after else {
        return read_schedule(reader, raw, keys, schedule?, &terms, enabled);
    };
    let names = read_after(reader, entry)?;
    // A name that can't be one is no job's, which is told when all are known.
    let valid = names
        .iter()
        .filter_map(|name| JobName::new(&name.value).ok());
    let schedule = terms.parse(NEVER_BY_ITSELF, raw).ok()?;
    let when = When {
        schedule: on_days(reader, keys, &entry.value.span(), schedule)?,
        after: valid.collect(),
        span: entry.value.span(),
    };
    waits.push(Wait {
        job: raw.name,
        is_own: keys.job.get("after").is_some(),
        names,
    });
    Some(when)
}

/// How a schedule is read, whatever it is; none for what is wrong.
struct Terms {
    zone: Option<TimeZone>,
    gap: Option<DstGap>,
    fold: Option<DstFold>,
}

impl Terms {
    fn parse(&self, text: &str, raw: &RawJob<'_>) -> Result<Schedule, ScheduleError> {
        // Read in UTC, a wrong zone doesn't hide a wrong schedule.
        let zone = self.zone.clone().unwrap_or(TimeZone::UTC);
        let (gap, fold) = (self.gap.unwrap_or_default(), self.fold.unwrap_or_default());
        Schedule::parse(text, raw.name, zone, gap, fold)
    }
}

fn read_terms(reader: &mut Reader<'_>, keys: &Keys<'_>) -> Terms {
    let zone = read_zone(reader, keys);
    let gap = keys.get("dst_gap").and_then(|entry| {
        let words = vec![("run_after", DstGap::RunAfter), ("skip", DstGap::Skip)];
        reader.word(entry, words)
    });
    let fold = keys.get("dst_fold").and_then(|entry| {
        let words = vec![
            ("first", DstFold::First),
            ("last", DstFold::Last),
            ("both", DstFold::Both),
        ];
        reader.word(entry, words)
    });
    Terms { zone, gap, fold }
}

fn read_schedule(
    reader: &mut Reader<'_>,
    raw: &RawJob<'_>,
    keys: &Keys<'_>,
    entry: &Entry<'_>,
    terms: &Terms,
    enabled: bool,
) -> Option<When> {
    let text = reader.text(entry)?;
    match terms.parse(&text.value, raw) {
        Ok(schedule) => {
            tell_warnings(reader, &text, &schedule);
            let schedule = on_days(reader, keys, &text.span, schedule)?;
            if enabled && terms.zone.is_some() {
                tell_if_over(reader, &text, &schedule);
            }
            Some(When {
                schedule,
                after: Vec::new(),
                span: text.span,
            })
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

/// Where it stands when the job is due. `schedule` and `after` in the job take the place of
/// both in `[defaults]`.
fn section_of<'k>(keys: &Keys<'k>) -> Option<&'k Section<'k>> {
    keys.sections()
        .find(|section| section.mentions("schedule") || section.mentions("after"))
}

fn refuse_both(reader: &mut Reader<'_>, schedule: Option<&Entry<'_>>, after: Option<&Entry<'_>>) {
    let (Some(schedule), Some(after)) = (schedule, after) else {
        return;
    };
    let problem = Diagnostic::error(
        after.key_span.clone(),
        "`after` contradicts `schedule`: a job has one or the other",
    )
    .related(schedule.key_span.clone(), "the `schedule` is here")
    .hint("keep one of them, or make two jobs: one by the clock, one after others");
    reader.problems.push(problem);
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
