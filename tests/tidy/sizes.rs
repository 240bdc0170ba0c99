//! Limits on what a reader has to hold in mind at once.

use crate::finding::Finding;
#[cfg(test)]
use crate::finding::lines;
use crate::lexer::is_word;
use crate::source::{Source, item_end, line_of};

const FILE_LINES_LIMIT: usize = 500;
const FUNCTION_LINES_LIMIT: usize = 60;

pub(crate) fn files(source: &Source) -> Vec<Finding> {
    let count = source.text.lines().count();
    if count <= FILE_LINES_LIMIT {
        return Vec::new();
    }
    let what = format!("{count} lines; a file has at most {FILE_LINES_LIMIT}");
    let cure = "split it by what its parts are for";
    vec![Finding::new(&source.path, count, what, cure)]
}

/// From the line with `fn` to the one with its closing brace, both counted.
pub(crate) fn functions(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let begins = code.match_indices("fn ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(is_word)
    });
    let findings = begins.filter_map(|(at, keyword)| {
        let rest = &code[at + keyword.len()..];
        let name = &rest[..rest.find(|c| !is_word(c))?];
        let end = item_end(code, at);
        let count = code[at..end].matches('\n').count() + 1;
        if count <= FUNCTION_LINES_LIMIT || name.is_empty() {
            return None;
        }
        let what =
            format!("`{name}` has {count} lines; a function has at most {FUNCTION_LINES_LIMIT}");
        let cure = "split it by its steps; a test, by its laws";
        Some(Finding::new(&source.path, line_of(code, at), what, cure))
    });
    findings.collect()
}

#[test]
fn a_file_over_the_limit_is_found() {
    let found = |lines| files(&Source::new("src/a.rs", &"\n".repeat(lines))).len();
    assert_eq!(found(FILE_LINES_LIMIT), 0);
    assert_eq!(found(FILE_LINES_LIMIT + 1), 1);
}

#[test]
fn a_function_over_the_limit_is_found() {
    let found = |body: usize| {
        let body = "        g();\n".repeat(body);
        let text =
            format!("impl A {{\n    fn f(\n        a: [u8; 2],\n    ) {{\n{body}    }}\n}}\n");
        lines(&functions(&Source::new("tests/a.rs", &text)))
    };
    assert_eq!(found(FUNCTION_LINES_LIMIT - 4), [0; 0]);
    assert_eq!(found(FUNCTION_LINES_LIMIT - 3), [2]);
}

#[test]
fn a_function_without_a_body_ends_where_it_ends() {
    let rest = "\n".repeat(FUNCTION_LINES_LIMIT);
    let text = format!("trait A {{\n    fn f();\n{rest}}}\ntype F = fn (u8);\n{rest}");
    assert_eq!(functions(&Source::new("src/a.rs", &text)), []);
}
