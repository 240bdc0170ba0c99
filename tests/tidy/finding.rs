//! What a rule has to say.

use std::fmt;

/// A place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The rule, and how it is broken here.
    pub(crate) what: String,
    pub(crate) cure: &'static str,
}

impl Finding {
    pub(crate) fn new(
        path: &str,
        line: usize,
        what: impl Into<String>,
        cure: &'static str,
    ) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
            cure,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            path,
            line,
            what,
            cure,
        } = self;
        write!(f, "{path}:{line}: {what}\n    cure: {cure}")
    }
}

/// The lines that were found, for the tests of rules.
pub(crate) fn lines(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(|finding| finding.line).collect()
}

#[test]
fn a_finding_names_file_line_rule_and_cure() {
    let finding = Finding::new("src/a.rs", 7, "a rule is broken", "mend it");
    let said = finding.to_string();
    assert_eq!(said, "src/a.rs:7: a rule is broken\n    cure: mend it");
}
