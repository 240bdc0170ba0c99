//! Any text as jobs.toml, and any bytes as an iCalendar file.
//!
//! Must never: be part of a program; or follow a path that an input names.

use toml::de::{DeTable, DeValue};
use toml_writer::{ToTomlKey as _, ToTomlValue as _, TomlKeyBuilder, TomlStringBuilder};

use super::{Config, Error, Host, Rendering, Severity, Strictness, parse};
use crate::jobs::calendars::ics;
use crate::scheduler::schedule::day_set::LAST_DAY;
use crate::scheduler::time::Timestamp;

/// In a directory that isn't there, so that no relative path leads to a file.
const PATH: &str = "/nowhere/jobs.toml";

/// Keys whose values are, or name, files that are read.
const KEYS_OF_FILES: [&str; 2] = ["include", "ical"];

/// Any text is a table, or errors with their places; and what a table means does not depend on how
/// its TOML is written.
pub(crate) fn table(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (toml, _) = DeTable::parse_recoverable(text);
    if names_files(toml.get_ref()) {
        return;
    }
    match read(text, Strictness::Edit) {
        Err(error) => is_told(text, &error),
        Ok(config) => {
            // Editors go by the schema.
            #[cfg(test)]
            assert_eq!(super::schema::tests::faults(text), [""; 0]);
            for strictness in [Strictness::Start, Strictness::Look] {
                let laxer = read(text, strictness);
                laxer.unwrap_or_else(|error| panic!("refused as {strictness:?}: {error}"));
            }
            let rewritten = in_one_form(toml.get_ref());
            let again = read(&rewritten, Strictness::Edit);
            let again = again.unwrap_or_else(|error| panic!("{error}\n{rewritten}"));
            means_the_same(&config, &again);
        }
    }
}

fn read(text: &str, strictness: Strictness) -> Result<Config, Error> {
    let host = Host {
        env: &|name| name.starts_with('S').then(|| format!("<{name}>")),
        accounts: &|user, _| match user {
            Some("nobody-here") => Err(("no such user".into(), "add it".into())),
            _ => Ok(()),
        },
        now: Timestamp::from_second(1_795_250_760),
    };
    parse(text, PATH, &host, strictness)
}

/// Each problem has a place in the text, unless it is the table as a whole; all can be shown.
fn is_told(text: &str, Error(report, _): &Error) {
    let problems = report.diagnostics();
    let is_error = |one: &&_| {
        matches!(
            one,
            super::Diagnostic {
                severity: Severity::Error,
                ..
            }
        )
    };
    assert!(
        problems.iter().any(|one| is_error(&one)),
        "refused without an error"
    );
    let lines = text.split('\n').count();
    for problem in problems {
        assert!(!problem.message.is_empty(), "{problem:?}");
        if let Some(span) = &problem.span {
            let place = report.position(problem);
            let (_, line, column) = place.unwrap_or_else(|| panic!("no place: {problem:?}"));
            assert!((1..=lines).contains(&line) && column > 0, "{problem:?}");
            assert!(
                text.get(span.clone()).is_some(),
                "not in the text: {problem:?}"
            );
        }
    }
    let shown = report.render(Rendering::Plain);
    assert!(!shown.is_empty() && !report.summary().is_empty());
}

fn means_the_same(config: &Config, other: &Config) {
    let changes = config.diff(other);
    assert!(changes.is_empty(), "{changes:?}");
    assert_eq!(config.digest(), other.digest());
    let messages = |config: &Config| -> Vec<String> {
        let warnings = config.warnings.diagnostics().iter();
        let mut messages: Vec<_> = warnings.map(|one| one.message.clone()).collect();
        messages.sort();
        messages
    };
    assert_eq!(messages(config), messages(other));
}

/// Whether reading the table would read files of this machine.
fn names_files(table: &DeTable<'_>) -> bool {
    table.iter().any(|(key, value)| {
        let key: &str = key.get_ref();
        KEYS_OF_FILES.contains(&key) || refers_to_files(value.get_ref())
    })
}

fn refers_to_files(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::String(text) => text.contains("${file:"),
        DeValue::Array(items) => items.iter().any(|item| refers_to_files(item.get_ref())),
        DeValue::Table(table) => names_files(table),
        _ => false,
    }
}

/// The same values, each spelt in one way, all tables in a line.
fn in_one_form(table: &DeTable<'_>) -> String {
    let entries = table.iter();
    let lines = entries.map(|(key, value)| pair(key.get_ref(), value.get_ref()) + "\n");
    lines.collect()
}

fn pair(key: &str, value: &DeValue<'_>) -> String {
    let key = TomlKeyBuilder::new(key).as_basic().to_toml_key();
    format!("{key} = {}", spelt(value))
}

fn spelt(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => TomlStringBuilder::new(text).as_basic().to_toml_value(),
        DeValue::Integer(integer) => {
            let prefix = match integer.radix() {
                2 => "0b",
                8 => "0o",
                16 => "0x",
                _ => "",
            };
            format!("{prefix}{}", integer.as_str())
        }
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(at) => at.to_string(),
        DeValue::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| spelt(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(table) => {
            let entries = table.iter();
            let pairs: Vec<_> = entries
                .map(|(key, value)| pair(key.get_ref(), value.get_ref()))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

/// Any bytes are a calendar, or faults with their lines; and line ends play no part.
pub(crate) fn calendar(input: &[u8]) {
    let read = ics::read(input);
    let lines = input.split(|byte| matches!(byte, b'\n' | b'\r')).count();
    match &read {
        Ok(contents) => {
            let beyond = |day: Option<i64>| day.is_some_and(|day| day > LAST_DAY);
            assert!(
                !beyond(contents.days.previous(i64::MAX)),
                "a day of no year"
            );
            let turned = contents.spans.iter().find(|(from, to)| from > to);
            assert_eq!(turned, None, "ends before it begins");
        }
        Err(faults) => {
            assert!(!faults.is_empty(), "refused without a fault");
            for fault in faults {
                assert!((1..=lines).contains(&fault.line), "{fault:?}");
                assert!(
                    !fault.message.is_empty() && !fault.hint.is_empty(),
                    "{fault:?}"
                );
            }
        }
    }
    if let Ok(text) = std::str::from_utf8(input)
        && !text.contains('\r')
    {
        let other = ics::read(text.replace('\n', "\r\n").as_bytes());
        assert_eq!(days_and_spans(&read), days_and_spans(&other));
    }
}

type DaysAndSpans = Option<(Vec<i64>, Vec<(i64, i64)>)>;

fn days_and_spans<E>(read: &Result<ics::Contents, E>) -> DaysAndSpans {
    let contents = read.as_ref().ok()?;
    let first = contents.days.next(0, true);
    let days = std::iter::successors(first, |day| contents.days.next(day + 1, true));
    Some((days.take(100).collect(), contents.spans.clone()))
}
