//! Tables of other schedulers, carried over into jobs.toml: crontabs and Kubernetes CronJobs.
//!
//! ```text
//!  text ──crontab/, kubernetes/──▶ items: drafts, and what can't be carried over
//!                                    └─ assemble: names, validation ──▶ table + report
//! ```
//!
//! A table that comes out is one that `soloist check` accepts: each job was read back by
//! [`crate::config`] before it was written. What means something else here than there is told,
//! never passed over.
//!
//! Must never: read a file or a clock, guess at a meaning without telling, or show a value of
//! `env` in the report.

use std::fmt;
use std::path::Path;

mod assemble;
mod crontab;
mod draft;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod kubernetes;
mod name;
mod report;
mod write;

pub use report::{Refusal, Report};

use crate::scheduler::time::Timestamp;
use draft::Item;

/// What a text is read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// crontab(5), with a column for the user or without.
    Crontab,
    /// CronJobs of Kubernetes, in YAML or JSON.
    Kubernetes,
}

/// Which crontab it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// A user's own.
    User,
    /// `/etc/crontab` and `/etc/cron.d/*`, which name the user before the command.
    System,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'r> {
    /// The text.
    pub text: &'r str,
    /// What the text is called in the table and in the report.
    pub label: &'r str,
    /// Found by content where it isn't said.
    pub format: Option<Format>,
    /// Of a crontab.
    pub columns: Columns,
    /// The IANA zone of schedules that don't name their own; UTC by default.
    pub timezone: Option<&'r str>,
    /// What lies in the past is over.
    pub now: Timestamp,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// A whole jobs.toml; none where no job could be carried over.
    pub table: Option<String>,
    /// What is different, and what was not carried over.
    pub report: Report,
}

/// Why a text can't be read at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    /// What is wrong, and where.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ImportError {}

/// What a reader of a format found.
struct Found {
    /// In the order of the text.
    items: Vec<Item>,
    /// What is different in every job, or in most.
    everywhere: Vec<String>,
}

/// Carries a text over.
pub fn import(request: &Request<'_>) -> Result<Imported, ImportError> {
    let format = request.format.unwrap_or_else(|| format_of(request.text));
    let found = match format {
        Format::Crontab => crontab::read(request)?,
        Format::Kubernetes => kubernetes::read(request)?,
    };
    Ok(assemble::assemble(request, format, found))
}

/// Tells the formats apart. No line of a crontab begins as one of a manifest.
fn format_of(text: &str) -> Format {
    let is_manifest = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ").trim_start();
        let key = line.split(':').next().unwrap_or_default();
        let key = key.trim().trim_matches(['"', '\'']);
        line.contains(':') && ["apiVersion", "kind"].contains(&key)
    };
    if text.trim_start().starts_with('{') || text.lines().any(is_manifest) {
        Format::Kubernetes
    } else {
        Format::Crontab
    }
}

/// Which columns a crontab at this path has: `/etc/crontab` and what lies in a `cron.d`, also in
/// a copy of `/etc`, name the user.
pub fn columns_at(path: &Path) -> Columns {
    let parent = path.parent().and_then(Path::file_name);
    let is_table_of_host = path.file_name().is_some_and(|name| name == "crontab")
        && parent.is_some_and(|dir| dir == "etc");
    if is_table_of_host || parent.is_some_and(|dir| dir == "cron.d") {
        Columns::System
    } else {
        Columns::User
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_by_content() {
        for (text, format) in [
            ("* * * * * kind: x", Format::Crontab),
            ("kind = x\n* * * * * x", Format::Crontab),
            ("", Format::Crontab),
            ("# a\n---\napiVersion: batch/v1\n", Format::Kubernetes),
            ("- kind: CronJob", Format::Kubernetes),
            ("  \"kind\": \"List\",", Format::Kubernetes),
            ("{\"a\": 1}", Format::Kubernetes),
        ] {
            assert_eq!(format_of(text), format, "{text}");
        }
    }

    #[test]
    fn a_crontab_of_the_host_names_users() {
        for (path, columns) in [
            ("/etc/crontab", Columns::System),
            ("/etc/cron.d/php", Columns::System),
            ("backup/etc/cron.d/php", Columns::System),
            ("crontab", Columns::User),
            ("/var/spool/cron/crontabs/crontab", Columns::User),
            ("-", Columns::User),
        ] {
            assert_eq!(columns_at(Path::new(path)), columns, "{path}");
        }
    }
}
