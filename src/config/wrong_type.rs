//! What to write in place of a value of the wrong type.

use toml::de::{DeInteger, DeValue};

use super::raw::Value;
use crate::store_url::star_passwords;

/// What to write in place of a value of the wrong type, where that can be told.
pub(super) fn type_hint(name: &str, takes: &str, value: &Value<'_>) -> Option<String> {
    let written = written(value);
    match (takes, value.get_ref()) {
        ("a duration", DeValue::Integer(number)) => {
            Some(format!("say the unit: `{name} = \"{}s\"`", number.as_str()))
        }
        ("an octal string", DeValue::Integer(number)) => Some(umask_hint(name, number)),
        ("a list of strings", DeValue::String(text)) if name == "command" => {
            let text = star_passwords(text);
            let words: Vec<_> = text
                .split_whitespace()
                .map(|word| format!("{word:?}"))
                .collect();
            Some(format!(
                "a command has no shell to split it: `command = [{}]`; with a shell: `shell = {text:?}`",
                words.join(", ")
            ))
        }
        ("a string", DeValue::Array(_)) if name == "shell" => {
            Some("a list of arguments is a `command`; a `shell` is one text".into())
        }
        ("a string", _) => written.map(|value| format!("put it in quotes: `{name} = \"{value}\"`")),
        ("an integer" | "true or false", DeValue::String(text))
            if text.parse::<i64>().is_ok() || text == "true" || text == "false" =>
        {
            Some(format!("leave out the quotes: `{name} = {text}`"))
        }
        ("a table", DeValue::Integer(number)) if name == "retry" => Some(format!(
            "say what the number is: `retry = {{ max = {} }}`",
            number.as_str()
        )),
        ("a table or a list of tags", DeValue::String(text)) => {
            let tag = if text.contains('=') {
                text.to_string()
            } else {
                format!("{text}=yes")
            };
            Some(format!("put it in brackets: `{name} = [{tag:?}]`"))
        }
        ("a list of patterns", DeValue::String(text)) => {
            Some(format!("put it in brackets: `{name} = [{text:?}]`"))
        }
        ("a list of integers", DeValue::Integer(number)) => Some(format!(
            "put it in brackets: `{name} = [{}]`",
            number.as_str()
        )),
        _ => None,
    }
}

/// What was meant by `27`, or by TOML's own `0o27`.
fn umask_hint(name: &str, number: &DeInteger<'_>) -> String {
    let digits = number.as_str();
    let is_octal = digits.len() <= 4 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    let digits = if is_octal { digits } else { "0027" };
    match number.radix() {
        10 => format!(
            "it is octal, and an integer is read as decimal: write `{name} = \"{digits:0>4}\"`"
        ),
        _ => format!("put it in quotes, without a prefix: `{name} = \"{digits:0>4}\"`"),
    }
}

/// A plain value as text.
pub(super) fn written(value: &Value<'_>) -> Option<String> {
    match value.get_ref() {
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        DeValue::Boolean(boolean) => Some(boolean.to_string()),
        DeValue::Datetime(date) => Some(date.to_string()),
        _ => None,
    }
}
