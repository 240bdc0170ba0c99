//! One `[jobs.NAME]` and `[defaults]`, made into a [`Job`].
//!
//! Every key is read, whatever is wrong with the others, so that one look at a file shows all
//! that is wrong with it. Must never: guess at what was meant, or take a default for a value
//! that was written and is wrong without telling.

use std::ops::Range;
use std::time::Duration;

use super::after::Wait;
use super::diagnostics::{Diagnostic, Problems};
use super::notify::read_notify;
use super::policies::read_policies;
use super::program::read_command;
use super::raw::{Entry, RawJob, Section};
use super::read::Reader;
use super::retry::read_retry;
use super::scheduler::SchedulerConfig;
use super::when::read_when;
use crate::jobs::limits::{
    ATTEMPTS, HISTORY_AGE, HISTORY_AGES, HISTORY_LIMITS, KILL_GRACE, KILL_GRACES, LEASE_TTLS,
    MAX_ATTEMPTS, TIMEOUTS,
};
use crate::jobs::rules;
use crate::scheduler::job::{Job, JobName, OnCrash};
use crate::scheduler::lease::Retention;

/// A job's keys, and those that it leaves to `[defaults]`.
pub(super) struct Keys<'k> {
    pub(super) job: &'k Section<'k>,
    /// Those of its own file first, where that is not the main one.
    pub(super) defaults: &'k [&'k Section<'k>],
}

impl<'k> Keys<'k> {
    /// The entry that holds for the job.
    pub(super) fn get(&self, name: &str) -> Option<&'k Entry<'k>> {
        self.sections().find_map(|section| section.get(name))
    }

    /// Where keys may stand, in the order in which they are looked for.
    pub(super) fn sections(&self) -> impl DoubleEndedIterator<Item = &'k Section<'k>> {
        std::iter::once(self.job).chain(self.defaults.iter().copied())
    }
}

/// Reads a job; none when it has no name, schedule or command to speak of. One that comes after
/// others is added to `waits`.
pub(super) fn read<'k>(
    reader: &mut Reader<'_>,
    raw: &'k RawJob<'_>,
    defaults: &'k [&'k Section<'k>],
    scheduler: &SchedulerConfig,
    waits: &mut Vec<Wait<'k>>,
) -> Option<Job> {
    let keys = Keys {
        job: &raw.section,
        defaults,
    };
    let name = read_name(reader, raw);
    let enabled = keys
        .get("enabled")
        .and_then(|entry| reader.boolean(entry))
        .unwrap_or(true);
    let when = read_when(reader, raw, &keys, enabled, waits);
    let command = read_command(reader, raw, &keys);
    let durations = read_durations(reader, &keys, scheduler);
    let description = keys
        .get("description")
        .and_then(|entry| reader.text(entry))
        .map(|text| text.value);
    let limits = read_limits(reader, &keys, scheduler);
    let policies = read_policies(reader, &keys, when.as_ref());
    let retry = read_retry(reader, &keys, limits.max_attempts);
    let notify = read_notify(reader, &keys);
    let when = when?;
    let command = command?;
    let program = command.program.clone();
    Some(Job {
        description,
        enabled,
        command,
        timeout: durations.timeout,
        kill_grace: durations.kill_grace,
        lease_ttl: durations.lease_ttl,
        starting_deadline: policies.starting_deadline,
        on_crash: limits.on_crash,
        max_attempts: limits.max_attempts,
        retention: limits.retention,
        random_delay: policies.random_delay,
        catch_up: policies.catch_up,
        concurrency: policies.concurrency,
        retry,
        shards: policies.shards,
        run_on: policies.run_on,
        after: when.after,
        warn_after: durations.warn_after,
        notify,
        ..Job::new(name?, when.schedule, program)
    })
}

fn read_name(reader: &mut Reader<'_>, raw: &RawJob<'_>) -> Option<JobName> {
    JobName::new(raw.name)
        .map_err(|error| {
            let message = format!("`{}` can't name a job: {error}", raw.name.escape_debug());
            let hint = "history, leases and logs go by the name: `[jobs.close-expired-orders]`";
            reader.error(&raw.name_span, message, hint);
        })
        .ok()
}

struct Durations {
    timeout: Option<Duration>,
    warn_after: Option<Duration>,
    kill_grace: Duration,
    lease_ttl: Duration,
}

fn read_durations(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    scheduler: &SchedulerConfig,
) -> Durations {
    let mut read = |name, limits| {
        keys.get(name)
            .and_then(|entry| reader.duration(entry, limits))
    };
    let timeout = read("timeout", TIMEOUTS);
    let warn_after = read("warn_after", TIMEOUTS);
    let durations = Durations {
        timeout,
        warn_after,
        kill_grace: read("kill_grace", KILL_GRACES).unwrap_or(KILL_GRACE),
        lease_ttl: read("lease_ttl", LEASE_TTLS).unwrap_or(scheduler.lease_ttl),
    };
    // One of `[defaults]` is for the jobs that it fits.
    if let Some(entry) = keys.job.get("warn_after")
        && rules::warns_too_late(warn_after, timeout)
    {
        let message = rules::WARNS_TOO_LATE.to_owned();
        let hint = "make it shorter, or leave it out: what times out is told as a failure";
        reader.error(&entry.value.span(), message, hint);
    }
    durations
}

struct Limits {
    on_crash: OnCrash,
    max_attempts: u32,
    retention: Retention,
}

fn read_limits(reader: &mut Reader<'_>, keys: &Keys<'_>, scheduler: &SchedulerConfig) -> Limits {
    let on_crash = keys.get("on_crash").and_then(|entry| {
        let words = vec![("rerun", OnCrash::Rerun), ("skip", OnCrash::Skip)];
        reader.word(entry, words)
    });
    let max_attempts = keys
        .get("max_attempts")
        .and_then(|entry| reader.integer(entry, ATTEMPTS));
    let limit = keys
        .get("history_limit")
        .and_then(|entry| reader.integer(entry, HISTORY_LIMITS));
    let age = keys
        .get("history_age")
        .and_then(|entry| reader.duration(entry, HISTORY_AGES));
    Limits {
        on_crash: on_crash.unwrap_or_default(),
        max_attempts: max_attempts.unwrap_or(MAX_ATTEMPTS),
        retention: Retention {
            limit: limit.unwrap_or(scheduler.history_limit),
            age: age.unwrap_or(HISTORY_AGE),
        },
    }
}

/// A job lacks something without which it is none.
pub(super) fn push_missing(
    problems: &mut Problems,
    raw: &RawJob<'_>,
    what: &str,
    hint: &'static str,
) {
    let span: Range<usize> = raw.name_span.clone();
    let message = format!("the job `{}` {what}", raw.name.escape_debug());
    problems.push_missing(Diagnostic::error(span, message).hint(hint));
}
