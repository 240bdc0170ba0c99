//! Gets the text of a file, or says in people's words why there is none.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::diagnostics::{Diagnostic, Error, Report};
use super::interpolate::error_text;

/// The largest table, in bytes: some 100,000 jobs. Beyond it lies the wrong file.
const FILE_LIMIT: u64 = 32 * 1024 * 1024;

/// Reads a table's text.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let name = path.display().to_string();
    let failed = |why: &str, hint: String| {
        let diagnostic = Diagnostic::of_file(format!("failed to read `{name}`: {why}"));
        Error(Report::new(&name, "", &[], vec![diagnostic.hint(hint)]))
    };
    let failed_io = |error: std::io::Error| failed(&error_text(&error), hint_of(path, &error));
    if path.is_dir() {
        let hint = format!(
            "name the file in it: `--config {}`",
            path.join("jobs.toml").display()
        );
        return Err(failed("it is a directory", hint));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(failed_io)?;
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(failed(
            "it is over 32 MiB",
            "is this a table of jobs?".into(),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..good];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        failed(
            &format!("line {line} is not UTF-8"),
            "TOML is text in UTF-8: save the file as such".into(),
        )
    })
}

fn hint_of(path: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound if path == Path::new("jobs.toml") => {
            "go to the directory that has it, or name it: `--config FILE`, or SOLOIST_CONFIG=FILE in the environment".into()
        }
        std::io::ErrorKind::NotFound => {
            "check the path; it comes from `--config` or SOLOIST_CONFIG".into()
        }
        _ => "the file must be readable by the user that soloist runs as".into(),
    }
}
