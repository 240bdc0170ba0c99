//! The `soloist` command; everything it does lives in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    soloist::cli::main()
}
