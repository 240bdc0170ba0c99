//! Calendars: named sets of days, and which of a schedule's days they leave.
//!
//! A filter is made once and asked at each search, so all that it leaves is one [`DaySet`]; the
//! calendars are kept to say which of them took an instant away. It must never depend on the
//! order or the number of the jobs that share it.

use std::fmt;
use std::sync::Arc;

use super::day_set::DaySet;

/// A named set of local dates, those of the zone that the schedule is read in.
#[derive(Debug)]
pub struct Calendar {
    /// The name that people gave it.
    pub name: Box<str>,
    /// Its days.
    pub days: DaySet,
}

/// Days on which a schedule may be due: those of any `only` calendar (all where there is none)
/// that are in no `except` calendar. Cheap to clone.
#[derive(Clone)]
pub struct DayFilter(Arc<Inner>);

struct Inner {
    except: Vec<Arc<Calendar>>,
    only: Vec<Arc<Calendar>>,
    open: DaySet,
}

/// Why a filter leaves out a day. Completes "not due: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exclusion<'f> {
    /// It is in a calendar of `except`, of which this is the first.
    Except(&'f str),
    /// It is in none of the calendars of `only`.
    Only(CalendarNames<'f>),
    /// It is before 1970 or after 2199, for which there are no calendars.
    NoYear,
}

/// Names of calendars, in the order of the job.
#[derive(Clone, Copy)]
pub struct CalendarNames<'f>(&'f [Arc<Calendar>]);

impl DayFilter {
    /// Makes one; `except` wins over `only`.
    pub fn new(except: Vec<Arc<Calendar>>, only: Vec<Arc<Calendar>>) -> Self {
        let mut open = if only.is_empty() {
            DaySet::all()
        } else {
            DaySet::default()
        };
        for calendar in &only {
            open.insert_all(&calendar.days);
        }
        for calendar in &except {
            open.remove_all(&calendar.days);
        }
        Self(Arc::new(Inner { except, only, open }))
    }

    /// The days that it leaves.
    pub(crate) fn open(&self) -> &DaySet {
        &self.0.open
    }

    /// Why a day since 1970-01-01 is left out; none when it is not.
    pub(super) fn exclusion(&self, day: i64) -> Option<Exclusion<'_>> {
        if self.0.open.has(day) {
            return None;
        }
        let excepting = self.0.except.iter().find(|found| found.days.has(day));
        Some(match excepting {
            Some(calendar) => Exclusion::Except(&calendar.name),
            None if !DaySet::all().has(day) => Exclusion::NoYear,
            None => Exclusion::Only(CalendarNames(&self.0.only)),
        })
    }
}

/// The calendars by name: "except holidays, only workdays, sale".
impl fmt::Display for DayFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [("except", &self.0.except), ("only", &self.0.only)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let texts = lists.map(|(key, list)| {
            let names: Vec<_> = CalendarNames(list).iter().collect();
            format!("{key} {}", names.join(", "))
        });
        f.write_str(&texts.collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Debug for DayFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DayFilter")
            .field("except", &CalendarNames(&self.0.except))
            .field("only", &CalendarNames(&self.0.only))
            .field("open", &self.0.open)
            .finish()
    }
}

impl<'f> CalendarNames<'f> {
    /// The names.
    pub fn iter(&self) -> impl Iterator<Item = &'f str> {
        self.0.iter().map(|calendar| &*calendar.name)
    }
}

impl PartialEq for CalendarNames<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for CalendarNames<'_> {}

impl fmt::Debug for CalendarNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl fmt::Display for Exclusion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Except(name) => write!(f, "calendar \"{name}\""),
            Self::NoYear => f.write_str("calendars are for 1970 to 2199"),
            Self::Only(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("\"{name}\"")).collect();
                let calendar = if names.len() == 1 {
                    "not in calendar"
                } else {
                    "in none of the calendars"
                };
                write!(f, "{calendar} {}", names.join(", "))
            }
        }
    }
}
