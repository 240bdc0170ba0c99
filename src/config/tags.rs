//! Tags: `tags` of `[scheduler]`, `run_on` of a job, and those that come by a command line.
//!
//! Must never show what was filled in from the environment or a file.

use std::ops::Range;

use super::raw::{Entry, Value, kind_of};
use super::read::{Reader, Text};
use super::values::ValueError;
use super::wrong_type::written;
use crate::jobs::tags::{FORM, check_part};
use crate::scheduler::policy::Tags;

/// Whether `${…}` is filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    /// As everywhere in `[scheduler]`.
    FilledIn,
    /// Every replica reads the same table: what a job asks for doesn't depend on which.
    Refused,
}

/// Reads one `NAME=VALUE`; the error completes "`zone` …".
pub(crate) fn parse_tag(text: &str) -> Result<(String, String), ValueError> {
    let Some((name, value)) = text.split_once('=') else {
        let hint = if check_part(text).is_ok() {
            format!("a tag has a value: `{text}=yes`")
        } else {
            FORM.to_owned()
        };
        return Err(ValueError {
            message: "is no tag: it has no `=`".into(),
            hint,
        });
    };
    for (what, part) in [("name", name), ("value", value)] {
        check_part(part).map_err(|why| ValueError {
            message: format!("is no tag: its {what} {why}"),
            hint: FORM.into(),
        })?;
    }
    Ok((name.into(), value.into()))
}

/// A table `{ zone = "eu" }` or a list of `"zone=eu"`.
pub(super) fn read_tags(
    reader: &mut Reader<'_>,
    entry: &Entry<'_>,
    references: References,
) -> Option<Tags> {
    let value = entry.value.get_ref();
    if value.is_table() {
        read_table(reader, entry, references)
    } else if value.is_array() {
        read_list(reader, entry, references)
    } else {
        reader.wrong_type(entry);
        None
    }
}

fn read_table(reader: &mut Reader<'_>, entry: &Entry<'_>, references: References) -> Option<Tags> {
    let mut tags = Tags::new();
    let mut all_right = true;
    for (key, value) in entry.value.get_ref().as_table()? {
        let name: &str = key.get_ref();
        if let Err(why) = check_part(name) {
            let message = format!("the name of a tag {why}");
            reader.error(&key.span(), message, FORM);
            all_right = false;
        }
        match read_value(reader, name, value, references) {
            Some(value) => {
                tags.insert(name.into(), value);
            }
            None => all_right = false,
        }
    }
    all_right.then_some(tags)
}

fn read_value(
    reader: &mut Reader<'_>,
    name: &str,
    value: &Value<'_>,
    references: References,
) -> Option<String> {
    let Some(text) = value.get_ref().as_str() else {
        let hint = match written(value) {
            Some(value) => format!("put it in quotes: `{name} = \"{value}\"`"),
            None => format!("for example `{name} = \"eu\"`"),
        };
        let message = format!("a tag takes a string, not {}", kind_of(value));
        reader.error(&value.span(), message, hint);
        return None;
    };
    let text = resolved(reader, text, value.span(), references)?;
    match check_part(&text.value) {
        Ok(()) => Some(text.value),
        // The stray character may be all of a secret.
        Err(_) if text.filled_in => {
            let message = format!("{} can't be the value of a tag", text.quoted());
            reader.error(&text.span, message, FORM);
            None
        }
        Err(why) => {
            let message = format!("the value of a tag {why}");
            reader.error(&text.span, message, FORM);
            None
        }
    }
}

fn read_list(reader: &mut Reader<'_>, entry: &Entry<'_>, references: References) -> Option<Tags> {
    let mut tags = Tags::new();
    let mut all_right = true;
    for text in reader.texts(entry)? {
        let Some(text) = resolved(reader, &text.value, text.span, references) else {
            all_right = false;
            continue;
        };
        match parse_tag(&text.value) {
            Ok((name, value)) => {
                if tags.insert(name.clone(), value).is_some() {
                    let message = format!("the tag `{name}` is there twice");
                    let message = if text.filled_in {
                        "this tag is there twice".into()
                    } else {
                        message
                    };
                    let hint = "a tag has one value: keep one of them";
                    reader.error(&text.span, message, hint);
                    all_right = false;
                }
            }
            Err(ValueError { message, hint }) => {
                let (message, hint) = if text.filled_in {
                    ("is no tag".into(), FORM.into())
                } else {
                    (message, hint)
                };
                reader.error(&text.span, format!("{} {message}", text.quoted()), hint);
                all_right = false;
            }
        }
    }
    all_right.then_some(tags)
}

fn resolved(
    reader: &mut Reader<'_>,
    value: &str,
    span: Range<usize>,
    references: References,
) -> Option<Text> {
    let text = Text {
        value: value.into(),
        span,
        filled_in: false,
    };
    match references {
        References::FilledIn => reader.fill(text),
        References::Refused if value.contains("${") => {
            let hint = "every replica has to read the same here: write the value, and let `tags` in [scheduler] or `--tag` differ";
            let message = "`${…}` is not filled in in `run_on`".into();
            reader.error(&text.span, message, hint);
            None
        }
        References::Refused => Some(text),
    }
}
