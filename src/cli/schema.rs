//! `soloist schema`: what jobs.toml may look like, as JSON Schema.
//!
//! Must never: need a table or a store.

use super::{Exit, output};
use crate::config;

/// Prints it.
pub(super) fn run() -> Exit {
    output::json(&config::schema())
}
