//! What every file has, and what none has.

use crate::finding::Finding;
#[cfg(test)]
use crate::finding::lines;
use crate::lexer::is_word;
use crate::source::Source;
use crate::tree::File;

/// Programs and tables, where each character counts; prose may be in any script.
const EXACT: [&str; 6] = ["rs", "lua", "toml", "sh", "sql", "c"];

pub(crate) fn opening(file: &File) -> Vec<Finding> {
    let (opens, what, cure) = match file.extension() {
        "rs" => (
            file.text.starts_with("//! "),
            "a Rust file opens with `//!`",
            "say what it is for, and what it must never do",
        ),
        "lua" => (
            has_lua_header(&file.text),
            "a Lua file opens with a comment that has KEYS and ARGV",
            "list KEYS, ARGV and replies, and say why it is atomic",
        ),
        _ => return Vec::new(),
    };
    if opens {
        return Vec::new();
    }
    vec![Finding::new(&file.path, 1, what, cure)]
}

/// The comment at the top, below the line that names the engine.
fn has_lua_header(text: &str) -> bool {
    let lines = text.lines().skip_while(|line| line.starts_with("#!"));
    let header: Vec<&str> = lines.take_while(|line| line.starts_with("--")).collect();
    let header = header.join("\n");
    ["KEYS", "ARGV"].iter().all(|word| header.contains(word))
}

pub(crate) fn leftovers(source: &Source) -> Vec<Finding> {
    const LEFT: [(&str, &str); 4] = [
        ("todo!", "write it, or take it out"),
        ("unimplemented!", "write it, or take it out"),
        ("dbg!", "take it out, or log it"),
        ("#[ignore]", "say why: `#[ignore = \"a measurement\"]`"),
    ];
    let lines = source.code.lines().zip(1..);
    let findings = lines.flat_map(|(line, number)| {
        let left = LEFT.iter().filter(move |(left, _)| begins_with(line, left));
        left.map(move |(left, cure)| {
            let what = format!("`{left}` was left behind");
            Finding::new(&source.path, number, what, cure)
        })
    });
    findings.collect()
}

fn begins_with(line: &str, word: &str) -> bool {
    let mut found = line.match_indices(word);
    found.any(|(at, _)| !line[..at].chars().next_back().is_some_and(is_word))
}

/// Characters that can't be seen, in any file; and in programs those that look like others.
pub(crate) fn characters(file: &File) -> Vec<Finding> {
    let exact = EXACT.contains(&file.extension());
    let lines = file.text.lines().zip(1..);
    let findings = lines.filter_map(|(line, number)| {
        let bad = line
            .chars()
            .find(|c| is_invisible(*c) || (exact && is_double(*c)))?;
        let what = format!(
            "U+{:04X} can't be told from another character, or from none",
            bad as u32
        );
        let cure = "write the ASCII character that is meant, or an escape";
        Some(Finding::new(&file.path, number, what, cure))
    });
    findings.collect()
}

/// Controls, foreign blanks, and marks that turn the direction of reading (CVE-2021-42574).
fn is_invisible(c: char) -> bool {
    let control = c.is_control() && c != '\t';
    let blank = c.is_whitespace() && !matches!(c, ' ' | '\t' | '\u{3000}');
    control
        || blank
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Curly quotes, the minus sign, and letters that have a Latin double: Greek, Cyrillic, full
/// width.
fn is_double(c: char) -> bool {
    matches!(c, '\u{2018}'..='\u{201f}' | '\u{2212}' | '\u{37e}')
        || matches!(c, '\u{370}'..='\u{52f}' | '\u{ff01}'..='\u{ff5e}')
}

/// Absolute paths of one machine; a container or a user's host has others.
pub(crate) fn machine_paths(file: &File) -> Vec<Finding> {
    let folders = ["work", "root"].map(|folder| format!("/{folder}/"));
    let lines = file.text.lines().zip(1..);
    let findings = lines.filter_map(|(line, number)| {
        let begins = |at: usize| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '-' | '}' | ')' | '~' | '*'))
        };
        let named = |folder: &&String| {
            line.match_indices(folder.as_str())
                .any(|(at, _)| begins(at))
        };
        let folder = folders.iter().find(named)?;
        let what = format!("`{folder}` is a path of one machine");
        let cure = "name it relative to the repository, or take it from the environment";
        Some(Finding::new(&file.path, number, what, cure))
    });
    findings.collect()
}

#[test]
fn a_file_that_says_nothing_of_itself_is_found() {
    let found = |path, text| opening(&File::new(path, text)).len();
    assert_eq!(found("a.rs", "//! What it is for.\n"), 0);
    assert_eq!(found("a.rs", "// What it is for.\n"), 1);
    assert_eq!(found("a.rs", ""), 1);
    assert_eq!(
        found("a.lua", "#!lua\n-- KEYS  1 jobs\n-- ARGV  none\nlocal a\n"),
        0
    );
    assert_eq!(
        found("a.lua", "#!lua\n-- KEYS  1 jobs\nlocal a = ARGV[1]\n"),
        1
    );
    assert_eq!(found("a.md", ""), 0);
}

#[test]
fn leftovers_are_found() {
    let found = |text| lines(&leftovers(&Source::new("src/a.rs", text)));
    assert_eq!(found("\nfn f() { todo!() }"), [2]);
    assert_eq!(found("unimplemented!()"), [1]);
    assert_eq!(found("std::dbg!(x)"), [1]);
    assert_eq!(found("#[ignore]\nfn f() {}"), [1]);
    assert_eq!(found("#[ignore = \"slow\"]\nfn f() {}"), [0; 0]);
    assert_eq!(found("// todo!\nmy_todo!()"), [0; 0]);
}

#[test]
fn characters_that_deceive_are_found() {
    let found = |path, text| lines(&characters(&File::new(path, text)));
    assert_eq!(found("a.rs", "let a = 1;\nlet \u{430} = 2;"), [2]);
    assert_eq!(found("a.toml", "a = \u{201c}b\u{201d}"), [1]);
    assert_eq!(found("a.md", "\u{201c}b\u{201d}"), [0; 0]);
    assert_eq!(found("a.md", "a\u{a0}b"), [1]);
    assert_eq!(found("a.rs", "/* \u{202e} */"), [1]);
    assert_eq!(
        found("a.rs", "// \u{b5}s \u{2026} \u{2500}\u{25b6} \u{e9}\n\tb"),
        [0; 0]
    );
}

#[test]
fn paths_of_a_machine_are_found() {
    let found = |text: String| lines(&machine_paths(&File::new("a.md", &text)));
    for folder in ["work", "root"] {
        assert_eq!(found(format!("\nsee `/{folder}/a`")), [2]);
        assert_eq!(found(format!("docs/{folder}/a, ./{folder}/a")), [0; 0]);
    }
}
