//! What a command needs that only talks to the store, of a table that can't be used as a whole:
//! where the store is, how it is reached, and the namespace.
//!
//! ```text
//!  text ──▶ keys of [scheduler] that say so ──▶ SchedulerConfig
//!    └─ not TOML: the lines of [scheduler] alone, where it is sure which these are
//! ```
//!
//! Must never: take a default for what the table may say, which would be another store than the
//! one that is meant.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::diagnostics::{Diagnostic, Error, Problems, Severity};
use super::file::read_main;
use super::identity::Accounts;
use super::keys::TABLES;
use super::names::nearest;
use super::raw::{self, Role, Section};
use super::read::Reader;
use super::scheduler::{SchedulerConfig, read_connection};
use super::syntax;
use super::{Config, Host, Strictness, parse};

/// The table that this is about.
const OWN: &str = "scheduler";

const NAMESPACE: &str = "namespace";

/// What is known from elsewhere, so that the table needn't say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// The store's URL.
    pub(crate) store: bool,
    /// The namespace.
    pub(crate) namespace: bool,
    /// That nobody wants jobs of it: without any it is whole.
    pub(crate) no_jobs: bool,
}

impl Given {
    /// That nothing of the table is needed.
    pub(crate) fn is_all(self) -> bool {
        self.store && self.namespace
    }
}

/// A table that can't be used.
#[derive(Debug)]
pub(crate) struct Broken {
    /// What is wrong with it.
    pub(crate) error: Error,
    /// What it says of the store all the same; none where that can't be told.
    pub(crate) connection: Option<SchedulerConfig>,
    /// All that is wrong with it is that it has no jobs.
    pub(crate) lacks_jobs_alone: bool,
}

/// Loads a table for a command that only talks to the store.
pub(crate) fn load_to_ask(
    path: &Path,
    accounts: Accounts<'_>,
    given: Given,
) -> Result<Config, Box<Broken>> {
    // Once: it may be a pipe.
    let unread = |error| {
        Box::new(Broken {
            error,
            connection: None,
            lacks_jobs_alone: false,
        })
    };
    let source = read_main(path).map_err(unread)?;
    let (name, host) = (path.display().to_string(), Host::here(accounts));
    parse(&source, &name, &host, Strictness::Look).map_err(|error| {
        Box::new(Broken {
            lacks_jobs_alone: lacks_jobs_alone(&error, &source),
            error,
            connection: read(&source, &name, &host, given),
        })
    })
}

/// Whether the one error of a text is that there are no jobs. It is told whenever there are none in
/// it and what it includes, and stands in no place of a file.
fn lacks_jobs_alone(error: &Error, source: &str) -> bool {
    let is_error = |one: &&Diagnostic| one.severity == Severity::Error;
    let mut errors = error.0.diagnostics().iter().filter(is_error);
    let is_of_file = errors.next().is_some_and(|only| only.span.is_none());
    let table = DeTable::parse(source).ok();
    let jobs = table.as_ref().and_then(|table| jobs_of(table.get_ref()));
    is_of_file
        && errors.next().is_none()
        && table.is_some()
        && jobs.is_none_or(|jobs| jobs.is_empty())
}

/// Reads it from a text; none where it can't be told for sure what the text says of it.
pub(super) fn read(
    source: &str,
    path: &str,
    host: &Host<'_>,
    given: Given,
) -> Option<SchedulerConfig> {
    let mut reader = Reader::new(host, Strictness::Look);
    let file = reader.map.add(path.into(), source.into());
    let table = syntax::parse(&file, &mut reader.problems, &mut reader.secrets);
    if !reader.problems.has_errors() {
        let may_lack_it = means_the_default(&table, given);
        return read_section(&mut reader, &own_table(table)?, path, given, may_lack_it);
    }
    if table.iter().any(|(key, _)| is_slip(key.get_ref())) {
        return None;
    }
    let is_there = table.iter().any(|(key, _)| key.get_ref() == OWN);
    let mut reader = Reader::new(host, Strictness::Look);
    let file = reader.map.add(path.into(), own_lines(source)?.into());
    let read = syntax::parse(&file, &mut reader.problems, &mut reader.secrets);
    let own = own_table(read)?;
    // What is broken elsewhere may be a text that has swallowed the table, or spat one out.
    if reader.problems.has_errors() || is_there == own.is_empty() {
        return None;
    }
    read_section(&mut reader, &own, path, given, false)
}

/// Whether a table that names no namespace means the default: it has jobs, so that it isn't the
/// beginning of one that was cut off, and the key stands nowhere else.
fn means_the_default(table: &DeTable<'_>, given: Given) -> bool {
    let has_jobs = jobs_of(table).is_some_and(|jobs| !jobs.is_empty());
    let mut others = table.iter().filter(|(key, _)| key.get_ref() != OWN);
    (has_jobs || given.no_jobs) && !others.any(|(_, other)| has_strayed(other.get_ref()))
}

fn jobs_of<'t, 's>(table: &'t DeTable<'s>) -> Option<&'t DeTable<'s>> {
    let jobs = table.iter().find(|(key, _)| key.get_ref() == "jobs");
    jobs.and_then(|(_, jobs)| jobs.get_ref().as_table())
}

/// Whether the key stands somewhere in a value.
fn has_strayed(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(table) => table.iter().any(|(key, value)| {
            let meant = nearest(key.get_ref(), [NAMESPACE]);
            meant.is_some() || has_strayed(value.get_ref())
        }),
        DeValue::Array(values) => values.iter().any(|value| has_strayed(value.get_ref())),
        _ => false,
    }
}

/// `[scheduler]` alone; none where something else may have been meant as that.
fn own_table(table: DeTable<'_>) -> Option<DeTable<'_>> {
    let is_other = |name: &str| {
        let is_table = TABLES.contains(&name) || nearest(name, TABLES).is_some();
        is_table && name != OWN && !is_slip(name)
    };
    let rest = table.into_iter();
    let rest: DeTable<'_> = rest.filter(|(key, _)| !is_other(key.get_ref())).collect();
    let mut names = rest.iter().map(|(key, _)| key.get_ref());
    names.all(|name| name == OWN).then_some(rest)
}

/// Whether a name was probably meant as the table's.
fn is_slip(name: &str) -> bool {
    name != OWN && nearest(name, TABLES) == Some(OWN)
}

fn read_section(
    reader: &mut Reader<'_>,
    table: &DeTable<'_>,
    path: &str,
    given: Given,
    may_lack_namespace: bool,
) -> Option<SchedulerConfig> {
    let mut problems = Problems::default();
    let document = raw::sort(table, Role::Main, &mut problems);
    let section: &Section<'_> = &document.scheduler;
    let config = read_connection(reader, section, path, given);
    let says = |name| section.entries.iter().any(|entry| entry.key.name == name);
    // The default of the one is a store of this host alone, and of the other what others share.
    let knows_store = given.store || says("store");
    let knows_namespace = given.namespace || says(NAMESPACE) || may_lack_namespace;
    if !knows_store || !knows_namespace {
        return None;
    }
    (!problems.has_errors() && !reader.problems.has_errors()).then_some(config)
}

/// The lines before the first header and those of `[scheduler]`; none where another line may be
/// one of them.
fn own_lines(source: &str) -> Option<String> {
    let mut text = String::new();
    let mut is_own = true;
    for line in source.split_inclusive('\n') {
        if line.trim_start().starts_with('[') {
            is_own = names_own(line);
        }
        if is_own {
            text.push_str(line);
        } else if names_own(line) {
            return None;
        }
    }
    Some(text)
}

/// Whether a line is a header of the table, or begins like one.
fn names_own(line: &str) -> bool {
    let is_mark = |c: char| c.is_whitespace() || ['[', '"', '\''].contains(&c);
    let name = line.trim_start_matches(is_mark);
    name.strip_prefix(OWN).is_some_and(|rest| {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !rest.starts_with(is_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::with_host;

    const JOB: &str = "[jobs.x]\nschedule = \"61 * * * *\"\n";
    const OWN_TABLE: &str = "[scheduler]\nnamespace = \"shop\"\nstore = \"redis://h\"\n";

    fn told(source: &str, given: Given) -> Option<(String, Option<String>)> {
        let config = with_host(|host| read(source, "jobs.toml", host, given))?;
        Some((config.namespace, config.store))
    }

    fn shop() -> Option<(String, Option<String>)> {
        Some(("shop".to_owned(), Some("redis://h".to_owned())))
    }

    #[test]
    fn what_is_broken_elsewhere_does_not_hide_where_the_store_is() {
        for source in [
            format!("{OWN_TABLE}{JOB}"),
            format!("{JOB}{OWN_TABLE}"),
            format!("{OWN_TABLE}{JOB}{JOB}"),
            format!("{JOB}{JOB}{OWN_TABLE}"),
            format!("{OWN_TABLE}[jobs.x\nshell = \"x\n"),
            format!("[jobs.x]\nshell = \"x\n{OWN_TABLE}"),
            format!("{OWN_TABLE}[job.x]\n[calender.x]\n"),
            format!("{OWN_TABLE}shutdown_grace = 5\nlisten = \"${{NOWHERE}}\"\n"),
            format!("{OWN_TABLE}include = [\"none.toml\"]\n[scheduler.tags]\nzone = 5\n"),
        ] {
            assert_eq!(told(&source, Given::default()), shop(), "{source}");
        }
        let unnamed = Some(("default".to_owned(), Some("redis://h".to_owned())));
        let source = format!("[scheduler]\nstore = \"redis://h\"\n{JOB}");
        assert_eq!(told(&source, Given::default()), unnamed);
    }

    #[test]
    fn no_default_is_taken_for_what_the_table_may_say() {
        for source in [
            "[scheduler]\nstore = \"redis://${NOWHERE}\"\n",
            "[scheduler]\nstore = \"redis://h\n",
            "[scheduler]\nstroe = \"redis://h\"\n",
            "[scheduler]\nstore = \"rdis://h\"\n",
            "[scheduler]\nnamespace = \"a b\"\n",
            "[scheduler]\nstore = \"rediss://h\"\ntls_ca = 5\n",
            "[scheduler]\nstore = \"redis://h\"\nstore = \"redis://i\"\n",
            "[scheduler]\nstore = \"redis://h\"\n[scheduler]\nstore = \"redis://i\"\n",
            "[sheduler]\nstore = \"redis://h\"\n",
            "[scheduler\nstore = \"redis://h\"\n",
            "[jobs.x]\nscheduler]\nstore = \"redis://h\"\n",
            "[jobs.x]\nshell = \"\"\"\n[scheduler]\nstore = \"redis://h\"\n\"\"\"\nx = \"\n",
            "[jobs.x]\nshell = \"\"\"x\n[scheduler]\nstore = \"redis://h\"\n",
            "store = \"redis://h\"\n",
            "scheduler = 5\n",
            // It may have been cut off, or its keys have slipped into another table.
            "",
            JOB,
            "[jobs.x\n",
            "[jobs.scheduler]\nx = \"\n",
            "[scheduler]\nnamespace = \"shop\"\n[jobs.x]\nshell = 5\n",
            "[scheduler]\nstore = \"redis://h\"\n",
            "[scheduler]\nstore = \"redis://h\"\n[jobs]\n",
            "[scheduler]\nstore = \"redis://h\"\n[jobs.x\n",
            "[scheduler]\nstore = \"redis://h\"\n[jobs.x]\nnamespace = \"shop\"\n",
            "[scheduler]\nstore = \"redis://h\"\n[jobs.x]\nscheduler.namespace = \"shop\"\n",
            "[scheduler]\nstore = \"redis://h\"\n[jobs.x.scheduler]\nnamspace = \"shop\"\n",
            "[jobs.x]\ncommand = [\"x\"] [scheduler]\nstore = \"redis://h\"\nnamespace = \"shop\"\n",
            "[jobs.x]\nschedule = \"@daily\"\n+[scheduler]\nstore = \"redis://h\"\nnamespace = \"shop\"\n",
            "[scheduler]\nstore = \"redis://h\"\n[defaults]\nnamespace = \"shop\"\n[jobs.x]\n",
        ] {
            assert_eq!(told(source, Given::default()), None, "{source}");
        }
    }

    #[test]
    fn what_is_known_from_elsewhere_need_not_be_right() {
        let store = Given {
            store: true,
            ..Given::default()
        };
        let told_of = |source, given| told(source, given).map(|(namespace, _)| namespace);
        let source = "[scheduler]\nstore = \"redis://${NOWHERE}\"\nnamespace = \"shop\"\n";
        assert_eq!(told_of(source, store).as_deref(), Some("shop"));
        let source = "[scheduler]\nnamespace = \"a b\"\nstore = \"redis://h\"\n";
        assert_eq!(told_of(source, store), None);
        let namespace = Given {
            namespace: true,
            ..Given::default()
        };
        assert!(told_of(source, namespace).is_some());
    }

    #[test]
    fn who_wants_no_jobs_is_content_without_any_where_the_store_is_named() {
        let unneeded = Given {
            no_jobs: true,
            ..Given::default()
        };
        let unnamed = Some(("default".to_owned(), Some("redis://h".to_owned())));
        let named = "[scheduler]\nstore = \"redis://h\"\n";
        assert_eq!(told(named, unneeded), unnamed);
        for strayed in [
            "",
            "[scheduler]\nnamespace = \"shop\"\n",
            &format!("{named}[defaults]\nnamespace = \"shop\"\n"),
            &format!("{named}namspace = \"shop\"\n"),
            &format!("{named}[jobs.x\n"),
        ] {
            assert_eq!(told(strayed, unneeded), None, "{strayed}");
        }
    }
}
