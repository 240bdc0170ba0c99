//! What a table is read from, for whoever watches it for changes.
//!
//! Must never: hold what the files say.

use std::path::{Path, PathBuf};

/// The files and directories that a table depends on, as they were named, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The main file, then those that it includes, sorted.
    pub tables: Vec<PathBuf>,
    /// Where the patterns of `include` look for files; one that is not there has no files.
    pub directories: Vec<PathBuf>,
    /// iCalendar files.
    pub calendars: Vec<PathBuf>,
    /// Files of `${file:…}`, whether or not they could be read.
    pub secrets: Vec<PathBuf>,
}

impl Sources {
    /// All of them, files and directories, for a watcher.
    pub fn paths(&self) -> Vec<PathBuf> {
        let all = [
            &self.tables,
            &self.directories,
            &self.calendars,
            &self.secrets,
        ];
        all.into_iter().flatten().cloned().collect()
    }
}

/// Adds what is not there yet.
pub(super) fn note(paths: &mut Vec<PathBuf>, path: &Path) {
    if !paths.iter().any(|known| known == path) {
        paths.push(path.into());
    }
}
