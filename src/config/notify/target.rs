//! One `[notify.NAME]`: a webhook, or a mail.
//!
//! Must never: show its values but for addresses of people.

use std::ops::Range;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lettre::message::Mailbox;

use super::smtp::read_smtp;
use super::{Email, Target, Webhook, fields, read_url};
use crate::config::http::{Named, Shape, check_header_name, check_header_value, sample};
use crate::config::raw::{Entry, RawJob, Value, kind_of};
use crate::config::read::Reader;
use crate::config::values::ValueError;
use crate::scheduler::request::Template;

const WEBHOOK: &str = "webhook = { url = \"https://chat.example/hooks/x\" }";
const EMAIL: &str = "email = { to = [\"ops@shop.example\"], from = \"soloist@shop.example\", smtp = \"smtps://USER:${file:/run/secrets/smtp}@mail.example\" }";

pub(in crate::config) const WEBHOOK_KEYS: [&str; 3] = ["url", "secret", "headers"];
pub(in crate::config) const EMAIL_KEYS: [&str; 3] = ["to", "from", "smtp"];

/// What a secret to sign with begins with (Standard Webhooks).
const SECRET_PREFIX: &str = "whsec_";

/// The shortest secret, in bytes: a shorter one is guessed.
const SHORTEST_SECRET: usize = 16;

/// Headers that soloist sets itself.
const OWN_HEADERS: [&str; 5] = [
    "content-type",
    "user-agent",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

/// Who may get mails of one target.
const MOST_RECIPIENTS: usize = 50;

pub(super) fn read(reader: &mut Reader<'_>, raw: &RawJob<'_>) -> Option<Target> {
    let entries = &raw.section.entries;
    match &entries[..] {
        [one] if one.key.name == "webhook" => read_webhook(reader, one).map(Target::Webhook),
        [one] => read_email(reader, one).map(Target::Email),
        [] if raw.section.mentions("webhook") || raw.section.mentions("email") => None,
        [] => {
            let message = format!("`{}` says nobody who is told", raw.name.escape_debug());
            let hint = format!("write `{WEBHOOK}`, or `email`");
            reader.error(&raw.name_span, message, hint);
            None
        }
        [.., last] => {
            entries.iter().for_each(|entry| reader.hide(entry.value));
            let message = "a target is a webhook or a mail, not both".to_owned();
            let hint = "write two targets, and both into the `notify` of jobs";
            reader.error(&last.key_span, message, hint);
            None
        }
    }
}

fn read_webhook(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Webhook> {
    if entry.value.get_ref().as_str().is_some() {
        let url = read_url(reader, ("webhook", entry.value))?;
        return Some(Webhook {
            url,
            secret: None,
            headers: Vec::new(),
        });
    }
    let fields = fields(reader, ("webhook", entry.value), &WEBHOOK_KEYS, WEBHOOK)?;
    if !fields.contains_key("url") {
        let hint = format!("for example `{WEBHOOK}`");
        reader.error(&entry.key_span, "`webhook` has no `url`".into(), hint);
    }
    let url = fields.get("url").map(|url| read_url(reader, ("url", url)));
    let secret = fields.get("secret").map(|one| read_secret(reader, one));
    let headers = fields.get("headers").map(|all| read_headers(reader, all));
    Some(Webhook {
        url: url??,
        // Wrong is not the same as not there.
        secret: secret.map_or(Some(None), |secret| secret.map(Some))?,
        headers: headers.unwrap_or(Some(Vec::new()))?,
    })
}

fn read_secret(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<u8>> {
    let (template, span) = reader.template(("secret", value), Shape::Secret)?;
    super::check_variables(reader, &template, &span)?;
    let text = template.fill(sample);
    match secret_of(&text) {
        Ok(secret) => Some(secret),
        Err(message) => {
            let hint = "make one with `echo \"whsec_$(openssl rand -base64 32)\"`, and give it to the receiver too";
            reader.error(&span, format!("`secret` {message}"), hint);
            None
        }
    }
}

/// The bytes to sign with: after `whsec_` in Base64, otherwise the text itself.
fn secret_of(text: &str) -> Result<Vec<u8>, &'static str> {
    let secret = match text.strip_prefix(SECRET_PREFIX) {
        Some(encoded) => BASE64_STANDARD
            .decode(encoded)
            .map_err(|_| "is no Base64 after `whsec_`")?,
        None => text.as_bytes().to_vec(),
    };
    match secret.len() {
        0..SHORTEST_SECRET => Err("is shorter than 16 bytes, which can be guessed"),
        _ => Ok(secret),
    }
}

fn read_headers(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<(String, Template)>> {
    let Some(table) = value.get_ref().as_table() else {
        reader.hide(value);
        let message = format!("`headers` takes a table, not {}", kind_of(value));
        let hint = "for example `headers = { Authorization = \"Bearer ${file:/run/secrets/x}\" }`";
        reader.error(&value.span(), message, hint);
        return None;
    };
    let mut headers: Vec<(String, Template)> = Vec::new();
    let mut all_right = true;
    for (key, value) in table {
        let name: &str = key.get_ref();
        let header = read_header(reader, (name, value), key.span());
        let is_new = !headers
            .iter()
            .any(|(other, _)| other.eq_ignore_ascii_case(name));
        if !is_new {
            let message = format!("the header `{name}` is there twice");
            let hint = "letter case makes no difference in names of headers: keep one of them";
            reader.error(&key.span(), message, hint);
        }
        match header.filter(|_| is_new) {
            Some(value) => headers.push((name.to_owned(), value)),
            None => all_right = false,
        }
    }
    all_right.then_some(headers)
}

fn read_header(
    reader: &mut Reader<'_>,
    header: Named<'_, '_>,
    key: Range<usize>,
) -> Option<Template> {
    let (name, value) = header;
    let own = OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
    let checked = match own {
        true => Err(ValueError {
            message: "is reserved".into(),
            hint: "soloist sets it itself: leave it out".into(),
        }),
        false => check_header_name(name),
    };
    if let Err(ValueError { message, hint }) = checked {
        reader.hide(value);
        reader.error(&key, format!("`{}` {message}", name.escape_debug()), hint);
        return None;
    }
    let (template, span) = reader.template(header, Shape::Secret)?;
    super::check_variables(reader, &template, &span)?;
    if let Err(ValueError { message, hint }) = check_header_value(&template.fill(sample)) {
        let message = format!("the value of `{}` {message}", name.escape_debug());
        reader.error(&span, message, hint);
        return None;
    }
    Some(template)
}

fn read_email(reader: &mut Reader<'_>, entry: &Entry<'_>) -> Option<Email> {
    let fields = fields(reader, ("email", entry.value), &EMAIL_KEYS, EMAIL)?;
    for key in EMAIL_KEYS {
        if !fields.contains_key(key) {
            let message = format!("`email` has no `{key}`");
            reader.error(&entry.key_span, message, format!("for example `{EMAIL}`"));
        }
    }
    let to = fields.get("to").map(|to| read_recipients(reader, to));
    let from = fields
        .get("from")
        .map(|from| read_address(reader, ("from", from)));
    let server = fields
        .get("smtp")
        .map(|url| read_smtp(reader, ("smtp", url)));
    Some(Email {
        to: to??,
        from: from??,
        server: server??,
    })
}

fn read_recipients(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Vec<Mailbox>> {
    let Some(list) = value.get_ref().as_array() else {
        return Some(vec![read_address(reader, ("to", value))?]);
    };
    let items: Vec<_> = list.iter().collect();
    let read = items.iter().map(|one| read_address(reader, ("to", one)));
    let addresses: Vec<Option<Mailbox>> = read.collect();
    if !(1..=MOST_RECIPIENTS).contains(&addresses.len()) {
        let message = format!("a mail goes to 1 to {MOST_RECIPIENTS} addresses");
        let hint = "for more people, name a mailing list: `to = [\"ops@shop.example\"]`";
        reader.error(&value.span(), message, hint);
        return None;
    }
    addresses.into_iter().collect()
}

fn read_address(reader: &mut Reader<'_>, address: Named<'_, '_>) -> Option<Mailbox> {
    let text = reader.named_text(address)?;
    let text = reader.fill(text)?;
    match text.value.parse() {
        Ok(mailbox) if !text.value.contains(['\r', '\n']) => Some(mailbox),
        _ => {
            let message = format!("{} is no mail address", text.quoted());
            let hint = "for example `ops@shop.example`, or `Operations <ops@shop.example>`";
            reader.error(&text.span, message, hint);
            None
        }
    }
}
