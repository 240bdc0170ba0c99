//! The tags of this replica: `--tag`, over SOLOIST_TAGS, over `tags` of the file, name by name.
//!
//! Must never: read the environment for anything else.

use super::{Exit, complain};
use crate::config::parse_tag;
use crate::scheduler::policy::Tags;

const VARIABLE: &str = "SOLOIST_TAGS";

/// What `run` was given over what the file has.
pub(super) fn over(file: Tags, given: &Tags) -> Tags {
    let mut tags = file;
    tags.extend(given.clone());
    tags
}

/// What `run` was given: flags, over the variable.
pub(super) fn given(flags: &[String]) -> Result<Tags, Exit> {
    let mut tags = Tags::new();
    let variable = std::env::var_os(VARIABLE).unwrap_or_default();
    let variable = variable.to_string_lossy();
    // Nothing between two commas, or after the last one, is no slip worth stopping for.
    let listed = variable
        .split(',')
        .map(str::trim)
        .filter(|tag| !tag.is_empty());
    tags.extend(read(VARIABLE, listed)?);
    tags.extend(read("--tag", flags.iter().map(String::as_str))?);
    Ok(tags)
}

fn read<'t>(place: &str, texts: impl Iterator<Item = &'t str>) -> Result<Tags, Exit> {
    let refuse = |text: &str, message: &str, hint: &str| {
        let message = format!("`{place}`: `{}` {message}", text.escape_debug());
        Err(complain(Exit::Usage, &message, Some(hint)))
    };
    let mut tags = Tags::new();
    for text in texts {
        match parse_tag(text) {
            Ok((name, value)) => {
                if tags.insert(name, value).is_some() {
                    let hint = "a tag has one value: keep one of them";
                    return refuse(text, "names a tag that is there already", hint);
                }
            }
            Err(error) => return refuse(text, &error.message, &error.hint),
        }
    }
    Ok(tags)
}
