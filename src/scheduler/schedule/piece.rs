//! A part of a schedule's text that knows where it stands, so that errors can underline it.
//!
//! It must never judge what the text means.

use std::ops::Range;

use super::{ScheduleError, ScheduleWarning};

/// A slice of the text and the byte at which it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The slice.
    pub(super) text: &'a str,
    /// Where it starts.
    pub(super) start: usize,
}

impl<'a> Piece<'a> {
    /// The whole text, without the white space around it.
    pub(super) fn trimmed(text: &'a str) -> Self {
        Self { text, start: 0 }.trim()
    }

    /// Without the white space around it.
    pub(super) fn trim(self) -> Self {
        let rest = self.text.trim_ascii_start();
        let start = self.start + (self.text.len() - rest.len());
        Self {
            text: rest.trim_ascii_end(),
            start,
        }
    }

    /// The bytes of the text.
    pub(super) fn span(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    /// From byte `at` of this piece on.
    pub(super) fn from(self, at: usize) -> Self {
        Self {
            text: &self.text[at..],
            start: self.start + at,
        }
    }

    /// Up to byte `at` of this piece.
    pub(super) fn to(self, at: usize) -> Self {
        Self {
            text: &self.text[..at],
            start: self.start,
        }
    }

    /// The parts before and after the first `mark`, if it is there.
    pub(super) fn split_once(self, mark: char) -> Option<(Self, Self)> {
        let at = self.text.find(mark)?;
        Some((self.to(at), self.from(at + mark.len_utf8())))
    }

    /// The parts between the `mark`s.
    pub(super) fn split(self, mark: char) -> impl Iterator<Item = Self> {
        let mut start = self.start;
        self.text.split(mark).map(move |text| {
            let piece = Self { text, start };
            start += text.len() + mark.len_utf8();
            piece
        })
    }

    /// The words between white space.
    pub(super) fn words(self) -> Vec<Self> {
        let base = self.text.as_ptr() as usize;
        let place = |word: &'a str| Self {
            text: word,
            start: self.start + (word.as_ptr() as usize - base),
        };
        self.text.split_ascii_whitespace().map(place).collect()
    }

    /// Whether it is this word, in capitals or not.
    pub(super) fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }

    /// Without this word at its end, in capitals or not.
    pub(super) fn strip_suffix(self, suffix: &str) -> Option<Self> {
        let at = self.text.len().checked_sub(suffix.len())?;
        let matches = self.text.get(at..)?.eq_ignore_ascii_case(suffix);
        matches.then(|| self.to(at))
    }

    /// Without this word at its start, in capitals or not.
    pub(super) fn strip_prefix(self, prefix: &str) -> Option<Self> {
        let matches = self.text.get(..prefix.len())?.eq_ignore_ascii_case(prefix);
        matches.then(|| self.from(prefix.len()))
    }

    /// It, as a whole number: digits alone, no sign.
    pub(super) fn number(self) -> Option<u64> {
        let digits = !self.text.is_empty() && self.text.bytes().all(|b| b.is_ascii_digit());
        // Too many digits is a number too large, which the caller's range refuses.
        digits.then(|| self.text.parse().unwrap_or(u64::MAX))
    }

    /// The error that this piece is at fault.
    pub(super) fn error(self, message: impl Into<String>) -> ScheduleError {
        ScheduleError {
            message: message.into(),
            span: self.span(),
            hint: None,
        }
    }

    /// A warning about this piece.
    pub(super) fn warning(self, message: impl Into<String>) -> ScheduleWarning {
        ScheduleWarning {
            message: message.into(),
            span: self.span(),
        }
    }
}

impl ScheduleError {
    /// With what to do about it.
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}
