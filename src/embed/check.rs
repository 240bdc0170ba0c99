//! From what was said in the builder to jobs as a table has them. The rules are those of jobs.toml.
//!
//! Every job is looked at, whatever is wrong with the others, so that one start shows all that is
//! wrong.
//!
//! Must never: have a limit or a default of its own.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::calendar::Calendars;
use super::error::Fault;
use super::job::{self, Said, When};
use crate::jobs::circles::{self, circles};
use crate::jobs::names::nearest;
use crate::jobs::{ValueError, limits, rules, tags, zone};
use crate::scheduler::job::{Job, JobName, Program};
use crate::scheduler::lease::Retention;
use crate::scheduler::policy::{CatchUp, Concurrency, Retry, Tags};
use crate::scheduler::schedule::Schedule;
use crate::scheduler::time::{Timestamp, format_duration};

/// The schedule of a job that others bring about.
const NEVER_BY_ITSELF: &str = "@manual";

/// What holds for jobs that don't say.
pub(super) struct Defaults {
    pub(super) lease_ttl: Duration,
    /// By this host's clock: what lies in the past is over.
    pub(super) now: Timestamp,
}

/// Takes faults in.
pub(super) struct Findings<'f> {
    pub(super) job: Option<&'f str>,
    pub(super) faults: &'f mut Vec<Fault>,
}

impl Findings<'_> {
    pub(super) fn add(
        &mut self,
        key: &'static str,
        cause: impl Into<String>,
        cure: impl Into<String>,
    ) {
        self.faults.push(Fault {
            job: self.job.map(str::to_owned),
            key,
            cause: cause.into(),
            cure: cure.into(),
        });
    }

    /// A duration within its limits.
    pub(super) fn duration(
        &mut self,
        key: &'static str,
        value: Option<Duration>,
        limits: &RangeInclusive<Duration>,
    ) {
        let checked = value.map_or(Ok(()), |value| limits::check_duration(key, value, limits));
        if let Err(cause) = checked {
            let (least, most) = (limits.start(), limits.end());
            let (least, most) = (format_duration(*least), format_duration(*most));
            self.add(key, cause, format!("choose one from {least} to {most}"));
        }
    }

    /// A number within its limits.
    pub(super) fn number(
        &mut self,
        key: &'static str,
        value: Option<u32>,
        limits: &RangeInclusive<u32>,
    ) {
        if value.is_some_and(|value| !limits.contains(&value)) {
            self.add(key, limits::number_outside(key, limits), "choose another");
        }
    }

    /// A tag's name and value.
    pub(super) fn tags(&mut self, key: &'static str, tags: &Tags) {
        for part in tags.iter().flat_map(|(name, value)| [name, value]) {
            if let Err(why) = tags::check_part(part) {
                self.add(key, format!("a part of a tag {why}"), tags::FORM);
            }
        }
    }
}

/// Checks all jobs, and makes them; what is wrong goes to `faults`.
pub(super) fn jobs(said: &[job::Job], defaults: &Defaults, faults: &mut Vec<Fault>) -> Vec<Job> {
    let mut known = BTreeSet::new();
    let mut calendars = Calendars::at(defaults.now);
    let mut jobs = Vec::new();
    for one in said {
        let mut findings = Findings {
            job: Some(&one.name),
            faults: &mut *faults,
        };
        if !known.insert(one.name.as_str()) {
            let cure = "give one of them another name: leases and history go by it";
            findings.add("name", "two jobs have this name", cure);
        }
        jobs.extend(job(one, defaults, &mut calendars, &mut findings));
    }
    between(said, &known, faults);
    jobs
}

fn job(
    one: &job::Job,
    defaults: &Defaults,
    calendars: &mut Calendars,
    findings: &mut Findings<'_>,
) -> Option<Job> {
    let name = JobName::new(&one.name).map_err(|error| {
        let cure = "leases, history and logs go by it, such as `close-expired-orders`";
        findings.add("name", error.to_string(), cure);
    });
    let said = &one.said;
    let schedule = schedule(one, findings);
    let schedule = schedule.and_then(|schedule| calendars.on_days(said, schedule, findings));
    durations(said, findings);
    numbers(said, findings);
    retry(&said.retry, said.max_attempts, findings);
    late(said, schedule.as_ref(), defaults.now, findings);
    findings.tags("run_on", &said.run_on);
    let catch_up = said.catch_up.unwrap_or_default();
    let starting_deadline = said.starting_deadline;
    Some(Job {
        description: said.description.clone(),
        enabled: said.enabled.unwrap_or(true),
        timeout: said.timeout,
        kill_grace: said.kill_grace.unwrap_or(limits::KILL_GRACE),
        lease_ttl: said.lease_ttl.unwrap_or(defaults.lease_ttl),
        starting_deadline: starting_deadline
            .unwrap_or_else(|| limits::default_starting_deadline(catch_up)),
        on_crash: said.on_crash,
        max_attempts: said.max_attempts.unwrap_or(limits::MAX_ATTEMPTS),
        retention: Retention {
            limit: said.history_limit.unwrap_or(limits::HISTORY_LIMIT),
            age: said.history_age.unwrap_or(limits::HISTORY_AGE),
        },
        random_delay: said.random_delay.unwrap_or_default(),
        catch_up,
        concurrency: said.concurrency,
        retry: said.retry,
        shards: said.shards.unwrap_or(1),
        run_on: said.run_on.clone(),
        after: after(one),
        warn_after: said.warn_after,
        waits_for_poke: said.waits_for_poke,
        ..Job::new(name.ok()?, schedule?, Program::Function)
    })
}

/// Those with a name that none can have are told between the jobs: no job has it.
fn after(one: &job::Job) -> Vec<JobName> {
    match &one.when {
        When::Schedule(_) => Vec::new(),
        When::After(names) => names
            .iter()
            .filter_map(|name| JobName::new(name).ok())
            .collect(),
    }
}

fn schedule(one: &job::Job, findings: &mut Findings<'_>) -> Option<Schedule> {
    let said = &one.said;
    let zone = match said.timezone.as_deref().map(zone::find_zone) {
        None => TimeZone::UTC,
        Some(Ok(zone)) => zone,
        Some(Err(ValueError { message, hint })) => {
            let name = said.timezone.as_deref().unwrap_or_default();
            findings.add("timezone", format!("`{name}` {message}"), hint);
            // Read in UTC, a wrong zone doesn't hide a wrong schedule.
            TimeZone::UTC
        }
    };
    let text = match &one.when {
        When::Schedule(text) => text,
        When::After(_) => NEVER_BY_ITSELF,
    };
    match Schedule::parse(text, &one.name, zone, said.dst_gap, said.dst_fold) {
        Ok(schedule) => Some(schedule),
        Err(error) => {
            let part = text.get(error.span).filter(|part| !part.is_empty());
            let at = part.map_or(String::new(), |part| format!(" (at `{part}` of `{text}`)"));
            let hint = error.hint.unwrap_or_else(|| {
                "for example `0 22 * * *`: minute, hour, day of month, month, day of week".into()
            });
            findings.add("schedule", format!("{}{at}", error.message), hint);
            None
        }
    }
}

fn durations(said: &Said, findings: &mut Findings<'_>) {
    findings.duration("timeout", said.timeout, &limits::TIMEOUTS);
    findings.duration("warn_after", said.warn_after, &limits::TIMEOUTS);
    findings.duration("kill_grace", said.kill_grace, &limits::KILL_GRACES);
    findings.duration("lease_ttl", said.lease_ttl, &limits::LEASE_TTLS);
    findings.duration("random_delay", said.random_delay, &limits::RANDOM_DELAYS);
    let deadline = said.starting_deadline;
    findings.duration("starting_deadline", deadline, &limits::STARTING_DEADLINES);
    findings.duration("history_age", said.history_age, &limits::HISTORY_AGES);
    if rules::warns_too_late(said.warn_after, said.timeout) {
        let cure = "make it shorter, or leave it out: what times out is told as a failure";
        findings.add("warn_after", rules::WARNS_TOO_LATE, cure);
    }
}

fn numbers(said: &Said, findings: &mut Findings<'_>) {
    findings.number("max_attempts", said.max_attempts, &limits::ATTEMPTS);
    findings.number("shards", said.shards, &limits::SHARDS);
    let kept = said.history_limit;
    findings.number("history_limit", kept, &limits::HISTORY_LIMITS);
    if let Some(CatchUp::All { limit }) = said.catch_up {
        findings.number("catch_up", Some(limit), &limits::CATCH_UP_LIMITS);
    }
    if let Concurrency::Queue { limit } = said.concurrency {
        findings.number("concurrency_policy", Some(limit), &limits::QUEUE_LIMITS);
    }
}

fn retry(retry: &Retry, max_attempts: Option<u32>, findings: &mut Findings<'_>) {
    findings.number("retry", Some(retry.max), &limits::RETRIES);
    for wait in [retry.backoff, retry.max_backoff] {
        findings.duration("retry", Some(wait), &limits::RETRY_WAITS);
    }
    if !limits::RETRY_FACTORS.contains(&retry.factor) {
        let (least, most) = limits::RETRY_FACTORS.into_inner();
        let cause = format!("`factor` of `retry` is a number from {least} to {most}");
        findings.add("retry", cause, "each wait is so many times the one before");
    }
    if rules::waits_too_long(retry) {
        let cure = "`backoff` is the first wait and `max_backoff` the longest";
        findings.add("retry", "`max_backoff` is shorter than `backoff`", cure);
    }
    let most = max_attempts.unwrap_or(limits::MAX_ATTEMPTS);
    if let Some(cause) = rules::retries_never_happen(retry, most) {
        tracing::warn!(job = findings.job, "{cause}");
    }
}

/// What is said about occurrences that are late, or made late.
fn late(said: &Said, schedule: Option<&Schedule>, now: Timestamp, findings: &mut Findings<'_>) {
    let catch_up = said.catch_up.unwrap_or_default();
    if rules::replaces_all(catch_up, said.concurrency) {
        let cause = "to catch up with all contradicts the policy to replace";
        let cure = "each of those that are caught up would end the one before it: choose `Queue`, or `Latest`";
        findings.add("catch_up", cause, cure);
    }
    let Some(schedule) = schedule else { return };
    for warning in schedule.warnings() {
        tracing::warn!(job = findings.job, "{}", warning.message);
    }
    if schedule.is_manual() {
        let cure = "leave it out: what is brought about starts at once, or waits within its `starting_deadline`";
        for (key, is_said) in [
            ("catch_up", said.catch_up.is_some()),
            ("random_delay", said.random_delay.is_some()),
        ] {
            if is_said {
                findings.add(key, "it has no effect without a schedule", cure);
            }
        }
        return;
    }
    // A day or more is an error of its own, and schedules can be looked at for ever.
    let delay = said.random_delay.unwrap_or_default();
    if let Some(lost) = rules::order_lost(now, schedule, delay) {
        let gap = format_duration(lost.gap);
        let cure = format!(
            "an occurrence could start after the next one: choose a delay below {gap}, or spread jobs by name with `H` in the schedule"
        );
        match lost.is_lasting {
            true => findings.add("random_delay", lost.message, cure),
            // By a change of clocks alone: it depends on the season, and keeps nothing from starting.
            false => tracing::warn!(job = findings.job, "{}; {cure}", lost.message),
        }
    }
    if said.enabled.unwrap_or(true) && schedule.never_fires_after(now) {
        tracing::warn!(job = findings.job, "this schedule never fires again");
    }
}

/// What is wrong between the jobs.
fn between(said: &[job::Job], known: &BTreeSet<&str>, faults: &mut Vec<Fault>) {
    let mut waits = Vec::new();
    for one in said {
        let When::After(names) = &one.when else {
            continue;
        };
        let mut findings = Findings {
            job: Some(&one.name),
            faults: &mut *faults,
        };
        if names.is_empty() {
            findings.add("after", "it names no job", "name those that come before it");
        }
        for (index, name) in names.iter().enumerate() {
            if *name == one.name {
                let cure = "name the jobs that come before it";
                findings.add("after", "the job waits for itself", cure);
            } else if !known.contains(name.as_str()) {
                let cause = format!("no job is called `{}`", name.escape_debug());
                let cure = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "it names jobs of the same scheduler".to_owned(),
                };
                findings.add("after", cause, cure);
            } else if names[..index].contains(name) {
                let cause = format!("the job `{name}` is there twice");
                findings.add("after", cause, "keep one of them");
            }
        }
        waits.push(circles::Wait {
            job: &one.name,
            names: names.iter().map(String::as_str).collect(),
        });
    }
    for circle in circles(&waits) {
        let mut findings = Findings {
            job: Some(waits[circle.closed_by.0].job),
            faults: &mut *faults,
        };
        let cure =
            "each of these runs after the next one, so none ever does: take one of the names out";
        findings.add("after", circle.message(), cure);
    }
}
