//! Errors name the fault, underline precisely it, and say what to do; warnings likewise.

mod any_text;
mod days;
mod fields;
mod special;
mod warnings;

use super::*;

/// Asserts that a text is refused, with the part at fault, the message, and part of the hint.
#[track_caller]
fn refused(text: &str, at_fault: &str, message: &str, hint: &str) {
    let error = read(text, "job").expect_err(text);
    assert_eq!(
        text.get(error.span.clone()),
        Some(at_fault),
        "{text}: {error:?}"
    );
    assert_eq!(error.message, message, "{text}");
    let given = error.hint.clone().unwrap_or_default();
    assert!(
        given.contains(hint) && (hint.is_empty() == given.is_empty()),
        "{text}: {given}"
    );
}
