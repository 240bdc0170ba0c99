//! The command line: what was asked for, done by a file per command.
//!
//! Results go to stdout, errors and the log to stderr. Must never decide anything about jobs.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

mod args;
mod check;
mod logging;
mod next;
mod preview;
mod settings;

use args::{Args, Command, Global};

use crate::scheduler::time::Timestamp;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It did what was asked: 0.
    Done,
    /// It could not: 1.
    Failed,
    /// What was asked, or the table, makes no sense: 2.
    Usage,
    /// The store can't be reached: 3.
    #[expect(dead_code, reason = "for the commands that talk to the store")]
    StoreUnreachable,
    /// A job's own code, passed on.
    #[expect(dead_code, reason = "for run-once")]
    OfJob(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Failed => ExitCode::from(1),
            Exit::Usage => ExitCode::from(2),
            Exit::StoreUnreachable => ExitCode::from(3),
            Exit::OfJob(code) => ExitCode::from(code),
        }
    }
}

/// Runs the command line and says how it ended.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout and may meet a closed pipe, like any output.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if let Err(exit) = logging::start(&args.global) {
        return exit.into();
    }
    tracing::debug!(version = env!("CARGO_PKG_VERSION"), "starting");
    dispatch(&args.global, &args.command).into()
}

fn dispatch(global: &Global, command: &Command) -> Exit {
    match command {
        Command::Run(args) => run::run(global, args),
        Command::Check => check::run(global),
        Command::Next(args) => next::run(global, args),
        Command::Status(args) => status::run(global, args),
        Command::History(args) => history::run(global, args),
        Command::Logs(args) => logs::run(global, args),
        Command::RunOnce(args) => run_once::run(global, args),
    }
}

/// Writes a result to stdout. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: &str) -> Exit {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Ok(()) => Exit::Done,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
        Err(error) => complain(
            Exit::Failed,
            &format!("failed to write to stdout: {error}"),
            None,
        ),
    }
}

/// Says on stderr what is wrong and what to do about it, and passes the exit on.
pub(crate) fn complain(exit: Exit, message: &str, hint: Option<&str>) -> Exit {
    let hint = hint.map_or(String::new(), |hint| format!("  = help: {hint}\n"));
    print_error(&format!("error: {message}\n{hint}"));
    exit
}

/// Writes to stderr; when even that is gone, the exit code has to do.
pub(crate) fn print_error(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Now, for what is shown to people; nothing is decided by it.
pub(crate) fn now() -> Timestamp {
    jiff::Timestamp::now().into()
}

/// Whether stderr takes colours: a terminal, and nobody said no (<https://no-color.org>).
pub(crate) fn stderr_has_colour() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !unwanted
}

/// Stands in for the commands that are on their way.
macro_rules! on_its_way {
    ($($module:ident($args:ident)),*) => {$(
        mod $module {
            pub(super) fn run(_: &super::Global, _: &super::args::$args) -> super::Exit {
                let name = stringify!($module).replace('_', "-");
                let message = format!("`{name}` is not supported yet");
                super::complain(super::Exit::Failed, &message, None)
            }
        }
    )*};
}

on_its_way!(
    run(RunArgs),
    status(StatusArgs),
    history(HistoryArgs),
    logs(LogsArgs),
    run_once(RunOnceArgs)
);
