//! One line of a crontab: what kind it is, by cron's own rules.
//!
//! Must never: look at another line.

/// What a line is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'t> {
    Blank,
    /// Without the `#`.
    Comment(&'t str),
    Variable {
        name: String,
        value: String,
    },
    /// Without blanks before it.
    Entry(&'t str),
}

/// Reads a line. As in cron, it is a variable if it can be one.
pub(super) fn read(line: &str) -> Line<'_> {
    let text = line.trim_start_matches(is_blank);
    if text.trim_end_matches(is_blank).is_empty() {
        return Line::Blank;
    }
    if let Some(comment) = text.strip_prefix('#') {
        return Line::Comment(comment);
    }
    match variable(text) {
        Some((name, value)) => Line::Variable { name, value },
        None => Line::Entry(text),
    }
}

/// What isspace(3) takes for a blank within a line.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\x0b' | '\x0c')
}

/// `NAME = value`; quotes around either keep the blanks within. Nothing is filled in, and what
/// looks like a comment behind a value is a part of it. An empty value needs no quotes, as in
/// Debian's cron; Vixie's own refuses it.
fn variable(text: &str) -> Option<(String, String)> {
    let (name, rest) = match quoted(text) {
        Some((name, rest)) => (name, rest),
        None => {
            let end = text.find(|c| is_blank(c) || c == '=')?;
            text.split_at(end)
        }
    };
    if name.contains('=') {
        return None;
    }
    let value = rest.trim_start_matches(is_blank).strip_prefix('=')?;
    let value = value.trim_start_matches(is_blank);
    if value.starts_with(['"', '\'']) {
        let (value, rest) = quoted(value)?;
        let is_all = rest.trim_end_matches(is_blank).is_empty();
        return is_all.then(|| (name.into(), value.into()));
    }
    Some((name.into(), value.trim_end_matches(is_blank).into()))
}

/// What stands between quotes at the start of a text, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| "'\"".contains(*c))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_cron_reads_them() {
        for (line, name, value) in [
            ("A=b", "A", "b"),
            ("  A = b c  ", "A", "b c"),
            ("A=\" b \"", "A", " b "),
            ("'A B'='c\"d' ", "A B", "c\"d"),
            ("PATH=$HOME/bin:$PATH", "PATH", "$HOME/bin:$PATH"),
            (
                "MAILTO=ops # not a comment",
                "MAILTO",
                "ops # not a comment",
            ),
            ("MAILTO=\"\"", "MAILTO", ""),
            ("MAILTO=", "MAILTO", ""),
            ("A=b'c'", "A", "b'c'"),
            ("A==b", "A", "=b"),
        ] {
            let (name, value) = (name.into(), value.into());
            assert_eq!(read(line), Line::Variable { name, value }, "{line}");
        }
    }

    #[test]
    fn what_cannot_be_a_variable_is_an_entry() {
        for line in [
            "0 5 * * * A=b x",
            "A=\"b\" c",
            "A=\"b",
            "'A'",
            "\"A=b\"",
            "A b=c",
        ] {
            assert_eq!(read(line), Line::Entry(line), "{line}");
        }
        assert_eq!(read(" \t"), Line::Blank);
        assert_eq!(read("\t# x"), Line::Comment(" x"));
    }
}
