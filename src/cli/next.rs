//! `soloist next`: when a job or a schedule is due, with what daylight saving and calendars did.
//!
//! Must never: need a store.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

use super::args::{Global, NextArgs};
use super::preview::{Preview, calendars, due_after, when};
use super::settings::{Settings, show};
use super::{Exit, complain, now, print};
use crate::config::{self, Strictness};
use crate::scheduler::job::{Job, check_name};
use crate::scheduler::schedule::{DstFold, DstGap, Schedule};
use crate::scheduler::time::Timestamp;

/// Shows occurrences.
pub(super) fn run(global: &Global, args: &NextArgs) -> Exit {
    match describe(global, args) {
        Ok(text) => print(&text),
        Err(exit) => exit,
    }
}

fn describe(global: &Global, args: &NextArgs) -> Result<String, Exit> {
    let shown_in = args.timezone.as_deref().map(zone).transpose()?;
    // Every schedule has a space or an `@` in it, and no name has.
    let is_name = check_name(&args.what).is_ok();
    let schedule = if is_name {
        let job = find_job(global, &args.what)?;
        if !job.after.is_empty() {
            let (title, due) = (when(&job, job.schedule.zone()), due_after(&job.after));
            return Ok(format!("{title}\n{due}\n"));
        }
        job.schedule
    } else {
        let zone = shown_in.clone().unwrap_or(TimeZone::UTC);
        read_schedule(&args.what, zone)?
    };
    let zone = shown_in.as_ref().unwrap_or(schedule.zone());
    let now = now();
    let from = args
        .from
        .as_deref()
        .map(|text| instant("--from", text, zone));
    let preview = Preview {
        schedule: &schedule,
        zone,
        from: from.transpose()?.unwrap_or(now),
        now,
        count: args.count,
    };
    let name_of = |zone: &TimeZone| zone.iana_name().unwrap_or("UTC").to_owned();
    let (read_in, shown_in) = (name_of(schedule.zone()), name_of(zone));
    let calendars = calendars(&schedule);
    let title = if read_in == shown_in {
        format!("`{}` in {read_in}{calendars}", schedule.text())
    } else {
        format!(
            "`{}` in {read_in}{calendars}, shown in {shown_in}",
            schedule.text()
        )
    };
    Ok(format!("{title}\n{}", preview.lines("")))
}

fn find_job(global: &Global, name: &str) -> Result<Job, Exit> {
    let settings = Settings::load(global, Strictness::Look)?;
    let jobs = &settings.config.jobs;
    if let Some(job) = jobs.iter().find(|job| job.name.as_str() == name) {
        return Ok(job.clone());
    }
    let message = format!("{} has no job `{name}`", settings.path.display());
    let hint = match config::nearest(name, jobs.iter().map(|job| job.name.as_str())) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "a schedule has 5 to 7 fields, in quotes, or begins with `@`: `soloist next \"0 22 * * *\"`".into(),
    };
    Err(complain(Exit::Usage, &message, Some(&hint)))
}

fn read_schedule(text: &str, zone: TimeZone) -> Result<Schedule, Exit> {
    // `H` is hashed from a job's name, and there is none: the dash is a stand-in.
    let parsed = Schedule::parse(text, "-", zone, DstGap::default(), DstFold::default());
    let report = config::report_on_schedule(text, &parsed);
    show(&report);
    parsed.map_err(|_| Exit::Usage)
}

fn zone(name: &str) -> Result<TimeZone, Exit> {
    config::find_zone(name).map_err(|error| {
        let message = format!("`{name}` {}", error.message);
        complain(Exit::Usage, &message, Some(&error.hint))
    })
}

/// Reads the value of `flag`: an instant, or a date with or without a time in the zone that is shown.
pub(super) fn instant(flag: &str, text: &str, zone: &TimeZone) -> Result<Timestamp, Exit> {
    if let Ok(instant) = text.parse::<jiff::Timestamp>() {
        return Ok(instant.into());
    }
    let local = text
        .parse::<DateTime>()
        .or_else(|_| text.parse::<Date>().map(|date| date.at(0, 0, 0, 0)));
    let zoned = local.and_then(|local| local.to_zoned(zone.clone()));
    zoned.map(|zoned| zoned.timestamp().into()).map_err(|_| {
        let message = format!("`{flag}`: `{text}` is no date and time");
        let hint = "write `2027-03-14T02:00:00Z`, another offset such as `+08:00`, or `2027-03-14` in the zone";
        complain(Exit::Usage, &message, Some(hint))
    })
}
