//! `soloist completions`: what a shell needs to complete commands and flags.
//!
//! Names of jobs are not completed: a script knows no table, and one that asked soloist for them
//! at each key would read it, with all that it refers to.
//!
//! Must never: need a table or a store.

use super::args::{CompletionsArgs, declared};
use super::{Exit, print};

/// Prints the script of a shell.
pub(super) fn run(args: &CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut declared(), "soloist", &mut script);
    print(script)
}
