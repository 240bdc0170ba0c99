//! Gets the text of a file, or says in people's words why there is none.
//!
//! Must never: read without a limit, or wait for what a file that a pattern found may never say.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use super::diagnostics::{Diagnostic, Error, Report};
use super::interpolate::error_text;
use super::source_map::SourceMap;
use super::sources::Sources;

/// The largest table, in bytes over all its files: some 100,000 jobs. Beyond it lies the wrong
/// file.
pub(super) const TABLE_LIMIT: usize = 32 * 1024 * 1024;

/// Why a file has no text: what is wrong, and what to do about it.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) why: String,
    pub(super) hint: String,
}

fn unread<T>(why: impl Into<String>, hint: impl Into<String>) -> Result<T, Unread> {
    Err(Unread {
        why: why.into(),
        hint: hint.into(),
    })
}

/// Reads the text of the file that a table begins with, which may be a pipe.
pub(super) fn read_main(path: &Path) -> Result<String, Error> {
    let read = || {
        if path.is_dir() {
            let file = path.join("jobs.toml");
            let hint = format!("name the file in it: `--config {}`", file.display());
            return unread("it is a directory", hint);
        }
        let bytes = read_bytes(path, TABLE_LIMIT).or_else(|error| {
            let hint = hint_of(path, &error);
            unread(error_text(&error), hint)
        })?;
        if bytes.len() > TABLE_LIMIT {
            return unread("it is over 32 MiB", "is this a table of jobs?");
        }
        text_of(bytes)
    };
    read().map_err(|Unread { why, hint }| {
        let name = path.display().to_string();
        let diagnostic = Diagnostic::of_file(format!("failed to read `{name}`: {why}"));
        let report = Report::new(&SourceMap::of(&name, ""), &[], vec![diagnostic.hint(hint)]);
        let sources = Sources {
            tables: vec![path.into()],
            ..Sources::default()
        };
        Error(report, Box::new(sources))
    })
}

/// Reads the text of a table for somebody who goes without it where it can't be had at once.
pub(super) fn read_regular(path: &Path) -> Option<String> {
    // A pipe would be waited for.
    fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let bytes = read_bytes(path, TABLE_LIMIT).ok()?;
    let is_whole = bytes.len() <= TABLE_LIMIT;
    String::from_utf8(bytes).ok().filter(|_| is_whole)
}

/// Reads the text of a file that a table includes, of which so many bytes are left to it.
pub(super) fn read_included(path: &Path, left: usize) -> Result<String, Unread> {
    let failed_io = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => {
                "a relative path begins at the directory that the table is in; for files that need not be there, write a pattern such as `jobs.d/*.toml`"
            }
            _ => "the file must be readable by the user that soloist runs as",
        };
        Unread {
            why: error_text(&error),
            hint: hint.into(),
        }
    };
    let kind = fs::metadata(path).map_err(failed_io)?.file_type();
    if kind.is_dir() {
        let hint = "`include` takes files: name those in it, such as `jobs.d/*.toml`, and let no other pattern match the directory";
        return unread("it is a directory", hint);
    }
    if !kind.is_file() {
        return unread("it is no file", "name a regular file");
    }
    let bytes = read_bytes(path, left).map_err(failed_io)?;
    if bytes.len() > left {
        let why = "with it the table is over 32 MiB";
        return unread(why, "are all of these tables of jobs?");
    }
    text_of(bytes)
}

/// All bytes of a file, and one more than the limit where there are more.
fn read_bytes(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    let limit = u64::try_from(limit).unwrap_or(u64::MAX);
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text_of(bytes: Vec<u8>) -> Result<String, Unread> {
    String::from_utf8(bytes).or_else(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..good];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        unread(
            format!("line {line} is not UTF-8"),
            "TOML is text in UTF-8: save the file as such",
        )
    })
}

fn hint_of(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if path == Path::new("jobs.toml") => {
            "go to the directory that has it, or name it: `--config FILE`, or SOLOIST_CONFIG=FILE in the environment".into()
        }
        io::ErrorKind::NotFound => {
            "check the path; it comes from `--config` or SOLOIST_CONFIG".into()
        }
        _ => "the file must be readable by the user that soloist runs as".into(),
    }
}
