//! A job's `notify`: who is told, of what, how often, and which dead-man's switch hears of it.
//!
//! Must never: name a target that there is not, or show the address of a ping.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::{fields, read_url};
use crate::config::job::Keys;
use crate::config::names::nearest;
use crate::config::raw::{Value, kind_of};
use crate::config::read::{Reader, Text};
use crate::config::values::{DURATION_LIMIT, ValueError, parse_duration};
use crate::scheduler::lease::{Telling, Topic, Topics};
use crate::scheduler::notify::{Notify, Ping, REPEAT};
use crate::scheduler::request::Template;

/// The keys of `notify` of a job, where it is a table.
pub(in crate::config) const TELLING_KEYS: [&str; 5] = ["to", "on", "repeat", "ping", "ping_output"];

const EXAMPLE: &str = "notify = { to = [\"ops\"], on = [\"failure\", \"recovery\"] }";

/// How often a job that goes on to fail may be told of.
const REPEATS: RangeInclusive<Duration> = Duration::from_secs(1)..=DURATION_LIMIT;

/// Values of keys, each of the first table that has it.
type Fields<'t> = BTreeMap<&'static str, &'t Value<'t>>;

/// Reads `notify`. A list takes the place of all that `[defaults]` says; a table leaves to that
/// what it doesn't say. What is wrong is told, and nobody is told anything.
pub(in crate::config) fn read_notify(reader: &mut Reader<'_>, keys: &Keys<'_>) -> Notify {
    let fields = gathered(reader, keys);
    fields
        .and_then(|fields| read_fields(reader, &fields))
        .unwrap_or_default()
}

fn gathered<'k>(reader: &mut Reader<'_>, keys: &Keys<'k>) -> Option<Fields<'k>> {
    let mut all = Fields::new();
    let entries = keys.sections().filter_map(|section| section.get("notify"));
    for entry in entries {
        if !entry.value.get_ref().is_table() {
            all.entry("to").or_insert(entry.value);
            break;
        }
        for (key, value) in fields(reader, ("notify", entry.value), &TELLING_KEYS, EXAMPLE)? {
            all.entry(key).or_insert(value);
        }
    }
    Some(all)
}

fn read_fields(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Notify> {
    let to = fields.get("to").map(|to| read_names(reader, to));
    let topics = fields.get("on").map(|on| read_topics(reader, on));
    let repeat = fields.get("repeat").map(|one| read_repeat(reader, one));
    let ping = match fields.get("ping") {
        // That there is one is part of what the job is.
        Some(_) if reader.strictness == crate::config::Strictness::Look => {
            Some(Some(Template::default()))
        }
        ping => ping.map(|ping| read_url(reader, ("ping", ping))),
    };
    let output = fields.get("ping_output").map(|one| read_flag(reader, one));
    for (name, other) in [("on", "to"), ("repeat", "to"), ("ping_output", "ping")] {
        if let Some(value) = fields.get(name)
            && !fields.contains_key(other)
        {
            let message = format!("`{name}` has no effect without `{other}`");
            reader.error(&value.span(), message, format!("for example `{EXAMPLE}`"));
        }
    }
    Some(Notify {
        telling: Telling {
            to: to.unwrap_or(Some(Vec::new()))?.into(),
            topics: match topics {
                Some(topics) => topics?.into_iter().collect(),
                None => Topics::from_iter(Topic::ALL),
            },
            repeat: repeat.unwrap_or(Some(REPEAT))?,
        },
        ping: match ping {
            Some(url) => Some(Ping {
                url: url?,
                output: output.unwrap_or(Some(false))?,
            }),
            None => None,
        },
    })
}

/// A name, or a list of names.
fn read_names(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<String>> {
    let texts = texts(reader, "notify", value, "ops")?;
    let mut names: Vec<String> = Vec::new();
    let mut all_right = true;
    for text in texts {
        if names.contains(&text.value) {
            let message = format!("{} is there twice", text.quoted());
            reader.error(&text.span, message, "leave one of them out");
            all_right = false;
        }
        if !reader.targets.contains(&text.value) {
            unknown_target(reader, &text);
            all_right = false;
        }
        names.push(text.value);
    }
    all_right.then_some(names)
}

fn unknown_target(reader: &mut Reader<'_>, text: &Text) {
    let near = nearest(&text.value, reader.targets.iter().map(String::as_str));
    let hint = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "say who that is: `[notify.ops]` on a line of its own, and below it `webhook = \"https://chat.example/hooks/x\"`".to_owned(),
    };
    let message = format!("there is no target {}", text.quoted());
    reader.error(&text.span, message, hint);
}

fn read_topics(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<Topic>> {
    let names = Topic::ALL.map(Topic::as_str);
    let mut topics = Vec::new();
    let mut all_right = true;
    for text in texts(reader, "on", value, "failure")? {
        match Topic::ALL.iter().find(|one| one.as_str() == text.value) {
            Some(topic) => topics.push(*topic),
            None => {
                let hint = match nearest(&text.value, names) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("people can be told of {}", names.join(", ")),
                };
                let message = format!("{} is nothing that people are told of", text.quoted());
                reader.error(&text.span, message, hint);
                all_right = false;
            }
        }
    }
    let bad = topics.contains(&Topic::Failure) || topics.contains(&Topic::Missed);
    if all_right && topics.is_empty() {
        let message = "people would be told of nothing".to_owned();
        let hint = "leave `to` out as well, or say of what: `on = [\"failure\"]`";
        reader.error(&value.span(), message, hint);
        return None;
    }
    if all_right && topics.contains(&Topic::Recovery) && !bad {
        let message = "a recovery is told after a failure, or something missed, that was told";
        let hint = "write `on = [\"failure\", \"recovery\"]`";
        reader.error(&value.span(), message.to_owned(), hint);
        return None;
    }
    all_right.then_some(topics)
}

fn read_repeat(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Duration> {
    let text = reader.named_text(("repeat", value))?;
    match parse_duration(&text.value) {
        Ok(repeat) if REPEATS.contains(&repeat) => Some(repeat),
        Ok(_) => {
            let message = "`repeat` is at least 1s".to_owned();
            reader.error(&text.span, message, "for example `repeat = \"1h\"`");
            None
        }
        Err(ValueError { message, hint }) => {
            reader.error(&text.span, format!("{} {message}", text.quoted()), hint);
            None
        }
    }
}

fn read_flag(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<bool> {
    let flag = value.get_ref().as_bool();
    if flag.is_none() {
        let message = format!("`ping_output` takes true or false, not {}", kind_of(value));
        reader.error(&value.span(), message, "for example `ping_output = true`");
    }
    flag
}

/// A string, or a list of strings.
fn texts(
    reader: &mut Reader<'_>,
    name: &str,
    value: &Value<'_>,
    example: &str,
) -> Option<Vec<Text>> {
    let items: Vec<&Value<'_>> = match (value.get_ref().as_array(), value.get_ref().as_str()) {
        (Some(list), _) => list.iter().collect(),
        (None, Some(_)) => vec![value],
        (None, None) => {
            let message = format!(
                "`{name}` takes a string or a list of strings, not {}",
                kind_of(value)
            );
            let hint = format!("for example `{name} = [\"{example}\"]`");
            reader.error(&value.span(), message, hint);
            return None;
        }
    };
    let texts = items.iter().map(|item| reader.named_text((name, item)));
    let texts: Vec<Option<Text>> = texts.collect();
    texts.into_iter().collect()
}
