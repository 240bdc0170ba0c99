//! `[notify.NAME]` and a job's `notify`: who is told how jobs go.
//!
//! ```toml
//! [notify.ops]
//! webhook = { url = "https://chat.example/hook", secret = "${file:/run/secrets/hook}" }
//!
//! [jobs.report]
//! notify = ["ops"]              # or { to = ["ops"], on = ["failure"], repeat = "1h", ping = "…" }
//! ```
//!
//! Must never: show an address of a webhook or a ping, a secret, or a password.

mod job;
mod smtp;
mod target;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use url::Url;

use super::http::{Named, Shape, check_url, sample};
use super::names::nearest;
use super::raw::{RawJob, Value, kind_of};
use super::read::Reader;
use super::values::ValueError;
use crate::scheduler::job::check_name;
use crate::scheduler::request::Template;
use crate::scheduler::variable::Variable;

pub(super) use self::job::{TELLING_KEYS, read_notify};
pub use self::smtp::{Security, SmtpServer};
pub(super) use self::target::{EMAIL_KEYS, WEBHOOK_KEYS};

/// Who can be told, by name.
pub type Targets = BTreeMap<String, Target>;

/// `[notify.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A request with a JSON body.
    Webhook(Webhook),
    /// A mail.
    Email(Email),
}

/// Where news are posted to.
#[derive(Clone, PartialEq, Eq)]
pub struct Webhook {
    /// `http://` or `https://`; whoever knows it can post there.
    pub url: Template,
    /// What requests are signed with. Default: they are not.
    pub secret: Option<Vec<u8>>,
    /// Sent beside those that soloist sets. Default: none.
    pub headers: Vec<(String, Template)>,
}

/// Who gets mails, and by which server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email {
    /// Who gets them.
    pub to: Vec<lettre::message::Mailbox>,
    /// Who they are from.
    pub from: lettre::message::Mailbox,
    /// The server that takes them.
    pub server: SmtpServer,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Taken apart, so that a new field has to be thought of here.
        let Self {
            url: _,
            secret,
            headers,
        } = self;
        let names: Vec<&String> = headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Webhook")
            .field("url", &"***")
            .field("secret", &secret.as_ref().map(|_| "***"))
            .field("headers", &names)
            .finish()
    }
}

/// Reads all of them, and has jobs know their names, also of those that are wrong. Whoever only
/// looks at jobs needs none, nor the files that they refer to.
pub(super) fn read<'r>(
    reader: &mut Reader<'_>,
    tables: impl Iterator<Item = &'r RawJob<'r>>,
) -> Targets {
    let mut targets = Targets::new();
    for raw in tables {
        reader.targets.push(raw.name.to_owned());
        if let Err(error) = check_name(raw.name) {
            let message = format!("`{}` can't name a target: {error}", raw.name.escape_debug());
            reader.error(&raw.name_span, message, "jobs refer to it: `[notify.ops]`");
        }
        if reader.strictness == super::Strictness::Look {
            continue;
        }
        if let Some(target) = target::read(reader, raw) {
            targets.insert(raw.name.to_owned(), target);
        }
    }
    targets
}

/// An address that news are sent to.
fn read_url(reader: &mut Reader<'_>, url: Named<'_, '_>) -> Option<Template> {
    // The path is a secret here, too: whoever knows it can post there.
    let (template, span) = reader.template(url, Shape::Secret)?;
    check_variables(reader, &template, &span)?;
    match check_url(&template.fill(sample)) {
        Ok(_) => Some(template),
        Err(ValueError { message, .. }) => {
            let (name, example) = (url.0, "https://chat.example/hooks/x");
            let hint = format!("for example `{name} = \"{example}\"`");
            reader.error(&span, format!("`{name}` {message}"), hint);
            None
        }
    }
}

/// All of an address that may be shown: scheme, host and port.
pub(crate) fn origin_of(url: &Template) -> String {
    let parsed = Url::parse(&url.fill(sample));
    parsed.map_or_else(
        |_| "***".to_owned(),
        |url| url.origin().ascii_serialization(),
    )
}

/// The job's name is all that there is of variables: what was missed has no attempt.
fn check_variables(
    reader: &mut Reader<'_>,
    template: &Template,
    span: &Range<usize>,
) -> Option<()> {
    let Some(other) = template.variables().find(|one| *one != Variable::Job) else {
        return Some(());
    };
    let message = format!("`${{{}}}` is not known to notifications", other.name());
    let hint = "`${SOLOIST_JOB}` is: the rest is in the body";
    reader.error(span, message, hint);
    None
}

/// The values of a table of its own, by their keys; those that it doesn't have are refused.
fn fields<'t>(
    reader: &mut Reader<'_>,
    (name, value): (&str, &'t Value<'t>),
    keys: &[&'static str],
    example: &str,
) -> Option<BTreeMap<&'static str, &'t Value<'t>>> {
    let Some(table) = value.get_ref().as_table() else {
        reader.hide(value);
        let message = format!("`{name}` takes a table, not {}", kind_of(value));
        reader.error(&value.span(), message, format!("for example `{example}`"));
        return None;
    };
    let mut fields = BTreeMap::new();
    for (key, value) in table {
        let written: &str = key.get_ref();
        match keys.iter().find(|known| **known == written) {
            Some(known) => {
                fields.insert(*known, value);
            }
            None => {
                reader.hide(value);
                let hint = match nearest(written, keys.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the keys of `{name}` are {}", keys.join(", ")),
                };
                let message = format!("unknown key `{}`", written.escape_debug());
                reader.error(&key.span(), message, hint);
            }
        }
    }
    Some(fields)
}
