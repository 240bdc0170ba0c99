//! A Rust file: its code, and which of its lines are tests.

use crate::lexer::{self, is_word};

pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    /// Without comments and without what is in quotes.
    pub(crate) code: String,
    /// Without comments.
    pub(crate) code_and_literals: String,
    test_lines: Vec<bool>,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let parts = lexer::split(text);
        let test_lines = test_lines(path, &parts.code);
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
            code: parts.code,
            code_and_literals: parts.code_and_literals,
            test_lines,
        }
    }

    /// Whether it is part of the crate itself.
    pub(crate) fn is_in_src(&self) -> bool {
        self.path.starts_with("src/")
    }

    /// Its place among the crate's modules: `src/store/url.rs` is `store`, `url`. Empty for the
    /// roots, and outside of `src`.
    pub(crate) fn module(&self) -> Vec<&str> {
        let inner = self.path.strip_prefix("src/").unwrap_or_default();
        let inner = inner.strip_suffix(".rs").unwrap_or_default();
        let inner = inner.strip_suffix("/mod").unwrap_or(inner);
        let parts = inner.split('/').filter(|part| !part.is_empty());
        parts
            .filter(|part| *part != "lib" && *part != "main")
            .collect()
    }

    /// Whether a line (counted from 1) is compiled for tests alone.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.test_lines.get(line - 1).copied().unwrap_or_default()
    }

    /// Lines, counted from 1, in which code outside of tests holds a word (or words joined by
    /// `::`).
    pub(crate) fn lines_with(&self, words: &str) -> Vec<usize> {
        let lines = self.code.lines().zip(1..);
        let found = lines.filter(|(line, number)| holds(line, words) && !self.is_test(*number));
        found.map(|(_, number)| number).collect()
    }
}

/// Whether a text holds words that are no part of longer ones.
pub(crate) fn holds(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + words.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The line (counted from 1) of a byte of a text.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// The byte that ends the item which begins at `start`: its closing brace, or its semicolon.
pub(crate) fn item_end(code: &str, start: usize) -> usize {
    let mut braces = 0_usize;
    let mut others = 0_usize;
    for (at, c) in code[start..].char_indices() {
        match c {
            '{' => braces += 1,
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            '}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 && others == 0 {
                    return start + at;
                }
            }
            ';' if braces == 0 && others == 0 => return start + at,
            _ => {}
        }
    }
    code.len()
}

fn test_lines(path: &str, code: &str) -> Vec<bool> {
    let mut lines = vec![is_test_file(path); code.lines().count()];
    const GATE: &str = "#[cfg(test)]";
    for (at, _) in code.match_indices(GATE) {
        let end = item_end(code, at + GATE.len());
        lines[line_of(code, at) - 1..line_of(code, end)].fill(true);
    }
    lines
}

fn is_test_file(path: &str) -> bool {
    let name = path.split('/').next_back();
    path.split('/').any(|part| part == "tests") || name == Some("tests.rs")
}

#[test]
fn a_file_has_its_place_among_modules() {
    let module = |path| Source::new(path, "").module().join("::");
    assert_eq!(module("src/store/redis/mod.rs"), "store::redis");
    assert_eq!(module("src/store/url.rs"), "store::url");
    assert_eq!(module("src/lib.rs"), "");
    assert_eq!(module("tests/cli/main.rs"), "");
}

#[test]
fn tests_are_told_from_what_they_test() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    let source = Source::new("src/a.rs", text);
    let tests: Vec<usize> = (1..=6).filter(|line| source.is_test(*line)).collect();
    assert_eq!(tests, [2, 3, 4, 5]);
    assert!(Source::new("src/a/tests/b.rs", text).is_test(1));
    assert!(Source::new("src/a/tests.rs", text).is_test(1));

    let declared = Source::new("src/a.rs", "#[cfg(test)]\nmod tests;\nfn a() {}\n");
    assert!(declared.is_test(2) && !declared.is_test(3));
}

#[test]
fn words_are_whole() {
    assert!(holds("Instant::now()", "Instant::now"));
    assert!(!holds("MyInstant::nowhere()", "Instant::now"));
}

#[test]
fn an_item_ends_at_its_brace_or_semicolon() {
    let end = |code: &str| item_end(code, 0);
    assert_eq!(end("fn f(a: [u8; 2]) { if x { y } } z"), 30);
    assert_eq!(end("fn f(a: [u8; 2]); z"), 16);
}
