//! The forms of values, as JSON Schema has them: a text that looks like a duration, one of a few
//! words, a number within limits.
//!
//! Patterns are those of ECMA-262 and of nothing beyond, as editors bring engines of their own.
//! Each form stands where it is used, with no `$ref` beside a description: editors that read an
//! older draft would lose one of the two.
//!
//! Must never: refuse a value that the readers take.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use super::Table;
use crate::config::calendars::WEEKDAYS;
use crate::config::http::STATUSES;
use crate::config::identity::LARGEST_ID;
use crate::config::keys::Key;
use crate::config::program::LARGEST_OUTPUT_LIMIT;
use crate::config::values::{DURATION_UNITS, SIZE_UNITS};
use crate::jobs::limits::{
    ACKNOWLEDGEMENTS, ATTEMPTS, CATCH_UP_LIMITS, HISTORY_LIMITS, LARGEST_REVISION, QUEUE_LIMITS,
    RETRIES, RETRY_FACTORS, RUNNING_LIMITS, SHARDS,
};
use crate::scheduler::job::NAME_LENGTH_LIMIT;
use crate::scheduler::lease::Topic;

/// Something in a text that is filled in, so that nothing is known of the rest.
const REFERENCE: &str = r"\$\{";

/// The form of a key's value; none for a key whose kind of value is not known here.
pub(super) fn of(table: Table, key: &Key) -> Option<Value> {
    if let Some(words) = words(table, key.name) {
        return Some(json!({ "enum": words }));
    }
    Some(match key.takes {
        "a string" if key.name == "namespace" || key.name == "replica" => {
            text(&either(&name(), REFERENCE))
        }
        "a string" if ["schedule", "shell", "working_dir", "ical"].contains(&key.name) => {
            text(r"\S")
        }
        "a string" => json!({ "type": "string" }),
        "a path" => json!({ "type": "string", "minLength": 1 }),
        "a duration" if table == Table::Scheduler => full(&either(&duration(), REFERENCE)),
        "a duration" => full(&duration()),
        "an integer" if key.name == "revision" => {
            let digits = text(&either("^[0-9]+$", REFERENCE));
            any(vec![number(limits(table, key.name)?), digits])
        }
        "an integer" => number(limits(table, key.name)?),
        "a list of patterns" => json!({ "type": "array", "items": { "type": "string" } }),
        "true or false" => json!({ "type": "boolean" }),
        "a table or a list of tags" => tags(table),
        "a list of calendars" => one_or_more(json!({ "type": "string" }), 0),
        "the name of a job, or a list of names" => one_or_more(text(r"\S"), 1),
        "a list of strings" => json!({
            "type": "array", "items": { "type": "string" }, "minItems": 1,
        }),
        "a table" if key.name == "retry" => super::table(Table::Retry),
        "a table" if key.name == "http" => super::table(Table::Http),
        "a table of strings" => variables(),
        "a name or an id" => any(vec![number(wide(0..=LARGEST_ID)), text(r"\S")]),
        "an octal string" => text("^0*[0-7]{1,3}$"),
        "a list of integers" => json!({
            "type": "array", "items": number(0..=u64::from(u8::MAX)), "minItems": 1,
        }),
        "a size" => size(),
        "names of [notify.NAME], or a table" => any(vec![
            one_or_more(text(r"\S"), 0),
            super::table(Table::Telling),
        ]),
        "an address, or a table" => any(vec![text(r"\S"), super::table(Table::Webhook)]),
        "a table" if key.name == "email" => super::table(Table::Email),
        "a list of dates" => one_or_more(text(&date()), 0),
        "a list of days of the week" => one_or_more(text(&weekday()), 0),
        _ => return None,
    })
}

/// The form of a key of `retry`.
pub(super) fn of_retry(name: &str) -> Option<Value> {
    Some(match name {
        "max" => number(wide(RETRIES)),
        "backoff" | "max_backoff" => full(&duration()),
        "factor" => json!({
            "type": "number", "minimum": RETRY_FACTORS.start(), "maximum": RETRY_FACTORS.end(),
        }),
        _ => return None,
    })
}

/// The form of a key of `http`.
pub(super) fn of_http(name: &str) -> Option<Value> {
    Some(match name {
        "url" => text(&either("^[Hh][Tt][Tt][Pp][Ss]?://.", REFERENCE)),
        "method" => text(&either("^[A-Z-]{1,20}$", REFERENCE)),
        "headers" => json!({
            "type": "object", "additionalProperties": { "type": "string" },
        }),
        "body" => json!({ "type": "string" }),
        "expect_status" => {
            let status = number(u64::from(*STATUSES.start())..=u64::from(*STATUSES.end()));
            let range = r"^([2-5][0-9]{2}(\s*-\s*[2-5][0-9]{2})?|[2-5](xx|XX))$";
            let one = any(vec![status, text(&either(range, REFERENCE))]);
            one_or_more(one, 1)
        }
        _ => return None,
    })
}

/// The form of a key of `notify` of a job.
pub(super) fn of_telling(name: &str) -> Option<Value> {
    Some(match name {
        "to" => one_or_more(text(r"\S"), 0),
        "on" => one_or_more(json!({ "enum": Topic::ALL.map(Topic::as_str) }), 1),
        "repeat" => full(&duration()),
        "ping" => text(r"\S"),
        "ping_output" => json!({ "type": "boolean" }),
        _ => return None,
    })
}

/// The form of a key of `webhook`.
pub(super) fn of_webhook(name: &str) -> Option<Value> {
    Some(match name {
        "url" | "secret" => text(r"\S"),
        "headers" => json!({
            "type": "object", "additionalProperties": { "type": "string" },
        }),
        _ => return None,
    })
}

/// The form of a key of `email`.
pub(super) fn of_email(name: &str) -> Option<Value> {
    Some(match name {
        "to" => one_or_more(text(r"\S"), 1),
        "from" | "smtp" => text(r"\S"),
        _ => return None,
    })
}

/// The words that a key takes, where it takes no other.
pub(super) fn words(table: Table, name: &str) -> Option<&'static [&'static str]> {
    let words: &[&str] = match (table, name) {
        (Table::Job, "dst_gap") => &["run_after", "skip"],
        (Table::Job, "dst_fold") => &["first", "last", "both"],
        (Table::Job, "catch_up") => &["latest", "all", "none"],
        (Table::Job, "concurrency_policy") => &["forbid", "queue", "replace"],
        (Table::Job, "on_crash") => &["rerun", "skip"],
        _ => return None,
    };
    Some(words)
}

/// The limits of a key that takes an integer.
pub(super) fn limits(table: Table, name: &str) -> Option<RangeInclusive<u64>> {
    Some(wide(match (table, name) {
        (Table::Scheduler, "revision") => return Some(0..=LARGEST_REVISION),
        (_, "history_limit") => HISTORY_LIMITS,
        (Table::Scheduler, "max_running") => RUNNING_LIMITS,
        (Table::Scheduler, "min_replicas_ack") => ACKNOWLEDGEMENTS,
        (Table::Job, "catch_up_limit") => CATCH_UP_LIMITS,
        (Table::Job, "queue_limit") => QUEUE_LIMITS,
        (Table::Job, "max_attempts") => ATTEMPTS,
        (Table::Job, "shards") => SHARDS,
        _ => return None,
    }))
}

/// A name of a job, a calendar, a namespace or a replica.
pub(super) fn name() -> String {
    let rest = NAME_LENGTH_LIMIT - 1;
    format!("^[A-Za-z0-9][A-Za-z0-9._-]{{0,{rest}}}$")
}

fn text(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// A text that isn't empty.
fn full(pattern: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "pattern": pattern })
}

fn wide(limits: RangeInclusive<u32>) -> RangeInclusive<u64> {
    u64::from(*limits.start())..=u64::from(*limits.end())
}

fn number(limits: RangeInclusive<u64>) -> Value {
    json!({ "type": "integer", "minimum": limits.start(), "maximum": limits.end() })
}

fn any(forms: Vec<Value>) -> Value {
    json!({ "anyOf": forms })
}

fn one_or_more(form: Value, fewest: u32) -> Value {
    let mut list = json!({ "type": "array", "items": form });
    if fewest > 0 {
        list["minItems"] = json!(fewest);
    }
    any(vec![form, list])
}

/// Patterns that are each whole, or search.
fn either(pattern: &str, other: &str) -> String {
    format!("({pattern})|{other}")
}

/// Whole numbers with units, the larger ones first; of a text that isn't empty, at least one.
fn duration() -> String {
    let units = DURATION_UNITS.map(|(unit, _)| format!("([0-9]+{unit})?"));
    format!("^{}$", units.concat())
}

fn size() -> Value {
    let units: Vec<&str> = SIZE_UNITS.iter().map(|(unit, _)| *unit).collect();
    let most = LARGEST_OUTPUT_LIMIT;
    any(vec![
        json!({ "type": "integer", "minimum": 0, "maximum": most }),
        text(&format!(r"^[0-9]+\s*({})$", units.join("|"))),
    ])
}

fn tags(table: Table) -> Value {
    const PART: &str = "[A-Za-z0-9._/:-]{1,63}";
    let (mut value, mut tag) = (format!("^{PART}$"), format!("^{PART}={PART}$"));
    if table == Table::Scheduler {
        value = either(&value, REFERENCE);
        tag = either(&tag, REFERENCE);
    }
    any(vec![
        json!({
            "type": "object",
            "propertyNames": { "pattern": format!("^{PART}$") },
            "additionalProperties": text(&value),
        }),
        json!({ "type": "array", "items": text(&tag) }),
    ])
}

fn variables() -> Value {
    json!({
        "type": "object",
        "propertyNames": { "pattern": "^[^=]+$", "not": { "pattern": "^SOLOIST_" } },
        "additionalProperties": { "type": "string" },
    })
}

fn date() -> String {
    const DATE: &str = r"\s*([0-9]{4}-)?[0-9]{2}-[0-9]{2}\s*";
    format!(r"^{DATE}(\.\.{DATE})?$")
}

/// In letters of either case.
fn weekday() -> String {
    let either_case = |c: char| format!("[{c}{}]", c.to_ascii_lowercase());
    let days = WEEKDAYS.map(|day| day.chars().map(either_case).collect::<String>());
    let day = format!(r"\s*({})\s*", days.join("|"));
    format!("^{day}(-{day})?$")
}
