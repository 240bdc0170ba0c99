//! Documents that link to each other go on doing so when files move.

use crate::finding::Finding;
#[cfg(test)]
use crate::finding::lines;
use crate::tree::File;

/// Links of a Markdown file that lead to a file which isn't there.
pub(crate) fn broken(file: &File, exists: &impl Fn(&str) -> bool) -> Vec<Finding> {
    if file.extension() != "md" {
        return Vec::new();
    }
    let mut fenced = false;
    let mut findings = Vec::new();
    for (line, number) in file.text.lines().zip(1..) {
        let mark = line.trim_start();
        if mark.starts_with("```") || mark.starts_with("~~~") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        for target in targets(&without_code(line)) {
            let leads = resolve(&file.path, &target).is_none_or(|path| exists(&path));
            if !leads {
                let what = format!("the link to `{target}` leads nowhere");
                let cure = "write the path from this file's folder, or take the link out";
                findings.push(Finding::new(&file.path, number, what, cure));
            }
        }
    }
    findings
}

/// Blanks what stands between backticks.
fn without_code(line: &str) -> String {
    let pieces = line.split('`').enumerate();
    let prose = pieces.map(|(index, piece)| if index % 2 == 0 { piece } else { "code" });
    prose.collect()
}

/// `](target)`, `](target "title")`, `](<target>)` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let inline = line.match_indices("](").filter_map(|(at, sign)| {
        let rest = &line[at + sign.len()..];
        rest.split_once(')').map(|(target, _)| target)
    });
    let definition = line
        .trim_start()
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]:"))
        .map(|(_, target)| target);
    let targets = inline.chain(definition);
    let targets = targets.filter_map(|target| target.split_whitespace().next());
    targets
        .map(|target| target.trim_matches(['<', '>']).to_owned())
        .collect()
}

/// The path in the repository; none for what leads out of it or stays in the file. A path that
/// climbs out of the repository stays as it is, and so doesn't exist.
fn resolve(from: &str, target: &str) -> Option<String> {
    let path = target.split(['#', '?']).next().unwrap_or_default();
    let has_scheme = target.contains("://") || target.starts_with("mailto:");
    if has_scheme || path.is_empty() {
        return None;
    }
    let mut parts: Vec<&str> = match path.starts_with('/') {
        true => Vec::new(),
        false => from.split('/').collect(),
    };
    parts.pop();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." if parts.pop().is_none() => return Some(target.to_owned()),
            ".." => {}
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
fn found(text: &str) -> Vec<usize> {
    let there = ["docs/a.md", "docs", "README.md", ""];
    let exists = |path: &str| there.contains(&path);
    lines(&broken(&File::new("docs/b.md", text), &exists))
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    assert_eq!(
        found("[a](a.md), [r](../README.md#top), [d](/docs/)"),
        [0; 0]
    );
    assert_eq!(found("\n[a](README.md)"), [2]);
    assert_eq!(found("[a](a.md) and ![c](c.png \"title\")"), [1]);
    assert_eq!(found("[a]: c.md"), [1]);
    assert_eq!(found("[out](../../README.md)"), [1]);
}

#[test]
fn what_is_no_link_to_a_file_is_left_alone() {
    assert_eq!(
        found("[a](https://example.org/x), [b](#b), [c](mailto:a@b)"),
        [0; 0]
    );
    assert_eq!(found("`[a](c.md)`\n```\n[a](c.md)\n```\n"), [0; 0]);
    assert_eq!(found("```\n```\n[a](c.md)"), [3]);
}
