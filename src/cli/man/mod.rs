//! `soloist man`: manual pages, made of the declared command line and the table of keys.
//!
//! ```text
//!  args ──▶ command: soloist.1 with a section for each command, soloist-COMMAND.1
//!  config ─▶ table: jobs.toml.5
//!  words: what neither of them says (environment, signals, files)
//! ```
//!
//! Must never: describe a flag or a key a second time, or show a variable's value.

use std::path::Path;

use super::args::{ManArgs, declared};
use super::{Exit, complain, print};

mod command;
mod page;
mod table;
mod words;

/// A manual page and the name of its file.
struct Written {
    file: String,
    text: Vec<u8>,
}

/// Prints the main page, or writes all of them.
pub(super) fn run(args: &ManArgs) -> Exit {
    match &args.directory {
        None => print(command::main_page(&built())),
        Some(directory) => write(directory),
    }
}

/// With what clap itself adds, such as `--help`, and the options of every command in each.
fn built() -> clap::Command {
    let mut command = declared()
        .disable_help_subcommand(true)
        .subcommand_value_name("COMMAND");
    command.build();
    command
}

fn all() -> Vec<Written> {
    let command = built();
    let mut pages = vec![
        Written {
            file: "soloist.1".to_owned(),
            text: command::main_page(&command),
        },
        Written {
            file: "jobs.toml.5".to_owned(),
            text: table::page(),
        },
    ];
    pages.extend(command::shown(&command).map(|one| Written {
        file: format!("soloist-{}.1", one.get_name()),
        text: command::page_of(one),
    }));
    pages
}

fn write(directory: &Path) -> Exit {
    let failed = |path: &Path, error: std::io::Error| {
        let message = format!("failed to write `{}`: {error}", path.display());
        let hint = "name a directory that you may write to: `soloist man --directory man`";
        complain(Exit::Failed, &message, Some(hint))
    };
    if let Err(error) = std::fs::create_dir_all(directory) {
        return failed(directory, error);
    }
    for page in all() {
        let path = directory.join(&page.file);
        if let Err(error) = std::fs::write(&path, &page.text) {
            return failed(&path, error);
        }
    }
    Exit::Done
}
