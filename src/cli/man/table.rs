//! jobs.toml.5: the keys of the table, from the same place as its schema.
//!
//! Must never: have a key that the table of keys doesn't have.

use super::page::Page;
use crate::config::{Described, Table};

/// What there is to say before the keys.
const DESCRIPTION: [&str; 3] = [
    "The table of jobs, in TOML: the same file on every replica. `soloist check` shows every error in its place, and `soloist schema` prints a JSON Schema for editors.",
    "Durations are texts of whole numbers with units, the larger ones first: \"500ms\", \"10s\", \"1h30m\", \"30d\". Sizes are bytes, or texts such as \"64KiB\".",
    "${VAR}, ${VAR:-default} and ${file:/run/secrets/x} are filled in in [scheduler], env and http alone.",
];

const EXAMPLE: &str = "\
[scheduler]
store = \"redis://127.0.0.1:6379\"

[jobs.close-expired-orders]
schedule = \"0 */1 * * * ?\"
command = [\"close-expired-orders\", \"--older-than\", \"30m\"]
timeout = \"50s\"";

pub(super) fn page() -> Vec<u8> {
    let mut page = Page::new("jobs.toml", "5");
    page.section("NAME");
    page.append(b"jobs.toml \\- the table of jobs of soloist\n");
    page.section("DESCRIPTION");
    for text in DESCRIPTION {
        page.paragraph(text);
    }
    for table in Table::ALL {
        page.section(table.head());
        for key in table.keys() {
            page.item(key.name, key.takes, &meaning(&key));
        }
    }
    page.section("EXAMPLE");
    for part in EXAMPLE.split("\n\n") {
        page.lines(part);
    }
    page.section("SEE ALSO");
    page.paragraph("soloist(1), soloist-check(1), soloist-next(1)");
    page.finish()
}

fn meaning(key: &Described) -> String {
    let Some(meaning) = key.meaning else {
        return String::new();
    };
    let words = key.words();
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let words = match quoted.is_empty() {
        true => String::new(),
        false => format!(" Takes {}.", quoted.join(", ")),
    };
    let default = meaning.default;
    let default = default.map_or(String::new(), |default| format!(" Default: {default}."));
    format!("{}{words}{default}", meaning.text)
}
