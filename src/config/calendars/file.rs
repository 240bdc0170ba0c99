//! Gets the bytes of an iCalendar file, or says why there are none.
//!
//! Must never: read without a limit, or from what is no file (a pipe may never end).

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::config::interpolate::error_text;
use crate::config::values::ValueError;

/// The largest iCalendar file, in bytes: some 10,000 events. Beyond it lies somebody's mailbox.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// Reads a file; `table` is what messages call the one that names it.
pub(super) fn read(path: &Path, table: &str) -> Result<Vec<u8>, ValueError> {
    let failed = |message: &str, hint: &str| ValueError {
        message: message.into(),
        hint: hint.into(),
    };
    let failed_io = |error: std::io::Error| {
        let hint = match error.kind() {
            std::io::ErrorKind::NotFound => {
                format!("a relative path begins at the directory that {table} is in")
            }
            _ => "the file must be readable by the user that soloist runs as".into(),
        };
        failed(&error_text(&error), &hint)
    };
    if !std::fs::metadata(path).map_err(failed_io)?.is_file() {
        return Err(failed(
            "it is no file",
            "name an iCalendar file, `holidays.ics`",
        ));
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(failed_io)?;
    if bytes.len() as u64 > FILE_LIMIT {
        let hint = "keep the days that jobs depend on in a calendar of their own";
        return Err(failed("it is over 4 MiB", hint));
    }
    Ok(bytes)
}
