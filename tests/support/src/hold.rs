//! A program that holds another one's first thread, so that a loop is stuck while all else runs.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The program: `hold PROGRAM ARGUMENT…`; SIGUSR1 holds the first thread, SIGUSR2 lets it go.
///
/// # Panics
///
/// When it can't be compiled.
pub fn hold() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| crate::c::compile("hold", include_str!("hold.c")))
}
