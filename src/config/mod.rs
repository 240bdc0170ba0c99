//! jobs.toml: from a file to validated jobs.
//!
//! ```text
//!  text ──syntax, raw──▶ sections of known keys ──scheduler, job──▶ Config
//!                         every stage adds to one list of problems ──▶ Error, or warnings
//! ```
//!
//! All that is wrong with a file is told at once, each with file, line, the text underlined and
//! a hint. A key that nothing acts on yet is refused as "not supported yet".
//!
//! Must never: ignore a key, read the host's time zone, or show a secret.

use std::fmt;
use std::path::Path;

mod after;
mod calendars;
mod diagnostics;
mod digest;
mod env;
mod file;
mod http;
mod identity;
mod interpolate;
mod job;
mod keys;
mod names;
mod policies;
mod program;
mod raw;
mod read;
mod retry;
mod scheduler;
mod syntax;
mod tags;
mod tls;
mod values;
mod when;
mod wrong_type;
mod zone;

#[cfg(test)]
mod tests;

pub use diagnostics::{Diagnostic, Error, Excerpt, Rendering, Report, Severity};
pub use identity::Accounts;
pub use interpolate::Environment;
pub use scheduler::SchedulerConfig;
pub use values::format_duration;

pub(crate) use names::nearest;
pub(crate) use policies::default_starting_deadline;
pub(crate) use scheduler::check_store;
pub(crate) use tags::parse_tag;
pub(crate) use values::parse_duration;
pub(crate) use zone::find_zone;

use crate::clock::{Clock as _, SystemClock};
use crate::scheduler::job::Job;
use crate::scheduler::schedule::{Schedule, ScheduleError};
use crate::scheduler::time::Timestamp;
use diagnostics::Diagnostic as Problem;
use read::Reader;

/// A file that can be used.
pub struct Config {
    /// `[scheduler]`.
    pub scheduler: SchedulerConfig,
    /// The jobs, in the order of the file.
    pub jobs: Vec<Job>,
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
            .field("warnings", &self.warnings)
            .finish()
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
    let source = file::read(path)?;
    let host = Host {
        env: &|name| std::env::var(name).ok(),
        accounts,
        now: SystemClock.wall(),
    };
    parse(&source, &path.display().to_string(), &host, strictness)
}

/// Reads a table from a text; `path` is what the text is called in messages.
pub fn parse(
    source: &str,
    path: &str,
    host: &Host<'_>,
    strictness: Strictness,
) -> Result<Config, Error> {
    let mut reader = Reader::new(source, host, strictness);
    let table = syntax::parse(source, &mut reader.problems, &mut reader.secrets);
    let document = raw::sort(table.get_ref(), &mut reader.problems);
    let scheduler = scheduler::read(&mut reader, &document.scheduler, path);
    reader.calendars = calendars::read(&mut reader, &document.calendars, path);
    let mut waits = Vec::new();
    let jobs: Vec<Job> = document
        .jobs
        .iter()
        .filter_map(|raw| job::read(&mut reader, raw, &document.defaults, &scheduler, &mut waits))
        .collect();
    after::check(&mut reader, &waits, &document.jobs, &jobs);
    if document.jobs_missing {
        let empty = Problem::of_file(format!("`{path}` has no jobs")).hint(
            "add one: `[jobs.hello]` on a line of its own, and below it `schedule = \"* * * * *\"` and `command = [\"echo\", \"hello\"]`",
        );
        reader.problems.push_missing(empty);
    }
    let diagnostics = reader.problems.into_sorted(source);
    let failed = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    let report = Report::new(path, source, &reader.secrets, diagnostics);
    if failed {
        return Err(Error(report));
    }
    Ok(Config {
        scheduler,
        jobs,
        warnings: report,
    })
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
    Report::new("schedule", text, &[], diagnostics)
}
