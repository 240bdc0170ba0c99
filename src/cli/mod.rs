//! The command line.

use std::process::ExitCode;

/// Runs the command line and says how it ended.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
