//! What is wrong with a table, where, and what to do about it.
//!
//! Problems are collected, so that one look at a table shows all of them, in whatever file they
//! are. Rendering must never show a secret: a [`Report`] holds the texts of the files with
//! passwords and literal values of `env` and `http` starred out, and messages are made without
//! values that were filled in.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use super::source_map::{SourceFile, SourceMap};
use super::sources::Sources;

/// How many problems of a table are shown: one slip can be in thousands of generated jobs.
const SHOWN_LIMIT: usize = 100;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The table can't be used.
    Error,
    /// The table can be used, and may not do what was meant.
    Warning,
}

/// One problem of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, without a full stop.
    pub message: String,
    /// The text at fault, as bytes of all files one behind the other, which
    /// [`Report::position`] makes file and line of; none when it is the table as a whole.
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

    /// An error of the table as a whole.
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

    /// Says the same of a text that begins so much later.
    pub(super) fn shifted(mut self, by: usize) -> Self {
        let later = |span: Range<usize>| span.start + by..span.end + by;
        self.span = self.span.map(later);
        self.related = self.related.map(|(span, label)| (later(span), label));
        self
    }

    /// Points at another place too.
    pub(super) fn related(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.related = Some((span, label.into()));
        self
    }
}

/// Collects the problems of one table.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Diagnostic>,
    /// Where lines begin that the TOML parser could not make sense of: what else is said about
    /// them is noise.
    broken_lines: BTreeSet<usize>,
    /// The files that they are in, or that could not be read at all: these may hold anything.
    broken_files: Vec<Range<usize>>,
    /// Texts that nobody is to see.
    hidden: Vec<Range<usize>>,
}

impl Problems {
    /// Adds one; a problem that is there already (a default that several jobs take) is told once.
    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        if !self.found.contains(&diagnostic) {
            self.found.push(diagnostic);
        }
    }

    /// Keeps a text out of what is shown.
    pub(super) fn hide(&mut self, span: Range<usize>) {
        self.hidden.push(span);
    }

    /// Whether there is one that keeps the table from being used.
    pub(super) fn has_errors(&self) -> bool {
        let mut found = self.found.iter();
        found.any(|one| one.severity == Severity::Error)
    }

    /// What is to be kept out of what is shown.
    pub(super) fn hidden(&self) -> &[Range<usize>] {
        &self.hidden
    }

    /// Adds a complaint that a table lacks something. It is dropped when part of its file could
    /// not be read, as that part may have held it.
    pub(super) fn push_missing(&mut self, diagnostic: Diagnostic) {
        let at = diagnostic.span.as_ref().map(|span| span.start);
        let mut broken = self.broken_files.iter();
        if !broken.any(|file| at.is_none_or(|at| file.contains(&at))) {
            self.push(diagnostic);
        }
    }

    /// Adds a complaint that a name is nowhere in the table. It is dropped when part of any file
    /// could not be read.
    pub(super) fn push_unknown(&mut self, diagnostic: Diagnostic) {
        if self.broken_files.is_empty() {
            self.push(diagnostic);
        }
    }

    /// Adds an error of the TOML parser, in a line that begins there, of a file that spans those.
    pub(super) fn push_syntax(&mut self, line: usize, file: Range<usize>, diagnostic: Diagnostic) {
        if self.broken_lines.insert(line) {
            self.push(diagnostic);
            self.broken_files.push(file);
        }
    }

    /// Adds an error that keeps a whole file from being read.
    pub(super) fn push_unread(&mut self, diagnostic: Diagnostic) {
        self.push(diagnostic);
        self.expect_gaps();
    }

    /// Says that there may be more files to the table than were read.
    pub(super) fn expect_gaps(&mut self) {
        self.broken_files.push(0..0);
    }

    /// All of them in the order of the files, those of the table as a whole last.
    pub(super) fn into_sorted(self, map: &SourceMap) -> Vec<Diagnostic> {
        let Self {
            mut found,
            broken_lines,
            ..
        } = self;
        if broken_lines.is_empty() {
            found.sort_by_key(place);
            return found;
        }
        let mut syntax_told = BTreeSet::new();
        found.retain(|diagnostic| match &diagnostic.span {
            Some(span) => {
                let line = map.line_start(span.start);
                // The parser's own complaint about a line was pushed before any other.
                !broken_lines.contains(&line) || syntax_told.insert(line)
            }
            None => true,
        });
        found.sort_by_key(place);
        found
    }
}

/// What problems are sorted by; those of the table as a whole come last.
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

/// The problems of a table, with the texts of its files to show them in.
#[derive(Clone)]
pub struct Report {
    /// With secrets starred out; byte for byte as long as the files.
    map: SourceMap,
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    pub(super) fn new(
        map: &SourceMap,
        secrets: &[Range<usize>],
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        Self {
            map: map.starred(secrets),
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

    /// The problems, in the order of the files.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Of where a problem begins: the file, as it was named, line and column (in characters),
    /// both from 1.
    pub fn position(&self, diagnostic: &Diagnostic) -> Option<(&str, usize, usize)> {
        self.map.position(diagnostic.span.as_ref()?.start)
    }

    /// The first problem in a line, and how many there are beside it.
    pub fn summary(&self) -> String {
        let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
        let first = self.diagnostics.iter().find(is_error);
        let Some(first) = first.or(self.diagnostics.first()) else {
            return format!("{}: no problems", self.name());
        };
        match self.diagnostics.len() - 1 {
            0 => self.line(first),
            others => format!("{} (and {others} more)", self.line(first)),
        }
    }

    /// Each problem in a line of its own, for a log.
    pub fn lines(&self) -> impl Iterator<Item = (Severity, String)> + '_ {
        let shown = self.diagnostics.iter().take(SHOWN_LIMIT);
        shown.map(|one| (one.severity, self.line(one)))
    }

    /// A problem with its place, and what to do about it.
    fn line(&self, diagnostic: &Diagnostic) -> String {
        let place = match self.position(diagnostic) {
            Some((file, line, column)) => format!("{file}:{line}:{column}"),
            None => self.name().to_owned(),
        };
        let hint = diagnostic.hint.as_ref();
        let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
        format!("{place}: {}{hint}", diagnostic.message)
    }

    /// The table, as its main file was named.
    fn name(&self) -> &str {
        self.map.file(0).map_or("", |main| &main.name)
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
        for snippet in self.snippets(diagnostic) {
            group = group.element(snippet);
        }
        if let Some(hint) = &diagnostic.hint {
            group = group.element(Level::HELP.message(hint));
        }
        group
    }

    /// The places of a problem: one piece of text, or two where they are in two files.
    fn snippets<'a>(&'a self, diagnostic: &'a Diagnostic) -> Vec<Snippet<'a, Annotation<'a>>> {
        let Some(span) = &diagnostic.span else {
            return Vec::new();
        };
        let Some(file) = self.map.file(span.start) else {
            return Vec::new();
        };
        let kind = match diagnostic.excerpt {
            Some(_) => AnnotationKind::Context,
            None => AnnotationKind::Primary,
        };
        let of_file = |file: &'a SourceFile| Snippet::source(&*file.text).path(&file.name);
        let snippet = of_file(file).annotation(kind.span(file.within(span)));
        let Some((related, label)) = &diagnostic.related else {
            return vec![snippet];
        };
        let Some(other) = self.map.file(related.start) else {
            return vec![snippet];
        };
        let kind = AnnotationKind::Context;
        let annotation = kind.span(other.within(related)).label(label);
        if other.start == file.start {
            return vec![snippet.annotation(annotation)];
        }
        vec![snippet, of_file(other).annotation(annotation)]
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
            .field("diagnostics", &self.diagnostics)
            .finish_non_exhaustive()
    }
}

/// Why a table can't be used: all its errors, and its warnings among them; and what it was read
/// from, as far as that was found out.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub Report, pub Box<Sources>);
