//! jobs.toml and the files that it includes: from texts to validated jobs.
//!
//! ```text
//!  text ──syntax, raw──▶ sections of known keys ──scheduler, job──▶ Config
//!   └─include─▶ more texts ─┘
//!                         every stage adds to one list of problems ──▶ Error, or warnings
//! ```
//!
//! All that is wrong with a table is told at once, each with file, line, the text underlined and
//! a hint.
//!
//! Must never: ignore a key, read the host's time zone, or show a secret.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

mod after;
mod calendars;
mod connection;
mod diagnostics;
mod diff;
mod env;
mod file;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod http;
mod identity;
mod include;
mod interpolate;
mod job;
mod keys;
mod listen;
mod notify;
mod policies;
mod program;
mod raw;
mod read;
mod retry;
mod scheduler;
mod schema;
mod source_map;
mod sources;
mod syntax;
mod tags;
mod tls;
mod values;
mod when;
mod wrong_type;

#[cfg(test)]
mod tests;

pub use diagnostics::{Diagnostic, Error, Excerpt, Rendering, Report, Severity};
pub use diff::Changes;
pub use identity::Accounts;
pub use interpolate::Environment;
pub use notify::{Email, Security, SmtpServer, Target, Targets, Webhook};
pub use scheduler::SchedulerConfig;
pub use sources::Sources;
pub use values::format_duration;

pub(crate) use connection::{Broken, Given, load_to_ask};
pub(crate) use listen::{listen_of, parse_listen};
pub(crate) use notify::origin_of;
pub(crate) use scheduler::check_store;
pub(crate) use schema::{Described, Table, schema};
pub(crate) use tags::parse_tag;
pub(crate) use values::parse_duration;

pub(crate) use crate::jobs::limits::default_starting_deadline;
pub(crate) use crate::jobs::names::nearest;
pub(crate) use crate::jobs::zone::find_zone;

use crate::clock::{Clock as _, SystemClock};
use crate::jobs::{digest, names, zone};
use crate::scheduler::job::Job;
use crate::scheduler::schedule::{Schedule, ScheduleError};
use crate::scheduler::time::Timestamp;
use diagnostics::Diagnostic as Problem;
use raw::{Document, Role};
use read::Reader;
use source_map::SourceMap;

/// A table that can be used.
pub struct Config {
    /// `[scheduler]`.
    pub scheduler: SchedulerConfig,
    /// The jobs, in the order of the files.
    pub jobs: Vec<Job>,
    /// Who can be told how they go.
    pub targets: Targets,
    /// What it was read from.
    pub sources: Sources,
    /// What may not be what was meant; often empty.
    pub warnings: Report,
}

impl fmt::Debug for Config {
    /// Jobs by name alone: their `env` and `http` may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.jobs.iter().map(|job| &job.name).collect();
        f.debug_struct("Config")
            .field("scheduler", &self.scheduler)
            .field("jobs", &names)
            .field("targets", &self.targets)
            .field("sources", &self.sources)
            .field("warnings", &self.warnings)
            .finish()
    }
}

impl Config {
    /// 16 hexadecimal digits, the same for tables that mean the same but for their secrets.
    pub fn digest(&self) -> String {
        digest::table_digest(&self.jobs)
    }
}

/// What a table is loaded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Somebody edits it: a schedule that never fires again is an error.
    Edit,
    /// A replica starts with it: such a schedule is a warning, as an `@at` that has run must not
    /// keep the whole table from starting again.
    Start,
    /// A command looks at jobs and runs none, perhaps from a shell of somebody who may not read
    /// their secrets: what their `env` refers to, and who they run as, need not be there.
    Look,
}

/// What a table is read against, besides its own text.
#[derive(Clone, Copy)]
pub struct Host<'h> {
    /// Where references are filled in from.
    pub env: Environment<'h>,
    /// Whose users and groups jobs may run as.
    pub accounts: Accounts<'h>,
    /// What lies in the past is over.
    pub now: Timestamp,
}

impl<'h> Host<'h> {
    /// That of this process.
    fn here(accounts: Accounts<'h>) -> Self {
        Self {
            env: &variable,
            accounts,
            now: SystemClock.wall(),
        }
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &mut f.debug_struct("Host");
        host.field("now", &self.now).finish_non_exhaustive()
    }
}

/// Loads a table to run it, whether or not the users and groups that it names are here.
pub fn load(path: &Path) -> Result<Config, Error> {
    load_as(path, Strictness::Start, &|_, _| Ok(()))
}

/// Loads a table; references are filled in from this process's environment.
pub fn load_as(
    path: &Path,
    strictness: Strictness,
    accounts: Accounts<'_>,
) -> Result<Config, Error> {
    let source = file::read_main(path)?;
    let name = path.display().to_string();
    parse(&source, &name, &Host::here(accounts), strictness)
}

/// Reads a table from a text; `path` is what the text is called in messages, and where relative
/// paths begin.
pub fn parse(
    source: &str,
    path: &str,
    host: &Host<'_>,
    strictness: Strictness,
) -> Result<Config, Error> {
    let mut reader = Reader::new(host, strictness);
    reader.sources.tables.push(path.into());
    let main = reader.map.add(path.into(), source.into());
    let main = syntax::parse(&main, &mut reader.problems, &mut reader.secrets);
    let main = raw::sort(&main, Role::Main, &mut reader.problems);
    let files = include::read(&mut reader, &main.scheduler);
    let parse = |file| syntax::parse(file, &mut reader.problems, &mut reader.secrets);
    let tables: Vec<_> = files.iter().map(parse).collect();
    let sort = |table| raw::sort(table, Role::Included, &mut reader.problems);
    let mut documents: Vec<_> = tables.iter().map(sort).collect();
    documents.insert(0, main);
    include::refuse_twice(&mut documents, &mut reader.problems);
    let (scheduler, mut jobs, targets) = read_table(&mut reader, &documents, path);
    digest::define(&mut jobs, scheduler.revision);
    reader.secrets.extend_from_slice(reader.problems.hidden());
    let diagnostics = reader.problems.into_sorted(&reader.map);
    let failed = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    let report = Report::new(&reader.map, &reader.secrets, diagnostics);
    if failed {
        return Err(Error(report, Box::new(reader.sources)));
    }
    Ok(Config {
        scheduler,
        jobs,
        targets,
        sources: reader.sources,
        warnings: report,
    })
}

/// Reads what all files say together, the main one first.
fn read_table(
    reader: &mut Reader<'_>,
    documents: &[Document<'_>],
    path: &str,
) -> (SchedulerConfig, Vec<Job>, Targets) {
    let Some(main) = documents.first() else {
        return Default::default();
    };
    let scheduler = scheduler::read(reader, &main.scheduler, path);
    let calendars = documents.iter().flat_map(|document| &document.calendars);
    reader.calendars = calendars::read(reader, calendars);
    let targets = documents.iter().flat_map(|document| &document.notify);
    let targets = notify::read(reader, targets);
    let defaults: Vec<Vec<_>> = documents
        .iter()
        .map(|document| match std::ptr::eq(document, main) {
            true => vec![&main.defaults],
            false => vec![&document.defaults, &main.defaults],
        })
        .collect();
    let (mut jobs, mut waits, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (document, defaults) in documents.iter().zip(&defaults) {
        for raw in &document.jobs {
            names.insert(raw.name);
            jobs.extend(job::read(reader, raw, defaults, &scheduler, &mut waits));
        }
    }
    after::check(reader, &waits, &names, &jobs);
    if documents.iter().all(|document| document.jobs_missing) {
        let who = match main.scheduler.mentions("include") {
            true => format!("`{path}` and the files that it includes have"),
            false => format!("`{path}` has"),
        };
        let empty = Problem::of_file(format!("{who} no jobs")).hint(
            "add one: `[jobs.hello]` on a line of its own, and below it `schedule = \"* * * * *\"` and `command = [\"echo\", \"hello\"]`",
        );
        reader.problems.push_missing(empty);
    }
    (scheduler, jobs, targets)
}

/// What there is to say about a schedule that stands on its own, as on a command line.
pub(crate) fn report_on_schedule(text: &str, parsed: &Result<Schedule, ScheduleError>) -> Report {
    let diagnostics = match parsed {
        Ok(schedule) => schedule
            .warnings()
            .iter()
            .map(|warning| Problem::warning(warning.span.clone(), warning.message.clone()))
            .collect(),
        Err(error) => {
            let mut problem = Problem::error(error.span.clone(), error.message.clone());
            problem.hint = error.hint.clone();
            vec![problem]
        }
    };
    Report::new(&SourceMap::of("schedule", text), &[], diagnostics)
}
