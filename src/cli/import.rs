//! `soloist import`: a crontab or CronJobs as a table, and what differs.
//!
//! The table goes to stdout or to a file, the report to stderr. Must never: write over a file
//! that nobody gave up.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::args::{ImportArgs, ImportFrom};
use super::{Exit, complain, now, print, print_error};
use crate::config::find_zone;
use crate::import::{Columns, Format, ImportError, Request, columns_at, import};

/// The largest text that is read, in bytes: beyond it lies another file than was meant.
const LIMIT: u64 = 16 * 1024 * 1024;

/// Carries a text over.
pub(super) fn run(args: &ImportArgs) -> Result<Exit, Exit> {
    let label = match is_stdin(args) {
        true => "stdin".into(),
        false => args.file.display().to_string(),
    };
    if let Some(zone) = &args.timezone {
        find_zone(zone).map_err(|error| {
            let message = format!("`--timezone`: `{zone}` {}", error.message);
            complain(Exit::Usage, &message, Some(&error.hint))
        })?;
    }
    let text = read(args, &label)?;
    let columns = match args.system {
        true => Columns::System,
        false => columns_at(&args.file),
    };
    let request = Request {
        text: &text,
        label: &label,
        format: args.from.map(|from| match from {
            ImportFrom::Crontab => Format::Crontab,
            ImportFrom::Kubernetes => Format::Kubernetes,
        }),
        columns,
        timezone: args.timezone.as_deref(),
        now: now(),
    };
    let imported = import(&request)
        .map_err(|ImportError { message, hint }| complain(Exit::Usage, &message, Some(&hint)))?;
    let written = match (&imported.table, &args.output) {
        (Some(table), Some(path)) => write(path, table, args.force)?,
        (Some(table), None) => print(table),
        (None, _) => Exit::Done,
    };
    print_error(&imported.report.to_string());
    let all = match imported.report.is_complete() {
        true => Exit::Done,
        false => Exit::Failed,
    };
    Ok(written.or(all))
}

fn is_stdin(args: &ImportArgs) -> bool {
    args.file.as_os_str() == "-"
}

fn read(args: &ImportArgs, label: &str) -> Result<String, Exit> {
    let failed = |why: &str, hint: &str| {
        let message = format!("failed to read `{label}`: {why}");
        Err(complain(Exit::Usage, &message, Some(hint)))
    };
    let mut bytes = Vec::new();
    let got = if is_stdin(args) {
        io::stdin().lock().take(LIMIT + 1).read_to_end(&mut bytes)
    } else {
        let file = fs::File::open(&args.file);
        file.and_then(|file| file.take(LIMIT + 1).read_to_end(&mut bytes))
    };
    if let Err(error) = got {
        let hint = "name a crontab or a file of manifests; `-` reads stdin";
        return failed(&error.to_string(), hint);
    }
    if bytes.len() as u64 > LIMIT {
        return failed("it is over 16 MiB", "name a crontab or a file of manifests");
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text)),
        Err(error) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let why = format!("line {line} is not UTF-8");
            failed(&why, "convert it first: `iconv -f latin1 -t utf-8 FILE`")
        }
    }
}

/// Writes the table into a file of its own, unless it may be written over.
fn write(path: &Path, table: &str, force: bool) -> Result<Exit, Exit> {
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    let written = options
        .open(path)
        .and_then(|mut file| file.write_all(table.as_bytes()));
    let Err(error) = written else {
        return Ok(Exit::Done);
    };
    let shown = path.display();
    if error.kind() == io::ErrorKind::AlreadyExists {
        let message = format!("`{shown}` exists, and is left as it is");
        let hint = "name another file, or write over it by `--force`";
        return Err(complain(Exit::Usage, &message, Some(hint)));
    }
    let message = format!("failed to write `{shown}`: {error}");
    let hint = "the directory must exist, and be writable for you";
    Err(complain(Exit::Failed, &message, Some(hint)))
}
