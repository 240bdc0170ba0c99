//! What to write in place of a value of the wrong type.

use toml::de::DeValue;

use super::raw::Value;
use crate::store_url::star_passwords;

/// What to write in place of a value of the wrong type, where that can be told.
pub(super) fn type_hint(name: &str, takes: &str, value: &Value<'_>) -> Option<String> {
    let written = written(value);
    match (takes, value.get_ref()) {
        ("a duration", DeValue::Integer(number)) => {
            Some(format!("say the unit: `{name} = \"{}s\"`", number.as_str()))
        }
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
        ("a list of integers", DeValue::Integer(number)) => Some(format!(
            "put it in brackets: `{name} = [{}]`",
            number.as_str()
        )),
        _ => None,
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
