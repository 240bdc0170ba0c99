//! What a job says about occurrences that are late or find it busy, and about where they run.
//!
//! A key that can have no effect in the job that it stands in is refused: who wrote it expects
//! something of it. From `[defaults]`, which is for many jobs, it goes to those that it fits.
//!
//! Must never: decide what becomes of an occurrence.

use std::ops::Range;
use std::time::Duration;

use super::Strictness;
use super::diagnostics::{Diagnostic, Severity};
use super::job::Keys;
use super::raw::Entry;
use super::read::Reader;
use super::tags::{References, read_tags};
use super::values::format_duration;
use super::when::When;
use crate::jobs::limits::{
    CATCH_UP_LIMITS, QUEUE_LIMITS, RANDOM_DELAYS, SHARDS, STARTING_DEADLINES,
    default_starting_deadline,
};
use crate::jobs::rules;
use crate::scheduler::policy::{CatchUp, Concurrency, Tags};

/// What holds where only the policy is named.
const CATCH_UP_LIMIT: u32 = 100;
const QUEUE_LIMIT: u32 = 10;

pub(super) struct Policies {
    pub(super) random_delay: Duration,
    pub(super) catch_up: CatchUp,
    pub(super) starting_deadline: Duration,
    pub(super) concurrency: Concurrency,
    pub(super) shards: u32,
    pub(super) run_on: Tags,
}

/// Reads them; `when` is none where that is wrong.
pub(super) fn read_policies(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    when: Option<&When>,
) -> Policies {
    let random_delay = read_random_delay(reader, keys, when);
    let catch_up = read_catch_up(reader, keys, when);
    let concurrency = read_concurrency(reader, keys);
    refuse_replacing_all(reader, keys, catch_up, concurrency);
    let starting_deadline = keys
        .get("starting_deadline")
        .and_then(|entry| reader.duration(entry, STARTING_DEADLINES));
    let shards = keys
        .get("shards")
        .and_then(|entry| reader.integer(entry, SHARDS));
    let run_on = keys
        .get("run_on")
        .and_then(|entry| read_tags(reader, entry, References::Refused));
    Policies {
        random_delay,
        catch_up,
        starting_deadline: starting_deadline.unwrap_or(default_starting_deadline(catch_up)),
        concurrency,
        shards: shards.unwrap_or(1),
        run_on: run_on.unwrap_or_default(),
    }
}

fn read_random_delay(reader: &mut Reader<'_>, keys: &Keys<'_>, when: Option<&When>) -> Duration {
    let delay = keys
        .get("random_delay")
        .and_then(|entry| Some((entry, reader.duration(entry, RANDOM_DELAYS)?)));
    let Some((entry, delay)) = delay else {
        return Duration::ZERO;
    };
    let Some(when) = when else {
        return delay;
    };
    if when.is_triggered() {
        let hint = "leave it out: an occurrence that is brought about starts at once";
        refuse_on_triggered(reader, keys, "random_delay", when, hint);
        return Duration::ZERO;
    }
    tell_if_order_is_lost(reader, entry, delay, when);
    delay
}

/// Tells of a delay that can carry an occurrence past the next one.
///
/// Where clock changes alone make a gap that short, it depends on the season whether it is among
/// those to come: that keeps an edit from being made, but no replica from starting.
fn tell_if_order_is_lost(reader: &mut Reader<'_>, entry: &Entry<'_>, delay: Duration, when: &When) {
    let Some(lost) = rules::order_lost(reader.now, &when.schedule, delay) else {
        return;
    };
    let gap = format_duration(lost.gap);
    let hint = format!(
        "an occurrence could start after the next one: write a delay below {gap}, or spread jobs by name with `H` in the schedule"
    );
    let mut problem = Diagnostic::error(entry.value.span(), lost.message)
        .hint(hint)
        .related(when.span.clone(), "of this schedule");
    if !lost.is_lasting && reader.strictness != Strictness::Edit {
        problem.severity = Severity::Warning;
    }
    reader.problems.push(problem);
}

fn read_catch_up(reader: &mut Reader<'_>, keys: &Keys<'_>, when: Option<&When>) -> CatchUp {
    let limit = keys
        .get("catch_up_limit")
        .and_then(|entry| reader.integer(entry, CATCH_UP_LIMITS))
        .unwrap_or(CATCH_UP_LIMIT);
    let entry = keys.get("catch_up");
    let read = entry.and_then(|entry| {
        let words = vec![
            ("latest", CatchUp::Latest),
            ("all", CatchUp::All { limit }),
            ("none", CatchUp::None),
        ];
        reader.word(entry, words)
    });
    if let Some(when) = when.filter(|when| when.is_triggered()) {
        let hint = "leave it out: what is brought about waits in the store until a replica is there, within its `starting_deadline`";
        for key in ["catch_up", "catch_up_limit"] {
            refuse_on_triggered(reader, keys, key, when, hint);
        }
        return CatchUp::default();
    }
    let is_wrong = entry.is_some() && read.is_none();
    let catch_up = read.unwrap_or_default();
    if !is_wrong && !matches!(catch_up, CatchUp::All { .. }) {
        refuse_without(reader, keys, "catch_up_limit", ("catch_up", "all"));
    }
    catch_up
}

fn read_concurrency(reader: &mut Reader<'_>, keys: &Keys<'_>) -> Concurrency {
    let limit = keys
        .get("queue_limit")
        .and_then(|entry| reader.integer(entry, QUEUE_LIMITS))
        .unwrap_or(QUEUE_LIMIT);
    let entry = keys.get("concurrency_policy");
    let read = entry.and_then(|entry| {
        let words = vec![
            ("forbid", Concurrency::Forbid),
            ("queue", Concurrency::Queue { limit }),
            ("replace", Concurrency::Replace),
        ];
        reader.word(entry, words)
    });
    let is_wrong = entry.is_some() && read.is_none();
    let concurrency = read.unwrap_or_default();
    if !is_wrong && !matches!(concurrency, Concurrency::Queue { .. }) {
        let needed = ("concurrency_policy", "queue");
        refuse_without(reader, keys, "queue_limit", needed);
    }
    concurrency
}

/// Refuses a limit of the job's own that its policy has no use for.
fn refuse_without(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    limit: &str,
    (policy, value): (&str, &str),
) {
    let Some(entry) = keys.job.get(limit) else {
        return;
    };
    let message = format!("`{limit}` has no effect without `{policy} = \"{value}\"`");
    let hint = format!("write `{policy} = \"{value}\"`, or leave `{limit}` out");
    let mut problem = Diagnostic::error(entry.key_span.clone(), message).hint(hint);
    if let Some(policy) = keys.get(policy) {
        problem = problem.related(policy.value.span(), "it is this");
    }
    reader.problems.push(problem);
}

/// Refuses a key of the job's own that is about a schedule, where there is none.
fn refuse_on_triggered(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    key: &str,
    when: &When,
    hint: &str,
) {
    let Some(entry) = keys.job.get(key) else {
        return;
    };
    let why = if when.after.is_empty() {
        "this job is due only when it is triggered"
    } else {
        "this job is due when others have succeeded"
    };
    let message = format!("`{key}` has no effect without a schedule");
    let problem = Diagnostic::error(entry.key_span.clone(), message)
        .hint(hint)
        .related(when.span.clone(), why);
    reader.problems.push(problem);
}

fn refuse_replacing_all(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    catch_up: CatchUp,
    concurrency: Concurrency,
) {
    let (Some(late), Some(busy)) = (keys.get("catch_up"), keys.get("concurrency_policy")) else {
        return;
    };
    if !rules::replaces_all(catch_up, concurrency) {
        return;
    }
    let (first, second) = in_order(keys, late, busy);
    let message = "`catch_up = \"all\"` contradicts `concurrency_policy = \"replace\"`";
    let hint = "each of those that are caught up would end the one before it: write `concurrency_policy = \"queue\"`, or `catch_up = \"latest\"`";
    let problem = Diagnostic::error(second, message)
        .hint(hint)
        .related(first, "and this");
    reader.problems.push(problem);
}

/// The places of two values, that of the job's own, or of the later one, last.
fn in_order(keys: &Keys<'_>, one: &Entry<'_>, other: &Entry<'_>) -> (Range<usize>, Range<usize>) {
    let rank = |entry: &Entry<'_>| {
        let is_own = keys.job.get(entry.key.name).is_some();
        (is_own, entry.value.span().start)
    };
    let spans = (one.value.span(), other.value.span());
    if rank(one) <= rank(other) {
        spans
    } else {
        (spans.1, spans.0)
    }
}
