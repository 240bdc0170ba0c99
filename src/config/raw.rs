//! jobs.toml as it stands: TOML with places, sorted into sections of known keys.
//!
//! What was said, not what it means: values are not looked at. Keys that don't exist
//! are refused here, so that what is left is to be read.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::diagnostics::{Diagnostic, Problems};
use super::keys::{
    self, CALENDAR_KEYS, JOB_KEYS, Key, NOTIFY_KEYS, SCHEDULER_KEYS, TABLES, TLS_PREFIX,
};
use super::names::nearest;
use super::syntax::is_plain;

/// A value with its place.
pub(super) type Value<'t> = Spanned<DeValue<'t>>;

/// A file in sections.
#[derive(Debug, Default)]
pub(super) struct Document<'t> {
    pub(super) scheduler: Section<'t>,
    pub(super) defaults: Section<'t>,
    /// In the order of the file.
    pub(super) jobs: Vec<RawJob<'t>>,
    /// In the order of the file.
    pub(super) calendars: Vec<RawJob<'t>>,
    /// In the order of the file.
    pub(super) notify: Vec<RawJob<'t>>,
    /// Whether nothing in the file is, or was meant as, a job.
    pub(super) jobs_missing: bool,
}

/// One `[jobs.NAME]`, `[calendars.NAME]` or `[notify.NAME]`.
#[derive(Debug)]
pub(super) struct RawJob<'t> {
    pub(super) name: &'t str,
    pub(super) name_span: Range<usize>,
    pub(super) section: Section<'t>,
}

/// A table of known, supported keys.
#[derive(Debug, Default)]
pub(super) struct Section<'t> {
    /// In the order of the file.
    pub(super) entries: Vec<Entry<'t>>,
    /// All keys that were written or were probably meant, right or wrong: none of them is missing.
    mentioned: BTreeSet<&'static str>,
}

impl<'t> Section<'t> {
    /// Whether a key was written or was probably meant.
    pub(super) fn mentions(&self, name: &str) -> bool {
        self.mentioned.contains(name)
    }

    /// The entry of a key.
    pub(super) fn get(&self, name: &str) -> Option<&Entry<'t>> {
        self.entries.iter().find(|entry| entry.key.name == name)
    }
}

/// A key and its value.
#[derive(Debug)]
pub(super) struct Entry<'t> {
    pub(super) key: &'static Key,
    pub(super) key_span: Range<usize>,
    pub(super) value: &'t Value<'t>,
}

/// What a file is to the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It begins with this one.
    Main,
    /// `include` names this one.
    Included,
}

/// Sorts a file into sections and refuses the keys that have no place in them.
pub(super) fn sort<'t>(
    table: &'t DeTable<'t>,
    role: Role,
    problems: &mut Problems,
) -> Document<'t> {
    let mut document = Document {
        jobs_missing: true,
        ..Document::default()
    };
    for (key, value) in in_file_order(table) {
        let name: &str = key.get_ref();
        match name {
            "scheduler" | "include" if role == Role::Included => {
                problems.push(of_the_main_file(name, key.span(), value));
            }
            "scheduler" | "defaults" | "jobs" | "calendars" | "notify" => {
                document.jobs_missing &= name != "jobs";
                let Some(inner) = value.get_ref().as_table() else {
                    problems.push(not_a_table(name, value));
                    continue;
                };
                match name {
                    "scheduler" => document.scheduler = section(inner, SCHEDULER_KEYS, problems),
                    "defaults" => document.defaults = section(inner, JOB_KEYS, problems),
                    "calendars" => document.calendars = named(inner, &CALENDARS, problems),
                    "notify" => document.notify = named(inner, &TARGETS, problems),
                    _ => {
                        document.jobs_missing = inner.is_empty();
                        document.jobs = named(inner, &JOBS, problems);
                    }
                }
            }
            _ => {
                document.jobs_missing &= nearest(name, TABLES) != Some("jobs");
                problems.push(unknown_table(name, key.span()));
            }
        }
    }
    document
}

fn in_file_order<'t>(
    table: &'t DeTable<'t>,
) -> Vec<(&'t Spanned<std::borrow::Cow<'t, str>>, &'t Value<'t>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

/// Refuses what would hold for files other than the one that it stands in.
fn of_the_main_file(name: &str, span: Range<usize>, value: &Value<'_>) -> Diagnostic {
    let scheduler = value.get_ref().as_table();
    let include =
        scheduler.and_then(|table| table.iter().find(|(key, _)| key.get_ref() == "include"));
    match include {
        Some((key, _)) => refuse_include(key.span()),
        None if name == "include" => refuse_include(span),
        None => Diagnostic::error(span, "`[scheduler]` stands in an included file").hint(
            "it holds for the replica as a whole: write it in the main file alone; for the jobs of this file there is [defaults]",
        ),
    }
}

fn refuse_include(span: Range<usize>) -> Diagnostic {
    Diagnostic::error(span, "`include` stands in an included file")
        .hint("the main file alone includes others: add what is meant to its `include`")
}

fn not_a_table(name: &str, value: &Value<'_>) -> Diagnostic {
    let hint = match name {
        "jobs" => "write `[jobs.NAME]` on a line of its own, and the job's keys below it".into(),
        "calendars" | "notify" => {
            format!("write `[{name}.NAME]` on a line of its own, and its keys below it")
        }
        _ => format!("write `[{name}]` on a line of its own, and its keys below it"),
    };
    Diagnostic::error(
        value.span(),
        format!("`{name}` takes a table, not {}", kind_of(value)),
    )
    .hint(hint)
}

fn unknown_table(name: &str, span: Range<usize>) -> Diagnostic {
    let diagnostic = Diagnostic::error(span, format!("unknown key `{name}`"));
    let table_of = |name| {
        if keys::find(SCHEDULER_KEYS, name).is_some() {
            Some("[scheduler]")
        } else {
            keys::find(JOB_KEYS, name).map(|_| "a job, below [jobs.NAME], or in [defaults]")
        }
    };
    match (nearest(name, TABLES), table_of(name)) {
        (Some(near), _) => diagnostic.hint(format!("did you mean `{near}`?")),
        (None, Some(table)) => diagnostic.hint(format!("`{name}` belongs in {table}")),
        (None, None) => diagnostic.hint(
            "a file has [scheduler], [defaults], [calendars.NAME], [notify.NAME] and [jobs.NAME]",
        ),
    }
}

/// Tables that are named by their users.
struct Named {
    table: &'static str,
    one: &'static str,
    keys: &'static [Key],
}

static JOBS: Named = Named {
    table: "jobs",
    one: "job",
    keys: JOB_KEYS,
};

static TARGETS: Named = Named {
    table: "notify",
    one: "target",
    keys: NOTIFY_KEYS,
};

static CALENDARS: Named = Named {
    table: "calendars",
    one: "calendar",
    keys: CALENDAR_KEYS,
};

fn named<'t>(table: &'t DeTable<'t>, kind: &Named, problems: &mut Problems) -> Vec<RawJob<'t>> {
    let Named { table: of, one, .. } = kind;
    let mut jobs = Vec::new();
    for (key, value) in in_file_order(table) {
        let name: &str = key.get_ref();
        match value.get_ref() {
            DeValue::Table(inner) => jobs.push(RawJob {
                name,
                name_span: key.span(),
                section: section(inner, kind.keys, problems),
            }),
            DeValue::Array(_) if source_is_array_of_tables(value) => problems.push(
                Diagnostic::error(
                    key.span(),
                    format!("the {one} `{name}` takes a table, not a list of tables"),
                )
                .hint(format!("write `[{of}.{name}]` with single brackets")),
            ),
            _ => problems.push(
                Diagnostic::error(
                    value.span(),
                    format!("the {one} `{name}` takes a table, not {}", kind_of(value)),
                )
                .hint(format!(
                    "write `[{of}.{name}]` on a line of its own, and the {one}'s keys below it"
                )),
            ),
        }
    }
    jobs
}

fn source_is_array_of_tables(value: &Value<'_>) -> bool {
    value
        .get_ref()
        .as_array()
        .is_some_and(|array| array.iter().any(|item| item.get_ref().is_table()))
}

fn section<'t>(
    table: &'t DeTable<'t>,
    known: &'static [Key],
    problems: &mut Problems,
) -> Section<'t> {
    let mut section = Section::default();
    for (key, value) in in_file_order(table) {
        let name: &str = key.get_ref();
        let Some(known_key) = keys::find(known, name) else {
            let near = nearest(name, known.iter().map(|key| key.name));
            section.mentioned.extend(near);
            // It may be meant for anything, a secret among that.
            if !near.is_some_and(is_plain) {
                problems.hide(value.span());
            }
            problems.push(unknown_key(name, key.span(), value, known, near));
            continue;
        };
        section.mentioned.insert(known_key.name);
        section.entries.push(Entry {
            key: known_key,
            key_span: key.span(),
            value,
        });
    }
    section
}

fn unknown_key(
    name: &str,
    span: Range<usize>,
    value: &Value<'_>,
    known: &'static [Key],
    near: Option<&str>,
) -> Diagnostic {
    let in_job = std::ptr::eq(known, JOB_KEYS);
    let in_scheduler = std::ptr::eq(known, SCHEDULER_KEYS);
    if in_scheduler
        && ["insecure", "verify"]
            .iter()
            .any(|part| name.contains(part))
    {
        let message = format!("unknown key `{name}`: a server's certificate is always verified");
        let hint = "name the CA that signed it by `tls_ca`; where it has another name than the store's URL, say which by `tls_server_name`";
        return Diagnostic::error(span, message).hint(hint);
    }
    let diagnostic = Diagnostic::error(span, format!("unknown key `{name}`"));
    if let Some(near) = near {
        return diagnostic.hint(format!("did you mean `{near}`?"));
    }
    if in_scheduler && name.starts_with(TLS_PREFIX) {
        let hint = "the keys for TLS are `tls_ca`, `tls_cert`, `tls_key` and `tls_server_name`";
        return diagnostic.hint(hint);
    }
    if !in_job && keys::find(JOB_KEYS, name).is_some() {
        return diagnostic.hint(format!(
            "`{name}` is a job's key; for all jobs, write it below [defaults]"
        ));
    }
    if !in_scheduler && keys::find(SCHEDULER_KEYS, name).is_some() {
        return diagnostic.hint(format!("`{name}` belongs in [scheduler]"));
    }
    if in_job && value.get_ref().is_table() {
        return diagnostic
            .hint("a job's name that has a dot in it needs quotes: [jobs.\"my.job\"]");
    }
    let names: Vec<_> = known.iter().map(|key| key.name).collect();
    diagnostic.hint(format!("the keys here are {}", names.join(", ")))
}

/// What a value is, as in "takes a string, not an integer".
pub(super) fn kind_of(value: &Value<'_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
