//! The texts of a table's files as one long text, so that a place in any of them is a range of
//! bytes and nothing else.
//!
//! ```text
//!  jobs.toml        jobs.d/a.toml    jobs.d/b.toml
//!  0 ───────── 99   100 ─────── 149  150 ────── …     each begins where the one before ends, and
//!                                                     one more: an empty place at an end has one file
//! ```
//!
//! Must never: show a text that [`SourceMap::starred`] has not seen.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::store_url::star_passwords;

/// The files of a table, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceMap {
    files: Vec<SourceFile>,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    /// The file, as messages call it.
    pub(super) name: String,
    pub(super) text: Arc<str>,
    /// Where it begins among all of them.
    pub(super) start: usize,
}

impl SourceFile {
    /// A place of all files as one of this file, within its text whatever the parser said.
    pub(super) fn within(&self, span: &Range<usize>) -> Range<usize> {
        let start = span.start.saturating_sub(self.start);
        let start = self.text.floor_char_boundary(start);
        let end = span.end.saturating_sub(self.start);
        let end = self.text.ceil_char_boundary(end);
        start..end.max(start)
    }

    /// Where the line around a place of this file begins, in this file.
    fn line_start(&self, at: usize) -> usize {
        let before = &self.text[..self.text.floor_char_boundary(at)];
        before.rfind('\n').map_or(0, |newline| newline + 1)
    }

    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

impl SourceMap {
    /// Of a single file.
    pub(super) fn of(name: &str, text: &str) -> Self {
        let mut map = Self::default();
        map.add(name.into(), text.into());
        map
    }

    /// Adds a file behind the others.
    pub(super) fn add(&mut self, name: String, text: Arc<str>) -> SourceFile {
        let start = self.files.last().map_or(0, |last| last.end() + 1);
        let file = SourceFile { name, text, start };
        self.files.push(file.clone());
        file
    }

    /// The file that a place is in.
    pub(super) fn file(&self, at: usize) -> Option<&SourceFile> {
        let after = self.files.partition_point(|file| file.start <= at);
        self.files.get(after.checked_sub(1)?)
    }

    /// What is written at a place.
    pub(super) fn text(&self, span: &Range<usize>) -> &str {
        let file = self.file(span.start);
        file.map_or("", |file| &file.text[file.within(span)])
    }

    /// The directory that relative paths begin at which stand at a place.
    pub(super) fn directory(&self, at: usize) -> &Path {
        let name = self.file(at).map_or("", |file| &file.name);
        Path::new(name).parent().unwrap_or(Path::new(""))
    }

    /// Where the line around a place begins, which no other line does.
    pub(super) fn line_start(&self, at: usize) -> usize {
        let in_file = |file: &SourceFile| file.start + file.line_start(at - file.start);
        self.file(at).map_or(at, in_file)
    }

    /// File, line and column (in characters), the latter both from 1.
    pub(super) fn position(&self, at: usize) -> Option<(&str, usize, usize)> {
        let file = self.file(at)?;
        let at = file.text.floor_char_boundary(at - file.start);
        let line_start = file.line_start(at);
        let newlines = file.text[..line_start]
            .bytes()
            .filter(|byte| *byte == b'\n');
        let column = file.text[line_start..at].chars().count() + 1;
        Some((&file.name, newlines.count() + 1, column))
    }

    /// With passwords and these places starred out, byte for byte as long.
    pub(super) fn starred(&self, secrets: &[Range<usize>]) -> Self {
        let starred = |file: &SourceFile| {
            let here = |secret: &&Range<usize>| (file.start..=file.end()).contains(&secret.start);
            let secrets = secrets
                .iter()
                .filter(here)
                .map(|secret| file.within(secret));
            SourceFile {
                text: star_out(&star_passwords(&file.text), secrets).into(),
                ..file.clone()
            }
        };
        Self {
            files: self.files.iter().map(starred).collect(),
        }
    }
}

/// The text with those parts as stars, of the same length in bytes, lines kept.
fn star_out(source: &str, secrets: impl Iterator<Item = Range<usize>>) -> String {
    let mut bytes = source.as_bytes().to_vec();
    for secret in secrets {
        for byte in bytes.get_mut(secret).into_iter().flatten() {
            if !byte.is_ascii_control() {
                *byte = b'*';
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> SourceMap {
        let mut map = SourceMap::of("a", "x = 1\ny = \"é\"");
        map.add("b".into(), "".into());
        map.add("dir/c".into(), "\nz = 'redis://:pw@h'\n".into());
        map
    }

    #[test]
    fn a_place_is_in_one_file_at_its_ends_too() {
        let map = map();
        let positions: Vec<_> = [0, 6, 14, 15, 16, 17, 18, 38]
            .map(|at| map.position(at).expect("there is such a place"))
            .into();
        assert_eq!(
            positions,
            [
                ("a", 1, 1),
                ("a", 2, 1),
                ("a", 2, 8),
                ("b", 1, 1),
                ("dir/c", 1, 1),
                ("dir/c", 2, 1),
                ("dir/c", 2, 2),
                ("dir/c", 3, 1),
            ]
        );
        assert_eq!(map.text(&(17..18)), "z");
        assert_eq!(map.line_start(14), 6);
        assert_eq!(map.line_start(20), 17);
        assert_eq!(map.directory(20), Path::new("dir"));
        assert_eq!(map.directory(0), Path::new(""));
    }

    #[test]
    fn secrets_are_starred_out_in_the_file_that_they_stand_in() {
        let starred = map().starred(&[10..14, 17..18]);
        assert_eq!(starred.text(&(0..14)), "x = 1\ny = ****");
        assert_eq!(starred.text(&(16..38)), "\n* = 'redis://:**@h'\n");
    }
}
