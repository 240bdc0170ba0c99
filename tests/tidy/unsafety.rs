//! Unsafe code only where somebody wrote down why it has to be. (Why it is sound stands in its
//! `SAFETY` comment.)

use std::ops::Range;

use crate::finding::Finding;
#[cfg(test)]
use crate::finding::lines;
use crate::source::{Source, holds, item_end, line_of};

const LINT: &str = "unsafe_code";

pub(crate) fn unexpected(source: &Source) -> Vec<Finding> {
    let code = &source.code;
    let (expected, mut findings) = attributes(source);
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        let place = at + line.find("unsafe").unwrap_or_default();
        at += line.len();
        if !holds(line, "unsafe") || expected.iter().any(|span| span.contains(&place)) {
            continue;
        }
        let cure = "do without, or put `#[expect(unsafe_code, reason = \"…\")]` on the function";
        let what = "unsafe code that nothing expects";
        findings.push(Finding::new(&source.path, line_of(code, place), what, cure));
    }
    findings
}

/// The spans of items that expect unsafe code, and what is wrong with attributes that allow it.
fn attributes(source: &Source) -> (Vec<Range<usize>>, Vec<Finding>) {
    let code = &source.code;
    let (mut expected, mut findings) = (Vec::new(), Vec::new());
    for (start, _) in code.match_indices("#[").chain(code.match_indices("#![")) {
        let Some(length) = closing_bracket(&code[start..]) else {
            continue;
        };
        let attribute = &code[start..start + length];
        if !holds(attribute, LINT) {
            continue;
        }
        if attribute.starts_with("#[expect(") && holds(attribute, "reason") {
            expected.push(start..item_end(code, start + length));
            continue;
        }
        let what = "unsafe code is let in without a reason, or for good";
        let cure = "write `#[expect(unsafe_code, reason = \"…\")]` on the one function";
        findings.push(Finding::new(&source.path, line_of(code, start), what, cure));
    }
    (expected, findings)
}

/// How long an attribute is.
fn closing_bracket(code: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '[' => depth += 1,
            ']' if depth == 1 => return Some(at + 1),
            ']' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
fn found(text: &str) -> Vec<usize> {
    lines(&unexpected(&Source::new("src/a.rs", text)))
}

#[test]
fn unsafe_code_that_nothing_expects_is_found() {
    assert_eq!(found("fn f() {\n    unsafe { g() }\n}"), [2]);
    let one = "#[expect(unsafe_code, reason = \"a\")]\nfn f() {\n    unsafe { g() }\n}\n";
    assert_eq!(found(one), [0; 0]);
    assert_eq!(found(&format!("{one}unsafe fn h() {{}}")), [5]);
    assert_eq!(
        found("// unsafe\nfn f(unsafe_count: u8) { g(\"unsafe\") }"),
        [0; 0]
    );
}

#[test]
fn an_attribute_that_gives_no_reason_is_found() {
    assert_eq!(found("#[expect(unsafe_code)]\nfn f() {}"), [1]);
    assert_eq!(found("#![allow(unsafe_code)]\n"), [1]);
    assert_eq!(
        found("#[allow(unsafe_code, reason = \"a\")]\nfn f() {}"),
        [1]
    );
}
