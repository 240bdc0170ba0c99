//! What is wrong with a file, where, and what to do about it.
//!
//! Problems are collected, so that one look at a file shows all of them. Rendering must never
//! show a secret: a [`Report`] holds the text of the file with passwords and literal values of
//! `env` and `http` starred out, and messages are made without values that were filled in.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::store_url::star_passwords;

/// How many problems of a file are shown: one slip can be in thousands of generated jobs.
const SHOWN_LIMIT: usize = 100;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The table can't be used.
    Error,
    /// The table can be used, and may not do what was meant.
    Warning,
}

/// One problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, without a full stop.
    pub message: String,
    /// The text at fault, as bytes of the file; none when it is the file as a whole.
    pub span: Option<Range<usize>>,
    /// Another place that has to do with it, and what is there.
    pub related: Option<(Range<usize>, String)>,
    /// The line at fault of another file, where the place in this one only names that.
    pub excerpt: Option<Excerpt>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// A line of another file that a table names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The file, as messages call it.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
}

impl Diagnostic {
    /// An error at a place.
    pub(super) fn error(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span: Some(span),
            related: None,
            excerpt: None,
            hint: None,
        }
    }

    /// A warning about a place.
    pub(super) fn warning(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(span, message)
        }
    }

    /// An error of the file as a whole.
    pub(super) fn of_file(message: impl Into<String>) -> Self {
        Self {
            span: None,
            ..Self::error(0..0, message)
        }
    }

    /// Says what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Shows the line at fault of another file.
    pub(super) fn excerpt(mut self, excerpt: Excerpt) -> Self {
        self.excerpt = Some(excerpt);
        self
    }

    /// Points at another place too.
    pub(super) fn related(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.related = Some((span, label.into()));
        self
    }
}

/// Collects the problems of one file.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Diagnostic>,
    /// Lines that the TOML parser could not make sense of: what else is said about them is noise.
    broken_lines: BTreeSet<usize>,
}

impl Problems {
    /// Adds one; a problem that is there already (a default that several jobs take) is told once.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        if !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }

    /// Adds a complaint that something is not there. It is dropped when part of the file could
    /// not be read, as that part may have held it.
    pub(super) fn push_missing(&mut self, diagnostic: Diagnostic) {
        if self.broken_lines.is_empty() {
            self.push(diagnostic);
        }
    }

    /// Adds an error of the TOML parser.
    pub(super) fn push_syntax(&mut self, source: &str, diagnostic: Diagnostic) {
        let at = diagnostic.span.as_ref().map_or(0, |span| span.start);
        if self.broken_lines.insert(line_of(source, at)) {
            self.push(diagnostic);
        }
    }

    /// All of them in the order of the file, those of the file as a whole last.
    pub(super) fn into_sorted(self, source: &str) -> Vec<Diagnostic> {
        let Self {
            mut found,
            broken_lines,
        } = self;
        if broken_lines.is_empty() {
            found.sort_by_key(place);
            return found;
        }
        let mut syntax_told = BTreeSet::new();
        found.retain(|diagnostic| match &diagnostic.span {
            Some(span) => {
                let line = line_of(source, span.start);
                // The parser's own complaint about a line was pushed before any other.
                !broken_lines.contains(&line) || syntax_told.insert(line)
            }
            None => true,
        });
        found.sort_by_key(place);
        found
    }
}

/// What problems are sorted by; those of the file as a whole come last.
fn place(diagnostic: &Diagnostic) -> (usize, usize) {
    let span = diagnostic.span.as_ref();
    span.map_or((usize::MAX, 0), |span| (span.start, span.end))
}

/// How a [`Report`] is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// Text alone.
    Plain,
    /// With colours, for a terminal.
    Styled,
}

/// The problems of one file, with the file's text to show them in.
#[derive(Clone)]
pub struct Report {
    path: String,
    /// With secrets starred out; byte for byte as long as the file.
    source: String,
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    pub(super) fn new(
        path: &str,
        source: &str,
        secrets: &[Range<usize>],
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        Self {
            path: path.into(),
            source: star_out(&star_passwords(source), secrets),
            diagnostics,
        }
    }

    /// Adds a warning about what the file makes together with flags and environment.
    pub(crate) fn warn(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        let warning = Diagnostic::of_file(message).hint(hint);
        self.diagnostics.push(Diagnostic {
            severity: Severity::Warning,
            ..warning
        });
    }

    /// The file, as it was named.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The problems, in the order of the file.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Line and column (in characters), both from 1, of where a problem begins.
    pub fn position(&self, diagnostic: &Diagnostic) -> Option<(usize, usize)> {
        let span = self.clamp(diagnostic.span.as_ref()?);
        let line_start = self.source[..span.start].rfind('\n').map_or(0, |at| at + 1);
        let column = self.source[line_start..span.start].chars().count() + 1;
        Some((line_of(&self.source, span.start), column))
    }

    /// The problems as people read them: each with the file, the line, the text underlined and
    /// a hint, and an empty line in between.
    pub fn render(&self, rendering: Rendering) -> String {
        let renderer = match rendering {
            Rendering::Plain => Renderer::plain(),
            Rendering::Styled => Renderer::styled(),
        };
        let mut texts: Vec<_> = self
            .diagnostics
            .iter()
            .take(SHOWN_LIMIT)
            .map(|diagnostic| renderer.render(&[self.group(diagnostic)]) + "\n")
            .collect();
        let more = self.diagnostics.len().saturating_sub(SHOWN_LIMIT);
        if more > 0 {
            texts.push(format!("and {more} more\n"));
        }
        texts.join("\n")
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(&diagnostic.message));
        if let Some(excerpt) = &diagnostic.excerpt {
            let line = AnnotationKind::Primary.span(0..excerpt.text.len());
            let snippet = Snippet::source(&excerpt.text).line_start(excerpt.line);
            group = group.element(snippet.path(&excerpt.path).annotation(line));
        }
        if let Some(span) = &diagnostic.span {
            let kind = match diagnostic.excerpt {
                Some(_) => AnnotationKind::Context,
                None => AnnotationKind::Primary,
            };
            let mut snippet = Snippet::source(&self.source)
                .path(&self.path)
                .annotation(kind.span(self.clamp(span)));
            if let Some((span, label)) = &diagnostic.related {
                let span = self.clamp(span);
                snippet = snippet.annotation(AnnotationKind::Context.span(span).label(label));
            }
            group = group.element(snippet);
        }
        if let Some(hint) = &diagnostic.hint {
            group = group.element(Level::HELP.message(hint));
        }
        group
    }

    /// A span that is within the text, whatever the parser said.
    fn clamp(&self, span: &Range<usize>) -> Range<usize> {
        let start = self.source.floor_char_boundary(span.start);
        let end = self.source.ceil_char_boundary(span.end);
        start..end.max(start)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(Rendering::Plain))
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Report")
            .field("path", &self.path)
            .field("diagnostics", &self.diagnostics)
            .finish_non_exhaustive()
    }
}

/// Why a file can't be used: all its errors, and its warnings among them.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Report);

/// The line of a byte of a text, from 1.
fn line_of(source: &str, at: usize) -> usize {
    source.as_bytes()[..at.min(source.len())]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// The text with those parts as stars, of the same length in bytes, lines kept.
fn star_out(source: &str, secrets: &[Range<usize>]) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for secret in secrets {
        for byte in bytes.get_mut(secret.clone()).into_iter().flatten() {
            if !byte.is_ascii_control() {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}
