//! Tells Rust's code from its comments and literals. Lines and columns (in characters) stay
//! where they are: what is taken away leaves blanks.

/// A text, once without comments, and once more without what is in quotes.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) code: String,
    pub(crate) code_and_literals: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

pub(crate) fn split(text: &str) -> Parts {
    let chars: Vec<char> = text.chars().collect();
    let mut kinds = Vec::with_capacity(chars.len());
    while kinds.len() < chars.len() {
        let at = kinds.len();
        let (kind, length) = token(&chars, at);
        let end = (at + length.max(1)).min(chars.len());
        kinds.resize(end, kind);
    }
    let only = |wanted: &[Kind]| -> String {
        let kept = |(c, kind): (&char, &Kind)| match wanted.contains(kind) || *c == '\n' {
            true => *c,
            false => ' ',
        };
        chars.iter().zip(&kinds).map(kept).collect()
    };
    Parts {
        code: only(&[Kind::Code]),
        code_and_literals: only(&[Kind::Code, Kind::Literal]),
    }
}

/// What begins at `at`, and how long it is.
fn token(chars: &[char], at: usize) -> (Kind, usize) {
    let rest = &chars[at..];
    let starts = |text: &str| {
        text.chars()
            .enumerate()
            .all(|(i, c)| rest.get(i) == Some(&c))
    };
    if starts("//") {
        let end = rest.iter().position(|c| *c == '\n');
        return (Kind::Comment, end.unwrap_or(rest.len()));
    }
    if starts("/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if starts("\"") {
        return (Kind::Literal, quoted(rest, '"'));
    }
    if starts("'") && (rest.get(1) == Some(&'\\') || rest.get(2) == Some(&'\'')) {
        return (Kind::Literal, quoted(rest, '\''));
    }
    let in_a_word =
        at > 0 && is_word(chars[at - 1]) && !(chars[at - 1] == 'b' || chars[at - 1] == 'c');
    if starts("r") && !in_a_word {
        let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
        if rest.get(1 + hashes) == Some(&'"') {
            return (Kind::Literal, raw(rest, hashes));
        }
    }
    (Kind::Code, 1)
}

/// Block comments nest.
fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at + 1 < rest.len() {
        match (rest[at], rest[at + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw(rest: &[char], hashes: usize) -> usize {
    let end: Vec<char> = std::iter::once('"')
        .chain(std::iter::repeat_n('#', hashes))
        .collect();
    let body = 2 + hashes;
    let found = rest[body..].windows(end.len()).position(|at| at == end);
    found.map_or(rest.len(), |found| body + found + end.len())
}

/// Whether a character can be part of a name.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn comments_and_literals_are_told_from_code() {
    for (text, code) in [
        ("a // b\nc", "a c"),
        ("a /* b /* c */ d */ e", "a e"),
        (r#"f("a \" // b") g"#, "f( ) g"),
        ("f(r#\"a \" b\"#) g", "f( ) g"),
        ("f(br\"a\\\") g", "f(b ) g"),
        ("['\"', '\\'', '{'] x", "[ , , ] x"),
        ("fn f<'a>(x: &'a str) {}", "fn f<'a>(x: &'a str) {}"),
        ("r#type + bar\"x\"", "r#type + bar"),
    ] {
        let parts = split(text);
        let words: Vec<&str> = parts.code.split_whitespace().collect();
        assert_eq!(words.join(" "), code, "{text}");
        assert_eq!(parts.code.chars().count(), text.chars().count(), "{text}");
    }
}

#[test]
fn literals_can_be_looked_at_without_comments() {
    let parts = split("f(\"a\"); // \"b\"");
    assert_eq!(parts.code_and_literals.trim_end(), "f(\"a\");");
}
