//! What the name and the value of a tag may look like.
//!
//! Must never: show more of a text than the character that is wrong with it.

/// The longest name or value of a tag, in bytes: that of a label in Kubernetes.
const TAG_LENGTH_LIMIT: usize = 63;

/// What a tag may look like.
pub(crate) const FORM: &str = "a tag is `NAME=VALUE`, each of 1 to 63 letters, digits, `.`, `_`, `-`, `/` and `:`, such as `zone=eu`";

/// Whether a text can be the name or the value of a tag; if not, what is wrong with it.
pub(crate) fn check_part(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    if text.is_empty() {
        return Err("is empty".into());
    }
    if let Some(stray) = text.chars().find(|c| !is_plain(*c)) {
        return Err(format!("has `{}` in it", stray.escape_debug()));
    }
    if text.len() > TAG_LENGTH_LIMIT {
        return Err(format!("has over {TAG_LENGTH_LIMIT} characters"));
    }
    Ok(())
}
