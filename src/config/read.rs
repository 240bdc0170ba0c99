//! Readers of single values: each takes an entry and gives the value, or tells what is wrong
//! with it and gives none.
//!
//! A message never holds a value that was filled in from the environment or a file.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use toml::de::{DeInteger, DeValue};

use super::calendars::Calendars;
use super::diagnostics::{Diagnostic, Problems};
use super::identity::Accounts;
use super::interpolate::{Environment, ReferenceError, fill_in};
use super::names::nearest;
use super::raw::{Entry, Value, kind_of};
use super::source_map::SourceMap;
use super::sources::Sources;
use super::values::{ValueError, format_duration, parse_duration, parse_size};
use super::wrong_type::{type_hint, written};
use super::{Host, Strictness};
use crate::jobs::limits::{check_duration, number_outside};
use crate::scheduler::time::Timestamp;

/// A text and its place; [`Text::quoted`] is how to name it in a message.
#[derive(Clone)]
pub(super) struct Text {
    pub(super) value: String,
    pub(super) span: Range<usize>,
    /// Whether some of it came from the environment or a file.
    pub(super) filled_in: bool,
}

impl Text {
    /// The text in quotes, or words for it where it may be a secret.
    pub(super) fn quoted(&self) -> String {
        if self.filled_in {
            "the value filled in here".into()
        } else {
            format!("`{}`", self.value)
        }
    }
}

/// Reads values of a table's files and collects what is wrong with them.
pub(super) struct Reader<'a> {
    /// The files that have been read so far.
    pub(super) map: SourceMap,
    /// What the table depends on, as far as that is known.
    pub(super) sources: Sources,
    pub(super) env: Environment<'a>,
    pub(super) accounts: Accounts<'a>,
    pub(super) now: Timestamp,
    pub(super) strictness: Strictness,
    pub(super) problems: Problems,
    /// What jobs may refer to.
    pub(super) calendars: Calendars,
    /// Whom they may have told.
    pub(super) targets: Vec<String>,
    /// Where literal values of `env` and `http` stand, which a report must not show.
    pub(super) secrets: Vec<Range<usize>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(host: &Host<'a>, strictness: Strictness) -> Self {
        Self {
            map: SourceMap::default(),
            sources: Sources::default(),
            env: host.env,
            accounts: host.accounts,
            now: host.now,
            strictness,
            problems: Problems::default(),
            calendars: Calendars::default(),
            targets: Vec::new(),
            secrets: Vec::new(),
        }
    }

    /// Tells an error at a place.
    pub(super) fn error(&mut self, span: &Range<usize>, message: String, hint: impl Into<String>) {
        self.problems
            .push(Diagnostic::error(span.clone(), message).hint(hint));
    }

    /// Keeps a value out of reports that was not meant to be there, or not as it is. What is no
    /// text and holds none is no secret.
    pub(super) fn hide(&mut self, value: &Value<'_>) {
        if written(value).is_none() {
            self.secrets.push(value.span());
        }
    }

    pub(super) fn wrong_type(&mut self, entry: &Entry<'_>) {
        let (key, value) = (entry.key, entry.value);
        let hint = type_hint(key.name, key.takes, value)
            .unwrap_or_else(|| format!("for example `{}`", key.example));
        let message = format!("`{}` takes {}, not {}", key.name, key.takes, kind_of(value));
        self.error(&value.span(), message, hint);
    }

    /// A string as it is written.
    pub(super) fn text(&mut self, entry: &Entry<'_>) -> Option<Text> {
        let Some(value) = entry.value.get_ref().as_str() else {
            self.wrong_type(entry);
            return None;
        };
        self.refuse_nul(value, &entry.value.span())?;
        Some(Text {
            value: value.into(),
            span: entry.value.span(),
            filled_in: false,
        })
    }

    /// A string with its references filled in.
    pub(super) fn filled_text(&mut self, entry: &Entry<'_>) -> Option<Text> {
        let text = self.text(entry)?;
        self.fill(text)
    }

    pub(super) fn fill(&mut self, text: Text) -> Option<Text> {
        match fill_in(&text.value, self.env, &mut self.sources.secrets) {
            Ok(None) => Some(text),
            Ok(Some(value)) => {
                self.refuse_nul(&value, &text.span)?;
                Some(Text {
                    value,
                    filled_in: true,
                    ..text
                })
            }
            Err(errors) => {
                self.unfilled(&text, errors);
                None
            }
        }
    }

    /// Tells which references of a text can't be filled in.
    pub(super) fn unfilled(&mut self, text: &Text, errors: Vec<ReferenceError>) {
        for error in errors {
            let span = self.span_within(text, error.span);
            self.error(&span, error.message, error.hint);
        }
    }

    /// Where a part of a text stands in its file. A text with escapes is told as a whole.
    pub(super) fn span_within(&self, text: &Text, part: Range<usize>) -> Range<usize> {
        let written = self.map.text(&text.span);
        let quotes = if written.starts_with("\"\"\"") || written.starts_with("'''") {
            3
        } else {
            1
        };
        let inner = written.get(quotes..written.len().saturating_sub(quotes));
        let newline = inner.map_or(0, |inner| usize::from(inner.starts_with('\n')));
        let is_plain = inner.is_some_and(|inner| &inner[newline..] == text.value.as_str());
        if text.filled_in || !is_plain {
            return text.span.clone();
        }
        let at = text.span.start + quotes + newline;
        at + part.start..at + part.end
    }

    pub(super) fn refuse_nul(&mut self, value: &str, span: &Range<usize>) -> Option<()> {
        if value.contains('\0') {
            let hint = "a NUL byte can't be part of a program's arguments, environment or paths";
            self.error(span, "there is a NUL byte in this text".into(), hint);
            return None;
        }
        Some(())
    }

    /// A string that isn't empty.
    pub(super) fn full_text(&mut self, entry: &Entry<'_>) -> Option<Text> {
        let text = self.text(entry)?;
        if text.value.trim().is_empty() {
            let message = format!("`{}` is empty", entry.key.name);
            self.error(
                &text.span,
                message,
                format!("for example `{}`", entry.key.example),
            );
            return None;
        }
        Some(text)
    }

    /// A duration within limits.
    pub(super) fn duration(
        &mut self,
        entry: &Entry<'_>,
        limits: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let text = self.text(entry)?;
        self.duration_of(entry, text, limits)
    }

    /// A duration within limits, read from a text that was filled in.
    pub(super) fn duration_of(
        &mut self,
        entry: &Entry<'_>,
        text: Text,
        limits: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let name = entry.key.name;
        match parse_duration(&text.value) {
            Ok(value) => {
                let Err(message) = check_duration(name, value, &limits) else {
                    return Some(value);
                };
                let (least, most) = (
                    format_duration(*limits.start()),
                    format_duration(*limits.end()),
                );
                let hint = format!(
                    "write a duration from {least} to {most}, such as `{}`",
                    entry.key.example
                );
                self.error(&text.span, message, hint);
                None
            }
            Err(ValueError { message, hint }) => {
                self.error(&text.span, format!("{} {message}", text.quoted()), hint);
                None
            }
        }
    }

    /// An integer within limits.
    pub(super) fn integer(
        &mut self,
        entry: &Entry<'_>,
        limits: RangeInclusive<u32>,
    ) -> Option<u32> {
        let Some(integer) = entry.value.get_ref().as_integer() else {
            self.wrong_type(entry);
            return None;
        };
        let value = to_i64(integer).and_then(|value| u32::try_from(value).ok());
        let within = value.filter(|value| limits.contains(value));
        if within.is_none() {
            let message = number_outside(entry.key.name, &limits);
            self.error(
                &entry.value.span(),
                message,
                format!("for example `{}`", entry.key.example),
            );
        }
        within
    }

    /// A size in bytes, as an integer or a text with a unit.
    pub(super) fn size(&mut self, entry: &Entry<'_>, most: u64) -> Option<u64> {
        let size = match entry.value.get_ref() {
            DeValue::Integer(integer) => to_i64(integer).and_then(|size| u64::try_from(size).ok()),
            DeValue::String(text) => match parse_size(text) {
                Ok(size) => Some(size),
                Err(ValueError { message, hint }) => {
                    self.error(&entry.value.span(), format!("`{text}` {message}"), hint);
                    return None;
                }
            },
            _ => {
                self.wrong_type(entry);
                return None;
            }
        };
        let within = size.filter(|size| *size <= most);
        if within.is_none() {
            let message = format!("`{}` is from 0 to {most} bytes", entry.key.name);
            self.error(
                &entry.value.span(),
                message,
                format!("for example `{}`", entry.key.example),
            );
        }
        within
    }

    pub(super) fn boolean(&mut self, entry: &Entry<'_>) -> Option<bool> {
        let value = entry.value.get_ref().as_bool();
        if value.is_none() {
            self.wrong_type(entry);
        }
        value
    }

    /// One of a few words, each with what it means.
    pub(super) fn word<T>(
        &mut self,
        entry: &Entry<'_>,
        words: Vec<(&'static str, T)>,
    ) -> Option<T> {
        let text = self.text(entry)?;
        let names: Vec<_> = words.iter().map(|(name, _)| *name).collect();
        let found = words.into_iter().find(|(name, _)| *name == text.value);
        match found {
            Some((_, value)) => return Some(value),
            None => {
                let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                let message = format!(
                    "`{}` is {}, not {}",
                    entry.key.name,
                    quoted.join(" or "),
                    text.quoted()
                );
                let hint = match nearest(&text.value, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("for example `{}`", entry.key.example),
                };
                self.error(&text.span, message, hint);
            }
        }
        None
    }

    /// A list of strings.
    pub(super) fn texts(&mut self, entry: &Entry<'_>) -> Option<Vec<Text>> {
        let Some(array) = entry.value.get_ref().as_array() else {
            self.wrong_type(entry);
            return None;
        };
        let mut texts = Vec::new();
        for item in array.iter() {
            let Some(value) = item.get_ref().as_str() else {
                let message = format!(
                    "`{}` takes {}; here is {}",
                    entry.key.name,
                    entry.key.takes,
                    kind_of(item)
                );
                let hint = match written(item) {
                    Some(value) => format!("put it in quotes: `\"{value}\"`"),
                    None => format!("for example `{}`", entry.key.example),
                };
                self.error(&item.span(), message, hint);
                continue;
            };
            if self.refuse_nul(value, &item.span()).is_some() {
                texts.push(Text {
                    value: value.into(),
                    span: item.span(),
                    filled_in: false,
                });
            }
        }
        (texts.len() == array.iter().count()).then_some(texts)
    }
}

/// An integer, if it isn't absurdly large.
pub(super) fn to_i64(integer: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}
