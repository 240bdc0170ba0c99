//! A frame on a terminal: drawn over the one before, cut to the terminal's size.
//!
//! Each line is erased to its end as it is written, and what is below the last one at the end, so
//! that nothing flickers and nothing is left of a longer frame. Must never: write a line that the
//! terminal would wrap, as the frame would no longer begin at its top.

use std::io;

use rustix::termios::tcgetwinsize;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How much room there is, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

/// That of a terminal which doesn't say.
const USUAL: Size = Size {
    rows: 24,
    columns: 80,
};

/// A line, a word on what is left out, and the cursor.
const FEWEST_ROWS: usize = 3;

/// What begins a line that tells of trouble.
const TROUBLE: &str = "! ";

impl Size {
    pub(super) fn of_stdout() -> Self {
        let told = tcgetwinsize(io::stdout()).ok();
        let told = told.filter(|size| size.ws_row > 0 && size.ws_col > 0);
        told.map_or(USUAL, |size| Size {
            rows: size.ws_row.into(),
            columns: size.ws_col.into(),
        })
    }
}

/// What to write. The first frame clears what is there.
pub(super) fn draw(frame: &str, size: Size, is_first: bool) -> String {
    let mut text = String::from(if is_first { "\x1b[H\x1b[2J" } else { "\x1b[H" });
    for line in cut(frame, size) {
        text += &line;
        text += "\x1b[K\n";
    }
    text + "\x1b[J"
}

/// The lines that there is room for, with a row left for the cursor.
fn cut(frame: &str, size: Size) -> Vec<String> {
    let room = size.rows.max(FEWEST_ROWS) - 1;
    let lines = frame.trim_end().lines();
    let lines: Vec<String> = lines.flat_map(|line| wrap(line, size.columns)).collect();
    let shown = if lines.len() > room {
        room - 1
    } else {
        lines.len()
    };
    let cut = lines[..shown].iter();
    let mut cut: Vec<String> = cut.map(|line| narrow(line, size.columns)).collect();
    if shown < lines.len() {
        let left = lines.len() - shown;
        cut.push(narrow(&format!("… {left} more lines"), size.columns));
    }
    cut
}

/// A line that tells of trouble on as many as it takes: its cure is at its end. Others stay one.
fn wrap(line: &str, columns: usize) -> Vec<String> {
    if !line.starts_with(TROUBLE) {
        return vec![line.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match lines.last_mut() {
            Some(last) if last.width() + 1 + word.width() <= columns => {
                last.push(' ');
                last.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// As much of a line as there is room for. What has no width, such as a stray control
/// character, is left out.
fn narrow(line: &str, columns: usize) -> String {
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken <= columns
    };
    let visible = line.chars().filter(|c| !c.is_control());
    visible.take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut_to(frame: &str, rows: usize, columns: usize) -> Vec<String> {
        cut(frame, Size { rows, columns })
    }

    #[test]
    fn a_frame_with_room_is_shown_whole() {
        assert_eq!(cut_to("a\n\nb\n", 4, 80), ["a", "", "b"]);
    }

    #[test]
    fn a_frame_without_room_says_how_much_is_left_out() {
        assert_eq!(cut_to("a\nb\nc\nd\n", 4, 80), ["a", "b", "… 2 more lines"]);
        assert_eq!(cut_to("a\nb\nc\n", 1, 80), ["a", "… 2 more lines"]);
    }

    #[test]
    fn a_line_is_cut_where_the_terminal_would_wrap_it() {
        assert_eq!(cut_to("abcdef", 9, 3), ["abc"]);
        // Of a character that takes two columns, no half is shown.
        assert_eq!(cut_to("a日本", 9, 4), ["a日"]);
        assert_eq!(cut_to("a\u{1b}[31mb", 9, 80), ["a[31mb"]);
    }

    #[test]
    fn a_line_that_tells_of_trouble_is_told_to_its_end() {
        let lines = cut_to("! no answer, look there\nand this is cut", 9, 12);
        assert_eq!(lines, ["! no answer,", "  look there", "and this is "]);
        let lines = cut_to("! averyveryverylongword", 9, 12);
        assert_eq!(lines, ["!", "  averyveryv"]);
    }

    #[test]
    fn a_frame_erases_what_the_one_before_it_left() {
        let size = Size {
            rows: 9,
            columns: 80,
        };
        let first = draw("a\nb\n", size, true);
        assert_eq!(first, "\x1b[H\x1b[2Ja\x1b[K\nb\x1b[K\n\x1b[J");
        let next = draw("c\n", size, false);
        assert_eq!(next, "\x1b[Hc\x1b[K\n\x1b[J");
    }
}
