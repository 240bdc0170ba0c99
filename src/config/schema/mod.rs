//! jobs.toml as JSON Schema (draft 2020-12), for editors and for checks far from any replica.
//!
//! ```text
//!  keys.rs: which keys there are, what each takes ─┐
//!  forms: what a duration, a date, a tag looks like ├─▶ schema
//!  meanings: what each key is for, its default ─────┘
//! ```
//!
//! It knows form alone: types, words, limits, names of keys. What contradicts what, which days
//! exist and who comes after whom, `soloist check` knows.
//!
//! Must never: refuse a table that `check` takes, or have a key that `check` refuses.

use serde_json::{Map, Value, json};

use super::http::HTTP_KEYS;
use super::keys::{CALENDAR_KEYS, JOB_KEYS, Key, NOTIFY_KEYS, SCHEDULER_KEYS};
use super::notify::{EMAIL_KEYS, TELLING_KEYS, WEBHOOK_KEYS};
use super::retry::RETRY_KEYS;

mod forms;
mod meanings;

#[cfg(test)]
pub(super) mod tests;

pub(crate) use meanings::Meaning;

/// The tables whose keys are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Scheduler,
    /// A job, and `[defaults]`.
    Job,
    Calendar,
    Notify,
    /// `retry` of a job.
    Retry,
    /// `http` of a job.
    Http,
    /// `notify` of a job.
    Telling,
    /// `webhook` of a target.
    Webhook,
    /// `email` of a target.
    Email,
}

/// A key that may be written.
pub(crate) struct Described {
    pub(crate) name: &'static str,
    /// What its value is, as in "takes a duration"; none for keys of tables within tables, whose
    /// meaning says it.
    pub(crate) takes: Option<&'static str>,
    /// None for a key that somebody added to keys.rs alone, which a test refuses.
    pub(crate) meaning: Option<&'static Meaning>,
    form: Value,
}

impl Described {
    /// The words that it takes, where it takes no others.
    pub(crate) fn words(&self) -> Vec<&str> {
        // A list has the form of each of its items as well.
        let forms = [&self.form["enum"], &self.form["anyOf"][0]["enum"]];
        let words = forms.into_iter().filter_map(Value::as_array).flatten();
        words.filter_map(Value::as_str).collect()
    }
}

impl Table {
    pub(crate) const ALL: [Table; 9] = [
        Table::Scheduler,
        Table::Job,
        Table::Calendar,
        Table::Retry,
        Table::Http,
        Table::Telling,
        Table::Notify,
        Table::Webhook,
        Table::Email,
    ];

    /// How it is written in a file.
    pub(crate) fn head(self) -> &'static str {
        match self {
            Table::Scheduler => "[scheduler]",
            Table::Job => "[jobs.NAME], [defaults]",
            Table::Calendar => "[calendars.NAME]",
            Table::Notify => "[notify.NAME]",
            Table::Retry => "[jobs.NAME.retry]",
            Table::Http => "[jobs.NAME.http]",
            Table::Telling => "[jobs.NAME.notify]",
            Table::Webhook => "[notify.NAME.webhook]",
            Table::Email => "[notify.NAME.email]",
        }
    }

    /// Its keys, in the order of keys.rs.
    pub(crate) fn keys(self) -> Vec<Described> {
        let keys = match self {
            Table::Scheduler => SCHEDULER_KEYS,
            Table::Job => JOB_KEYS,
            Table::Calendar => CALENDAR_KEYS,
            Table::Notify => NOTIFY_KEYS,
            Table::Retry => return self.inner(&RETRY_KEYS, forms::of_retry),
            Table::Http => return self.inner(&HTTP_KEYS, forms::of_http),
            Table::Telling => return self.inner(&TELLING_KEYS, forms::of_telling),
            Table::Webhook => return self.inner(&WEBHOOK_KEYS, forms::of_webhook),
            Table::Email => return self.inner(&EMAIL_KEYS, forms::of_email),
        };
        keys.iter().map(|key| self.described(key)).collect()
    }

    fn described(self, key: &'static Key) -> Described {
        Described {
            name: key.name,
            takes: Some(key.takes),
            meaning: self.meaning(key.name),
            form: forms::of(self, key).unwrap_or_default(),
        }
    }

    fn inner(self, names: &[&'static str], form: fn(&str) -> Option<Value>) -> Vec<Described> {
        let described = names.iter().map(|name| Described {
            name,
            takes: None,
            meaning: self.meaning(name),
            form: form(name).unwrap_or_default(),
        });
        described.collect()
    }

    fn meaning(self, name: &str) -> Option<&'static Meaning> {
        self.meanings().iter().find(|meaning| meaning.name == name)
    }

    fn meanings(self) -> &'static [Meaning] {
        match self {
            Table::Scheduler => meanings::SCHEDULER,
            Table::Job => meanings::JOB,
            Table::Calendar => meanings::CALENDAR,
            Table::Notify => meanings::NOTIFY,
            Table::Retry => meanings::RETRY,
            Table::Http => meanings::HTTP,
            Table::Telling => meanings::TELLING,
            Table::Webhook => meanings::WEBHOOK,
            Table::Email => meanings::EMAIL,
        }
    }
}

/// The schema of a whole file.
pub(crate) fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("jobs.toml of soloist {}", env!("CARGO_PKG_VERSION")),
        "type": "object",
        "properties": {
            "scheduler": table(Table::Scheduler),
            "defaults": { "$ref": "#/$defs/job" },
            "calendars": named("#/$defs/calendar"),
            "notify": named("#/$defs/target"),
            "jobs": named("#/$defs/job"),
        },
        "additionalProperties": false,
        "$defs": {
            "job": table(Table::Job),
            "calendar": table(Table::Calendar),
            "target": table(Table::Notify),
        },
    })
}

/// Tables that are named by their users.
fn named(of: &str) -> Value {
    json!({
        "type": "object",
        "propertyNames": { "pattern": forms::name() },
        "additionalProperties": { "$ref": of },
    })
}

fn table(table: Table) -> Value {
    let keys = table.keys().into_iter();
    let properties: Map<String, Value> = keys.map(|key| (key.name.to_owned(), form(key))).collect();
    let mut form = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    match table {
        Table::Http | Table::Webhook => form["required"] = json!(["url"]),
        Table::Email => form["required"] = json!(EMAIL_KEYS),
        _ => {}
    }
    form
}

/// A key's form with what it means.
fn form(key: Described) -> Value {
    let mut form = match key.form {
        Value::Object(form) => form,
        // Anything goes.
        _ => Map::new(),
    };
    if let Some(meaning) = key.meaning {
        form.insert("description".to_owned(), json!(meaning.text));
        // TOML writes the few kinds of values that defaults are as JSON does.
        let default = meaning.default.map(serde_json::from_str);
        if let Some(Ok(default)) = default {
            form.insert("default".to_owned(), default);
        }
    }
    Value::Object(form)
}
