//! Any text as another scheduler's table.
//!
//! Must never: be part of a program.

use super::{Columns, Format, Imported, Request, import};
use crate::config::{Host, Strictness, parse};
use crate::scheduler::time::Timestamp;

const NOW: Timestamp = Timestamp::from_second(1_795_248_000);

/// Any text gives an error that says what to do, or a table that is one.
pub(crate) fn foreign_table(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for (format, columns, timezone) in [
        (None, Columns::User, None),
        (
            Some(Format::Crontab),
            Columns::System,
            Some("Europe/Berlin"),
        ),
    ] {
        let request = Request {
            text: &text,
            label: "a\nb",
            format,
            columns,
            timezone,
            now: NOW,
        };
        match import(&request) {
            Err(error) => assert!(!error.message.is_empty() && !error.hint.is_empty()),
            Ok(imported) => reads_back(&imported),
        }
    }
}

fn reads_back(imported: &Imported) {
    let report = &imported.report;
    assert_eq!(imported.table.is_some(), report.carried > 0);
    assert!(report.carried + report.refused.len() > 0);
    let Some(table) = &imported.table else {
        return;
    };
    // What it refers to is there, and is known for what it is.
    let host = Host {
        env: &|name| Some(format!("<{name}>")),
        accounts: &|_, _| Ok(()),
        now: NOW,
    };
    let config = parse(table, "jobs.toml", &host, Strictness::Edit);
    let config = config.unwrap_or_else(|error| panic!("{error}\n{table}"));
    assert_eq!(config.jobs.len(), report.carried, "{table}");
}
