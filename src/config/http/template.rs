//! Texts of `http`: filled in or left to attempts, and starred out where they may be secrets.

use std::ops::Range;

use toml::de::DeValue;

use crate::config::env::literal_parts;
use crate::config::interpolate::fill_for_attempts;
use crate::config::raw::{Value, kind_of};
use crate::config::read::{Reader, Text};
use crate::config::wrong_type::written;
use crate::scheduler::request::Template;

use super::values::sample;

/// A value of `http` by its name.
pub(in crate::config) type Named<'n, 't> = (&'n str, &'t Value<'t>);

/// Which parts of a value may be secrets.
#[derive(Clone, Copy)]
pub(in crate::config) enum Shape {
    /// All of it.
    Secret,
    /// User, password and query.
    Url,
}

impl Reader<'_> {
    /// A string with its references filled in or left to attempts, and its place.
    pub(in crate::config) fn template(
        &mut self,
        (name, value): Named<'_, '_>,
        shape: Shape,
    ) -> Option<(Template, Range<usize>)> {
        let span = value.span();
        let whole = 0..span.len();
        let secret = match (value.get_ref(), shape) {
            (DeValue::String(_), Shape::Url) => secret_parts_of_url(self.map.text(&span)),
            (DeValue::String(_), Shape::Secret) => vec![whole],
            _ => Vec::new(),
        };
        for literal in literal_parts(self.map.text(&span)) {
            let parts = secret.iter().map(|part| {
                span.start + part.start.max(literal.start)..span.start + part.end.min(literal.end)
            });
            self.secrets.extend(parts.filter(|part| !part.is_empty()));
        }
        let text = self.named_text((name, value))?;
        let filled = fill_for_attempts(&text.value, self.env, &mut self.sources.secrets);
        let template = filled.map_err(|errors| self.unfilled(&text, errors)).ok()?;
        self.refuse_nul(&template.fill(sample), &span)?;
        Some((template, span))
    }

    /// A string as it is written.
    pub(in crate::config) fn named_text(&mut self, (name, value): Named<'_, '_>) -> Option<Text> {
        let Some(text) = value.get_ref().as_str() else {
            self.hide(value);
            let hint = match written(value) {
                Some(value) => format!("put it in quotes: `{name} = \"{value}\"`"),
                None => format!("for example `{name} = \"…\"`"),
            };
            let message = format!(
                "`{}` takes a string, not {}",
                name.escape_debug(),
                kind_of(value)
            );
            self.error(&value.span(), message, hint);
            return None;
        };
        Some(Text {
            value: text.into(),
            span: value.span(),
            filled_in: false,
        })
    }
}

/// User, password, query and fragment of a URL in quotes.
pub(super) fn secret_parts_of_url(written: &str) -> Vec<Range<usize>> {
    let authority = written.find("://").map_or(0, |at| at + "://".len());
    let rest = &written[authority..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let mut parts = Vec::new();
    if let Some(at) = rest[..end].rfind('@') {
        parts.push(authority..authority + at);
    }
    if let Some(query) = written.find(['?', '#']) {
        parts.push(query + 1..written.len());
    }
    parts
}
