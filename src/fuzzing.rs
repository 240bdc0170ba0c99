//! What any input has to do, for a fuzzer: a function for each reader of what others write. It
//! takes bytes, and panics where a law is broken.
//!
//! Compiled for tests, which replay the corpus of `tests/fuzz`, and for whoever fuzzes
//! (`--cfg fuzzing`); nobody else has it.
//!
//! Must never: open a socket or a file that the input names, or read a clock: the same input does
//! the same, always.

/// A target: its name, which its folder in the corpus has too, and what an input has to hold to.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 9] = [
    ("calendars", crate::config::fuzzing::calendar),
    ("config", crate::config::fuzzing::table),
    ("http", crate::http::fuzzing::requests),
    ("import", crate::import::fuzzing::foreign_table),
    ("records", crate::store::fuzzing::record),
    ("replies", crate::store::fuzzing::reply),
    ("schedules", crate::scheduler::schedule::fuzzing::expression),
    ("urls", crate::store_url::fuzzing::url),
    ("wire", crate::guardian::fuzzing::messages),
];

/// Does with an input what a target does.
///
/// # Panics
/// When the input breaks a law, or there is no such target.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (_, target) = target.expect("a target has this name");
    target(input);
}

#[cfg(test)]
mod tests;
