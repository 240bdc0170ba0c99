//! TOML with places, as far as it can be read.
//!
//! Must never: show a line that may hold a secret, which a broken line may wherever it stands.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostics::{Diagnostic, Problems};
use super::keys::{self, CALENDAR_KEYS, JOB_KEYS, SCHEDULER_KEYS};
use super::source_map::SourceFile;

/// Reads TOML as far as it goes; what can't be read is among the problems, and the parts of
/// broken lines that may be secrets among those. All places are those of the file's map.
pub(super) fn parse<'s>(
    file: &'s SourceFile,
    problems: &mut Problems,
    secrets: &mut Vec<Range<usize>>,
) -> DeTable<'s> {
    let source: &str = &file.text;
    let later = |span: Range<usize>| file.start + span.start..file.start + span.end;
    let (table, errors) = DeTable::parse_recoverable(source);
    let mut table_twice = 0..0;
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        if error.message() != "duplicate key" {
            let (diagnostic, secret) = broken_line(source, span, error.message());
            secrets.extend(secret.map(later));
            let at = diagnostic.span.as_ref().map_or(0, |span| span.start);
            let line = line_around(source, at);
            let whole = later(0..source.len() + 1);
            problems.push_syntax(later(line).start, whole, diagnostic.shifted(file.start));
            continue;
        }
        secrets.extend(value_beside(source, &span).map(later));
        let diagnostic = if let Some(first) = same_header_before(source, &span) {
            table_twice = span.start..end_of_table(source, span.end);
            duplicate_table(source, first, span)
        } else if !table_twice.contains(&span.start) {
            duplicate_key(source, table.get_ref(), span)
        } else {
            continue;
        };
        problems.push(diagnostic.shifted(file.start));
    }
    shift_table(table.into_inner(), file.start)
}

/// The same table in a text that begins so much later.
fn shift_table(table: DeTable<'_>, by: usize) -> DeTable<'_> {
    if by == 0 {
        return table;
    }
    let entries = table.into_iter();
    let shifted = entries.map(|(key, value)| {
        let span = key.span();
        let key = Spanned::new(span.start + by..span.end + by, key.into_inner());
        (key, shift_value(value, by))
    });
    shifted.collect()
}

fn shift_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(shift_table(table, by)),
        DeValue::Array(array) => {
            let items = array.into_iter().map(|item| shift_value(item, by));
            DeValue::Array(items.collect())
        }
        plain => plain,
    };
    Spanned::new(span.start + by..span.end + by, value)
}

fn broken_line(
    source: &str,
    span: Range<usize>,
    message: &str,
) -> (Diagnostic, Option<Range<usize>>) {
    let line = line_around(source, span.start);
    let text = &source[line.clone()];
    let secret = text.find('=').and_then(|equals| {
        let is_secret = !is_plain(text[..equals].trim());
        is_secret.then_some(line.start + equals + 1..line.end)
    });
    // Where something is missing there is nothing to underline but what stands before.
    let is_empty = source
        .get(span.clone())
        .unwrap_or_default()
        .trim()
        .is_empty();
    let span = if is_empty && !text.trim().is_empty() {
        let indent = text.len() - text.trim_start().len();
        line.start + indent..line.start + text.trim_end().len()
    } else {
        span
    };
    let hint = if message.contains("string") {
        "close the text with the quote that it began with; a backslash in it is written `\\\\`"
    } else if message.contains("leading zero") {
        "no number begins with 0; a umask is a text: `umask = \"0027\"`"
    } else if message.contains("table") {
        "a table begins with a line such as `[jobs.close-expired-orders]`"
    } else {
        "a line is `key = \"text\"`, `key = 5`, `key = [\"a\", \"b\"]` or a table, `[jobs.NAME]`"
    };
    let diagnostic = Diagnostic::error(span, format!("this is not TOML: {message}")).hint(hint);
    (diagnostic, secret)
}

/// What follows a key that is there twice, on its line, unless that is no secret. Nobody reads
/// it, who would star it out.
fn value_beside(source: &str, key: &Range<usize>) -> Option<Range<usize>> {
    let line = line_around(source, key.start);
    let text = &source[line.clone()];
    let of_line = text.split('=').next().unwrap_or_default();
    let is_secret = text.contains('=') && !is_plain(of_line.trim());
    (is_secret && key.end <= line.end).then_some(key.end..line.end)
}

/// Whether what a line sets by this key is shown: it is no secret.
pub(super) fn is_plain(key: &str) -> bool {
    let of_job = keys::find(JOB_KEYS, key).is_some() && !["env", "http", "notify"].contains(&key);
    let of_table = |keys| keys::find(keys, key).is_some();
    of_job || of_table(SCHEDULER_KEYS) || of_table(CALENDAR_KEYS)
}

fn line_around(source: &str, at: usize) -> Range<usize> {
    let at = source.floor_char_boundary(at);
    let start = source[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let end = source[at..].find('\n').map_or(source.len(), |n| at + n);
    start..end
}

/// Where the first line is that opens the same table as the line around a place.
fn same_header_before(source: &str, span: &Range<usize>) -> Option<Range<usize>> {
    let line = line_around(source, span.start);
    let header = header_of(&source[line.clone()])?;
    let mut start = 0;
    source[..line.start]
        .split_inclusive('\n')
        .find_map(|before| {
            let at = start + before.find('[').unwrap_or(0);
            start += before.len();
            (header_of(before)? == header).then(|| at..at + header.len())
        })
}

/// `[jobs.x]` of a line that is such, without what surrounds it.
fn header_of(line: &str) -> Option<&str> {
    let line = line.trim();
    let end = line.starts_with('[').then(|| line.find(']'))??;
    let rest = line[end + 1..].trim_start();
    (rest.is_empty() || rest.starts_with('#')).then_some(&line[..=end])
}

fn end_of_table(source: &str, from: usize) -> usize {
    source[from..]
        .find("\n[")
        .map_or(source.len(), |length| from + length)
}

fn duplicate_table(source: &str, first: Range<usize>, span: Range<usize>) -> Diagnostic {
    let name = name_at(source, &span);
    let is_job = source[first.clone()].starts_with("[jobs.");
    let diagnostic = if is_job {
        Diagnostic::error(span, format!("the job `{name}` is there twice"))
            .hint("give one of them another name: history and leases go by it")
    } else {
        Diagnostic::error(span, format!("the table `{name}` is there twice"))
            .hint("make one table of the two")
    };
    diagnostic.related(first, "the first is here")
}

fn name_at<'s>(source: &'s str, span: &Range<usize>) -> &'s str {
    let written = source.get(span.clone()).unwrap_or_default();
    written.trim_matches(['"', '\''])
}

/// The parser keeps the first of two keys; where that is, is searched for by name.
fn duplicate_key(source: &str, table: &DeTable<'_>, span: Range<usize>) -> Diagnostic {
    let name = name_at(source, &span);
    let mut first: Option<Range<usize>> = None;
    visit_keys(table, &mut |key, at| {
        let is_later = first.as_ref().is_none_or(|first| first.start < at.start);
        if key == name && at.start < span.start && is_later {
            first = Some(at);
        }
    });
    let diagnostic = Diagnostic::error(span, format!("`{name}` is set twice"));
    let diagnostic = diagnostic.hint("keep one of them");
    match first {
        Some(first) => diagnostic.related(first, "the first is here"),
        None => diagnostic,
    }
}

fn visit_keys(table: &DeTable<'_>, visit: &mut impl FnMut(&str, Range<usize>)) {
    for (key, value) in table {
        visit(key.get_ref(), key.span());
        if let DeValue::Table(inner) = value.get_ref() {
            visit_keys(inner, visit);
        }
    }
}
