//! Cuts a stream of bytes into lines fit for a log: bounded in length, valid UTF-8.

use std::borrow::Cow;

/// The longest line that is logged in one piece, in bytes. Well under what journald (48 KiB)
/// and container runtimes (16 KiB) would split by themselves.
pub(super) const LINE_LENGTH_LIMIT: usize = 8 * 1024;

/// The longest character of UTF-8, in bytes.
const CHAR_LENGTH_MAX: usize = 4;

/// Holds back the line that has not ended yet, at most [`LINE_LENGTH_LIMIT`] of it.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    unfinished: Vec<u8>,
}

impl LineSplitter {
    /// Passes on every line that `bytes` ends, without its line break; a longer one in pieces.
    pub(super) fn push(&mut self, bytes: &[u8], mut log: impl FnMut(&str)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let room = LINE_LENGTH_LIMIT - self.unfinished.len();
            // One more than fits: the break itself doesn't count.
            let window = &rest[..rest.len().min(room + 1)];
            match window.iter().position(|byte| *byte == b'\n') {
                Some(end) => {
                    self.emit(&rest[..end], &mut log);
                    rest = &rest[end + 1..];
                }
                None if rest.len() <= room => {
                    self.unfinished.extend_from_slice(rest);
                    return;
                }
                None => {
                    self.unfinished.extend_from_slice(&rest[..room]);
                    rest = &rest[room..];
                    self.emit_piece(&mut log);
                }
            }
        }
    }

    /// Passes on a last line that had no line break.
    pub(super) fn finish(&mut self, mut log: impl FnMut(&str)) {
        if !self.unfinished.is_empty() {
            self.emit(&[], &mut log);
        }
    }

    fn emit(&mut self, end: &[u8], log: &mut impl FnMut(&str)) {
        if self.unfinished.is_empty() {
            log(&text(end)); // the usual case: no copy
        } else {
            self.unfinished.extend_from_slice(end);
            log(&text(&self.unfinished));
            self.unfinished.clear();
        }
    }

    /// Passes on a full buffer that no line break ends, cut between two characters.
    fn emit_piece(&mut self, log: &mut impl FnMut(&str)) {
        let cut = char_boundary(&self.unfinished);
        log(&text(&self.unfinished[..cut]));
        self.unfinished.drain(..cut);
    }
}

/// NUL is spelled out: tools that search a log take it for binary where there is one.
fn text(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line.strip_suffix(b"\r").unwrap_or(line));
    match text.contains('\0') {
        true => text.replace('\0', "\\0").into(),
        false => text,
    }
}

/// Where the last character starts if its end may be missing, else the end.
fn char_boundary(bytes: &[u8]) -> usize {
    let is_start = |byte: u8| byte & 0xC0 != 0x80;
    for back in 1..CHAR_LENGTH_MAX.min(bytes.len()) {
        let at = bytes.len() - back;
        if is_start(bytes[at]) {
            let is_multi_byte = bytes[at] >= 0xC0;
            return if is_multi_byte { at } else { bytes.len() };
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut splitter = LineSplitter::default();
        for piece in pieces {
            splitter.push(piece, |line| lines.push(line.to_owned()));
        }
        splitter.finish(|line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn lines_end_where_they_end_whatever_the_reads() {
        assert_eq!(lines_of(&[b"a\nb", b"c\r\n\nd"]), ["a", "bc", "", "d"]);
        assert_eq!(lines_of(&[b"\xffx\n"]), ["\u{fffd}x"]);
        assert_eq!(lines_of(&[b"a\0b\n"]), ["a\\0b"]);
        assert!(lines_of(&[]).is_empty());
    }

    #[test]
    fn a_line_of_precisely_the_limit_stays_whole() {
        let line = "x".repeat(LINE_LENGTH_LIMIT);
        assert_eq!(lines_of(&[line.as_bytes(), b"\n"]), [line.as_str()]);
        assert_eq!(
            lines_of(&[format!("{line}\ny").as_bytes()]),
            [line.as_str(), "y"]
        );
    }

    #[test]
    fn an_endless_line_comes_in_pieces_cut_between_characters() {
        let endless = "ä€𝄞".repeat(LINE_LENGTH_LIMIT);
        let lines = lines_of(&[endless.as_bytes()]);
        assert!(lines.iter().all(|line| line.len() <= LINE_LENGTH_LIMIT));
        assert_eq!(lines.concat(), endless);
    }

    proptest! {
        // Each case is tens of kilobytes.
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn nothing_is_lost_and_no_more_than_a_line_is_held(
            pieces in prop::collection::vec("[a\n€]{0,9000}", 0..5),
        ) {
            let mut lines = Vec::new();
            let mut splitter = LineSplitter::default();
            for piece in &pieces {
                splitter.push(piece.as_bytes(), |line| lines.push(line.to_owned()));
                prop_assert!(splitter.unfinished.len() <= LINE_LENGTH_LIMIT);
            }
            splitter.finish(|line| lines.push(line.to_owned()));
            let without_breaks: String = pieces.concat().replace('\n', "");
            prop_assert_eq!(lines.concat(), without_breaks);
        }
    }
}
