//! The `soloist` command; everything it does lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything makes a second thread.
    soloist::guardian::run_if_guardian();
    soloist::cli::main()
}
