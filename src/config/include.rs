//! `include`: the other files of a table, found by patterns.
//!
//! ```text
//!  include = ["jobs.d/*.toml"] ──find──▶ paths, sorted, each once ──read──▶ texts in the map
//! ```
//!
//! What one of them says in `[jobs.*]`, `[calendars.*]` and `[notify.*]` is the table's, as if it stood in the
//! main file. Its `[defaults]` hold for its own jobs, over those of the main file: what a file
//! means depends on itself and the main one, never on its neighbours or their order.
//!
//! Must never: pass over a file that a pattern found, or take the order of a directory for one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};

use super::diagnostics::{Diagnostic, Problems};
use super::file::{TABLE_LIMIT, Unread, read_included};
use super::interpolate::error_text;
use super::raw::{Document, RawJob, Section};
use super::read::{Reader, Text};
use super::source_map::SourceFile;
use super::sources::note;

/// How many files a table may be spread over: each is looked at again whenever one has changed.
const FILES_LIMIT: usize = 10_000;

const WILDCARDS: [char; 3] = ['*', '?', '['];

/// As a shell has it: `*` stays within a directory and passes over hidden files, such as those
/// that editors and mounted ConfigMaps keep beside the ones that are meant.
const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Finds and reads the files that the main file includes; what can't be read is told.
pub(super) fn read(reader: &mut Reader<'_>, scheduler: &Section<'_>) -> Vec<SourceFile> {
    let Some(entry) = scheduler.get("include") else {
        return Vec::new();
    };
    let patterns = reader.texts(entry);
    let patterns = patterns.unwrap_or_else(|| {
        reader.problems.expect_gaps();
        Vec::new()
    });
    let mut found = BTreeMap::new();
    for pattern in patterns {
        let Some(pattern) = reader.fill(pattern) else {
            reader.problems.expect_gaps();
            continue;
        };
        if let Err(problem) = find(reader, &pattern, &mut found) {
            reader.problems.push_unread(*problem);
        }
    }
    read_all(reader, found)
}

/// The files that were found, each with the pattern that found it first.
type Found = BTreeMap<PathBuf, Text>;

/// Adds the files that a pattern names, and notes where it looks for them.
fn find(reader: &mut Reader<'_>, pattern: &Text, found: &mut Found) -> Result<(), Box<Diagnostic>> {
    let error = |message: String| Diagnostic::error(pattern.span.clone(), message);
    if pattern.value.is_empty() {
        let hint = "name a file, or a pattern for several: `include = [\"jobs.d/*.toml\"]`";
        return Err(error("`include` names no file here".into())
            .hint(hint)
            .into());
    }
    let beside = reader.map.directory(pattern.span.start);
    // As paths that match a pattern are written, so that none is there twice.
    let beside = beside.strip_prefix(".").unwrap_or(beside).to_path_buf();
    let main = reader.sources.tables.first().cloned().unwrap_or_default();
    if !has_wildcard(&pattern.value) {
        let path = Path::new(&pattern.value);
        let path = beside.join(path.strip_prefix(".").unwrap_or(path));
        if is_same(&path, &main) {
            let hint = "`include` names the other files of the table: leave this one out";
            return Err(error("the table includes itself".into()).hint(hint).into());
        }
        found.entry(path).or_insert_with(|| pattern.clone());
        return Ok(());
    }
    if pattern.value.contains("**") {
        let hint = "name each level: `jobs.d/*.toml`, `jobs.d/*/*.toml`";
        return Err(error(format!("{} has a `**` in it", pattern.quoted()))
            .hint(hint)
            .into());
    }
    warn_of_no_directory(reader, pattern, &beside);
    for directory in directories(&beside, &pattern.value) {
        note(&mut reader.sources.directories, &directory);
    }
    for path in matching(&beside, &pattern.value).map_err(|fault| Box::new(fault.told(pattern)))? {
        // `*.toml` beside the main file.
        if is_same(&path, &main) {
            continue;
        }
        found.entry(path).or_insert_with(|| pattern.clone());
        if found.len() > FILES_LIMIT {
            let hint = "are all of these tables of jobs? Put some of them together";
            let message = format!("the table is spread over more than {FILES_LIMIT} files");
            return Err(error(message).hint(hint).into());
        }
    }
    Ok(())
}

/// Tells of a directory that a pattern begins at and that is not there, such as one that was not
/// mounted: all the jobs in it would be gone from the table without a word.
fn warn_of_no_directory(reader: &mut Reader<'_>, pattern: &Text, beside: &Path) {
    let text = &pattern.value;
    let wildcard = text.find(WILDCARDS).unwrap_or(text.len());
    let Some(slash) = text[..wildcard].rfind('/') else {
        return;
    };
    let directory = &text[..=slash];
    let found = fs::metadata(beside.join(directory)).map(|found| found.is_dir());
    let why = match found.map_err(|cause| (cause.kind(), error_text(&cause))) {
        Ok(true) => return,
        Ok(false) | Err((ErrorKind::NotADirectory, _)) => "it is no directory".to_owned(),
        Err((ErrorKind::NotFound, _)) => "there is no such directory".to_owned(),
        Err((_, cause)) => cause,
    };
    let name = match pattern.filled_in {
        true => "the directory that is named here".to_owned(),
        false => format!("`{}`", directory.trim_end_matches('/')),
    };
    let hint = "jobs of files in it are not in the table: see that it is there, empty if need be, or take the pattern out";
    let warning = Diagnostic::warning(
        pattern.span.clone(),
        format!("`include` finds nothing in {name}: {why}"),
    );
    reader.problems.push(warning.hint(hint));
}

fn has_wildcard(pattern: &str) -> bool {
    pattern.contains(WILDCARDS)
}

fn is_same(path: &Path, other: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.into());
    path == other || real(path) == real(other)
}

/// Why a pattern finds nothing.
enum Fault {
    Pattern(&'static str),
    Directory(PathBuf, std::io::Error),
}

impl Fault {
    fn told(self, pattern: &Text) -> Diagnostic {
        let (message, hint) = match self {
            Self::Pattern(why) => (
                format!("{} is no pattern: {why}", pattern.quoted()),
                "`*` stands for any text, `?` for a character, `[a-c]` for one of these; a bracket itself is written `[[]`",
            ),
            Self::Directory(path, cause) => {
                let path = match pattern.filled_in {
                    true => "a directory that is named here".into(),
                    false => format!("`{}`", path.display()),
                };
                (
                    format!("failed to look into {path}: {}", error_text(&cause)),
                    "the directory must be readable by the user that soloist runs as",
                )
            }
        };
        Diagnostic::error(pattern.span.clone(), message).hint(hint)
    }
}

/// The paths that match a pattern, which begins at a directory.
fn matching(beside: &Path, pattern: &str) -> Result<Vec<PathBuf>, Fault> {
    // A wildcard in the directory's own name is meant as it stands.
    let beside = Pattern::escape(&beside.to_string_lossy());
    let whole = Path::new(&beside).join(pattern);
    let paths = glob::glob_with(&whole.to_string_lossy(), MATCHING)
        .map_err(|error| Fault::Pattern(error.msg))?;
    let paths = paths
        .map(|found| found.map_err(|error| Fault::Directory(error.path().into(), error.into())));
    paths.collect()
}

/// The directories in which a file could come or go that a pattern matches.
fn directories(beside: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for (end, _) in pattern.match_indices('/').chain([(pattern.len(), "")]) {
        let start = pattern[..end].rfind('/').map_or(0, |slash| slash + 1);
        let (above, part) = (&pattern[..start], &pattern[start..end]);
        if has_wildcard(above) {
            let found = matching(beside, above).unwrap_or_default();
            directories.extend(found.into_iter().filter(|path| path.is_dir()));
        } else if has_wildcard(part) {
            let named = beside.join(above);
            let is_here = named.as_os_str().is_empty();
            let named = if is_here { Path::new(".") } else { &named };
            // Without the slash at the end.
            directories.push(named.components().collect());
        }
    }
    directories
}

fn read_all(reader: &mut Reader<'_>, found: Found) -> Vec<SourceFile> {
    let mut files = Vec::new();
    let main = reader.map.file(0).map_or(0, |main| main.text.len());
    let mut left = TABLE_LIMIT.saturating_sub(main);
    for (path, pattern) in found {
        match read_included(&path, left) {
            Ok(text) => {
                left -= text.len();
                let name = path.display().to_string();
                files.push(reader.map.add(name, text.into()));
            }
            Err(Unread { why, hint }) => {
                let name = match pattern.filled_in {
                    true => "a file that is named here".into(),
                    false => format!("`{}`", path.display()),
                };
                let message = format!("failed to read {name}: {why}");
                let problem = Diagnostic::error(pattern.span, message).hint(hint);
                reader.problems.push_unread(problem);
            }
        }
        reader.sources.tables.push(path);
    }
    files
}

/// Refuses jobs and calendars that an earlier file has too, and takes them out.
pub(super) fn refuse_twice(documents: &mut [Document<'_>], problems: &mut Problems) {
    let (mut jobs, mut calendars) = (BTreeMap::new(), BTreeMap::new());
    let mut targets = BTreeMap::new();
    for document in documents {
        let jobs_of_it = &mut document.jobs;
        jobs_of_it.retain(|raw| is_first(raw, "job", &mut jobs, problems));
        let calendars_of_it = &mut document.calendars;
        calendars_of_it.retain(|raw| is_first(raw, "calendar", &mut calendars, problems));
        let targets_of_it = &mut document.notify;
        targets_of_it.retain(|raw| is_first(raw, "target", &mut targets, problems));
    }
}

fn is_first(
    raw: &RawJob<'_>,
    one: &str,
    seen: &mut BTreeMap<String, std::ops::Range<usize>>,
    problems: &mut Problems,
) -> bool {
    match seen.entry(raw.name.to_owned()) {
        Slot::Vacant(slot) => {
            slot.insert(raw.name_span.clone());
            true
        }
        Slot::Occupied(slot) => {
            let name = raw.name.escape_debug();
            let message = format!("the {one} `{name}` is there twice, in two files");
            let hint = match one {
                "job" => "give one of them another name: history and leases go by it",
                _ => "give one of them another name, or keep one of them: all files have it",
            };
            let problem = Diagnostic::error(raw.name_span.clone(), message).hint(hint);
            problems.push(problem.related(slot.get().clone(), "the first is here"));
            false
        }
    }
}
