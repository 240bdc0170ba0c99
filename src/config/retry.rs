//! `retry` of a job: how often a failed occurrence is tried again, and after how long.
//!
//! Must never: count attempts. What a failure is followed by, the scheduler decides.

use std::ops::Range;
use std::time::Duration;

use toml::de::DeValue;

use super::diagnostics::Diagnostic;
use super::job::Keys;
use super::names::nearest;
use super::raw::{Entry, Value, kind_of};
use super::read::{Reader, to_i64};
use super::values::{ValueError, format_duration, parse_duration};
use crate::jobs::limits::{ATTEMPTS, RETRIES, RETRY_FACTORS, RETRY_WAITS};
use crate::jobs::rules;
use crate::scheduler::policy::Retry;

/// Keys of `retry`.
pub(super) const RETRY_KEYS: [&str; 4] = ["max", "backoff", "factor", "max_backoff"];

/// What the table says, and where it says so.
#[derive(Default)]
struct Written {
    max: Option<(u32, Range<usize>)>,
    backoff: Option<(Duration, Range<usize>)>,
    factor: Option<f64>,
    max_backoff: Option<(Duration, Range<usize>)>,
}

/// Reads `retry`, which is taken as a whole: that of a job takes the place of that of
/// `[defaults]`. Keys that it leaves out have their defaults.
pub(super) fn read_retry(reader: &mut Reader<'_>, keys: &Keys<'_>, max_attempts: u32) -> Retry {
    let default = Retry::default();
    let Some(entry) = keys.get("retry") else {
        return default;
    };
    let Some(written) = read_table(reader, entry) else {
        return default;
    };
    let retry = Retry {
        max: written.max.as_ref().map_or(default.max, |(max, _)| *max),
        backoff: value_of(&written.backoff, default.backoff),
        factor: written.factor.unwrap_or(default.factor),
        max_backoff: value_of(&written.max_backoff, default.max_backoff),
    };
    refuse_longer_backoff(reader, &retry, &written);
    match &written.max {
        Some((_, span)) => warn_of_few_attempts(reader, keys, &retry, span, max_attempts),
        None => warn_of_no_max(reader, entry),
    }
    retry
}

fn value_of(written: &Option<(Duration, Range<usize>)>, default: Duration) -> Duration {
    written.as_ref().map_or(default, |(value, _)| *value)
}

/// None when something in it is wrong.
fn read_table(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Written> {
    let Some(table) = entry.value.get_ref().as_table() else {
        reader.wrong_type(entry);
        return None;
    };
    let mut written = Written::default();
    let mut all_right = true;
    for (key, value) in table {
        let name: &str = key.get_ref();
        let is_right = match name {
            "max" => {
                let max = read_max(reader, value);
                written.max = max.map(|max| (max, value.span()));
                max.is_some()
            }
            "backoff" => {
                let wait = read_wait(reader, "backoff", value);
                written.backoff = wait.map(|wait| (wait, value.span()));
                wait.is_some()
            }
            "factor" => {
                written.factor = read_factor(reader, value);
                written.factor.is_some()
            }
            "max_backoff" => {
                let wait = read_wait(reader, "max_backoff", value);
                written.max_backoff = wait.map(|wait| (wait, value.span()));
                wait.is_some()
            }
            _ => {
                refuse_unknown(reader, name, &key.span());
                false
            }
        };
        all_right &= is_right;
    }
    all_right.then_some(written)
}

fn refuse_unknown(reader: &mut Reader<'_>, name: &str, span: &Range<usize>) {
    let hint = match nearest(name, RETRY_KEYS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the keys of `retry` are {}", RETRY_KEYS.join(", ")),
    };
    reader.error(span, format!("unknown key `{name}`"), hint);
}

fn read_max(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<u32> {
    let number = value.get_ref().as_integer().and_then(to_i64);
    let max = number
        .and_then(|number| u32::try_from(number).ok())
        .filter(|max| RETRIES.contains(max));
    if max.is_none() {
        let message = format!(
            "`max` of `retry` is a whole number from 0 to {}",
            RETRIES.end()
        );
        reader.error(&value.span(), message, "for example `retry = { max = 3 }`");
    }
    max
}

fn read_factor(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<f64> {
    let factor = match value.get_ref() {
        DeValue::Integer(integer) => to_i64(integer).map(|factor| factor as f64),
        DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
        _ => None,
    };
    // What is not a number is in no range.
    let factor = factor.filter(|factor| RETRY_FACTORS.contains(factor));
    if factor.is_none() {
        let (least, most) = (RETRY_FACTORS.start(), RETRY_FACTORS.end());
        let message = format!("`factor` of `retry` is a number from {least} to {most}");
        let hint = "each wait is so many times the one before: `retry = { max = 3, factor = 2 }`";
        reader.error(&value.span(), message, hint);
    }
    factor
}

fn read_wait(reader: &mut Reader<'_>, name: &str, value: &Value<'_>) -> Option<Duration> {
    let example = format!("for example `retry = {{ max = 3, {name} = \"10s\" }}`");
    let Some(text) = value.get_ref().as_str() else {
        let hint = match value.get_ref() {
            DeValue::Integer(number) => {
                format!("say the unit: `{name} = \"{}s\"`", number.as_str())
            }
            _ => example,
        };
        let message = format!("`{name}` takes a duration, not {}", kind_of(value));
        reader.error(&value.span(), message, hint);
        return None;
    };
    match parse_duration(text) {
        Ok(wait) if RETRY_WAITS.contains(&wait) => Some(wait),
        Ok(_) => {
            let (least, most) = (
                format_duration(*RETRY_WAITS.start()),
                format_duration(*RETRY_WAITS.end()),
            );
            let message = format!("`{name}` of `retry` is from {least} to {most}");
            reader.error(&value.span(), message, example);
            None
        }
        Err(ValueError { message, hint }) => {
            reader.error(&value.span(), format!("`{text}` {message}"), hint);
            None
        }
    }
}

fn refuse_longer_backoff(reader: &mut Reader<'_>, retry: &Retry, written: &Written) {
    if !rules::waits_too_long(retry) {
        return;
    }
    let (first, longest) = (
        format_duration(retry.backoff),
        format_duration(retry.max_backoff),
    );
    let problem = match (&written.max_backoff, &written.backoff) {
        (Some((_, span)), backoff) => {
            let message =
                format!("`max_backoff` is {longest}, shorter than the `backoff` of {first}");
            let problem = Diagnostic::error(span.clone(), message);
            match backoff {
                Some((_, span)) => problem.related(span.clone(), "the first wait"),
                None => problem,
            }
        }
        (None, backoff) => {
            let span = backoff.as_ref().map_or(0..0, |(_, span)| span.clone());
            let message = format!(
                "`backoff` is {first}, longer than the `max_backoff` of {longest} that holds by default"
            );
            Diagnostic::error(span, message)
        }
    };
    let hint = format!(
        "`backoff` is the first wait and `max_backoff` the longest: write `max_backoff = \"{first}\"` or more"
    );
    reader.problems.push(problem.hint(hint));
}

fn warn_of_no_max(reader: &mut Reader<'_>, entry: &Entry<'_>) {
    let warning = Diagnostic::warning(
        entry.value.span(),
        "`retry` without `max` never tries again",
    )
    .hint("say how often: `retry = { max = 3, … }`; the default is 0");
    reader.problems.push(warning);
}

fn warn_of_few_attempts(
    reader: &mut Reader<'_>,
    keys: &Keys<'_>,
    retry: &Retry,
    span: &Range<usize>,
    max_attempts: u32,
) {
    let Some(message) = rules::retries_never_happen(retry, max_attempts) else {
        return;
    };
    let needed = retry.max.saturating_add(1);
    let hint = if ATTEMPTS.contains(&needed) {
        format!("write `max_attempts = {needed}` or more, or a lower `max`")
    } else {
        format!(
            "write a lower `max`: an occurrence has at most {} attempts",
            ATTEMPTS.end()
        )
    };
    let mut warning = Diagnostic::warning(span.clone(), message).hint(hint);
    if let Some(entry) = keys.get("max_attempts") {
        warning = warning.related(entry.value.span(), "this ends it earlier");
    }
    reader.problems.push(warning);
}
