//! Occurrences as people read them: local time with its offset, UTC, how long to go, and what
//! daylight saving and calendars did.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::config::format_duration;
use crate::scheduler::job::{Job, JobName};
use crate::scheduler::schedule::{Schedule, Taken};
use crate::scheduler::time::Timestamp;

/// What to show of a schedule.
pub(super) struct Preview<'s> {
    pub(super) schedule: &'s Schedule,
    /// The zone that local times are shown in.
    pub(super) zone: &'s TimeZone,
    /// Instants before this are left out.
    pub(super) from: Timestamp,
    /// What "in 5m" counts from.
    pub(super) now: Timestamp,
    pub(super) count: u32,
}

/// The calendars of a schedule, to follow its zone.
pub(super) fn calendars(schedule: &Schedule) -> String {
    let days = schedule.days();
    days.map_or(String::new(), |days| format!(", {days}"))
}

impl Preview<'_> {
    /// A line for each occurrence, and for those that daylight saving or calendars leave out,
    /// indented.
    pub(super) fn lines(&self, indent: &str) -> String {
        let occurrences = self.occurrences();
        let mut lines: Vec<(Timestamp, String)> =
            occurrences.iter().map(|at| (*at, self.line(*at))).collect();
        let complete = occurrences.len() == self.count as usize;
        if let (true, Some(last)) = (complete, occurrences.last()) {
            lines.extend(self.left_out(*last));
            lines.extend(self.taken(*last));
            lines.sort_by_key(|(at, _)| *at);
        }
        let mut text = String::new();
        for (_, line) in lines {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{indent}{}", line.trim_end());
        }
        if !complete {
            let _ = writeln!(text, "{indent}{}", self.end(occurrences.last().copied()));
        }
        text
    }

    fn occurrences(&self) -> Vec<Timestamp> {
        // From this very instant on, and a search is strictly after.
        let before = self.from - Duration::from_millis(1);
        std::iter::successors(self.schedule.next_after(before), |at| {
            self.schedule.next_after(*at)
        })
        .take(self.count as usize)
        .collect()
    }

    fn local(&self, at: Timestamp) -> String {
        let local = at.to_jiff().to_zoned(self.zone.clone());
        local.strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string()
    }

    fn line(&self, at: Timestamp) -> String {
        let local = self.local(at);
        let note = self.schedule.oddity(at).map_or(String::new(), |oddity| {
            format!("  ! clocks change: {oddity}")
        });
        format!("{local}  {at}  {:<12}{note}", self.to_go(at))
    }

    fn left_out(&self, last: Timestamp) -> Vec<(Timestamp, String)> {
        let skipped = self.schedule.skipped_between(self.from, last);
        let line = |first: DateTime, last: DateTime| {
            let times = if first == last {
                format!("{first} does")
            } else {
                format!("{first} to {last} do")
            };
            format!("! clocks change: {times} not exist, and `dst_gap` is `skip`")
        };
        skipped
            .into_iter()
            .map(|times| (times.at, line(times.first, times.last)))
            .collect()
    }

    /// A line for each instant, or run of instants, that calendars took away.
    fn taken(&self, last: Timestamp) -> Vec<(Timestamp, String)> {
        let before = self.from - Duration::from_millis(1);
        let taken = self.schedule.taken_between(before, last);
        let line = |taken: &Taken<'_>| {
            let to = if taken.first == taken.last {
                String::new()
            } else {
                format!("  to {}  {}", self.local(taken.last), taken.last)
            };
            let (local, at) = (self.local(taken.first), taken.first);
            format!("{local}  {at}{to}  not due: {}", taken.exclusion)
        };
        taken
            .iter()
            .map(|taken| (taken.first, line(taken)))
            .collect()
    }

    /// Why there are no more.
    fn end(&self, last_shown: Option<Timestamp>) -> String {
        if self.schedule.is_manual() {
            return "never due by itself: it runs when it is told to".into();
        }
        if last_shown.is_some() {
            return "and never again".into();
        }
        match self.schedule.last_before(self.from) {
            Some(last) => format!("never again: the last occurrence was {last}"),
            None => "never".into(),
        }
    }

    /// `in 1h30m`: the two largest units.
    fn to_go(&self, at: Timestamp) -> String {
        if at < self.now {
            return "past".into();
        }
        let whole = Duration::from_secs(at.saturating_since(self.now).as_secs());
        let text = format_duration(whole);
        let mut units = 0;
        let end = text.char_indices().find(|(_, c)| {
            units += usize::from(c.is_ascii_alphabetic());
            units == 2
        });
        format!("in {}", end.map_or(text.as_str(), |(at, _)| &text[..=at]))
    }
}

/// When a job is due, in short: its schedule with the zone, or the jobs that it comes after.
pub(super) fn when(job: &Job, zone: &TimeZone) -> String {
    if job.after.is_empty() {
        let zone = zone.iana_name().unwrap_or("UTC");
        let calendars = calendars(&job.schedule);
        return format!("`{}` in {zone}{calendars}", job.schedule.text());
    }
    format!("after {}", all_of(&job.after))
}

/// What takes the place of occurrences where other jobs bring them about.
pub(super) fn due_after(jobs: &[JobName]) -> String {
    let have = if jobs.len() == 1 { "has" } else { "have" };
    format!("due when {} {have} succeeded", all_of(jobs))
}

fn all_of(jobs: &[JobName]) -> String {
    let names: Vec<&str> = jobs.iter().map(JobName::as_str).collect();
    names.join(" and ")
}
