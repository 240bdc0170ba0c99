//! The parts that all manual pages are made of.
//!
//! Must never: leave out an argument of a macro: those after it would move into its place.

use clap_mangen::roff::{Roff, bold, italic, roman};

/// An argument that is there and says nothing.
const NOTHING: &str = "\"\"";

/// A page that grows by its sections.
pub(super) struct Page {
    text: Vec<u8>,
}

impl Page {
    /// Begins a page. No date: the same program writes the same page on each day.
    pub(super) fn new(title: &str, section: &str) -> Self {
        let source = format!("soloist {}", env!("CARGO_PKG_VERSION"));
        let mut page = Self { text: Vec::new() };
        let title = title.to_uppercase();
        page.add(|roff| {
            roff.control(
                "TH",
                [&*title, section, NOTHING, &*source, "soloist manual"],
            );
        });
        page
    }

    pub(super) fn section(&mut self, name: &str) {
        self.add(|roff| {
            roff.control("SH", [name]);
        });
    }

    pub(super) fn subsection(&mut self, name: &str) {
        self.add(|roff| {
            roff.control("SS", [name]);
        });
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        self.add(|roff| {
            roff.control("PP", []).text([roman(text)]);
        });
    }

    /// A term and what is to be said of it.
    pub(super) fn item(&mut self, term: &str, more: Option<&str>, text: &str) {
        self.add(|roff| {
            let mut head = vec![bold(term)];
            if let Some(more) = more {
                head.extend([roman(" "), italic(more)]);
            }
            roff.control("TP", []).text(head).text([roman(text)]);
        });
    }

    /// Lines that stay lines.
    pub(super) fn lines(&mut self, text: &str) {
        self.add(|roff| {
            roff.control("PP", []);
            for (number, line) in text.lines().enumerate() {
                if number > 0 {
                    roff.control("br", []);
                }
                roff.text([roman(line.trim_start())]);
            }
        });
    }

    /// What somebody else wrote.
    pub(super) fn append(&mut self, roff: &[u8]) {
        self.text.extend_from_slice(roff);
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.text
    }

    fn add(&mut self, write: impl FnOnce(&mut Roff)) {
        let mut roff = Roff::new();
        write(&mut roff);
        self.text.extend_from_slice(roff.render().as_bytes());
    }
}
