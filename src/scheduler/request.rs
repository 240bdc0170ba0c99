//! The HTTP request of a job, as the table has it: with places for what only an attempt knows.
//!
//! Must never show what may be a secret: values of headers, the body, user and query of the
//! URL, and whatever was filled in from outside the table. [`fmt::Debug`] and
//! [`HttpRequest::shown_url`] leave these out.

use std::fmt;
use std::ops::RangeInclusive;

use super::variable::Variable;

/// What stands in place of a secret.
const REDACTED: &str = "***";

/// `http` of a job.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `http://` or `https://`.
    pub url: Template,
    /// In capitals. Default: `POST` with a body, `GET` without.
    pub method: String,
    /// Names, as they are written, and values; no name is there twice.
    pub headers: Vec<(String, Template)>,
    /// None by default; an empty one is sent as such.
    pub body: Option<Template>,
    /// Which answers are successes. Default: 200 to 299.
    pub expect_status: ExpectStatus,
}

impl HttpRequest {
    /// The URL without what may be a secret; variables by their names.
    pub fn shown_url(&self) -> String {
        hide_user_and_query(&self.url.shown())
    }
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field has to be thought of here.
        let Self {
            url: _,
            method,
            headers,
            body,
            expect_status,
        } = self;
        let names: Vec<&String> = headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpRequest")
            .field("url", &self.shown_url())
            .field("method", method)
            .field("headers", &names)
            .field("body", &body.as_ref().map(|_| REDACTED))
            .field("expect_status", expect_status)
            .finish()
    }
}

/// A URL with `***` for its user, password and query; its fragment, which is never sent, is
/// left out.
fn hide_user_and_query(url: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    let (before_query, has_query) = match url.split_once('?') {
        Some((before, _)) => (before, true),
        None => (url, false),
    };
    let authority = before_query.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = before_query.split_at(authority);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let mut shown = scheme.to_owned();
    match host.rsplit_once('@') {
        Some((_, host)) => shown.extend([REDACTED, "@", host]),
        None => shown.push_str(host),
    }
    shown.push_str(path);
    if has_query {
        shown.extend(["?", REDACTED]);
    }
    shown
}

/// A text with places for what each attempt fills in.
///
/// It may hold secrets: [`fmt::Debug`] shows how many pieces it has.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

/// A part of a [`Template`].
#[derive(Clone, PartialEq, Eq)]
pub enum Piece {
    /// As it is written in the table.
    Text(String),
    /// Filled in from the environment or a file: never shown.
    Secret(String),
    /// Filled in by each attempt.
    Variable(Variable),
}

impl Template {
    /// Puts the pieces one after the other.
    pub fn new(pieces: Vec<Piece>) -> Self {
        Self { pieces }
    }

    /// The text, with `value` asked for each variable.
    pub fn fill(&self, value: impl Fn(Variable) -> String) -> String {
        let pieces = self.pieces.iter();
        let texts = pieces.map(|piece| match piece {
            Piece::Text(text) | Piece::Secret(text) => text.clone(),
            Piece::Variable(variable) => value(*variable),
        });
        texts.collect()
    }

    /// The variables that are to be filled in.
    pub fn variables(&self) -> impl Iterator<Item = Variable> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable(variable) => Some(*variable),
            Piece::Text(_) | Piece::Secret(_) => None,
        })
    }

    /// Whether some of it came from the environment or a file.
    pub fn has_secrets(&self) -> bool {
        let mut pieces = self.pieces.iter();
        pieces.any(|piece| matches!(piece, Piece::Secret(_)))
    }

    /// The text with `***` for what came from outside the table, and variables by name.
    fn shown(&self) -> String {
        let pieces = self.pieces.iter();
        let texts = pieces.map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Secret(_) => REDACTED.to_owned(),
            Piece::Variable(variable) => format!("${{{}}}", variable.name()),
        });
        texts.collect()
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Template({} pieces)", self.pieces.len())
    }
}

/// Which statuses are successes: ranges, of which one has to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectStatus(pub Vec<RangeInclusive<u16>>);

impl Default for ExpectStatus {
    fn default() -> Self {
        Self(vec![200..=299])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Template {
        Template::new(vec![Piece::Text(text.to_owned())])
    }

    fn request(url: Template) -> HttpRequest {
        HttpRequest {
            url,
            method: "POST".to_owned(),
            headers: vec![("Authorization".to_owned(), text("hunter2"))],
            body: Some(text("hunter2")),
            expect_status: ExpectStatus::default(),
        }
    }

    #[test]
    fn a_request_shown_for_debugging_keeps_its_secrets() {
        let url = Template::new(vec![
            Piece::Text("https://hunter2:hunter2@shop/".to_owned()),
            Piece::Secret("hunter2".to_owned()),
            Piece::Variable(Variable::Job),
            Piece::Text("?key=hunter2#hunter2".to_owned()),
        ]);
        let request = request(url);
        let shown = format!("{request:?} {request:#?} {:?}", request.headers);
        assert!(shown.contains("https://***@shop/***${SOLOIST_JOB}?***"));
        assert!(shown.contains("Authorization"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_shown_url_keeps_where_it_leads() {
        for (url, shown) in [
            ("http://h", "http://h"),
            ("http://h:1/a/b", "http://h:1/a/b"),
            ("http://u@h/a@b", "http://***@h/a@b"),
            ("http://u:p@w@h?a=b", "http://***@h?***"),
            ("http://[::1]:8/?", "http://[::1]:8/?***"),
            ("http://h/#a?b", "http://h/"),
        ] {
            assert_eq!(request(text(url)).shown_url(), shown);
        }
    }

    #[test]
    fn only_variables_are_filled_in() {
        let template = Template::new(vec![
            Piece::Text("${SOLOIST_JOB} ".to_owned()),
            Piece::Secret("${SOLOIST_JOB} ".to_owned()),
            Piece::Variable(Variable::Job),
        ]);
        assert_eq!(
            template.fill(|variable| variable.name().to_lowercase()),
            "${SOLOIST_JOB} ${SOLOIST_JOB} soloist_job"
        );
    }
}
