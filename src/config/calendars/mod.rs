//! `[calendars.NAME]`, and the `except` and `only` of jobs that refer to them.
//!
//! A calendar is the local dates that any of its keys names; those of timed events in an
//! iCalendar file depend on the zone of the job. What jobs share is made once: tables with
//! thousands of jobs have a handful of calendars.
//!
//! Must never: leave a calendar out that a job names, or read the host's time zone.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use toml::de::DeValue;

use super::diagnostics::{Diagnostic, Excerpt};
use super::job::Keys;
use super::names::nearest;
use super::raw::{Entry, RawJob, Value, kind_of};
use super::read::{Reader, Text};
use super::sources::note;
use super::values::ValueError;
use crate::jobs::calendars::{DAY, dates, days_in, ics};
use crate::scheduler::job::check_name;
use crate::scheduler::schedule::{Calendar, DayFilter, DaySet, Schedule};

mod file;

pub(super) use dates::WEEKDAYS;

#[cfg(test)]
mod tests;

/// The calendars of a table.
#[derive(Debug, Default)]
pub(super) struct Calendars {
    sources: Vec<Source>,
    in_zones: BTreeMap<(usize, String), Arc<Calendar>>,
    filters: BTreeMap<FilterKey, DayFilter>,
}

/// The zone, and the calendars of `except` and of `only`.
type FilterKey = (String, Vec<usize>, Vec<usize>);

/// One calendar as it was read.
#[derive(Debug)]
struct Source {
    name: String,
    days: DaySet,
    spans: Vec<(i64, i64)>,
    /// Whether all of it could be read.
    is_whole: bool,
}

/// Reads all calendars; files are looked for beside the file that names them.
pub(super) fn read<'r>(
    reader: &mut Reader<'_>,
    raw: impl Iterator<Item = &'r RawJob<'r>>,
) -> Calendars {
    let sources = raw.map(|raw| read_one(reader, raw));
    Calendars {
        sources: sources.collect(),
        ..Calendars::default()
    }
}

fn read_one(reader: &mut Reader<'_>, raw: &RawJob<'_>) -> Source {
    let mut source = Source {
        name: raw.name.into(),
        days: DaySet::default(),
        spans: Vec::new(),
        is_whole: true,
    };
    if let Err(error) = check_name(raw.name) {
        let message = format!(
            "`{}` can't name a calendar: {error}",
            raw.name.escape_debug()
        );
        reader.error(
            &raw.name_span,
            message,
            "for example `[calendars.holidays]`",
        );
    }
    let section = &raw.section;
    if let Some(entry) = section.get("description") {
        reader.text(entry);
    }
    if !["dates", "weekdays", "ical"]
        .iter()
        .any(|key| section.mentions(key))
    {
        let message = format!("the calendar `{}` names no days", raw.name.escape_debug());
        let hint = "say which: `dates = [\"2026-12-25\"]`, `weekdays = [\"SAT\", \"SUN\"]`, or `ical = \"holidays.ics\"`";
        let missing = Diagnostic::error(raw.name_span.clone(), message).hint(hint);
        reader.problems.push_missing(missing);
        source.is_whole = false;
    }
    if let Some(entry) = section.get("dates") {
        source.is_whole &= add(reader, entry, &mut source.days, dates::add_dates);
    }
    if let Some(entry) = section.get("weekdays") {
        source.is_whole &= add(reader, entry, &mut source.days, dates::add_weekdays);
    }
    if let Some(entry) = section.get("ical") {
        match read_ical(reader, entry) {
            Some(contents) => {
                source.days.insert_all(&contents.days);
                source.spans = contents.spans;
            }
            None => source.is_whole = false,
        }
    }
    source
}

/// Adds each item of a list; tells those that are wrong, and whether there were none.
fn add(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    days: &mut DaySet,
    add: fn(&mut DaySet, &str) -> Result<(), ValueError>,
) -> bool {
    let Some(items) = one_or_more(reader, entry) else {
        return false;
    };
    let mut all = true;
    for item in items {
        if let Err(ValueError { message, hint }) = add(days, &item.value) {
            reader.error(&item.span, format!("`{}` {message}", item.value), hint);
            all = false;
        }
    }
    all
}

/// The texts of a list; of a text by itself, that one. TOML's own dates are taken as texts.
fn one_or_more(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Vec<Text>> {
    let text_of = |value: &Value<'_>| {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(date) if entry.key.takes == "a list of dates" => date.to_string(),
            _ => return None,
        };
        Some(Text {
            value: text,
            span: value.span(),
            filled_in: false,
        })
    };
    if let Some(text) = text_of(entry.value) {
        return Some(vec![text]);
    }
    let Some(array) = entry.value.get_ref().as_array() else {
        reader.wrong_type(entry);
        return None;
    };
    let mut texts = Vec::new();
    let mut all = true;
    for item in array.iter() {
        if let Some(text) = text_of(item) {
            texts.push(text);
            continue;
        }
        let (name, takes) = (entry.key.name, entry.key.takes);
        let message = format!("`{name}` takes {takes}; here is {}", kind_of(item));
        reader.error(
            &item.span(),
            message,
            format!("for example `{}`", entry.key.example),
        );
        all = false;
    }
    all.then_some(texts)
}

fn read_ical(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<ics::Contents> {
    let text = reader.full_text(entry)?;
    let path: PathBuf = reader.map.directory(text.span.start).join(&text.value);
    note(&mut reader.sources.calendars, &path);
    let table = reader.map.file(text.span.start);
    let included = table.filter(|file| file.start > 0);
    let table = included.map_or("jobs.toml", |file| &file.name);
    let bytes = match file::read(&path, table) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("failed to read `{}`: {}", path.display(), error.message);
            reader.error(&text.span, message, error.hint);
            return None;
        }
    };
    let contents = match ics::read(&bytes) {
        Ok(contents) => contents,
        Err(faults) => {
            for fault in faults {
                tell(reader, &text, &path, fault);
            }
            return None;
        }
    };
    warn_of_no_days(reader, &text, &path, &contents);
    Some(contents)
}

/// A file of holidays is for some years, and nobody would see that they are over: the job would
/// run on the holidays to come.
fn warn_of_no_days(reader: &mut Reader<'_>, text: &Text, path: &Path, contents: &ics::Contents) {
    let today = reader.now.as_second().div_euclid(DAY);
    let (what, hint) = match contents.last_day() {
        None => (
            "names no day from 1970 to 2199",
            "only its VEVENTs that are not CANCELLED count",
        ),
        // Today in UTC may be tomorrow, or yesterday, where the job is.
        Some(day) if day < today - 1 => (
            "names no day to come",
            "its last event is over: get the calendar of this year",
        ),
        Some(_) => return,
    };
    let message = format!("`{}` {what}", path.display());
    let warning = Diagnostic::warning(text.span.clone(), message);
    reader.problems.push(warning.hint(hint));
}

/// How much of a line at fault is shown, in bytes.
const SHOWN: usize = 160;

fn tell(reader: &mut Reader<'_>, text: &Text, path: &Path, fault: ics::Fault) {
    let shown = &fault.text[..fault.text.floor_char_boundary(SHOWN)];
    let excerpt = Excerpt {
        path: path.display().to_string(),
        line: fault.line,
        text: shown.replace(|c: char| c.is_control(), " "),
    };
    let problem = Diagnostic::error(text.span.clone(), fault.message);
    reader
        .problems
        .push(problem.hint(fault.hint).excerpt(excerpt));
}

/// The schedule on the days that a job's calendars leave; none when they can't be told or leave
/// nothing. `span` is where the table says when the job is due.
pub(super) fn on_days(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    span: &Range<usize>,
    schedule: Schedule,
) -> Option<Schedule> {
    let (except, only) = (keys.get("except"), keys.get("only"));
    let excepted = except.map_or(Some(Vec::new()), |entry| find(reader, entry));
    let allowed = only.map_or(Some(Vec::new()), |entry| find(reader, entry));
    let (excepted, allowed) = (excepted?, allowed?);
    if excepted.is_empty() && allowed.is_empty() {
        return Some(schedule);
    }
    if schedule.is_manual() {
        // What a default asks of all jobs, it asks of those that have a schedule.
        let of_job = |name, found: &[usize]| keys.job.get(name).filter(|_| !found.is_empty());
        let own = of_job("except", &excepted).or(of_job("only", &allowed));
        let Some(entry) = own else {
            return Some(schedule);
        };
        refuse_on_no_day(reader, entry, span);
        return None;
    }
    let days = reader.calendars.filter(schedule.zone(), excepted, allowed);
    match schedule.on_days(days) {
        Ok(schedule) => Some(schedule),
        Err(error) => {
            let entry = keys
                .job
                .get("only")
                .or(keys.job.get("except"))
                .or(only)
                .or(except)?;
            let problem = Diagnostic::error(entry.value.span(), error.message);
            let problem = problem.related(span.clone(), "the schedule");
            reader.problems.push(Diagnostic {
                hint: error.hint,
                ..problem
            });
            None
        }
    }
}

/// A job that is due on no day by itself names calendars.
fn refuse_on_no_day(reader: &mut Reader<'_>, entry: &Entry<'_>, span: &Range<usize>) {
    let name = entry.key.name;
    let message = format!("`{name}` has no day to leave out: this job is due on none by itself");
    let problem = Diagnostic::error(entry.key_span.clone(), message);
    let problem = problem.related(span.clone(), "what makes it due");
    let hint = format!("leave out `{name}`, or give the job a schedule");
    reader.problems.push(problem.hint(hint));
}

/// The calendars that a key names; none when one of them is not there or not whole.
fn find(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Vec<usize>> {
    let names = one_or_more(reader, entry)?;
    let mut found = Vec::new();
    let mut all = true;
    for name in names {
        let sources = &reader.calendars.sources;
        let at = sources.iter().position(|source| source.name == name.value);
        if let Some(at) = at {
            all &= sources[at].is_whole;
            found.push(at);
            continue;
        }
        let known: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
        let hint = match nearest(&name.value, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if known.is_empty() => {
                "calendars are tables of their own, such as `[calendars.holidays]` with `dates = [\"2026-12-25\"]` below it".into()
            }
            None => format!("the calendars are {}", known.join(", ")),
        };
        let diagnostic =
            Diagnostic::error(name.span, format!("there is no calendar `{}`", name.value));
        // A line that could not be read may have been its beginning.
        reader.problems.push_unknown(diagnostic.hint(hint));
        all = false;
    }
    all.then_some(found)
}

impl Calendars {
    fn filter(&mut self, zone: &TimeZone, except: Vec<usize>, only: Vec<usize>) -> DayFilter {
        let zone_name = zone.iana_name().unwrap_or("UTC").to_owned();
        let key = (zone_name, except, only);
        if let Some(filter) = self.filters.get(&key) {
            return filter.clone();
        }
        let (zone_name, except, only) = &key;
        let mut of = |list: &[usize]| -> Vec<Arc<Calendar>> {
            let list = list.iter();
            list.map(|at| self.in_zone(*at, zone, zone_name)).collect()
        };
        let filter = DayFilter::new(of(except), of(only));
        self.filters.insert(key, filter.clone());
        filter
    }

    fn in_zone(&mut self, at: usize, zone: &TimeZone, zone_name: &str) -> Arc<Calendar> {
        let source = &self.sources[at];
        // Without timed events it is the same in every zone.
        let zone_name = if source.spans.is_empty() {
            ""
        } else {
            zone_name
        };
        let known = self.in_zones.entry((at, zone_name.to_owned()));
        let calendar = known.or_insert_with(|| {
            Arc::new(Calendar {
                name: source.name.as_str().into(),
                days: days_in(zone, &source.days, &source.spans),
            })
        });
        calendar.clone()
    }
}
