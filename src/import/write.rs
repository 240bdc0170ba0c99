//! Drafts as TOML.
//!
//! Strings and keys are spelled by `toml_writer`, the writing half of the crate that reads the
//! table. Must never: put a text between quotes by itself, or let one out of its comment.

use toml_writer::{ToTomlKey as _, ToTomlValue as _, TomlKeyBuilder, TomlStringBuilder};

use super::draft::{Draft, Refused, Value};

/// An inline table beyond this many bytes gets lines of its own.
const INLINE_LIMIT: usize = 80;

/// `[defaults]`, or nothing where there are none.
pub(super) fn defaults(timezone: Option<&str>, env: &[(String, String)]) -> String {
    if timezone.is_none() && env.is_empty() {
        return String::new();
    }
    let mut text = "\n[defaults]\n".to_owned();
    if let Some(timezone) = timezone {
        text.push_str(&line("timezone", &spell_text(timezone)));
    }
    text.push_str(&variables("defaults.env", env));
    text
}

/// `[jobs.NAME]` and its keys.
pub(super) fn job(draft: &Draft, env: &[(String, String)]) -> String {
    let path = format!("jobs.{}", spell_key(&draft.name));
    let mut text = format!("[{path}]\n");
    for (key, value) in &draft.keys {
        text.push_str(&line(key, &spell(value)));
    }
    text.push_str(&variables(&format!("{path}.env"), env));
    text
}

/// What was not carried over, as a comment.
pub(super) fn refused(refused: &Refused) -> String {
    let mut text = comment(&format!(
        "Not carried over, {}: {}",
        refused.place, refused.reason
    ));
    for line in &refused.source {
        text.push_str(&comment(&format!("  {line}")));
    }
    text
}

/// A line of a comment, whatever is in it.
pub(super) fn comment(text: &str) -> String {
    let mut line = "# ".to_owned();
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
    }
    line.truncate(line.trim_end().len());
    line + "\n"
}

fn line(key: &str, value: &str) -> String {
    format!("{key} = {value}\n")
}

/// `env`: a table in a line where it is short, and else one of its own.
fn variables(path: &str, env: &[(String, String)]) -> String {
    if env.is_empty() {
        return String::new();
    }
    let pair =
        |(name, value): &(String, String)| format!("{} = {}", spell_key(name), spell_text(value));
    let pairs: Vec<String> = env.iter().map(pair).collect();
    let inline = format!("env = {{ {} }}\n", pairs.join(", "));
    if inline.len() <= INLINE_LIMIT && !inline.trim_end().contains('\n') {
        return inline;
    }
    format!("\n[{path}]\n{}\n", pairs.join("\n"))
}

fn spell(value: &Value) -> String {
    match value {
        Value::Text(text) => spell_text(text),
        Value::Texts(texts) => {
            let texts: Vec<_> = texts.iter().map(|text| spell_text(text)).collect();
            format!("[{}]", texts.join(", "))
        }
        Value::Integer(number) => number.to_string(),
        Value::Boolean(value) => value.to_string(),
        Value::Table(entries) => {
            let pairs: Vec<_> = entries
                .iter()
                .map(|(key, value)| format!("{key} = {}", spell(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
    }
}

fn spell_text(text: &str) -> String {
    TomlStringBuilder::new(text).as_default().to_toml_value()
}

fn spell_key(key: &str) -> String {
    TomlKeyBuilder::new(key).as_default().to_toml_key()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_a_comment() {
        assert_eq!(comment("a\nb\r\0c\td "), "# a\\u{a}b\\u{d}\\u{0}c\td\n");
        assert_eq!(comment(""), "#\n");
    }

    #[test]
    fn a_short_env_stands_in_a_line() {
        let short = [("A.B".to_owned(), "\"x\"".to_owned())];
        assert_eq!(
            variables("jobs.x.env", &short),
            "env = { \"A.B\" = '\"x\"' }\n"
        );
        let long = [("A".to_owned(), "x".repeat(90))];
        let text = variables("jobs.x.env", &long);
        assert!(text.starts_with("\n[jobs.x.env]\nA = \"xxx"), "{text}");
        let lines = [("A".to_owned(), "x\ny".to_owned())];
        assert_eq!(
            variables("jobs.x.env", &lines),
            "\n[jobs.x.env]\nA = \"\"\"\nx\ny\"\"\"\n"
        );
    }
}
