//! The comment above an entry, for its `description`; tools leave names there, too.
//!
//! Must never: take for words what is a picture of the fields, or an entry that is switched off.

use super::fields;

/// How tools mark the entries that they write.
const MARKS: [&str; 4] = [
    "Ansible: ",
    "Puppet Name: ",
    "Chef Name: ",
    "SALT_CRON_IDENTIFIER:",
];

/// Longer ones are about more than one entry.
const LINES: usize = 3;

/// Words over the columns, as in `# m h dom mon dow command`.
const COLUMNS: [&str; 30] = [
    "m",
    "h",
    "dom",
    "mon",
    "dow",
    "user",
    "command",
    "min",
    "minute",
    "minutes",
    "hour",
    "hours",
    "day",
    "days",
    "month",
    "months",
    "week",
    "weekday",
    "of",
    "the",
    "mins",
    "hrs",
    "cmd",
    "username",
    "user-name",
    "d",
    "mm",
    "w",
    "dm",
    "dw",
];

/// What is said about an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) text: Option<String>,
    /// The name that a tool gave it.
    pub(super) name: Option<String>,
}

/// The lines of a comment up to here.
#[derive(Debug, Default)]
pub(super) struct Comments(Vec<String>);

impl Comments {
    /// A line, without its first `#`.
    pub(super) fn add(&mut self, line: &str) {
        let line = line.trim_start_matches('#').trim();
        let has_words = line.chars().any(char::is_alphanumeric);
        // An empty one ends a paragraph: what is above is about something else.
        if !has_words || is_picture(line) || is_switched_off(line) {
            self.end();
        } else {
            self.0.push(line.to_owned());
        }
    }

    pub(super) fn end(&mut self) {
        self.0.clear();
    }

    /// What they say about the entry that follows.
    pub(super) fn take(&mut self) -> Description {
        let mut lines = std::mem::take(&mut self.0);
        let mut name = None;
        for mark in MARKS {
            lines.retain(|line| match line.strip_prefix(mark) {
                Some(marked) => {
                    name = Some(marked.trim().to_owned());
                    false
                }
                None => true,
            });
        }
        let is_short = !lines.is_empty() && lines.len() <= LINES;
        let text = is_short.then(|| lines.join(" ")).or_else(|| name.clone());
        Description { text, name }
    }
}

/// Part of a drawing of the fields, or their names in a row.
fn is_picture(line: &str) -> bool {
    let is_drawn = line.starts_with([
        '~', '|', '.', '*', '+', '-', '\u{2502}', '\u{250c}', '\u{2514}',
    ]);
    let is_column = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.is_empty() || COLUMNS.contains(&word.to_ascii_lowercase().as_str())
    };
    is_drawn
        || line
            .split(|c: char| c.is_whitespace() || c == ',')
            .all(is_column)
}

/// An entry or a variable behind a `#`.
fn is_switched_off(line: &str) -> bool {
    let is_variable = line.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim();
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    is_variable || fields::looks_like_entry(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(lines: &[&str]) -> Description {
        let mut comments = Comments::default();
        for line in lines {
            comments.add(line);
        }
        comments.take()
    }

    #[test]
    fn the_last_paragraph_above_an_entry_describes_it() {
        for (lines, text) in [
            (&[" Backs up", "# the shop"][..], Some("Backs up the shop")),
            (&[" See crontab(5).", "", " Backs up"], Some("Backs up")),
            (&[" Backs up", " m h  dom mon dow   command"], None),
            (&[" Backs up", "0 5 * * * /x"], None),
            (&["MAILTO=x"], None),
            (&["@daily root /x"], None),
            (&["--------"], None),
            (&["~ MAGENTO START"], None),
            (&[" |  .------------- hour (0 - 23)"], None),
            (&["a", "b", "c", "d"], None),
            (&[" Ansible: nightly backup"], Some("nightly backup")),
            (&[], None),
        ] {
            assert_eq!(description(lines).text.as_deref(), text, "{lines:?}");
        }
        let named = description(&[" Puppet Name: dump-db", " Keeps a week"]);
        assert_eq!(named.name.as_deref(), Some("dump-db"));
        assert_eq!(named.text.as_deref(), Some("Keeps a week"));
    }
}
