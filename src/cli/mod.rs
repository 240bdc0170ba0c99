//! The command line: what was asked for, done by a file per command.
//!
//! Results go to stdout, errors and the log to stderr. Must never decide anything about jobs.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

mod args;
mod check;
mod completions;
mod healthcheck;
mod history;
mod import;
mod journal;
mod listening;
mod lock;
mod logging;
mod logs;
mod man;
mod next;
mod orders;
mod output;
mod policies;
mod preview;
mod run;
mod run_once;
mod schema;
mod settings;
mod status;
mod store;
mod tags;
mod verify;
mod why;

use rustix::process::{Resource, getpid, getrlimit, setrlimit};

use args::{Args, Command, Global};

use crate::clock::{Clock as _, SystemClock};
use crate::guardian::GUARDIAN_VARIABLE;
use crate::scheduler::time::Timestamp;
use crate::verify::part;

/// What a shell adds to the number of the signal that ended a command.
const SIGNALED: i32 = 128;

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
    StoreUnreachable,
    /// A job's own code, passed on.
    OfJob(u8),
    /// By the signal that told it to stop, so that a shell knows: it ends its loop at Ctrl-C
    /// (<https://www.cons.org/cracauer/sigint.html>).
    BySignal(i32),
}

impl Exit {
    /// This one, unless it is that all went well.
    pub(crate) fn or(self, other: Exit) -> Exit {
        match self {
            Exit::Done => other,
            failed => failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Done => ExitCode::SUCCESS,
            Exit::Failed => ExitCode::from(1),
            Exit::Usage => ExitCode::from(2),
            Exit::StoreUnreachable => ExitCode::from(3),
            Exit::OfJob(code) => ExitCode::from(code),
            // As a shell would say it.
            Exit::BySignal(signal) => {
                u8::try_from(SIGNALED + signal).map_or(ExitCode::FAILURE, ExitCode::from)
            }
        }
    }
}

/// Runs the command line and says how it ended.
pub fn main() -> ExitCode {
    if std::env::var_os(GUARDIAN_VARIABLE).is_some() {
        let message = format!("{GUARDIAN_VARIABLE} is set, which is soloist's own mark");
        return complain(Exit::Usage, &message, Some("unset it")).into();
    }
    if let Some(ended) = part::run_if_asked(&SystemClock) {
        return ended;
    }
    let args = match Args::read() {
        Ok(args) => args,
        Err(error) => {
            // Help goes to stdout and may meet a closed pipe, like any output.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let written_at_the_end = match logging::start(&args.global, &args.command) {
        Ok(guard) => guard,
        Err(exit) => return exit.into(),
    };
    tracing::debug!(version = env!("CARGO_PKG_VERSION"), "starting");
    let exit = dispatch(&args.global, &args.command);
    drop(written_at_the_end);
    if let Exit::BySignal(signal) = exit {
        end_by(signal);
    }
    exit.into()
}

/// Ends this process by a signal; returns where that can't be, as for the first process of a
/// container.
fn end_by(signal: i32) {
    if getpid().is_init() {
        return;
    }
    // SIGQUIT is for whoever runs the command; this process is no riddle.
    let mut limit = getrlimit(Resource::Core);
    limit.current = Some(0);
    let _ = setrlimit(Resource::Core, limit);
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

fn dispatch(global: &Global, command: &Command) -> Exit {
    match command {
        Command::Run(args) => either(run::run(global, args)),
        Command::Check(args) => check::run(global, args),
        Command::Next(args) => next::run(global, args),
        Command::Status(args) => either(status::run(global, args)),
        Command::History(args) => either(history::run(global, args)),
        Command::Why(args) => either(why::run(global, args)),
        Command::Logs(args) => either(logs::run(global, args)),
        Command::Trigger(args) => either(orders::trigger(global, args)),
        Command::Pause(args) => either(orders::pause(global, args)),
        Command::Resume(args) => either(orders::resume(global, args)),
        Command::Kill(args) => either(orders::kill(global, args)),
        Command::RunOnce(args) => either(run_once::run(global, args)),
        Command::Lock(args) => either(lock::run(global, args)),
        Command::Verify(args) => either(verify::run(global, args)),
        Command::Import(args) => either(import::run(args)),
        Command::Schema => schema::run(),
        Command::Completions(args) => completions::run(args),
        Command::Man(args) => man::run(args),
        Command::Healthcheck(args) => either(healthcheck::run(global, args)),
    }
}

fn either(ended: Result<Exit, Exit>) -> Exit {
    ended.unwrap_or_else(|early| early)
}

/// Writes a result to stdout. A reader that has seen enough (`| head`) is no failure.
pub(crate) fn print(text: impl AsRef<[u8]>) -> Exit {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_ref())
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
    let mut stderr = io::stderr().lock();
    let _ = if journal::is_stderr() {
        stderr.write_all(journal::complaint(text).as_bytes())
    } else {
        stderr.write_all(text.as_bytes())
    };
}

/// Now, for what is shown to people; nothing is decided by it.
pub(crate) fn now() -> Timestamp {
    SystemClock.wall()
}

/// Whether stderr takes colours: a terminal that knows them, and nobody said no
/// (<https://no-color.org>).
pub(crate) fn stderr_has_colour() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stderr().is_terminal() && !unwanted && !dumb
}
