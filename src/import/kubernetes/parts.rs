//! Texts in which some of it is known only where the job runs: a value from a Secret, say.
//!
//! Must never: let a literal be taken for a reference, or a reference for a literal.

use crate::import::draft::escape_references;

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Literal(String),
    /// The variable that is to hold it, with what `env` calls it in a table.
    Variable(String),
}

/// A text in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts(pub(super) Vec<Part>);

impl Parts {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self(vec![Part::Literal(text.into())])
    }

    pub(super) fn variable(name: impl Into<String>) -> Self {
        Self(vec![Part::Variable(name.into())])
    }

    pub(super) fn push(&mut self, c: char) {
        match self.0.last_mut() {
            Some(Part::Literal(text)) => text.push(c),
            _ => self.0.push(Part::Literal(c.into())),
        }
    }

    pub(super) fn append(&mut self, other: &Parts) {
        self.0.extend(other.0.iter().cloned());
    }

    /// The text, where all of it is known.
    pub(super) fn known(&self) -> Option<String> {
        let literal = |part: &Part| match part {
            Part::Literal(text) => Some(text.clone()),
            Part::Variable(_) => None,
        };
        self.0.iter().map(literal).collect()
    }

    /// As a value of `env` in jobs.toml.
    pub(super) fn for_env(&self) -> String {
        // Escaped as a whole: a `$` at the end of a piece may meet a `{` of the next.
        let mut text = String::new();
        let mut literal = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(piece) => literal.push_str(piece),
                Part::Variable(name) => {
                    text.push_str(&escape_references(&std::mem::take(&mut literal)));
                    text.push_str(&format!("${{{name}}}"));
                }
            }
        }
        text + &escape_references(&literal)
    }

    /// As a word of a shell.
    pub(super) fn for_shell(&self) -> String {
        let word = |part: &Part| match part {
            Part::Literal(text) if text.is_empty() => String::new(),
            Part::Literal(text) if text.chars().all(is_plain) => text.clone(),
            Part::Literal(text) => format!("'{}'", text.replace('\'', "'\\''")),
            Part::Variable(name) => format!("\"${{{name}}}\""),
        };
        let text: String = self.0.iter().map(word).collect();
        if text.is_empty() { "''".into() } else { text }
    }

    /// As a piece of a script, where a shell fills it in.
    pub(super) fn for_script(&self) -> String {
        let piece = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Variable(name) => format!("${{{name}}}"),
        };
        self.0.iter().map(piece).collect()
    }
}

/// What no shell has a meaning for.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_spelled_for_whoever_fills_it_in() {
        let parts = Parts(vec![
            Part::Literal("it's ${x} ".into()),
            Part::Variable("TOKEN".into()),
            Part::Literal("/a".into()),
        ]);
        assert_eq!(parts.known(), None);
        assert_eq!(parts.for_env(), "it's $${x} ${TOKEN}/a");
        assert_eq!(parts.for_shell(), "'it'\\''s ${x} '\"${TOKEN}\"/a");
        assert_eq!(parts.for_script(), "it's ${x} ${TOKEN}/a");
        assert_eq!(Parts::default().for_shell(), "''");
        assert_eq!(Parts::literal("a=b").for_shell(), "a=b");
    }
}
