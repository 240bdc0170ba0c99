//! The corpus: texts, and how each is carried over.
//!
//! Must never: depend on when or where a test runs.

use std::fs;
use std::path::PathBuf;

use soloist::config::{Config, Host, Strictness, parse};
use soloist::import::{Columns, Imported, Request, import};
use soloist::scheduler::time::Timestamp;

/// A text of the corpus.
pub(crate) struct Sample {
    /// Its file.
    pub(crate) path: PathBuf,
    /// `user/nextcloud.crontab`.
    pub(crate) label: String,
    pub(crate) text: String,
    pub(crate) columns: Columns,
    /// As if `--timezone` had said so.
    pub(crate) timezone: Option<&'static str>,
}

/// The folders, with what is said about them.
const FOLDERS: [(&str, Columns, Option<&str>); 3] = [
    ("system", Columns::System, None),
    ("user", Columns::User, Some("Europe/Berlin")),
    ("kubernetes", Columns::User, None),
];

/// All texts, in the order of their names.
pub(crate) fn samples() -> Vec<Sample> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/import/corpus");
    let mut samples = Vec::new();
    for (folder, columns, timezone) in FOLDERS {
        let entries = fs::read_dir(root.join(folder)).expect("the corpus");
        for entry in entries {
            let path = entry.expect("an entry").path();
            let is_text = path
                .extension()
                .is_some_and(|ending| ending == "crontab" || ending == "yaml");
            if !is_text {
                continue;
            }
            let name = path.file_name().and_then(|name| name.to_str());
            samples.push(Sample {
                label: format!("{folder}/{}", name.expect("UTF-8")),
                text: fs::read_to_string(&path).expect("UTF-8"),
                path,
                columns,
                timezone,
            });
        }
    }
    samples.sort_by(|one, other| one.label.cmp(&other.label));
    samples
}

/// When all tests take place.
pub(crate) fn now() -> Timestamp {
    let now: jiff::Timestamp = "2026-11-21T08:00:00Z".parse().expect("an instant");
    now.into()
}

impl Sample {
    pub(crate) fn request(&self) -> Request<'_> {
        Request {
            text: &self.text,
            label: &self.label,
            format: None,
            columns: self.columns,
            timezone: self.timezone,
            now: now(),
        }
    }

    pub(crate) fn import(&self) -> Imported {
        import(&self.request()).unwrap_or_else(|error| panic!("{}: {error}", self.label))
    }
}

/// Reads a table as `soloist check` does, where all that it refers to is set.
pub(crate) fn check(table: &str) -> Config {
    let host = Host {
        env: &|name| Some(format!("<{name}>")),
        accounts: &|_, _| Ok(()),
        now: now(),
    };
    parse(table, "jobs.toml", &host, Strictness::Edit)
        .unwrap_or_else(|error| panic!("{error}\n{table}"))
}
