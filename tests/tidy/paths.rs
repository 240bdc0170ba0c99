//! The paths that a file's code names, with groups written out and `super` followed.

use crate::lexer::is_word;
use crate::source::{Source, item_end};

/// A path in the code: `["crate", "store", "Store"]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) line: usize,
    pub(crate) path: Vec<String>,
}

/// Every path of two parts or more, and every `use`. Those that begin with `super` and lead to
/// the root of the crate begin with `crate`.
pub(crate) fn named(source: &Source) -> Vec<Named> {
    let code = &source.code;
    let module = source.module();
    let inner = inner_modules(code);
    let mut all = Vec::new();
    let (mut line, mut counted, mut read) = (1, 0, 0);
    for at in starts(code) {
        if at < read {
            continue;
        }
        line += code[counted..at].matches('\n').count();
        counted = at;
        let mut paths = Vec::new();
        let rest = tree(&code[at..], &mut Vec::new(), &mut paths);
        read = code.len() - rest.len();
        let depth = module.len()
            + inner
                .iter()
                .filter(|(from, to)| (*from..*to).contains(&at))
                .count();
        let whole = paths.into_iter().map(|path| resolve(path, depth));
        let whole = whole.filter(|path| path.len() > 1 || is_used(code, at));
        all.extend(whole.map(|path| Named { line, path }));
    }
    all
}

/// Where paths begin: names that follow no `::`, no dot and no other name.
fn starts(code: &str) -> impl Iterator<Item = usize> {
    let mut before = [' '; 3];
    code.char_indices().filter_map(move |(at, c)| {
        let [older, old, last] = before;
        before = [old, last, c];
        let goes_on = is_word(last)
            || last == '.'
            || (last == ':' && old == ':' && (is_word(older) || older == '>'));
        (is_word(c) && !c.is_numeric() && !goes_on).then_some(at)
    })
}

fn is_used(code: &str, at: usize) -> bool {
    code[..at]
        .trim_end_matches("::")
        .trim_end()
        .ends_with("use")
}

/// Reads a path with its groups; answers what is left behind it.
fn tree<'a>(code: &'a str, above: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    let length = code.find(|c| !is_word(c)).unwrap_or(code.len());
    let (name, rest) = match code.strip_prefix('*') {
        Some(rest) => ("*", rest),
        None => code.split_at(length),
    };
    above.push(name.to_owned());
    let rest = match rest.strip_prefix("::") {
        Some(group) if group.starts_with('{') => self::group(&group[1..], above, paths),
        Some(next) if next.starts_with(|c| is_word(c) || c == '*') => tree(next, above, paths),
        _ => {
            paths.push(above.clone());
            rest
        }
    };
    above.pop();
    rest
}

fn group<'a>(mut rest: &'a str, above: &mut Vec<String>, paths: &mut Vec<Vec<String>>) -> &'a str {
    loop {
        rest = rest.trim_start();
        if rest.is_empty() || rest.starts_with('}') {
            return rest.get(1..).unwrap_or_default();
        }
        if rest.starts_with(|c| is_word(c) || c == '*') {
            rest = tree(rest, above, paths);
        }
        // Up to the next entry, over `as name` too.
        let next = rest.find([',', '}']).unwrap_or(rest.len());
        rest = rest[next..].strip_prefix(',').unwrap_or(&rest[next..]);
    }
}

/// The spans of modules written within the file.
fn inner_modules(code: &str) -> Vec<(usize, usize)> {
    let begins = code.match_indices("mod ").filter(|(at, _)| {
        let before = code[..*at].chars().next_back();
        !before.is_some_and(is_word)
    });
    begins.map(|(at, _)| (at, item_end(code, at))).collect()
}

/// As many `super` as the module is deep lead to the root.
fn resolve(path: Vec<String>, depth: usize) -> Vec<String> {
    let plain = path.iter().skip_while(|part| *part == "self");
    let ups = plain.clone().take_while(|part| *part == "super").count();
    if ups == 0 || ups != depth {
        return path;
    }
    let from_root = plain.skip(ups).cloned();
    std::iter::once("crate".to_owned())
        .chain(from_root)
        .collect()
}

#[cfg(test)]
fn texts(path: &str, text: &str) -> Vec<String> {
    let named = named(&Source::new(path, text));
    named.iter().map(|named| named.path.join("::")).collect()
}

#[test]
fn groups_are_written_out() {
    let text = "use crate::{a::{b, c as d, self}, e::*};\nuse std::fs;";
    let expected = [
        "crate::a::b",
        "crate::a::c",
        "crate::a::self",
        "crate::e::*",
        "std::fs",
    ];
    assert_eq!(texts("src/x.rs", text), expected);
}

#[test]
fn paths_are_found_wherever_they_stand() {
    let text = "fn f(a: &crate::a::B) -> ::std::io::Result<()> { x.y(tokio::spawn(g)) }";
    let expected = ["crate::a::B", "std::io::Result", "tokio::spawn"];
    assert_eq!(texts("src/x.rs", text), expected);
    assert_eq!(texts("src/x.rs", "use tokio;"), ["tokio"]);
    assert_eq!(
        texts("src/x.rs", "// crate::a::b\nlet x = \"crate::c::d\";"),
        [""; 0]
    );
}

#[test]
fn super_is_followed_to_the_root() {
    assert_eq!(
        texts("src/a/b.rs", "use super::super::c::D;"),
        ["crate::c::D"]
    );
    assert_eq!(texts("src/a/mod.rs", "use super::c::D;"), ["crate::c::D"]);
    assert_eq!(texts("src/a/b.rs", "use super::c::D;"), ["super::c::D"]);
    let inner = "mod tests {\n    use super::*;\n    use super::super::c;\n}";
    assert_eq!(texts("src/a.rs", inner), ["super::*", "crate::c"]);
}
