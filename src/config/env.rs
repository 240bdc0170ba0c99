//! `env` of a job: variables that are filled in, and whose written values may be secrets.
//!
//! Must never: leave a literal value out of the places that a report stars out.

use std::collections::BTreeMap;
use std::ops::Range;

use super::Strictness;
use super::raw::{Entry, Value, kind_of};
use super::read::{Reader, Text};
use super::wrong_type::written;

impl Reader<'_> {
    /// A table of strings that are filled in and that may be secrets.
    pub(super) fn secret_table(&mut self, entry: &Entry<'_>) -> Option<BTreeMap<String, String>> {
        let Some(table) = entry.value.get_ref().as_table() else {
            self.hide(entry.value);
            self.wrong_type(entry);
            return None;
        };
        let mut values = BTreeMap::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            if let Err((message, hint)) = check_variable_name(name) {
                self.error(&key.span(), message, hint);
            }
            if let Some(text) = self.secret(name, value) {
                values.insert(name.to_owned(), text.value);
            }
        }
        Some(values)
    }

    fn secret(&mut self, name: &str, value: &Value<'_>) -> Option<Text> {
        let Some(text) = value.get_ref().as_str() else {
            self.hide(value);
            let hint = match written(value) {
                Some(value) => format!("put it in quotes: `{name} = \"{value}\"`"),
                None => format!("for example `{name} = \"8080\"`"),
            };
            let message = format!(
                "an environment variable takes a string, not {}",
                kind_of(value)
            );
            self.error(&value.span(), message, hint);
            return None;
        };
        let span = value.span();
        let literal = literal_parts(self.map.text(&span)).into_iter();
        self.secrets
            .extend(literal.map(|part| span.start + part.start..span.start + part.end));
        self.refuse_nul(text, &span)?;
        let text = Text {
            value: text.into(),
            span,
            filled_in: false,
        };
        if self.strictness == Strictness::Look {
            return Some(text);
        }
        self.fill(text)
    }
}

/// The parts of a written value that may be a secret: all but its quotes and its references,
/// and of those the defaults.
pub(super) fn literal_parts(written: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    // What should be quotes may be anything in a text that is no TOML.
    let end = written.char_indices().last().map_or(0, |(last, _)| last);
    let mut at = written.chars().next().map_or(0, char::len_utf8).min(end);
    while let Some(found) = written[at..end].find("${") {
        parts.push(at..at + found);
        let start = at + found;
        let Some(length) = written[start..end].find('}') else {
            at = start + "${".len();
            break;
        };
        let close = start + length;
        if let Some(default) = written[start..close].find(":-") {
            parts.push(start + default + 2..close);
        }
        at = close + 1;
    }
    parts.push(at..end);
    parts
}

fn check_variable_name(name: &str) -> Result<(), (String, &'static str)> {
    const RESERVED: &str = "SOLOIST_";
    if name.is_empty() || name.contains(['=', '\0']) {
        let message = format!(
            "`{}` can't name an environment variable",
            name.escape_debug()
        );
        return Err((
            message,
            "a name isn't empty and has no `=` and no NUL in it",
        ));
    }
    if name.starts_with(RESERVED) {
        let message = format!("`{name}` is reserved");
        return Err((
            message,
            "names that begin with `SOLOIST_` are set by soloist itself",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_written_value_is_literal_but_its_references() {
        for (written, shown) in [
            ("\"secret\"", "\"******\""),
            ("\"a${B}c\"", "\"*${B}*\""),
            ("\"${B:-secret}\"", "\"${B:-******}\""),
            ("\"${file:/x}${\"", "\"${file:/x}${\""),
            ("\"${B secret\"", "\"${********\""),
            ("\"\"", "\"\""),
            ("'a'", "'*'"),
            // No string of TOML, as a text may have it in which that is told.
            ("ޗa${B", "ޗ*${B"),
            ("ޗ", "ޗ"),
            ("", ""),
        ] {
            let mut text = written.to_owned();
            for part in literal_parts(written) {
                let stars = "*".repeat(part.len());
                text.replace_range(part, &stars);
            }
            assert_eq!(text, shown, "{written}");
        }
    }
}
