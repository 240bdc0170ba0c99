//! Calendars of the builder: what was said of one, and the schedule on the days that are left.
//!
//! Must never: leave a calendar out that a job has, or build one anew for each job.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::tz::TimeZone;

use super::check::Findings;
use super::job::Said;
use crate::jobs::ValueError;
use crate::jobs::calendars::{DAY, dates, days_in, ics};
use crate::scheduler::job::check_name;
use crate::scheduler::schedule::{self, DayFilter, DaySet, Schedule};
use crate::scheduler::time::Timestamp;

/// Days that jobs leave out ([`Job::except`](crate::Job::except)), or keep to
/// ([`Job::only`](crate::Job::only)): a `[calendars.NAME]` of `jobs.toml`. Cheap to clone; what is
/// wrong with one is told by [`Builder::start`](crate::Builder::start).
///
/// Its days are local dates of the job's own time zone.
///
/// ```
/// use soloist::{Calendar, Context, Error, Job};
///
/// let holidays = Calendar::new("holidays").dates(["12-25..12-26", "2027-03-26"]);
/// let workdays = Calendar::new("workdays").weekdays(["MON-FRI"]);
/// let job = Job::new("report", "0 22 * * *", |_: Context| async { Ok::<_, Error>(()) })
///     .timezone("Europe/Berlin")
///     .only(&workdays)
///     .except(&holidays);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a calendar is for jobs"]
pub struct Calendar(Arc<Named>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: String,
    dates: Vec<String>,
    weekdays: Vec<String>,
    ical: Vec<Vec<u8>>,
}

impl Calendar {
    /// One without days, of this name: for people, and the same in all replicas.
    pub fn new(name: impl Into<String>) -> Self {
        Self(Arc::new(Named {
            name: name.into(),
            dates: Vec::new(),
            weekdays: Vec::new(),
            ical: Vec::new(),
        }))
    }

    /// Adds dates, `2026-12-25`, and ranges of them, `2026-12-24..2027-01-01`; without the year they are
    /// every year's: `12-25`, `12-24..01-01`.
    pub fn dates(mut self, dates: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let all = dates.into_iter().map(Into::into);
        Arc::make_mut(&mut self.0).dates.extend(all);
        self
    }

    /// Adds days of the week, `SAT`, and ranges of them, `MON-FRI`.
    pub fn weekdays(mut self, days: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let all = days.into_iter().map(Into::into);
        Arc::make_mut(&mut self.0).weekdays.extend(all);
        self
    }

    /// Adds the days that an iCalendar file (RFC 5545) names, by its content, such as
    /// `include_str!("holidays.ics")`: each local date that one of its events touches. All replicas
    /// must have the same.
    pub fn ical(mut self, content: impl Into<Vec<u8>>) -> Self {
        Arc::make_mut(&mut self.0).ical.push(content.into());
        self
    }
}

/// Adds the days that a text names.
type Add = fn(&mut DaySet, &str) -> Result<(), ValueError>;

/// All calendars of a builder, each read once, and made once for each zone.
pub(super) struct Calendars {
    /// By this host's clock.
    now: Timestamp,
    read: HashMap<String, (Calendar, Option<Days>)>,
    filters: HashMap<FilterKey, DayFilter>,
}

/// The zone, and the calendars of `except` and of `only` by name.
type FilterKey = (Option<String>, Vec<String>, Vec<String>);

/// What a calendar names, as [`days_in`] takes it.
#[derive(Default)]
struct Days {
    days: DaySet,
    spans: Vec<(i64, i64)>,
}

impl Calendars {
    pub(super) fn at(now: Timestamp) -> Self {
        Self {
            now,
            read: HashMap::new(),
            filters: HashMap::new(),
        }
    }

    /// The schedule on the days that a job's calendars leave; none where something is wrong with them.
    pub(super) fn on_days(
        &mut self,
        said: &Said,
        schedule: Schedule,
        findings: &mut Findings<'_>,
    ) -> Option<Schedule> {
        let lists = [("except", &said.except), ("only", &said.only)];
        let mut all = true;
        for (key, list) in lists {
            if !list.is_empty() && schedule.is_manual() {
                let cause = "it has no day to leave out: this job is due on none by itself";
                findings.add(key, cause, "leave it out, or give the job a schedule");
                all = false;
            }
            for calendar in list {
                all &= self.read(key, calendar, findings);
            }
        }
        if !all || lists.iter().all(|(_, list)| list.is_empty()) {
            return all.then_some(schedule);
        }
        let days = self.filter(schedule.zone(), &said.except, &said.only);
        let schedule = schedule.on_days(days).map_err(|error| {
            let key = if said.only.is_empty() {
                "except"
            } else {
                "only"
            };
            let cure = "`except` wins over `only`: leave more days, or take the job out";
            findings.add(key, error.message, cure);
        });
        schedule.ok()
    }

    /// Whether it is whole. What is wrong with it is told once, of the first job that has it.
    fn read(
        &mut self,
        key: &'static str,
        calendar: &Calendar,
        findings: &mut Findings<'_>,
    ) -> bool {
        let name = &calendar.0.name;
        if let Some((known, days)) = self.read.get(name) {
            if known.0 != calendar.0 {
                let cause = format!("another calendar is called `{}`", name.escape_debug());
                findings.add(key, cause, "give one of them another name");
                return false;
            }
            return days.is_some();
        }
        let days = calendar.0.read(key, self.now, findings);
        let is_whole = days.is_some();
        self.read.insert(name.clone(), (calendar.clone(), days));
        is_whole
    }

    fn filter(&mut self, zone: &TimeZone, except: &[Calendar], only: &[Calendar]) -> DayFilter {
        let names = |list: &[Calendar]| list.iter().map(|one| one.0.name.clone()).collect();
        let zone_name = zone.iana_name().map(str::to_owned);
        let key = (zone_name, names(except), names(only));
        let read = &self.read;
        let made = self.filters.entry(key).or_insert_with(|| {
            let of = |list: &[Calendar]| {
                let days = list.iter().filter_map(|one| read.get(&one.0.name));
                let made = days.filter_map(|(calendar, days)| {
                    let Days { days, spans } = days.as_ref()?;
                    Some(Arc::new(schedule::Calendar {
                        name: calendar.0.name.as_str().into(),
                        days: days_in(zone, days, spans),
                    }))
                });
                made.collect()
            };
            DayFilter::new(of(except), of(only))
        });
        made.clone()
    }
}

impl Named {
    fn read(&self, key: &'static str, now: Timestamp, findings: &mut Findings<'_>) -> Option<Days> {
        let mut is_whole = true;
        let mut tell = |cause: String, cure: &str| {
            let name = self.name.escape_debug();
            findings.add(key, format!("calendar `{name}`: {cause}"), cure);
            is_whole = false;
        };
        if let Err(error) = check_name(&self.name) {
            tell(error.to_string(), "choose another name, such as `holidays`");
        }
        let mut found = Days::default();
        let add: [(_, Add); 2] = [
            (&self.dates, dates::add_dates),
            (&self.weekdays, dates::add_weekdays),
        ];
        for (items, add) in add {
            for item in items {
                if let Err(ValueError { message, hint }) = add(&mut found.days, item) {
                    tell(format!("`{}` {message}", item.escape_debug()), &hint);
                }
            }
        }
        for content in &self.ical {
            match ics::read(content) {
                Ok(contents) => {
                    self.warn_of_no_days(&contents, now);
                    found.days.insert_all(&contents.days);
                    found.spans.extend(contents.spans);
                }
                Err(faults) => {
                    for fault in faults {
                        let text = fault.text.escape_debug();
                        let cause = format!("line {}, `{text}`: {}", fault.line, fault.message);
                        tell(cause, &fault.hint);
                    }
                }
            }
        }
        if self.dates.is_empty() && self.weekdays.is_empty() && self.ical.is_empty() {
            let cure = "say which: `.dates([\"2026-12-25\"])`, `.weekdays([\"SAT\", \"SUN\"])`, or `.ical(…)`";
            tell("it names no days".to_owned(), cure);
        }
        is_whole.then_some(found)
    }
    /// A file of holidays is for some years, and nobody would see that they are over.
    fn warn_of_no_days(&self, contents: &ics::Contents, now: Timestamp) {
        let today = now.as_second().div_euclid(DAY);
        // Today in UTC may be tomorrow, or yesterday, where the job is.
        if contents.last_day().is_none_or(|day| day < today - 1) {
            tracing::warn!(
                calendar = self.name,
                "its iCalendar file names no day to come"
            );
        }
    }
}
